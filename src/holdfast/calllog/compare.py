"""Compare calls and whole logs.

The order of keys is ignored, 1 equals 1.0, and secrets are compared in their redacted form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    one: Any
    other: Any


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
    """Return differences in one sentence; ``first`` and ``second`` label the two values."""
    told = [
        f"{each.path or 'the whole'}: {first} {brief(each.one)}, {second} {brief(each.other)}"
        for each in found
    ]
    more = [f"and {len(told) - MOST} more"] if len(told) > MOST else []
    return "; ".join([*told[:MOST], *more])


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


def compare(first: Source, second: Source, *, redaction: Redaction | None = None) -> Difference:
    """Compare two logs, pairing calls by name and arguments, in order.

    Args:
        first: The log before.
        second: The log after.
        redaction: The policy that the logs were written with.
    """
    one, two = read_log(first), read_log(second)
    redactor = Redactor(redaction or Redaction())
    asked = {id(entry): normal_arguments(entry.arguments, redactor) for entry in (*one, *two)}
    found: list[CallChange] = []
    same = 0
    # Calls of one name that stand in the same place are one call with other arguments.
    keys = (lambda entry: canonical([entry.name, asked[id(entry)]])), (lambda entry: entry.name)
    for entry, other in _aligned(one, two, *keys):
        if entry is None or other is None:
            found.append(CallChange("added" if entry is None else "removed", entry, other))
            continue
        changed = describe(differences(asked[id(entry)], asked[id(other)]), "first", "then")
        ended = _outcomes(one, entry, two, other)
        if changed or ended:
            details = tuple(filter(None, (changed, ended)))
            found.append(CallChange("arguments" if changed else "outcome", entry, other, details))
        else:
            same += 1
    return Difference(one.label, two.label, same, tuple(found))


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
    places, wanted = _numbered(map(keys[0], second)), _numbered(map(keys[0], first))
    pairs = _increasing([(at, places[one]) for one, at in wanted.items() if one in places])
    a = b = 0
    for at, to in pairs:
        yield from _aligned(first[a:at], second[b:to], *keys[1:])
        yield first[at], second[to]
        a, b = at + 1, to + 1
    yield from _aligned(first[a:], second[b:], *keys[1:])


def _numbered(items: Iterable[Any]) -> dict[tuple[Any, int], int]:
    """Return where each item is, by the item and how many equal ones came before it."""
    seen: Counter[Any] = Counter()
    found: dict[tuple[Any, int], int] = {}
    for at, item in enumerate(items):
        found[item, seen[item]] = at
        seen[item] += 1
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


def _outcomes(one: RecordedLog, first: Entry, two: RecordedLog, second: Entry) -> str:
    """Return how two calls ended, if they did not end alike."""
    if not (first.ok and second.ok):
        then, now = (
            "not ended" if entry.ok is None else "ok" if entry.ok else f"failed ({entry.error})"
            for entry in (first, second)
        )
        return "" if then == now else f"{then}, then {now}"
    try:
        shown = [log.value(entry) for log, entry in ((one, first), (two, second))]
    except NotRecorded:
        shown = [size_of(entry) for entry in (first, second)]
        if None in shown:
            return ""  # only one of them has the whole result: they cannot be compared
    then, now = (normal(value) for value in shown)
    return describe(differences(then, now, "result"), "first", "then")


def size_of(entry: Entry) -> str | None:
    """Return the kind and the size of a result that was too long; None if it was not."""
    summary = summary_of(entry.result)
    return None if summary is None else f"[{summary[1]} {summary[2]} chars]"
