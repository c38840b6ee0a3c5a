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

from holdfast._core.redact.redactor import Redactor
from holdfast._core.text import counted, join_words, label
from holdfast.calllog.compare import describe, differences, has_hidden, normal, size_of
from holdfast.calllog.entries import Entry, RecordedLog, Source, read_log
from holdfast.calllog.results import Long, NotRecorded, short, show, whole_of
from holdfast.errors import Hint, HoldfastError, ToolError, ValidationError
from holdfast.policies import Redaction
from holdfast.types.tools import ToolResult

Confirm: TypeAlias = "Callable[[list[Entry]], bool | Awaitable[bool]]"
Ask: TypeAlias = "Callable[[Entry, str], Any]"
Verdict: TypeAlias = Literal["same", "different", "unrecorded", "unsent"]
_NAMES: Final = {"unrecorded": "not recorded", "unsent": "not sent"}


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
        how = [_NAMES.get(self.verdict, self.verdict)]
        if self.verdict != "unsent":
            how.append("ok" if self.ok else "failed")
        lines = [f"{self.entry}: {', '.join(how)}", self.error, self.note]
        return "\n      ".join(filter(None, lines))


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
        summary = ", ".join(f"{n} {_NAMES.get(name, name)}" for name, n in counts.items())
        calls = counted(len(self), "call")
        lines = [f"  {number} {outcome}" for number, outcome in enumerate(self.outcomes, 1)]
        return "\n".join([f"{calls}: {summary}" if summary else calls, *lines])


async def replay(
    caller: Any,
    lines: Source,
    *,
    stop: bool = True,
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
    entries = [entry for entry in log if entry.has_request and not _keeps(caller, entry)]
    call = _call_method(caller)
    filled = await _prepare(caller, entries, fill, ask, confirm)
    redactor = Redactor(redaction or Redaction())
    report = ReplayReport([Outcome(entry=entry) for entry in entries])
    for outcome, arguments in zip(report.outcomes, filled, strict=True):
        await _play(call, outcome, arguments)
        _judge(outcome, log, redactor)
        if stop and not outcome.ok and outcome.entry.ok is not False:
            break
    return report


async def _prepare(
    caller: Any,
    entries: list[Entry],
    fill: Mapping[str, Any] | None,
    ask: Ask | None,
    confirm: Confirm | None,
) -> list[dict[str, Any]]:
    """Return the arguments of all calls, restored and confirmed."""
    secrets = dict(fill or {})
    if ask is None:
        _filled(entries, secrets)  # refuse before the user is asked to confirm
    if confirm is not None:
        await _require_confirmation(caller, entries, confirm)
    if ask is not None:
        await _ask_for_missing(ask, entries, secrets)
    return _filled(entries, secrets)


async def planned_calls(
    caller: Any,
    lines: Source,
    *,
    fill: Mapping[str, Any] | None = None,
    confirm: Confirm | None = None,
) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a log to be made, each as a tool and its arguments.

    Takes and raises what `replay` does; sends nothing but the list of tools.
    """
    entries = [entry for entry in read_log(lines) if entry.has_request]
    filled = await _prepare(caller, entries, fill, None, confirm)
    return [(entry.name, arguments) for entry, arguments in zip(entries, filled, strict=True)]


async def run_sequence(
    caller: Any,
    path: str | os.PathLike[str],
    *,
    stop: bool = True,
    fill: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    confirm: Confirm | None = None,
) -> ReplayReport:
    """Run the calls of a file in order; ``results`` of the report are what they returned.

    The file has JSON lines without a session: a handle adds its own where a tool takes one.
    The options are those of `replay`.
    """
    return await replay(caller, Path(path), stop=stop, fill=fill, ask=ask, confirm=confirm)


def _call_method(caller: Any) -> Callable[..., Any]:
    call: Any = getattr(caller, "call_tool", None) or getattr(caller, "call", None)
    if not callable(call):
        raise ValidationError(f"{caller!r} is no client and no handle: it has no call_tool")
    return call  # type: ignore[no-any-return]


async def _settled(value: Any) -> Any:
    """Return what a plain function gave, or what an async one gives."""
    return await value if inspect.isawaitable(value) else value


async def _play(call: Callable[..., Any], outcome: Outcome, arguments: dict[str, Any]) -> None:
    """Send one call, and fill in how it ended."""
    # What became a task may do so again, if only because it takes that long.
    options = {} if outcome.entry.task is None else {"task": True}
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
    then, result = outcome.entry, outcome.result
    outcome.verdict = "unrecorded" if then.ok is None else "same"
    if then.ok is not None and then.ok is not outcome.ok:
        outcome.verdict = "different"
        outcome.note = f"recorded: {'ok' if then.ok else f'failed: {then.error}'}"
    if not (then.ok and outcome.ok):
        return  # Two failures are alike: their words often have times and addresses in them.
    if isinstance(result, ToolResult):
        _compare_results(outcome, result, log, redactor)
    else:
        outcome.note = "the result was not compared: it is no tool result"


def _compare_results(
    outcome: Outcome, result: ToolResult, log: RecordedLog, redactor: Redactor
) -> None:
    """Compare two results; where only the size of the recorded one is known, their sizes."""
    then = outcome.entry
    try:
        values = (log.value(then), redactor.value(short(whole_of(result))))
        empty: dict[str, Any] = {"content": []}
        before, now = (normal(empty if value is UNSET else value) for value in values)
        note = describe(differences(before, now, "result", hidden=True))
    except NotRecorded as error:
        outcome.note, size, long = str(error), size_of(then), show(result, redactor, 0)
        now_size = long.summary() if isinstance(long, Long) else "nothing"
        note = "" if size in (None, now_size) else f"recorded {size}, now {now_size}"
    if note:
        outcome.verdict, outcome.note = "different", note


# Calls


def _keeps(caller: Any, entry: Entry) -> bool:
    """Return True if the handle itself makes this call, to open or close its session."""
    adapter, session = getattr(caller, "adapter", None), getattr(caller, "session", None)
    if session is None or not entry.recorded or entry.name not in getattr(adapter, "lifecycle", ()):
        return False
    session_arguments: dict[str, Any] = adapter.inject_session({}, session)  # type: ignore[union-attr]
    return session_arguments.items() <= entry.arguments.items()


# A log is data that may come from anywhere, and to replay it is to run it: a cloned repository
# could bring one that deletes what it names. So nothing is sent that the user has not confirmed,
# but for tools whose server says that they only read; and a server that lists two tools of one
# name gets no benefit of the doubt.


async def _require_confirmation(caller: Any, entries: list[Entry], confirm: Confirm) -> None:
    """Ask before calls that may change something: the log may be part of a cloned repository."""
    safe = await _read_only_tools(getattr(caller, "client", caller))
    unsafe = [entry for entry in entries if entry.name not in safe]
    if unsafe and not await _settled(confirm(unsafe)):
        names = join_words([label(name) for name in dict.fromkeys(tool.name for tool in unsafe)])
        raise ValidationError(f"calls of {names} were not confirmed; nothing was sent")


async def _read_only_tools(client: Any) -> set[str]:
    """Return the names of the tools that their server declares read-only."""
    listed = await _settled(client.list_tools()) if hasattr(client, "list_tools") else ()
    # With two tools of one name, either may be called: both must be read-only.
    hints = [(tool.name, tool.annotations) for tool in listed]
    risky = {name for name, hint in hints if hint is None or hint.read_only_hint is not True}
    return {name for name, _ in hints} - risky


# Secrets


async def _ask_for_missing(ask: Ask, entries: list[Entry], secrets: dict[str, Any]) -> None:
    """Ask for the values of redacted fields, once for each name; add them to the secrets."""
    for entry in entries:
        _, missing = _fill(entry.arguments, secrets)
        for name in missing:
            if (answer := await _settled(ask(entry, name))) is not None:
                secrets[name] = answer


def _fill(value: Any, secrets: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a value with what is redacted restored, and the names for which there is no value."""
    missing: dict[str, None] = {}

    def fill(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: fill(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item, name) for item in value]
        if has_hidden(value):
            if name in secrets:
                return secrets[name]
            missing[name] = None
        return value

    return fill(value, ""), list(missing)


def _filled(entries: list[Entry], secrets: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments of all calls, restored; raise if any are missing."""
    filled = [(entry, *_fill(entry.arguments, secrets)) for entry in entries]
    lines = [f"  {entry}: {', '.join(missing)}" for entry, _, missing in filled if missing]
    if lines:
        raise ValidationError(
            "these calls have redacted arguments; nothing was sent:\n" + "\n".join(lines[:10]),
            hints=(Hint("fill", "gives their values"),),
        )
    return [arguments for _, arguments, _ in filled]
