"""The differences between two schemas: where, in words, and with what effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from holdfast._core.text import difference, label, quote, show_json
from holdfast.schema.types import same, wordy
from holdfast.schema.walk import Budget, Part, parts

Effect: TypeAlias = Literal["narrower", "wider", "different", "removed", "added", "wording"]
Impact: TypeAlias = Literal["breaking", "safe", "wording"]
Place: TypeAlias = tuple[str, ...]
"""Steps from the root: names, ``[]`` and ``*``."""

IMPACTS: Final[tuple[Impact, ...]] = ("breaking", "safe", "wording")
"""The worst first."""
ARGUMENT_IMPACTS: Final[dict[Effect, Impact]] = {
    "narrower": "breaking",  # less fits than before
    "wider": "safe",  # more fits than before
    "different": "breaking",  # something else fits, or it is not clear
    "removed": "breaking",  # a property is no longer named
    "added": "safe",  # a property is named that was not
    "wording": "wording",  # the same fits
}
RESULT_IMPACTS: Final[dict[Effect, Impact]] = {
    **ARGUMENT_IMPACTS,
    **{"narrower": "safe", "wider": "breaking"},
}

MOST: Final = 100
"""Differences listed for one schema. The effects of all others still count."""


class SchemaChange(NamedTuple):
    """One difference."""

    place: Place
    text: str
    effect: Effect


class SchemaDiff:
    """The differences between two schemas."""

    def __init__(self) -> None:
        self.changes: list[SchemaChange] = []
        self.effects: set[Effect] = set()

    def add(self, text: str, effect: Effect, place: Place = ()) -> None:
        """Add a difference."""
        self.effects.add(effect)
        if len(self.changes) < MOST:
            self.changes.append(SchemaChange(place, text, effect))

    def compare_text(
        self, key: str, before: Mapping[str, Any], after: Mapping[str, Any], place: Place = ()
    ) -> None:
        """Add the change of a text, or of any other keyword that no value is checked against."""
        old, new, word = before.get(key), after.get(key), label(key)
        if (key in before) == (key in after) and same(old, new):
            return
        if key not in before:
            text = f"new {word}: {show_json(new)}"
        elif key not in after:
            text = f"{word} removed, was {show_json(old)}"
        elif isinstance(old, str) and isinstance(new, str):
            text = f"{word} changed: {difference(old, new)}"
        else:
            text = f"{word} changed: {show_json(old)} → {show_json(new)}"
        self.add(text, "wording", place)

    def compare_texts(self, before: Any, after: Any, budget: Budget, place: Place = ()) -> None:
        """Add the texts that differ at the same place, and those of new definitions.

        Not defaults, which are more than texts.
        """
        if not isinstance(before, dict) or not isinstance(after, dict):
            return
        budget.spend(1 + len(after))
        for key in sorted(before.keys() | after.keys()):
            if _is_prose(key):
                self.compare_text(key, before, after, place)
        former = {part.steps: part.schema for part in parts(before)}
        for part in sorted(parts(after), key=lambda part: str(part.steps)):
            is_new = bool(before) and part.steps not in former
            if part.place == "apart" or not is_new:
                inner = _place_inside(part, place)
                self.compare_texts(former.get(part.steps, {}), part.schema, budget, inner)


def step(name: str) -> str:
    """Return a property's name as a step of a place."""
    return quote(name) if name.startswith("[") or name == "*" else label(name)


def where(place: Place, whole: str, prefix: str = "") -> str:
    """Return a place as text: ``options.tags[]``."""
    text = prefix
    for step in place:
        text += f".{step}" if text and not step.startswith("[") else step
    return text or whole


def worst(impacts: Iterable[Impact]) -> Impact | None:
    """Return the worst of some impacts; None if there are none."""
    return min(impacts, key=IMPACTS.index, default=None)


def _is_prose(keyword: str) -> bool:
    return wordy(keyword) and keyword != "default"


def _place_inside(part: Part, place: Place) -> Place:
    if part.place == "apart":
        return (*place, *map(step, map(str, part.steps)))
    if part.keyword == "properties":
        return (*place, step(str(part.key)))
    return (*place, "[]") if part.place == "item" else place
