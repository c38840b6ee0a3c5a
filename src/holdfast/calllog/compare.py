"""Compare two logs, call by call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct

from holdfast._core.redact import Redactor
from holdfast.calllog.entries import Entry, RecordedLog, Source, read_log
from holdfast.calllog.matching import differences, key, normal, normal_arguments, told
from holdfast.calllog.results import NotRecorded, summary_of
from holdfast.policies import Redaction

Kind: TypeAlias = Literal["arguments", "outcome", "removed", "added"]


class CallChange(Struct, frozen=True):
    """One call that is not the same in both logs. ``details`` say how, ``first`` and then."""

    kind: Kind
    first: Entry | None
    second: Entry | None
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.first is None or self.second is None:
            entry = self.first or self.second
            return f"{'-' if self.second is None else '+'} {entry}"
        where = f"{self.first.name!r} (line {self.first.line}, then {self.second.line})"
        return "\n".join([f"! {where}: other {self.kind}", *(f"    {one}" for one in self.details)])


class Difference(Struct, frozen=True):
    """All that differs. False if nothing does."""

    first: str
    second: str
    same: int
    """Calls that are the same in both."""
    items: tuple[CallChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.items)

    def __iter__(self) -> Iterator[CallChange]:
        return iter(self.items)

    def __str__(self) -> str:
        calls = "1 call is" if self.same == 1 else f"{self.same} calls are"
        head = f"{calls} the same, {len(self.items)} not"
        if not self.items:
            return head
        return "\n".join([f"--- {self.first}", f"+++ {self.second}", head, *map(str, self.items)])


def compare(
    first: Source, second: Source, *, durations: bool = False, redaction: Redaction | None = None
) -> Difference:
    """Compare two logs. Calls are paired by name and arguments, in order.

    Durations are ignored unless ``durations`` is True.
    """
    one, two = read_log(first), read_log(second)
    redactor = Redactor(redaction or Redaction())
    keys = [_keys(log, redactor) for log in (one, two)]
    found: list[CallChange] = []
    same = 0
    for entry, other in _aligned(one, two, *keys):
        change = _change((one, entry), (two, other), redactor, times=durations)
        if change is None:
            same += 1
        else:
            found.append(change)
    return Difference(one.label, two.label, same, tuple(found))


def _keys(log: RecordedLog, redactor: Redactor) -> list[bytes]:
    return [key(entry.name, normal_arguments(entry.arguments, redactor)) for entry in log]


# Pairs


_Pair: TypeAlias = "tuple[Entry | None, Entry | None]"


def _aligned(
    one: RecordedLog, two: RecordedLog, ones: list[bytes], twos: list[bytes]
) -> Iterator[_Pair]:
    """The calls of both logs, each with its like; None where there is none."""
    start = _common(ones, twos)
    end = _common(ones[start:][::-1], twos[start:][::-1])
    yield from zip(one[:start], two[:start], strict=True)
    first, second = one[start : len(one) - end], two[start : len(two) - end]
    matcher = SequenceMatcher(
        None, ones[start : len(ones) - end], twos[start : len(twos) - end], autojunk=False
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(first[a:b], second[c:d], strict=True)
        else:
            yield from _by_name(first[a:b], second[c:d])
    yield from zip(one[len(one) - end :], two[len(two) - end :], strict=True)


def _common(ones: Sequence[bytes], twos: Sequence[bytes]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(ones, twos, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(ones), len(twos)))


def _by_name(first: Sequence[Entry], second: Sequence[Entry]) -> Iterator[_Pair]:
    """Pair calls that differ: those of one name are the same call with other arguments."""
    names = [[entry.name for entry in entries] for entries in (first, second)]
    matcher = SequenceMatcher(None, names[0], names[1], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(first[a:b], second[c:d], strict=True)
        else:
            yield from ((entry, None) for entry in first[a:b])
            yield from ((None, entry) for entry in second[c:d])


# Changes


def _change(
    one: tuple[RecordedLog, Entry | None],
    two: tuple[RecordedLog, Entry | None],
    redactor: Redactor,
    *,
    times: bool,
) -> CallChange | None:
    first, second = one[1], two[1]
    if first is None or second is None:
        return CallChange("added" if first is None else "removed", first, second)
    asked = [normal_arguments(entry.arguments, redactor) for entry in (first, second)]
    changed = _told(asked[0], asked[1])
    details = [*changed, *_outcomes(one[0], first, two[0], second)]
    if times and first.ms != second.ms:
        details.append(f"took {first.ms} ms, then {second.ms} ms")
    if not details:
        return None
    return CallChange("arguments" if changed else "outcome", first, second, tuple(details))


def _outcomes(one: RecordedLog, first: Entry, two: RecordedLog, second: Entry) -> list[str]:
    if first.ok is not second.ok:
        return [f"{_ended(first)}, then {_ended(second)}"]
    if not first.ok:
        return [] if first.error == second.error else [f"{_ended(first)}, then {_ended(second)}"]
    try:
        shown = [log.value(entry) for log, entry in ((one, first), (two, second))]
    except NotRecorded:
        shown = [_size(entry) for entry in (first, second)]
        if shown[0] is None or shown[1] is None:
            return []  # one of them has it, the other only how long it was: no telling
    then, now = (UNSET if value is UNSET else normal(value) for value in shown)
    return _told(then, now, "result")


def _told(one: Any, other: Any, where: str = "") -> list[str]:
    text = told(differences(one, other, where), "first", "then")
    return [text] if text else []


def _ended(entry: Entry) -> str:
    if entry.ok is None:
        return "not ended"
    return "ok" if entry.ok else f"failed ({entry.error})"


def _size(entry: Entry) -> str | None:
    summary = summary_of(entry.result)
    return None if summary is None else f"[{summary[1]} {summary[2]} chars]"
