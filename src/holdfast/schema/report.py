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

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from holdfast._core.text import label, quote

Effect: TypeAlias = Literal["narrower", "wider", "different", "removed", "added", "wording"]
Impact: TypeAlias = Literal["breaking", "safe", "wording"]

IMPACTS: Final[tuple[Impact, ...]] = ("breaking", "safe", "wording")
"""The worst first."""

MOST: Final = 100
"""Differences listed for one schema. The effects of all others still count."""

ARGUMENTS: Final[dict[Effect, Impact]] = {
    "narrower": "breaking",
    "wider": "safe",
    "different": "breaking",
    "removed": "breaking",
    "added": "safe",
    "wording": "wording",
}
RESULTS: Final[dict[Effect, Impact]] = {**ARGUMENTS, "narrower": "safe", "wider": "breaking"}


class SchemaChange(NamedTuple):
    """One difference. The place is a list of steps from the root: names, ``[]`` and ``*``."""

    place: tuple[str, ...]
    text: str
    effect: Effect


class SchemaDiff(NamedTuple):
    """All differences at a place and below it."""

    changes: tuple[SchemaChange, ...] = ()
    effects: frozenset[Effect] = frozenset()


class DiffBuilder:
    """Collects the differences at a place."""

    def __init__(self) -> None:
        self._found: list[SchemaChange] = []
        self._effects: set[Effect] = set()

    def add(self, text: str, effect: Effect, *place: str) -> None:
        self._effects.add(effect)
        if len(self._found) < MOST:
            self._found.append(SchemaChange(place, text, effect))

    def include(self, diff: SchemaDiff, *place: str) -> None:
        self._effects |= diff.effects
        room = MOST - len(self._found)
        self._found += [
            SchemaChange((*place, *found.place), found.text, found.effect)
            for found in diff.changes[:room]
        ]

    def diff(self) -> SchemaDiff:
        return SchemaDiff(tuple(self._found), frozenset(self._effects))


def where(place: Iterable[str], whole: str, prefix: str = "") -> str:
    """A place as a person would write it: ``options.tags[]``."""
    text = prefix
    for step in place:
        if step.startswith("["):
            text += step
        else:
            text += f".{step}" if text else step
    return text or whole


def named(name: str) -> str:
    """A property's name as a step of a place."""
    return quote(name) if name.startswith("[") or name == "*" else label(name)


def worst(impacts: Iterable[Impact]) -> Impact | None:
    found = set(impacts)
    return next((impact for impact in IMPACTS if impact in found), None)
