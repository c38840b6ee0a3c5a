"""The kinds of values that fit a schema, and its keywords as plain data."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.schema.budget import Budget

Flat: TypeAlias = dict[str, Any]
"""The keywords of one schema, with what it refers to folded in."""

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")

WORDING: Final = frozenset(
    {
        "$comment",
        "default",
        "deprecated",
        "description",
        "enumDescriptions",
        "enumNames",
        "enumTitles",
        "example",
        "examples",
        "markdownDescription",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""Keywords that no value is checked against."""


def wordy(key: str) -> bool:
    """Whether a keyword only tells. ``x-mcp-header`` does more: it moves an argument."""
    return key in WORDING or (key.startswith("x-") and key != "x-mcp-header")


def same(one: Any, other: Any, budget: Budget | None = None) -> bool:
    """Whether two JSON values are written the same, but for the order of keys.

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


_SPLIT_NUMBER: Final = {"number": ("integer", "fraction")}
ANY_TYPE: Final = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})


def types(flat: Flat) -> frozenset[str]:
    """The kinds of values that may fit; a number is an integer or a fraction."""
    if "type" not in flat:
        return ANY_TYPE
    named = flat["type"] if isinstance(flat["type"], list) else [flat["type"]]
    return frozenset(kind for name in named for kind in _SPLIT_NUMBER.get(name, (name,)))


def named_types(kinds: frozenset[str] | set[str]) -> list[str]:
    """The same as JSON schema has it, in a fixed order."""
    named = {"number" if kind == "fraction" else kind for kind in kinds}
    if "number" in named:
        named.discard("integer")
    return [name for name in TYPES if name in named]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def type_of(value: Any) -> str:
    """The kind of a value, as `types` has it."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    return _TYPE_OF.get(type(value), "object")


_TYPE_OF: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}


def canonical(value: Any) -> bytes:
    """Return the one JSON text of a value: keys sorted, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")


def mark(value: Any) -> Hashable:
    """What two values share exactly if JSON schema takes them for equal: 1 is 1.0, but not true."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value), value)
    if is_number(value):
        return ("number", value)
    return ("json", canonical(value))


def values(flat: Flat) -> list[Any] | None:
    """The only values that may fit, if they are told one by one."""
    if "const" not in flat and "enum" not in flat:
        return None
    listed = flat.get("enum", [flat.get("const")])
    if "const" in flat:
        listed = [value for value in listed if mark(value) == mark(flat["const"])]
    kinds = types(flat)
    return [value for value in listed if type_of(value) in kinds]


_ONLY_FOR: Final[dict[str, str]] = {
    **dict.fromkeys(("format", "maxLength", "minLength", "pattern"), "string"),
    **dict.fromkeys(
        ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"), "number"
    ),
    **dict.fromkeys(
        ("additionalItems", "contains", "items", "maxItems", "minItems", "prefixItems"), "array"
    ),
    **dict.fromkeys(
        ("additionalProperties", "properties", "required", "patternProperties", "propertyNames"),
        "object",
    ),
}


def by_type(flat: Flat) -> list[Flat]:
    """A schema of several types as several of one, each with what concerns it."""
    names = named_types(types(flat)) if "type" in flat else []
    if len(names) < 2 or values(flat) is not None:
        return [flat]
    return [
        {
            **{key: value for key, value in flat.items() if _concerns(key, name)},
            "type": name,
        }
        for name in names
    ]


def _concerns(key: str, name: str) -> bool:
    only = _ONLY_FOR.get(key)
    return only is None or only == name or (only == "number" and name == "integer")
