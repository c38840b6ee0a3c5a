"""Calls sent again, and how they end now next to how they ended then."""

from __future__ import annotations

import inspect
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, field

from holdfast._core.redact import Redactor
from holdfast._core.text import counted, join_words, label
from holdfast.calllog.compare import describe, differences, has_hidden, normal, size_of
from holdfast.calllog.entries import Entry, RecordedLog, Source, read_log
from holdfast.calllog.results import Long, NotRecorded, short, show, whole_of
from holdfast.errors import HoldfastError, ToolError, ValidationError
from holdfast.policies import Redaction
from holdfast.types.tools import ToolResult

Confirm: TypeAlias = "Callable[[list[Entry]], bool | Awaitable[bool]]"
Ask: TypeAlias = "Callable[[Entry, str], Any]"
Verdict: TypeAlias = Literal["same", "different", "unrecorded", "unsent"]


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
    timeout: float | None = None,
    fill: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    redaction: Redaction | None = None,
    confirm: Confirm | None = None,
) -> ReplayReport:
    """Send the calls of a log again, in order, one at a time.

    Args:
        caller: A client, or anything else with ``call_tool``. A handle adds its session, which it
            opens and closes by itself: calls of the log that do so are left out.
        lines: The log: a path, its lines, or a `RecordedLog`.
        stop: End at the first call that fails without having failed in the log.
        timeout: Seconds for each call.
        fill: Values for redacted arguments, by the names of their fields. Without them nothing is
            sent at all.
        ask: Asked for each redacted field that ``fill`` has no value for, once for each name,
            with the call and the name. None: there is no value for it. It may be async.
        redaction: The policy that the log was written with.
        confirm: Asked once, before anything is sent, with the calls of tools that the server does
            not declare read-only; if it returns False, nothing is sent. Give it for a log that
            somebody else wrote. It may be async. By default every call is sent.

    Raises:
        ValidationError: The log cannot be read, has redacted arguments, or was not confirmed.
    """
    log = read_log(lines)
    entries = [entry for entry in log if entry.asked and not _keeps(caller, entry)]
    call = getattr(caller, "call_tool", None) or getattr(caller, "call", None)
    if not callable(call):
        raise ValidationError(f"{caller!r} is no client and no handle: it has no call_tool")
    secrets = dict(fill or {})
    if ask is None:
        _filled(entries, secrets)  # refuse before anybody is asked
    if confirm is not None:
        await _require_confirmation(caller, entries, confirm)
    if ask is not None:
        for entry, name in [(one, name) for one in entries for name in _fill(one.arguments, {})[1]]:
            if name not in secrets and (answer := await _settled(ask(entry, name))) is not None:
                secrets[name] = answer
    given = _filled(entries, secrets)
    redactor = Redactor(redaction or Redaction())
    report = ReplayReport([Outcome(entry=entry) for entry in entries])
    for outcome, arguments in zip(report.outcomes, given, strict=True):
        await _play(call, outcome, arguments, {} if timeout is None else {"timeout": timeout})
        _judge(outcome, log, redactor)
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


async def _settled(value: Any) -> Any:
    """Return what a plain function gave, or what an async one gives."""
    return await value if inspect.isawaitable(value) else value


async def _play(
    call: Callable[..., Any], outcome: Outcome, arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    """Send one call, and fill in how it ended."""
    if outcome.entry.task is not None:
        # What became a task may do so again, if only because it takes that long.
        options = {**options, "task": True}
    began = time.perf_counter()
    try:
        outcome.result = await _settled(call(outcome.entry.name, arguments, **options))
        outcome.ok = not getattr(outcome.result, "is_error", False)
        if not outcome.ok:
            outcome.error = outcome.result.text or "The tool failed and gave no reason."
    except HoldfastError as error:
        if isinstance(error, ToolError) and isinstance(error.data, ToolResult):
            outcome.result = error.data
        outcome.error, outcome.exception = error.message, error
    outcome.ms = round((time.perf_counter() - began) * 1000)


# Comparison


def _judge(outcome: Outcome, log: RecordedLog, redactor: Redactor) -> None:
    """Compare an outcome with the recorded one."""
    then = outcome.entry
    outcome.verdict = "unrecorded" if then.ok is None else "same"
    if then.ok is None:
        return
    if then.ok is not outcome.ok:
        outcome.verdict = "different"
        outcome.note = f"recorded: {'ok' if then.ok else f'failed: {then.error}'}"
    elif outcome.ok:  # Two failures are alike: their words often have times and addresses in them.
        note, outcome.note = _difference(then, outcome.result, log, redactor)
        if note:
            outcome.verdict, outcome.note = "different", note


def _difference(then: Entry, result: Any, log: RecordedLog, redactor: Redactor) -> tuple[str, str]:
    """Return the differences, and the parts that could not be compared."""
    if not isinstance(result, ToolResult):
        return "", "the result was not compared: it is no tool result"
    try:
        recorded = log.value(then)
    except NotRecorded as error:
        shown, size = show(result, redactor, 0), size_of(then)
        now = shown.summary() if isinstance(shown, Long) else "nothing"
        return "" if size in (None, now) else f"recorded {size}, now {now}", str(error)
    nothing: dict[str, Any] = {"content": []}
    before, found = (
        nothing if value is UNSET else value for value in (recorded, short(whole_of(result)))
    )
    differing = differences(normal(before), normal(redactor.value(found)), "result", hidden=True)
    return describe(differing), ""


# Calls


def _keeps(caller: Any, entry: Entry) -> bool:
    """Return True if the handle itself makes this call, to open or close its session."""
    adapter, session = getattr(caller, "adapter", None), getattr(caller, "session", None)
    if session is None or not entry.recorded or entry.name not in getattr(adapter, "lifecycle", ()):
        return False
    own: dict[str, Any] = adapter.inject_session({}, session)  # type: ignore[union-attr]
    return own.items() <= entry.arguments.items()


async def _require_confirmation(caller: Any, entries: list[Entry], confirm: Confirm) -> None:
    """Ask before calls that may change something: a log may come with somebody's project."""
    safe = await _read_only(getattr(caller, "client", caller))
    risky = [entry for entry in entries if entry.name not in safe]
    if not risky:
        return
    if not await _settled(confirm(risky)):
        names = join_words([label(name) for name in dict.fromkeys(one.name for one in risky)])
        raise ValidationError(f"calls of {names} were not confirmed; nothing was sent")


async def _read_only(client: Any) -> set[str]:
    """Return the names of the tools that the server declares read-only."""
    if not callable(getattr(client, "list_tools", None)):
        return set()
    hints = [(tool.name, tool.annotations) for tool in await _settled(client.list_tools())]
    risky = {name for name, hint in hints if hint is None or hint.read_only_hint is not True}
    # Of two tools of one name nobody knows which one is called.
    return {name for name, _ in hints} - risky


# Secrets


def _fill(value: Any, secrets: Mapping[str, Any], name: str = "") -> tuple[Any, list[str]]:
    """Return a value with what is redacted restored, and the names for which there is no value."""
    if isinstance(value, dict):
        filled = {key: _fill(item, secrets, key) for key, item in value.items()}
        return {key: one for key, (one, _) in filled.items()}, _missing(filled.values())
    if isinstance(value, list):
        items = [_fill(item, secrets, name) for item in value]
        return [one for one, _ in items], _missing(items)
    if not has_hidden(value):
        return value, []
    return (secrets[name], []) if name in secrets else (value, [name])


def _missing(filled: Iterable[tuple[Any, list[str]]]) -> list[str]:
    return list(dict.fromkeys(name for _, names in filled for name in names))


def _filled(entries: list[Entry], secrets: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments of all calls, restored; raise if any are missing."""
    filled = [(entry, *_fill(entry.arguments, secrets)) for entry in entries]
    found = [f"  {entry}: {', '.join(missing)}" for entry, _, missing in filled if missing]
    if found:
        raise ValidationError(
            "these calls have redacted arguments; nothing was sent. Give their values with "
            "fill={name: value} or ask=…:\n" + "\n".join(found[:10])
        )
    return [given for _, given, _ in filled]
