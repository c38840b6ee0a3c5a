"""The types and values that fit a schema, and several schemas merged into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.schema.walk import LISTED, NAMED, Budget, Schema, in_place, properties

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")

WORDING: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "example", "examples", "title"}
    | {"enumDescriptions", "enumNames", "enumTitles", "markdownDescription"}
    | {"readOnly", "writeOnly"}
)
"""Keywords that no value is checked against."""


def wordy(key: str) -> bool:
    """Return True if no value is checked against a keyword; ``x-mcp-header`` moves an argument."""
    return key in WORDING or (key.startswith("x-") and key != "x-mcp-header")


def same(one: Any, other: Any, budget: Budget | None = None) -> bool:
    """Return True if two JSON values are equal, ignoring the order of keys.

    Not ``==``: to Python, ``1`` is ``True``, and a value nested deep enough cannot be compared.
    """
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if budget is not None:
            budget.spend()
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif type(one) is not type(other) or one != other:
            return False
    return True


ANY_TYPE: Final = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})


def types(flat: Schema) -> frozenset[str]:
    """Return the types of values that may fit; a number is an integer or a fraction."""
    if "type" not in flat:
        return ANY_TYPE
    named = {*flat["type"]} if isinstance(flat["type"], list) else {flat["type"]}
    return frozenset(named - {"number"} | {"integer", "fraction"} if "number" in named else named)


def named_types(kinds: frozenset[str] | set[str]) -> list[str]:
    """Return types by their names in JSON Schema, in a fixed order."""
    named = {"number" if kind == "fraction" else kind for kind in kinds}
    if "number" in named:
        named.discard("integer")
    return [name for name in TYPES if name in named]


def is_number(value: Any) -> bool:
    """Return True for a number that is not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def type_of(value: Any) -> str:
    """Return the type of a value, as `types` has it."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    return "null" if value is None else _TYPE_OF.get(type(value), "object")


_TYPE_OF: Final = {bool: "boolean", int: "integer", str: "string", list: "array"}


def canonical(value: Any) -> bytes:
    """Return the one JSON text of a value: keys sorted, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


def json_key(value: Any) -> Hashable:
    """Return a key that equal JSON values share: 1 and 1.0, but not 1 and true."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value), value)
    if is_number(value):
        return ("number", value)
    return ("json", canonical(value))


def values(flat: Schema) -> list[Any] | None:
    """Return the only values that may fit; None if they are not listed."""
    if "const" not in flat and "enum" not in flat:
        return None
    listed = flat.get("enum", [flat.get("const")])
    if "const" in flat:
        listed = [value for value in listed if json_key(value) == json_key(flat["const"])]
    kinds = types(flat)
    return [value for value in listed if type_of(value) in kinds]


BOUNDS: Final[dict[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} properties",
    "maxProperties": "at most {} properties",
}
"""The keywords that hold a number, in words."""
SHAPE: Final = frozenset(
    {"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type", "items", "prefixItems"}
    | {"additionalProperties", "patternProperties", "properties"}
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


class Merged(NamedTuple):
    """One schema for several, and the keywords in which it does not say the same as they do."""

    schema: Schema
    conflicts: tuple[str, ...] = ()


def has_shape(schema: Any, besides: str = "") -> bool:
    """Return whether a schema has a keyword that decides a type."""
    return isinstance(schema, dict) and any(word != besides for word in SHAPE & schema.keys())


def merge(schemas: list[Schema]) -> Merged:
    """Return one schema for all of these.

    Without conflicts, exactly the values that fit all of them fit it. A keyword in conflict is
    dropped if it decides a type; otherwise, and in prose, the first schema counts.
    """
    found: dict[str, Any] = {}
    conflicts: list[str] = []
    for schema in schemas:
        # Keywords that mean something else in one schema than in two.
        if found and schema:
            conflicts += (found.keys() | schema.keys()) & _UNEVALUATED
        for group in _DEPENDENT:
            mine, theirs = group & found.keys(), group & schema.keys()
            conflicts += (mine | theirs) - {"properties"} if mine and theirs else ()
        for word, value in schema.items():
            if word not in found:
                found[word] = value
                continue
            found[word], exact = _joined(word, found[word], value)
            conflicts += [] if exact else [word]
    plain = {word: value for word, value in found.items() if value is not _DROPPED}
    return Merged(plain, tuple(sorted({*conflicts})))


def flatten(schema: Any, find: Callable[[Schema, str], Any], budget: Budget) -> Merged:
    """Return one schema with its ``allOf``, and what it refers to, merged in; see `in_place`."""
    schemas = [
        {key: value for key, value in one.items() if key not in ("$ref", "allOf")}
        for one in in_place(schema, find, budget)
    ]
    sizes = [len(own) for own in map(properties, schemas) if own]
    budget.spend(sum(sizes) if len(sizes) > 1 else 0)
    return merge(schemas)


_DROPPED: Final = object()


def _joined(word: str, old: Any, new: Any) -> tuple[Any, bool]:
    """Return both values of a keyword as one, and whether nothing is lost by that."""
    if old is _DROPPED:
        return _DROPPED, False
    if wordy(word) or same(old, new):
        return old, True
    if isinstance(old, dict) and isinstance(new, dict) and word == "properties":
        both = {
            key: old[key] if same(old[key], new[key]) else {"allOf": [old[key], new[key]]}
            for key in old.keys() & new.keys()
        }
        return {**old, **new, **both}, True
    if isinstance(old, list) and isinstance(new, list) and word == "required":
        names = [*old, *new]
        known = all(isinstance(key, str) for key in names)
        return (list(dict.fromkeys(names)), True) if known else (old, False)
    if isinstance(old, list) and isinstance(new, list) and word == "enum":
        marks = {json_key(value) for value in new}
        common = [value for value in old if json_key(value) in marks]
        return (common, True) if common else (_DROPPED, False)
    if word == "type":
        return _type(old, new)
    if is_number(old) and is_number(new) and word in BOUNDS and word != "multipleOf":
        return (max if "min" in word.lower() else min)(old, new), True
    return (_DROPPED if word in SHAPE else old), False


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


def well_formed(keyword: str, value: Any) -> bool:
    """Return True if a keyword has a value of the type that JSON Schema demands."""
    check = _FORMS.get(keyword)
    return check is None or check(value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_finite(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or math.isfinite(value))


_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        ("$ref", "description", "format", "pattern", "title"), lambda value: isinstance(value, str)
    ),
    **dict.fromkeys(NAMED, lambda value: isinstance(value, dict)),
    **dict.fromkeys(LISTED, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(BOUNDS, lambda value: _is_finite(value) and value >= 0),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), _is_finite),
    **dict.fromkeys(("enum", "examples"), lambda value: isinstance(value, list)),
    "multipleOf": lambda value: _is_finite(value) and value > 0,
    "required": _is_names,
    "type": lambda value: (
        value in TYPES
        if isinstance(value, str)
        else bool(value) and _is_names(value) and {*value} <= {*TYPES}
    ),
    "uniqueItems": lambda value: isinstance(value, bool),
}
