"""The types and values that fit a schema, and several schemas merged into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Set
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.schema.walk import (
    HOLDS,
    LISTED,
    NAMED,
    REFERENCES,
    Budget,
    Schema,
    branches,
    in_place,
    properties,
)

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


def same(first: Any, second: Any, budget: Budget | None = None) -> bool:
    """Return True if two JSON values are equal, ignoring the order of keys.

    Not ``==``: to Python, ``1`` is ``True``, and a value nested deep enough cannot be compared.
    """
    pairs = [(first, second)]
    while pairs:
        first, second = pairs.pop()
        if first is second:
            continue
        if budget is not None:
            budget.spend()
        if isinstance(first, dict) and isinstance(second, dict):
            if first.keys() != second.keys():
                return False
            pairs += [(value, second[key]) for key, value in first.items()]
        elif isinstance(first, list) and isinstance(second, list):
            if len(first) != len(second):
                return False
            pairs += zip(first, second, strict=True)
        elif type(first) is not type(second) or first != second:
            return False
    return True


ANY_TYPE: Final = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})


def listed_types(schema: Any) -> list[str]:
    """Return the types that a schema names itself, in its order; what is no type is left out."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return [name for name in (kind if isinstance(kind, list) else [kind]) if name in TYPES]


def types(flat: Schema) -> frozenset[str]:
    """Return the types of values that may fit; a number is an integer or a fraction."""
    if "type" not in flat:
        return ANY_TYPE
    listed = flat["type"] if isinstance(flat["type"], list) else [flat["type"]]
    kinds = {*listed}
    return frozenset(kinds - {"number"} | {"integer", "fraction"} if "number" in kinds else kinds)


def admitted_types(schema: Any) -> set[str]:
    """Return the types that a schema admits, by their names: its own, or of its alternatives.

    Without either, they are those of its choices.
    """
    if not isinstance(schema, Mapping):
        return set()
    names = {*listed_types(schema)}
    for branch in (*branches(schema, "anyOf"), *branches(schema, "oneOf")):
        names |= admitted_types(branch)
    if not names:
        choices = branches(schema, "enum") or ([schema["const"]] if "const" in schema else [])
        names = {type_name(value) for value in choices}
    return names


def type_names(kinds: Collection[str]) -> list[str]:
    """Return types by their names in JSON Schema, in a fixed order."""
    names = {"number" if kind == "fraction" else kind for kind in kinds}
    if "number" in names:
        names.discard("integer")
    return [name for name in TYPES if name in names]


def is_number(value: Any) -> bool:
    """Return True for a number that is not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def type_of(value: Any) -> str:
    """Return the type of a value, as `types` has it."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    return "null" if value is None else _TYPE_OF.get(type(value), "object")


def type_name(value: Any) -> str:
    """Return the type of a value by its name in JSON Schema; 1.0 is written as a number."""
    return "number" if isinstance(value, float) else type_of(value)


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


def _conflicts(ours: Set[str], theirs: Set[str]) -> set[str]:
    """Return the keywords that mean something else in one schema than in two."""
    conflicts: set[str] = set()
    if ours and theirs:
        conflicts |= (_UNEVALUATED & ours) | (_UNEVALUATED & theirs)
    for group in _DEPENDENT:
        if group & ours and group & theirs:
            conflicts |= ((group & ours) | (group & theirs)) - {"properties"}
    return conflicts


def merge(schemas: list[Schema]) -> Merged:
    """Return one schema for all of these.

    Without conflicts, exactly the values that fit all of them fit it. A keyword in conflict is
    dropped if it decides a type; otherwise, and in prose, the first schema counts.
    """
    # All values of a keyword are joined at once: to add one schema after another takes, for ten
    # thousand of them, the square of that.
    values: dict[str, list[Any]] = {}
    conflicts: set[str] = set()
    for schema in schemas:
        conflicts |= _conflicts(values.keys(), schema.keys())
        for word, value in schema.items():
            values.setdefault(word, []).append(value)
    merged: Schema = {}
    for word, several in values.items():
        value, exact = _join(word, several) if len(several) > 1 else (several[0], True)
        if value is not _DROPPED:
            merged[word] = value
        if not exact:
            conflicts.add(word)
    return Merged(merged, tuple(sorted(conflicts)))


def flatten(schema: Any, find: Callable[[Schema, str], Any], budget: Budget) -> Merged:
    """Return one schema with its ``allOf``, and what it refers to, merged in; see `in_place`."""
    schemas = [
        {key: value for key, value in part.items() if key not in ("$ref", "allOf")}
        for part in in_place(schema, find, budget)
    ]
    sizes = [len(by_name) for by_name in map(properties, schemas) if by_name]
    budget.spend(sum(sizes) if len(sizes) > 1 else 0)
    return merge(schemas)


_DROPPED: Final = object()


def _join(word: str, values: list[Any]) -> tuple[Any, bool]:
    """Return the values of a keyword as one, and whether nothing is lost by that."""
    first = values[0]
    if wordy(word) or all(same(first, value) for value in values):
        return first, True
    join = _JOINS.get(word)
    joined = None if join is None else join(values)
    if joined is not None:
        return joined, True
    return (_DROPPED if word in SHAPE else first), False


def _join_properties(values: list[Any]) -> Any:
    if not all(isinstance(value, dict) for value in values):
        return None
    by_name: dict[str, list[Any]] = {}
    for value in values:
        for name, part in value.items():
            parts = by_name.setdefault(name, [])
            if not parts or not same(parts[0], part):
                parts.append(part)
    return {
        name: parts[0] if len(parts) == 1 else {"allOf": parts} for name, parts in by_name.items()
    }


def _join_names(values: list[Any]) -> Any:
    if not all(map(_is_names, values)):
        return None
    return list(dict.fromkeys(name for value in values for name in value))


def _join_choices(values: list[Any]) -> Any:
    if not all(isinstance(value, list) for value in values):
        return None
    keys = set.intersection(*({json_key(choice) for choice in value} for value in values[1:]))
    return [choice for choice in values[0] if json_key(choice) in keys] or None


def _join_types(values: list[Any]) -> Any:
    """Return the types in all of them; an integer is a number."""
    lists = [value if isinstance(value, list) else [value] for value in values]
    common = lists[0]
    for kinds in lists[1:]:
        shared = [name for name in common if name in kinds]
        numbers = {"integer", "number"}
        if not numbers & {*shared} and numbers & {*common} and numbers & {*kinds}:
            shared.append("integer")
        common = shared
    return common[0] if len(common) == 1 else common or None


def _join_bounds(largest: bool, values: list[Any]) -> Any:
    return (max if largest else min)(values) if all(map(is_number, values)) else None


def well_formed(keyword: str, value: Any) -> bool:
    """Return True if a keyword has a value of the type that JSON Schema demands."""
    check = _FORMS.get(keyword)
    return check is None or check(value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_finite(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or math.isfinite(value))


def _is_count(value: Any) -> bool:
    return _is_finite(value) and value >= 0 and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _are_types(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return bool(value) and _is_names(value) and {*value} <= {*TYPES}


def _are_dependencies(value: Any) -> bool:
    return _is_object(value) and all(map(_is_names, value.values()))


_COUNTS: Final = ("Length", "Items", "Properties", "Contains")
_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(HOLDS - NAMED - LISTED, _is_schema),
    **dict.fromkeys((*REFERENCES, "$id", "id", "$anchor", "$dynamicAnchor", "$schema"), _is_text),
    **dict.fromkeys(("$comment", "description", "format", "pattern", "title"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(NAMED, _is_object),
    **dict.fromkeys(LISTED, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys((f"{least}{what}" for least in ("min", "max") for what in _COUNTS), _is_count),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), _is_finite),
    **dict.fromkeys(("enum", "examples"), lambda value: isinstance(value, list)),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
    "items": lambda value: _is_schema(value) or isinstance(value, list),
    "multipleOf": lambda value: _is_finite(value) and value > 0,
    "dependentRequired": _are_dependencies,
    "required": _is_names,
    "type": _are_types,
}
_JOINS: Final[dict[str, Callable[[list[Any]], Any]]] = {
    **{
        word: partial(_join_bounds, "min" in word.lower())
        for word in BOUNDS
        if word != "multipleOf"
    },
    "properties": _join_properties,
    "required": _join_names,
    "enum": _join_choices,
    "type": _join_types,
}
"""How the values of a keyword become one; each returns None if they cannot."""
