"""Compare calls and whole logs.

The order of keys is ignored, 1 equals 1.0, and secrets are compared in their redacted form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

from holdfast._core.redact import HIDDEN, Redactor
from holdfast._core.text import truncate
from holdfast.calllog.entries import Entry, RecordedLog, Source, read_log
from holdfast.calllog.results import NotRecorded, compact, summary_of
from holdfast.policies import Redaction
from holdfast.schema.types import canonical

LONGEST: Final = 80
"""Characters of one value that are shown."""
MOST: Final = 8
"""The most differences that are reported."""
_EXACT: Final = 2**53
"""Up to here, every whole number is a float as well."""


class Differing(Struct, frozen=True):
    """One place where two values differ. UNSET: there is nothing there."""

    path: str
    one: Any
    other: Any

    def describe(self, first: str, second: str) -> str:
        """Return the difference as text; the arguments label the two values."""
        return (
            f"{self.path or 'the whole'}: {first} {brief(self.one)}, {second} {brief(self.other)}"
        )


def normal(value: Any) -> Any:
    """Return a JSON value in the one form that all equal ones share."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return value


def normal_arguments(
    arguments: Mapping[str, Any], redactor: Redactor, secret: frozenset[str] | None = frozenset()
) -> Any:
    """Return the arguments redacted and in normal form."""
    return normal(redactor.value(dict(arguments), secret))


def key(name: str, arguments: Any) -> bytes:
    """Return a key that equal calls share; ``arguments`` are in normal form."""
    return canonical([name, arguments])


def has_hidden(value: Any) -> bool:
    """Return True if anything in a value is redacted."""
    if isinstance(value, str):
        return HIDDEN in value
    if isinstance(value, dict):
        return any(has_hidden(item) for item in value.values())
    return isinstance(value, list) and any(has_hidden(item) for item in value)


def fits(recorded: Any, given: Any) -> bool:
    """Return True if a value equals the recorded one, redacted parts aside."""
    return not any(True for _ in differences(recorded, given, hidden=True))


def differences(
    one: Any, other: Any, path: str = "", *, hidden: bool = False
) -> Iterator[Differing]:
    """Yield the differences; with ``hidden``, redacted parts of ``one`` match anything."""
    if hidden and one == HIDDEN and other is not UNSET:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            inside = f"{path}.{name}" if path else str(name)
            yield from differences(
                one.get(name, UNSET), other.get(name, UNSET), inside, hidden=hidden
            )
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            here = one[index] if index < len(one) else UNSET
            there = other[index] if index < len(other) else UNSET
            yield from differences(here, there, f"{path}[{index}]", hidden=hidden)
    elif type(one) is not type(other) or one != other:
        yield Differing(path, one, other)


def brief(value: Any) -> str:
    """Return a value in a few characters."""
    if value is UNSET:
        return "nothing"
    return truncate(compact(value).decode(), LONGEST)


def describe(found: Iterable[Differing], first: str = "recorded", second: str = "now") -> str:
    """Return differences in one sentence."""
    all_of_them = list(found)
    shown = [one.describe(first, second) for one in all_of_them[:MOST]]
    more = len(all_of_them) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def nearest(given: Any, entries: Iterable[tuple[Entry, Any]]) -> tuple[Entry, list[Differing]]:
    """Return the entry whose normal arguments differ least, and the differences."""
    measured = [
        (list(differences(recorded, given, hidden=True)), entry) for entry, recorded in entries
    ]
    found, entry = min(measured, key=lambda one: (len(one[0]), one[1].line))
    return entry, found


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
    """Compare two logs, pairing calls by name and arguments, in order.

    Args:
        first: The log before.
        second: The log after.
        durations: Compare durations too.
        redaction: The policy that the logs were written with.
    """
    one, two = read_log(first), read_log(second)
    redactor = Redactor(redaction or Redaction())
    keys = [
        [key(entry.name, normal_arguments(entry.arguments, redactor)) for entry in log]
        for log in (one, two)
    ]
    found: list[CallChange] = []
    same = 0
    for entry, other in _aligned(one, two, *keys):
        change = _change((one, entry), (two, other), redactor, times=durations)
        if change is None:
            same += 1
        else:
            found.append(change)
    return Difference(one.label, two.label, same, tuple(found))


# Pairs


_Pair: TypeAlias = "tuple[Entry | None, Entry | None]"


def _aligned(
    first: Sequence[Entry], second: Sequence[Entry], ones: list[bytes], twos: list[bytes]
) -> Iterator[_Pair]:
    """Pair the calls of both logs; None where there is no counterpart."""
    a = b = 0
    for at, to in _common(ones, twos):
        yield from _by_name(first[a:at], second[b:to])
        yield first[at], second[to]
        a, b = at + 1, to + 1
    yield from _by_name(first[a:], second[b:])


def _by_name(first: Sequence[Entry], second: Sequence[Entry]) -> Iterator[_Pair]:
    """Pair calls that differ: those of one name are the same call with other arguments."""
    a = b = 0
    pairs = _common([entry.name for entry in first], [entry.name for entry in second])
    for at, to in [*pairs, (len(first), len(second))]:
        yield from ((entry, None) for entry in first[a:at])
        yield from ((None, entry) for entry in second[b:to])
        if at < len(first):
            yield first[at], second[to]
        a, b = at + 1, to + 1


def _common(ones: Sequence[Any], twos: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the places of equal items, in the order of both lists.

    The n-th of several equal items is paired with the n-th, after what the lists begin and end
    with; of those pairs the longest increasing sequence is taken. That is n log n, where the time
    of `difflib` grows with the third power for a log that repeats its calls.
    """
    least = min(len(ones), len(twos))
    start = next((at for at in range(least) if ones[at] != twos[at]), least)
    left = least - start
    end = next((at for at in range(left) if ones[-1 - at] != twos[-1 - at]), left)
    places = _numbered(twos, start, len(twos) - end)
    wanted = _numbered(ones, start, len(ones) - end)
    middle = _increasing([(at, places[one]) for one, at in wanted.items() if one in places])
    head = [(at, at) for at in range(start)]
    return [*head, *middle, *((len(ones) - at, len(twos) - at) for at in range(end, 0, -1))]


def _numbered(items: Sequence[Any], start: int, end: int) -> dict[tuple[Any, int], int]:
    """Return where each item is, by the item and how many equal ones came before it."""
    seen: Counter[Any] = Counter()
    found: dict[tuple[Any, int], int] = {}
    for at in range(start, end):
        found[items[at], seen[items[at]]] = at
        seen[items[at]] += 1
    return found


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs whose second numbers increase as the first do."""
    ends: list[int] = []
    """The smallest last number of a sequence of each length, and in `at` which pair it is of."""
    at: list[int] = []
    before: list[int] = []
    for index, (_, to) in enumerate(pairs):
        length = bisect_left(ends, to)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [to]
        at[length : length + 1] = [index]
    found = []
    last = at[-1] if at else -1
    while last >= 0:
        found.append(pairs[last])
        last = before[last]
    return found[::-1]


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
    changed = _described(asked[0], asked[1])
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
    return _described(then, now, "result")


def _described(one: Any, other: Any, where: str = "") -> list[str]:
    text = describe(differences(one, other, where), "first", "then")
    return [text] if text else []


def _ended(entry: Entry) -> str:
    if entry.ok is None:
        return "not ended"
    return "ok" if entry.ok else f"failed ({entry.error})"


def _size(entry: Entry) -> str | None:
    summary = summary_of(entry.result)
    return None if summary is None else f"[{summary[1]} {summary[2]} chars]"
