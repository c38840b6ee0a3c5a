"""Several schemas that hold at once, as one; where they disagree, less is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
"""The words that decide a type. ``required`` alone does not: it is about keys, not kinds."""


def has_shape(schema: Any, besides: str = "") -> bool:
    return isinstance(schema, dict) and any(word != besides for word in SHAPE & schema.keys())


def is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether it is one type, not a sum or a choice of schemas."""
    return not (schema.keys() & {"$ref", "allOf", "anyOf", "const", "enum", "oneOf"})


def merge(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for all of these. Keys that are in several of them must fit all of them."""
    found: dict[str, Any] = {}
    for schema in schemas:
        for word, value in schema.items():
            found[word] = _joined(word, found[word], value) if word in found else value
    return {word: value for word, value in found.items() if value is not None}


def _joined(word: str, old: Any, new: Any) -> Any:
    """Both values of a keyword as one; None drops the word, and with it what it would refuse."""
    if old == new or word in PROSE:
        return old
    if word == "properties" and isinstance(old, dict) and isinstance(new, dict):
        both = {key: {"allOf": [old[key], new[key]]} for key in old.keys() & new.keys()}
        return {**old, **new, **both}
    if word == "required" and isinstance(old, list) and isinstance(new, list):
        return [*old, *(key for key in new if key not in old)]
    if word == "enum" and isinstance(old, list) and isinstance(new, list):
        return [value for value in old if value in new] or None
    if word == "type":
        return _type(old, new)
    if word in ("anyOf", "oneOf", "allOf"):
        return None
    return new if word not in SHAPE else None


def _type(old: Any, new: Any) -> Any:
    """The types in both; an integer is a number."""
    first = old if isinstance(old, list) else [old]
    second = new if isinstance(new, list) else [new]
    both = [name for name in first if name in second]
    if "integer" in first + second and "number" in first + second and "integer" not in both:
        both.append("integer")
    if not both:
        return None
    return both[0] if len(both) == 1 else both
