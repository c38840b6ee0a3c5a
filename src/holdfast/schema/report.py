"""The differences between two schemas: where, in words, and with what effect.

effect      what fits now                          for arguments   for results
narrower    less than before                       breaking        safe
wider       more than before                       safe            breaking
different   other than before, or it is not clear  breaking        breaking
removed     without a property that was named      breaking        breaking
added       with a property that was not named     safe            safe
wording     the same                               wording         wording
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from holdfast._core.text import difference, join_words, label, quote, show_json
from holdfast.schema.types import Flat, mark, named_types, same, type_of, types, values, wordy

Effect: TypeAlias = Literal["narrower", "wider", "different", "removed", "added", "wording"]
Impact: TypeAlias = Literal["breaking", "safe", "wording"]

IMPACTS: Final[tuple[Impact, ...]] = ("breaking", "safe", "wording")
"""The worst first."""

MOST: Final = 100
"""Differences listed for one schema. The effects of all others still count."""

ARGUMENT_IMPACTS: Final[dict[Effect, Impact]] = {
    "narrower": "breaking",
    "wider": "safe",
    "different": "breaking",
    "removed": "breaking",
    "added": "safe",
    "wording": "wording",
}
RESULT_IMPACTS: Final[dict[Effect, Impact]] = {
    **ARGUMENT_IMPACTS,
    "narrower": "safe",
    "wider": "breaking",
}


class SchemaChange(NamedTuple):
    """One difference. The place is a list of steps from the root: names, ``[]`` and ``*``."""

    place: tuple[str, ...]
    text: str
    effect: Effect


class SchemaDiff:
    """The differences at a place and below it."""

    def __init__(self) -> None:
        self.changes: list[SchemaChange] = []
        self.effects: set[Effect] = set()

    def add(self, text: str, effect: Effect, *place: str) -> None:
        """Add a difference."""
        self.effects.add(effect)
        if len(self.changes) < MOST:
            self.changes.append(SchemaChange(place, text, effect))

    def include(self, diff: SchemaDiff, *place: str) -> None:
        """Add the differences of a place further down."""
        self.effects |= diff.effects
        room = MOST - len(self.changes)
        for found in diff.changes[:room]:
            self.changes.append(SchemaChange((*place, *found.place), found.text, found.effect))


def where(place: Iterable[str], whole: str, prefix: str = "") -> str:
    """Return a place as text: ``options.tags[]``."""
    text = prefix
    for step in place:
        text += f".{step}" if text and not step.startswith("[") else step
    return text or whole


def named(name: str) -> str:
    """Return a property's name as a step of a place."""
    return quote(name) if name.startswith("[") or name == "*" else label(name)


def worst(impacts: Iterable[Impact]) -> Impact | None:
    """Return the worst of some impacts; None if there are none."""
    found = set(impacts)
    return next((impact for impact in IMPACTS if impact in found), None)


class Words(NamedTuple):
    """The words for the same change in arguments and in results."""

    noun: str
    lost: str
    gained: str
    only: str
    needed: str
    optional: str


ARGUMENTS: Final = Words(
    *("parameter", "no longer accepts", "now accepts", "now accepts only"),
    *("now required", "no longer required"),
)
RESULTS: Final = Words(
    *("field", "can no longer be", "can now be", "can now only be"),
    *("now always there", "may now be missing"),
)


BOUNDS: Final[dict[str, str]] = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} properties",
    "maxProperties": "at most {} properties",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "pattern": "has to match the pattern {}",
    "format": "has to have the format {}",
}


def compare_values(before: Flat, after: Flat, words: Words, found: SchemaDiff) -> bool:
    """Compare types and enums; return False if nothing is left that both would allow."""
    old, new = values(before), values(after)
    kinds, now = types(before), types(after)
    if old is not None:
        if new is None:
            gone = [one for one in old if type_of(one) not in now]
            extra = []
        else:
            before_marks, marks = {mark(one) for one in old}, {mark(one) for one in new}
            gone = [one for one in old if mark(one) not in marks]
            extra = [one for one in new if mark(one) not in before_marks]
        _add_values(words.lost, gone, "narrower", found)
        _add_values(words.gained, extra, "wider", found)
        if new is None:
            anything = "anything" if len(now) == 7 else f"any {type_names(now)}"
            found.add(f"{words.gained} {anything}, not only {listed_values(old)}", "wider")
        return len(gone) < len(old)
    if new is not None:
        found.add(f"{words.only} {listed_values(new)}", "narrower")
        extra = [one for one in new if type_of(one) not in kinds]
        _add_values(words.gained, extra, "wider", found)
        return len(extra) < len(new)
    lost, gained = kinds - now, now - kinds
    if lost and gained:
        found.add(f"type changed from {type_names(kinds)} to {type_names(now)}", "different")
    elif lost:
        found.add(f"{words.lost} {_some(lost, now)}", "narrower")
    elif gained:
        found.add(f"{words.gained} {_some(gained, kinds)}", "wider")
    return bool(kinds & now)


def compare_bounds(before: Flat, after: Flat, found: SchemaDiff) -> None:
    """Compare lengths, ranges, patterns and formats."""
    for key, text in BOUNDS.items():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        change = f"now {text.format(show_json(new))}, was {show_json(old)}"
        if old is None:
            found.add(f"now {text.format(show_json(new))}", "narrower")
        elif new is None:
            found.add(f"no longer {text.format(show_json(old))}", "wider")
        elif key in ("pattern", "format"):
            found.add(f"{key} changed: {difference(str(old), str(new))}", "different")
        elif key == "multipleOf":
            whole = isinstance(old, int) and isinstance(new, int) and old % new == 0
            found.add(change, "wider" if whole else "different")
        else:
            tighter = (new > old) == ("min" in key.lower())
            found.add(change, "narrower" if tighter else "wider")
    old, new = before.get("uniqueItems", False), after.get("uniqueItems", False)
    if new and not old:
        found.add("its items must now differ from each other", "narrower")
    elif old and not new:
        found.add("its items no longer have to differ from each other", "wider")


def _add_values(text: str, listed: list[Any], effect: Effect, found: SchemaDiff) -> None:
    if listed:
        found.add(f"{text} {listed_values(listed)}", effect)


def listed_values(choices: list[Any]) -> str:
    """Return values as text."""
    return join_words([show_json(value, 60) for value in choices]) if choices else "nothing"


def type_names(kinds: frozenset[str]) -> str:
    """Return types as text."""
    names = named_types(kinds)
    return "any type" if len(names) == 6 else " or ".join(names)


def _some(kinds: frozenset[str], others: frozenset[str]) -> str:
    """Return type names; numbers that are not integers have no name in JSON Schema."""
    names = named_types(kinds)
    if "fraction" in kinds and "integer" in others:
        names = ["fractions" if name == "number" else name for name in names]
    return " or ".join(names)


# Texts


def compare_texts(before: Flat, after: Flat, found: SchemaDiff) -> None:
    """Compare all texts but the default, which is more than a text."""
    for key in sorted(before.keys() | after.keys()):
        if wordy(key) and key != "default":
            compare_text(key, before, after, found)


def compare_text(
    key: str, before: Mapping[str, Any], after: Mapping[str, Any], found: SchemaDiff, *place: str
) -> None:
    """Add the change of a text, or of any other keyword that no value is checked against."""
    old, new, shown = before.get(key), after.get(key), label(key)
    if (key in before) == (key in after) and same(old, new):
        return
    if isinstance(old, str) and isinstance(new, str):
        found.add(f"{shown} changed: {difference(old, new)}", "wording", *place)
    elif key not in before:
        found.add(f"new {shown}: {show_json(new)}", "wording", *place)
    elif key not in after:
        found.add(f"{shown} removed, was {show_json(old)}", "wording", *place)
    else:
        text = f"{shown} changed: {show_json(old)} → {show_json(new)}"
        found.add(text, "wording", *place)
