"""The keywords of JSON Schema that hold schemas, and the one way to visit these.

``$ref`` and its relatives are not followed here; see `holdfast.schema.refs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Schema: TypeAlias = dict[str, Any]

Place: TypeAlias = Literal["here", "property", "name", "item", "apart"]
"""The values that a subschema applies to: the same value, its properties, their names, its items,
or (``$defs``, ``contentSchema``) none until something refers to it."""

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")

_PLACES: Final[dict[str, Place]] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"), "here"),
    **dict.fromkeys(("dependentSchemas", "dependencies"), "here"),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties"), "property"),
    **dict.fromkeys(("unevaluatedProperties",), "property"),
    **dict.fromkeys(("propertyNames",), "name"),
    **dict.fromkeys(("items", "prefixItems", "additionalItems"), "item"),
    **dict.fromkeys(("contains", "unevaluatedItems"), "item"),
    **dict.fromkeys(("$defs", "definitions", "contentSchema"), "apart"),
}
NAMED: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)
LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_EITHER: Final = frozenset({"items"})
"""A schema, or before 2020-12 a list of schemas."""


HOLDS: Final = frozenset({*_PLACES, *REFERENCES})
"""The keywords that hold, or refer to, other schemas."""


class Part(NamedTuple):
    """A subschema: the keyword it stands under, its name or number there, and its place."""

    keyword: str
    key: str | int | None
    schema: Any
    place: Place

    @property
    def steps(self) -> tuple[str | int, ...]:
        """The way to it from its owner, as steps of a JSON pointer."""
        return (self.keyword,) if self.key is None else (self.keyword, self.key)


def parts(schema: Mapping[str, Any]) -> Iterator[Part]:
    """Return the subschemas directly inside a schema; what is malformed is passed over."""
    for keyword, value in schema.items():
        place = _PLACES.get(keyword)
        if place is None:
            continue
        if isinstance(value, dict):
            if keyword in NAMED:
                for name, one in value.items():
                    if isinstance(one, (dict, bool)):
                        yield Part(keyword, name, one, place)
            elif keyword not in LISTED:
                yield Part(keyword, None, value, place)
        elif isinstance(value, list):
            if keyword in LISTED or keyword in _EITHER:
                for at, one in enumerate(value):
                    if isinstance(one, (dict, bool)):
                        yield Part(keyword, at, one, place)
        elif isinstance(value, bool) and keyword not in NAMED and keyword not in LISTED:
            yield Part(keyword, None, value, place)


def rewrite(schema: Schema, change: Callable[[Part], Any]) -> Schema:
    """Return a copy in which ``change`` has replaced every subschema directly inside."""
    copy = dict(schema)
    for part in parts(schema):
        if part.key is None:
            copy[part.keyword] = change(part)
            continue
        held = copy[part.keyword]
        if held is schema[part.keyword]:
            held = copy[part.keyword] = held.copy()
        held[part.key] = change(part)
    return copy


def pointer(*steps: object) -> str:
    """Return the JSON pointer of some steps (RFC 6901, section 3)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def named(schema: Any, keyword: str) -> dict[str, Any]:
    """Return the object under a keyword; empty if there is none."""
    found = schema.get(keyword) if isinstance(schema, Mapping) else None
    return found if isinstance(found, dict) else {}


def properties(schema: Any) -> dict[str, Any]:
    """Return the properties of a schema; empty if it has none."""
    return named(schema, "properties")


def required(schema: Any) -> list[str]:
    """Return the names in ``required``, each once."""
    found = schema.get("required") if isinstance(schema, Mapping) else None
    names = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    return list(dict.fromkeys(names))


def branches(schema: Any, keyword: str) -> list[Any]:
    """Return the list under a keyword; empty if there is none."""
    found = schema.get(keyword) if isinstance(schema, Mapping) else None
    return found if isinstance(found, list) else []


def tuple_items(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and that of all others (None: not given).

    Before 2020-12 these are ``items`` as a list and ``additionalItems``.
    """
    items = schema.get("items")
    if isinstance(items, list):
        return items, schema.get("additionalItems")
    return branches(schema, "prefixItems"), items
