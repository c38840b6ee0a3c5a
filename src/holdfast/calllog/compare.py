"""Compare calls and whole logs.

The order of keys is ignored, 1 equals 1.0, and secrets are compared in their redacted form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

from holdfast._core.redact.redactor import HIDDEN, Redactor
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
    first: Any
    second: Any


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


def has_hidden(value: Any) -> bool:
    """Return True if anything in a value is redacted."""
    if isinstance(value, str):
        return HIDDEN in value
    if isinstance(value, dict):
        return any(has_hidden(item) for item in value.values())
    return isinstance(value, list) and any(has_hidden(item) for item in value)


def differences(
    first: Any, second: Any, path: str = "", *, hidden: bool = False
) -> Iterator[Differing]:
    """Yield the differences; with ``hidden``, redacted parts of ``first`` match anything."""
    if hidden and first == HIDDEN and second is not UNSET:
        return
    parts = _side_by_side(first, second, path)
    if parts is not None:
        for part in parts:
            yield from differences(*part, hidden=hidden)
    elif type(first) is not type(second) or first != second:
        yield Differing(path, first, second)


def _side_by_side(first: Any, second: Any, path: str) -> Iterable[tuple[Any, Any, str]] | None:
    """Return the parts of two objects or lists in pairs, with their paths; None for the rest."""
    if isinstance(first, dict) and isinstance(second, dict):
        inside = f"{path}." if path else ""
        names = dict.fromkeys((*first, *second))
        return [
            (first.get(name, UNSET), second.get(name, UNSET), f"{inside}{name}") for name in names
        ]
    if isinstance(first, list) and isinstance(second, list):
        pairs = enumerate(zip_longest(first, second, fillvalue=UNSET))
        return [(here, there, f"{path}[{index}]") for index, (here, there) in pairs]
    return None


def brief(value: Any) -> str:
    """Return a value in a few characters."""
    if value is UNSET:
        return "nothing"
    return truncate(compact(value).decode(), LONGEST)


def describe(
    places: Iterable[Differing], first_label: str = "recorded", second_label: str = "now"
) -> str:
    """Return differences in one sentence; the labels are those of the two values."""
    sentences = [
        f"{place.path or 'the whole'}: {first_label} {brief(place.first)}, "
        f"{second_label} {brief(place.second)}"
        for place in places
    ]
    rest = [f"and {len(sentences) - MOST} more"] if len(sentences) > MOST else []
    return "; ".join([*sentences[:MOST], *rest])


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
        return "\n".join(
            [f"! {where}: other {self.kind}", *(f"    {detail}" for detail in self.details)]
        )


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


def compare(first: Source, second: Source, *, redaction: Redaction | None = None) -> Difference:
    """Compare two logs, pairing calls by name and arguments, in order.

    Args:
        first: The log before.
        second: The log after.
        redaction: The policy that the logs were written with.
    """
    first_log, second_log = read_log(first), read_log(second)
    redactor = Redactor(redaction or Redaction())
    arguments = {
        id(entry): normal_arguments(entry.arguments, redactor)
        for entry in (*first_log, *second_log)
    }
    changes: list[CallChange] = []
    same = 0
    # Calls of one name that stand in the same place are one call with other arguments.
    keys = (lambda entry: canonical([entry.name, arguments[id(entry)]])), (lambda entry: entry.name)
    for entry, counterpart in _aligned(first_log, second_log, *keys):
        if entry is None or counterpart is None:
            changes.append(CallChange("added" if entry is None else "removed", entry, counterpart))
            continue
        changed = describe(
            differences(arguments[id(entry)], arguments[id(counterpart)]), "first", "then"
        )
        ended = _outcomes(first_log, entry, second_log, counterpart)
        if changed or ended:
            details = tuple(filter(None, (changed, ended)))
            changes.append(
                CallChange("arguments" if changed else "outcome", entry, counterpart, details)
            )
        else:
            same += 1
    return Difference(first_log.label, second_log.label, same, tuple(changes))


# Two logs of the same program differ in three ways: calls came or went, calls have other arguments,
# calls ended otherwise. Which of them it is depends on which calls are taken to be the same. First
# those with equal names and arguments are paired, then, between two such pairs, those with equal
# names: a call whose arguments changed stands where the old one stood. `_increasing` takes the
# longest sequence of pairs that is in order in both logs (patience sorting, n log n).


def _aligned(
    first: Sequence[Entry], second: Sequence[Entry], *keys: Callable[[Entry], Any]
) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Pair the calls that share a key, and those between by the next key; None: no counterpart.

    The n-th of several equal calls is paired with the n-th; of those pairs the longest sequence is
    taken that is in the order of both logs. That is n log n, where the time of `difflib` grows with
    the third power for a log that repeats its calls.
    """
    if not (first and second and keys):
        yield from ((entry, None) for entry in first)
        yield from ((None, entry) for entry in second)
        return
    places, sought = _numbered(map(keys[0], second)), _numbered(map(keys[0], first))
    pairs = _increasing([(at, places[key]) for key, at in sought.items() if key in places])
    a = b = 0
    for at, to in pairs:
        yield from _aligned(first[a:at], second[b:to], *keys[1:])
        yield first[at], second[to]
        a, b = at + 1, to + 1
    yield from _aligned(first[a:], second[b:], *keys[1:])


def _numbered(items: Iterable[Any]) -> dict[tuple[Any, int], int]:
    """Return where each item is, by the item and how many equal ones came before it."""
    seen: Counter[Any] = Counter()
    places: dict[tuple[Any, int], int] = {}
    for at, item in enumerate(items):
        places[item, seen[item]] = at
        seen[item] += 1
    return places


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
    longest = []
    last = at[-1] if at else -1
    while last >= 0:
        longest.append(pairs[last])
        last = before[last]
    return longest[::-1]


def _outcomes(first_log: RecordedLog, first: Entry, second_log: RecordedLog, second: Entry) -> str:
    """Return how two calls ended, if they did not end alike."""
    if not (first.ok and second.ok):
        then, now = _ending(first), _ending(second)
        return "" if then == now else f"{then}, then {now}"
    try:
        values = [log.value(entry) for log, entry in ((first_log, first), (second_log, second))]
    except NotRecorded:
        values = [size_of(entry) for entry in (first, second)]
        if None in values:
            return ""  # only one of them has the whole result: they cannot be compared
    then, now = (normal(value) for value in values)
    return describe(differences(then, now, "result"), "first", "then")


def _ending(entry: Entry) -> str:
    if entry.ok is None:
        return "not ended"
    return "ok" if entry.ok else f"failed ({entry.error})"


def size_of(entry: Entry) -> str | None:
    """Return the kind and the size of a result that was too long; None if it was not."""
    summary = summary_of(entry.result)
    return None if summary is None else f"[{summary[1]} {summary[2]} chars]"
