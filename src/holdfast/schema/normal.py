"""JSON schemas brought into one form, so that what means the same compares as the same.

Authors write one thing in many ways: behind a ``$ref``, inside an ``allOf`` of one, as a list of
types or as alternatives of one type each, as a ``const`` or an ``enum`` of one. A `Document`
reads a schema as a list of plain alternatives, each of one kind.

Schemas come from servers and may be any JSON. What is not a schema, or cannot be followed, is
kept under a name that nothing else knows, where it counts as different unless it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, TypeAlias

from holdfast.schema.budget import Budget
from holdfast.schema.refs import resolve
from holdfast.schema.types import (
    TYPES,
    Flat,
    by_type,
    is_number,
    join_values,
    named_types,
    same,
    types,
    wordy,
)
from holdfast.schema.walk import REFERENCES

ODD: Final = "what is not a schema"
CHAIN: Final = 20
"""References, and schemas inside ``allOf``, that are followed at one place."""
MOST_ALTERNATIVES: Final = 40

_HOUSEKEEPING: Final = frozenset(
    {
        "$anchor",
        "$defs",
        "$dynamicAnchor",
        "$id",
        "$recursiveAnchor",
        "$schema",
        "definitions",
        "id",
    }
)
_NAMES_A_PLACE: Final = ("$id", "$anchor", "$dynamicAnchor")

Exclusion: TypeAlias = Literal["none", "all", "some"]
"""Whether a value that fits two alternatives fits the whole: always, never, or it depends."""


class Document:
    """One whole schema, which its references lead around in."""

    def __init__(self, root: Any, budget: Budget) -> None:
        self.root = root
        self._budget = budget
        self._flats: dict[int, tuple[Any, Flat]] = {}
        self.refers: bool = False
        self.named: bool = False
        """A part of it has a name of its own: what its references are relative to is not known."""
        for part in _dicts(root):
            self.refers = self.refers or any(isinstance(part.get(key), str) for key in REFERENCES)
            self.named = self.named or (
                part is not root and any(isinstance(part.get(key), str) for key in _NAMES_A_PLACE)
            )

    # One place

    def flat(self, schema: Any, chain: int = CHAIN) -> Flat:
        """The keywords at one place: references followed, ``allOf`` folded in where it can be."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            return {ODD: schema}
        known = self._flats.get(id(schema))
        if known is None:
            self._budget.spend(1 + len(schema))
            # Held together with its schema, whose id would else be free for another one.
            known = self._flats[id(schema)] = (schema, self._flatten(schema, chain))
        return known[1]

    def _flatten(self, schema: Flat, chain: int) -> Flat:
        own = dict(_keywords(schema))
        parts = own.pop("allOf", [])
        reference = own.get("$ref")
        if isinstance(reference, str) and chain > 0:
            target = self.find(reference)
            if target is not None:
                del own["$ref"]
                parts = [target, *parts]
        return self._fold(own, parts, chain - 1)

    def _fold(self, own: Flat, parts: list[Any], chain: int) -> Flat:
        left = []
        for part in parts:
            merged = merge(own, self.flat(part, chain), self._budget) if chain > 0 else None
            if merged is None:
                left.append(part)
            else:
                own = merged
        if left:
            own["allOf"] = [*own.get("allOf", []), *left]
        return own

    def find(self, reference: str) -> Any:
        """What a reference leads to; None if to nothing in here."""
        return None if self.named else resolve(self.root, reference)

    # Alternatives

    def alternatives(self, flat: Flat) -> tuple[list[Flat], Exclusion]:
        """The ways to fit a schema, each of one kind, and whether they exclude each other.

        No alternatives at all: nothing fits.
        """
        found, exclusion = self._split(flat, CHAIN)
        found = [one for one in found if not _impossible(one)]
        found = [kind for one in found for kind in by_type(one)]
        return join_values(found, exclusive=exclusion != "none"), exclusion

    def _split(self, flat: Flat, chain: int) -> tuple[list[Flat], Exclusion]:
        keyword = "anyOf" if "anyOf" in flat else "oneOf"
        if keyword not in flat or chain == 0:
            return [flat], "none"
        outer = {key: value for key, value in flat.items() if key != keyword and not wordy(key)}
        found: list[Flat] = []
        exclusions: set[Exclusion] = {"none" if keyword == "anyOf" else "all"}
        for part in flat[keyword][: MOST_ALTERNATIVES + 1]:
            merged = merge(outer, self.flat(part, chain - 1), self._budget)
            if merged is None:
                return [flat], "none"
            inner, exclusion = self._split(merged, chain - 1)
            found += inner
            exclusions |= {exclusion} if len(inner) > 1 else set()
            if len(found) > MOST_ALTERNATIVES:
                return [flat], "none"
        return found, exclusions.pop() if len(exclusions) == 1 else "some"


def _impossible(flat: Flat) -> bool:
    return "not" in flat and (flat["not"] is True or flat["not"] == {})


# What a schema may hold


def _keywords(schema: Flat) -> Iterator[tuple[str, Any]]:
    """What stands in a schema, by names that can be relied on: the ill-formed has other ones."""
    for key, value in schema.items():
        if key in _HOUSEKEEPING:
            continue
        well_formed = _FORM.get(key)
        if well_formed is None or well_formed(value):
            yield key, value
        else:
            yield f"{key} (malformed)", value


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_choice(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_FORM: Final[dict[str, Callable[[Any], bool]]] = {
    "$ref": _is_text,
    "allOf": _is_choice,
    "anyOf": _is_choice,
    "enum": _is_list,
    "exclusiveMaximum": is_number,
    "exclusiveMinimum": is_number,
    "format": _is_text,
    "maxItems": _is_count,
    "maxLength": _is_count,
    "maxProperties": _is_count,
    "maximum": is_number,
    "minItems": _is_count,
    "minLength": _is_count,
    "minProperties": _is_count,
    "minimum": is_number,
    "multipleOf": lambda value: is_number(value) and value > 0,
    "oneOf": _is_choice,
    "pattern": _is_text,
    "prefixItems": _is_choice,
    "properties": _is_dict,
    "required": _is_names,
    "type": _is_type,
    "uniqueItems": lambda value: isinstance(value, bool),
}


# Two schemas at once

_TOGETHER: Final = (
    frozenset({"additionalProperties", "patternProperties", "properties"}),
    frozenset({"additionalItems", "items", "prefixItems"}),
    frozenset({"contains", "maxContains", "minContains"}),
    frozenset({"else", "if", "then"}),
    frozenset({"unevaluatedItems", "unevaluatedProperties", ODD}),
)
"""Keywords that speak of each other: those of two schemas must not be mixed."""


def merge(one: Flat, other: Flat, budget: Budget) -> Flat | None:
    """What fits both, as one schema; None if that cannot be said in one."""
    if _entangled(one, other):
        return None
    budget.spend(1 + len(one) + len(other))
    merged = dict(other)
    for key, value in one.items():
        if key not in other or wordy(key) or same(value, other[key], budget):
            merged[key] = value
            continue
        join = _JOIN.get(key)
        joined = join(value, other[key], budget) if join else None
        if joined is None:
            return None
        merged[key] = joined
    return merged


def _entangled(one: Flat, other: Flat) -> bool:
    if _TOGETHER[-1] & (one.keys() | other.keys()):
        return bool(one and other)
    for group in _TOGETHER:
        mine, yours = group & one.keys(), group & other.keys()
        if mine and yours and not (mine == yours == {"properties"}):
            return True
    return False


def _join_properties(one: Flat, other: Flat, budget: Budget) -> Flat | None:
    if any(not same(one[name], other[name], budget) for name in one.keys() & other.keys()):
        return None
    budget.spend(len(one) + len(other))
    return {**one, **other}


def _join_types(one: Any, other: Any, budget: Budget) -> list[str] | None:
    both = types({"type": one}) & types({"type": other})
    return named_types(both) or None


_JOIN: Final[dict[str, Callable[[Any, Any, Budget], Any]]] = {
    "properties": _join_properties,
    "required": lambda one, other, _: sorted({*one, *other}),
    "type": _join_types,
}


def _dicts(root: Any) -> Iterator[Flat]:
    """Every object in a JSON value."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
