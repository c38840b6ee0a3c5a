"""Several schemas that hold at once, as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast.schema.types import is_number, mark, same

PROSE: Final = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})
SHAPE: Final = frozenset(
    {
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "enum",
        "items",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "properties",
        "type",
    }
)
"""The keywords that decide a type. ``required`` alone does not: it is about keys, not kinds."""

_DEPENDENT: Final = (
    frozenset({"additionalProperties", "patternProperties", "properties"}),
    frozenset({"additionalItems", "items", "prefixItems"}),
    frozenset({"contains", "maxContains", "minContains"}),
    frozenset({"else", "if", "then"}),
)
"""Keywords that refer to each other (JSON Schema 2020-12 Core, section 10.3)."""
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


class Merged(NamedTuple):
    """One schema for several, and the keywords in which it does not say the same as they do."""

    schema: dict[str, Any]
    conflicts: tuple[str, ...] = ()


def has_shape(schema: Any, besides: str = "") -> bool:
    """Return whether a schema has a keyword that decides a type."""
    return isinstance(schema, dict) and any(word != besides for word in SHAPE & schema.keys())


def is_plain(schema: Mapping[str, Any]) -> bool:
    """Return whether it is one type, not a sum or a choice of schemas."""
    return not (schema.keys() & {"$ref", "allOf", "anyOf", "const", "enum", "oneOf"})


def merge(schemas: list[dict[str, Any]]) -> Merged:
    """Return one schema for all of these.

    Without conflicts, exactly the values that fit all of them fit it. A keyword in conflict is
    dropped if it decides a type; otherwise, and in prose, the first schema counts.
    """
    found: dict[str, Any] = {}
    conflicts: list[str] = []
    for schema in schemas:
        conflicts += _entangled(found, schema)
        for word, value in schema.items():
            if word not in found:
                found[word] = value
                continue
            found[word], exact = _joined(word, found[word], value)
            conflicts += [] if exact else [word]
    plain = {word: value for word, value in found.items() if value is not _DROPPED}
    return Merged(plain, tuple(sorted({*conflicts})))


_DROPPED: Final = object()


def _entangled(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    if one and other and (one.keys() | other.keys()) & _UNEVALUATED:
        return sorted((one.keys() | other.keys()) & _UNEVALUATED)
    found = []
    for group in _DEPENDENT:
        mine, theirs = group & one.keys(), group & other.keys()
        if mine and theirs and (mine | theirs) - {"properties"}:
            found += sorted((mine | theirs) - {"properties"})
    return found


def _joined(word: str, old: Any, new: Any) -> tuple[Any, bool]:
    """Return both values of a keyword as one, and whether nothing is lost by that."""
    if old is _DROPPED:
        return _DROPPED, False
    if word in PROSE or same(old, new):
        return old, True
    if isinstance(old, dict) and isinstance(new, dict) and word == "properties":
        both = {key: _both(old[key], new[key]) for key in old.keys() & new.keys()}
        return {**old, **new, **both}, True
    if isinstance(old, list) and isinstance(new, list) and word in ("enum", "required"):
        return _lists(word, old, new)
    if word == "type":
        return _type(old, new)
    if is_number(old) and is_number(new) and word in (*_LOWER, *_UPPER):
        return (max if word in _LOWER else min)(old, new), True
    return (_DROPPED if word in SHAPE else old), False


def _both(old: Any, new: Any) -> Any:
    return old if same(old, new) else {"allOf": [old, new]}


def _lists(word: str, old: list[Any], new: list[Any]) -> tuple[Any, bool]:
    if word == "required":
        if any(not isinstance(key, str) for key in (*old, *new)):
            return old, False
        return list(dict.fromkeys([*old, *new])), True
    marks = {mark(value) for value in new}
    common = [value for value in old if mark(value) in marks]
    return (common, True) if common else (_DROPPED, False)


def _type(old: Any, new: Any) -> tuple[Any, bool]:
    """Return the types in both; an integer is a number."""
    first = old if isinstance(old, list) else [old]
    second = new if isinstance(new, list) else [new]
    both = [name for name in first if name in second]
    for one, other in ((first, second), (second, first)):
        if "integer" in one and "number" in other and not {"integer", "number"} & {*both}:
            both.append("integer")
    if not both:
        return _DROPPED, False
    return (both[0] if len(both) == 1 else both), True
