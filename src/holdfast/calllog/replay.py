"""Calls sent again, and how they end now next to how they ended then."""

from __future__ import annotations

import inspect
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct, field

from holdfast._core.redact import Redactor
from holdfast._core.text import counted, join_words, label
from holdfast.calllog.compare import describe, differences, has_hidden, normal
from holdfast.calllog.entries import Entry, RecordedLog, Source, read_log
from holdfast.calllog.results import Long, NotRecorded, short, show, summary_of, whole_of
from holdfast.errors import HoldfastError, ToolError, ValidationError
from holdfast.policies import Redaction, one_of
from holdfast.types.tools import ToolResult

Confirm: TypeAlias = "Callable[[list[Entry]], bool | Awaitable[bool]]"
Ask: TypeAlias = "Callable[[Entry, str], Any]"
Verdict: TypeAlias = Literal["same", "different", "unrecorded", "unsent"]

_NOTHING: Final = "The tool failed and gave no reason."


class Outcome(Struct, kw_only=True):
    """The outcome of one replayed call, and its comparison with the recorded one."""

    entry: Entry
    verdict: Verdict = "unsent"
    ok: bool = False
    result: Any = None
    """The `ToolResult` of the call; None if the call raised."""
    error: str | None = None
    exception: HoldfastError | None = None
    ms: int = 0
    note: str = ""
    """The differences, or the reason why there was no comparison."""

    @property
    def expected(self) -> bool:
        """It went as recorded; or, if nothing was, it went well."""
        return self.verdict == "same" or (self.verdict == "unrecorded" and self.ok)

    def __str__(self) -> str:
        how = "ok" if self.ok else "failed"
        how = {"unrecorded": f"{how}, not recorded", "unsent": "not sent"}.get(
            self.verdict, f"{self.verdict}, {how}"
        )
        why = [] if self.error is None else [self.error]
        return "\n      ".join([f"{self.entry}: {how}", *why, *([self.note] if self.note else [])])


class ReplayReport(Struct):
    """The outcomes of all calls."""

    outcomes: list[Outcome] = field(default_factory=list)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def ok(self) -> bool:
        """Every call went as recorded, or, where nothing was, went well."""
        return all(outcome.expected for outcome in self.outcomes)

    @property
    def results(self) -> list[Any]:
        """Return the result of each call; None for one that raised or was not sent."""
        return [outcome.result for outcome in self.outcomes]

    def raise_for_error(self) -> ReplayReport:
        """This report, or the error of the first call that failed and had not failed before."""
        for outcome in self.outcomes:
            if outcome.ok or outcome.expected or outcome.verdict == "unsent":
                continue
            if outcome.exception is not None:
                raise outcome.exception
            raise ToolError(f"{outcome.entry}: {outcome.error}", data=outcome.result)
        return self

    def __str__(self) -> str:
        counts = Counter(outcome.verdict for outcome in self.outcomes)
        names = {"unrecorded": "not recorded", "unsent": "not sent"}
        summary = ", ".join(f"{n} {names.get(name, name)}" for name, n in counts.items())
        calls = counted(len(self), "call")
        lines = [f"  {number} {one}" for number, one in enumerate(self.outcomes, 1)]
        return "\n".join([f"{calls}: {summary}" if summary else calls, *lines])


async def replay(
    caller: Any,
    lines: Source,
    *,
    stop: bool = True,
    compare: bool = True,
    timeout: float | None = None,
    fill: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    redacted: Literal["refuse", "send"] = "refuse",
    redaction: Redaction | None = None,
    confirm: Confirm | None = None,
) -> ReplayReport:
    """Send the calls of a log again, in order, one at a time.

    Args:
        caller: A client, or anything else with ``call_tool``. A handle adds its session, which it
            opens and closes by itself: calls of the log that do so are left out.
        lines: The log: a path, its lines, or a `RecordedLog`.
        stop: End at the first call that fails without having failed in the log.
        compare: Compare each outcome with the recorded one.
        timeout: Seconds for each call.
        fill: Values for redacted arguments, by the names of their fields. Without them nothing is
            sent at all, unless ``redacted="send"``.
        ask: Asked for each redacted field that ``fill`` has no value for, once for each name,
            with the call and the name. None as an answer leaves it redacted. It may be async.
        redacted: Send redacted arguments as they are in the log, or refuse to.
        redaction: The policy that the log was written with.
        confirm: Asked once, before anything is sent, with the calls of tools that the server does
            not declare read-only; if it returns False, nothing is sent. Give it for a log that
            somebody else wrote. It may be async. By default every call is sent.

    Raises:
        ValidationError: The log cannot be read, has redacted arguments, or was not confirmed.
    """
    one_of("redacted", redacted, ("refuse", "send"))
    log = read_log(lines)
    entries = [entry for entry in log if entry.asked and not _keeps(caller, entry)]
    secrets = dict(fill or {})
    if redacted == "refuse" and ask is None:
        _refuse_hidden(entries, secrets)
    if confirm is not None:
        await _require_confirmation(caller, entries, confirm)
    if ask is not None:
        await _ask_for_hidden(entries, secrets, ask)
        if redacted == "refuse":
            _refuse_hidden(entries, secrets)
    given = [_filled(entry.arguments, secrets) for entry in entries]
    player = _Player(caller, log, compare, timeout, Redactor(redaction or Redaction()))
    report = ReplayReport([Outcome(entry=entry) for entry in entries])
    for outcome, arguments in zip(report.outcomes, given, strict=True):
        await player.play(outcome, arguments)
        if stop and not outcome.ok and outcome.entry.ok is not False:
            break
    return report


async def run_sequence(
    caller: Any,
    path: str | os.PathLike[str],
    *,
    stop: bool = True,
    timeout: float | None = None,
    fill: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    confirm: Confirm | None = None,
) -> ReplayReport:
    """Run the calls of a file in order; ``results`` of the report are what they returned.

    The file has JSON lines without a session: a handle adds its own where a tool takes one.
    The options are those of `replay`.
    """
    return await replay(
        caller, Path(path), stop=stop, timeout=timeout, fill=fill, ask=ask, confirm=confirm
    )


class _Player:
    """Sends one call after the other."""

    def __init__(
        self,
        caller: Any,
        log: RecordedLog,
        compare: bool,
        timeout: float | None,
        redactor: Redactor,
    ) -> None:
        self._call = _call_of(caller)
        self._options = {} if timeout is None else {"timeout": timeout}
        self._log = log
        self._compare = compare
        self._redactor = redactor

    async def play(self, outcome: Outcome, arguments: dict[str, Any]) -> None:
        """Send one call, and fill in its outcome."""
        began = time.perf_counter()
        try:
            # What became a task may do so again, if only because it takes that long.
            as_task = {} if outcome.entry.task is None else {"task": True}
            found = self._call(outcome.entry.name, arguments, **self._options, **as_task)
            outcome.result = await found if inspect.isawaitable(found) else found
            outcome.ok = not getattr(outcome.result, "is_error", False)
            if not outcome.ok:
                outcome.error = outcome.result.text or _NOTHING
        except ToolError as error:
            outcome.result = error.data if isinstance(error.data, ToolResult) else None
            outcome.error, outcome.exception = error.message, error
        except HoldfastError as error:
            outcome.error, outcome.exception = error.message, error
        outcome.ms = round((time.perf_counter() - began) * 1000)
        self._judge(outcome)

    def _judge(self, outcome: Outcome) -> None:
        then = outcome.entry
        outcome.verdict = "unrecorded"
        if not self._compare or then.ok is None:
            return
        if then.ok is not outcome.ok:
            outcome.verdict = "different"
            outcome.note = f"recorded: {'ok' if then.ok else f'failed: {then.error}'}"
        elif not outcome.ok:
            # Two failures are alike: their words often have times and addresses in them.
            outcome.verdict = "same"
        else:
            note, outcome.note = self._difference(then, outcome.result)
            outcome.verdict = "different" if note else "same"
            outcome.note = note or outcome.note

    def _difference(self, then: Entry, result: Any) -> tuple[str, str]:
        """Return the differences, and the parts that could not be compared."""
        if not isinstance(result, ToolResult):
            return "", "the result was not compared: it is no tool result"
        try:
            recorded = self._log.value(then)
        except NotRecorded as error:
            return _by_size(then, result, self._redactor), str(error)
        now = self._redactor.value(_plain(short(whole_of(result))))
        then_now = normal(_plain(recorded)), normal(now)
        return describe(differences(*then_now, "result", hidden=True)), ""


def _by_size(then: Entry, result: ToolResult, redactor: Redactor) -> str:
    summary = summary_of(then.result)
    shown = show(result, redactor, 0)
    now = shown.summary() if isinstance(shown, Long) else "nothing"
    then_shown = "" if summary is None else f"[{summary[1]} {summary[2]} chars]"
    return f"recorded {then_shown}, now {now}" if then_shown not in ("", now) else ""


def _plain(value: Any) -> Any:
    """Return a value to compare; a missing one is an empty result."""
    return {"content": []} if value is UNSET else value


def _call_of(caller: Any) -> Callable[..., Any]:
    for name in ("call_tool", "call"):
        found = getattr(caller, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise ValidationError(f"{caller!r} is no client and no handle: it has no call_tool")


def _keeps(caller: Any, entry: Entry) -> bool:
    """Return True if the handle itself makes this call, to open or close its session."""
    adapter, session = getattr(caller, "adapter", None), getattr(caller, "session", None)
    if session is None or not entry.recorded or entry.name not in getattr(adapter, "lifecycle", ()):
        return False
    own: dict[str, Any] = adapter.inject_session({}, session)  # type: ignore[union-attr]
    return own.items() <= entry.arguments.items()


# Confirmation


async def _require_confirmation(caller: Any, entries: list[Entry], confirm: Confirm) -> None:
    """Ask before calls that may change something: a log may come with somebody's project."""
    safe = await _read_only(getattr(caller, "client", caller))
    risky = [entry for entry in entries if entry.name not in safe]
    if not risky:
        return
    answer = confirm(risky)
    if not (await answer if inspect.isawaitable(answer) else answer):
        names = join_words([label(name) for name in dict.fromkeys(one.name for one in risky)])
        raise ValidationError(f"calls of {names} were not confirmed; nothing was sent")


async def _read_only(client: Any) -> set[str]:
    """Return the names of the tools that the server declares read-only."""
    if not callable(getattr(client, "list_tools", None)):
        return set()
    found = client.list_tools()
    tools = await found if inspect.isawaitable(found) else found
    hints = [(tool.name, tool.annotations) for tool in tools]
    risky = {name for name, hint in hints if hint is None or hint.read_only_hint is not True}
    # Of two tools of one name nobody knows which one is called.
    return {name for name, _ in hints} - risky


# Secrets


def _filled(value: Any, secrets: Mapping[str, Any], name: str = "") -> Any:
    """Return the arguments with redacted values restored, where they are known."""
    if isinstance(value, dict):
        return {key: _filled(item, secrets, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, secrets, name) for item in value]
    return secrets[name] if has_hidden(value) and name in secrets else value


def _hidden_names(value: Any, name: str = "") -> Iterator[str]:
    """Yield the names of the fields that hold something redacted."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _hidden_names(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _hidden_names(item, name)
    elif has_hidden(value):
        yield name


async def _ask_for_hidden(entries: list[Entry], secrets: dict[str, Any], ask: Ask) -> None:
    for entry in entries:
        for name in _hidden_names(entry.arguments):
            if name not in secrets:
                answer = ask(entry, name)
                answer = await answer if inspect.isawaitable(answer) else answer
                if answer is not None:
                    secrets[name] = answer


def _refuse_hidden(entries: list[Entry], secrets: Mapping[str, Any]) -> None:
    missing = [
        (entry, [name for name in _hidden_names(entry.arguments) if name not in secrets])
        for entry in entries
    ]
    found = [f"  {entry}: {', '.join(dict.fromkeys(names))}" for entry, names in missing if names]
    if found:
        raise ValidationError(
            "these calls have redacted arguments; nothing was sent. Give their values with "
            "fill={name: value} or ask=…, or send them as they stand with redacted='send':\n"
            + "\n".join(found[:10])
        )
