"""Decide whether two calls are equal, and find their differences.

The order of keys is ignored, 1 equals 1.0, and secrets are compared in their redacted form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET, Struct

from holdfast._core.redact import HIDDEN, Redactor
from holdfast.calllog.entries import Entry
from holdfast.calllog.lines import compact
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

    def told(self, first: str, second: str) -> str:
        """Return the difference as text; the arguments label the two values."""
        return (
            f"{self.path or 'the whole'}: {first} {brief(self.one)}, {second} {brief(self.other)}"
        )


def normal(value: Any) -> Any:
    """A JSON value in the one form that all equal ones share."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return value


def normal_arguments(arguments: Mapping[str, Any], redactor: Redactor, schema: Any = None) -> Any:
    """Return the arguments redacted and in normal form."""
    return normal(redactor.value(dict(arguments), schema))


def key(name: str, arguments: Any) -> bytes:
    """The same for the same calls; ``arguments`` are normal ones."""
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
    """A value in a few characters."""
    if value is UNSET:
        return "nothing"
    text = compact(value).decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def told(found: Iterable[Differing], first: str = "recorded", second: str = "now") -> str:
    """Differences in one sentence."""
    all_of_them = list(found)
    shown = [one.told(first, second) for one in all_of_them[:MOST]]
    more = len(all_of_them) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def nearest(given: Any, entries: Iterable[tuple[Entry, Any]]) -> tuple[Entry, list[Differing]]:
    """The entry whose (normal) arguments differ least, and how."""
    measured = [
        (list(differences(recorded, given, hidden=True)), entry) for entry, recorded in entries
    ]
    found, entry = min(measured, key=lambda one: (len(one[0]), one[1].line))
    return entry, found
