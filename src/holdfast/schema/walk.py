"""A schema's keywords, subschemas and references, read within one budget.

Servers write schemas, and the results that are checked against them, so both may be hostile:
references that double at every step, alternatives inside alternatives, patterns over megabytes.
Every reader counts its steps with a `Budget`. References lead to places in the same document;
nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

MAX_DEPTH: Final = 100
"""Levels of nested schemas that are followed."""
MAX_NODES: Final = 4_000
"""JSON values in one schema."""
MAX_WORK: Final = 5_000
"""Units of one reading, or of compiling a schema and one check against it: 25 ms."""
STEPS: Final = 250
"""Steps of the validator in one unit of work."""
IGNORED: Final = ("contentMediaType", "contentEncoding")
"""Annotations since 2019-09; before that a validator may decode what they describe."""


class SchemaTooComplex(Exception):  # noqa: N818  (a finding, not a failure)
    """A schema, or a check against it, exceeds its bounds; the text says which."""


class ExternalReference(SchemaTooComplex):
    """A schema refers to what is not in it: nothing is ever fetched."""


class Budget:
    """The work that may still be done, in units of about five microseconds."""

    def __init__(self, work: int = MAX_WORK) -> None:
        self.left: int = work

    def spend(self, units: int = 1, text: str = "it is too large or too deep") -> None:
        """Use up some units.

        Raises:
            SchemaTooComplex: None are left; ``text`` says what for.
        """
        self.left -= units
        if self.left < 0:
            raise SchemaTooComplex(text)

    def afford(self, units: int = 1) -> bool:
        """Use up some units; return False when none are left."""
        self.left -= units
        return self.left >= 0


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
    """Return the subschemas directly inside a schema; malformed ones are skipped."""
    for keyword, value in schema.items():
        place = _PLACES.get(keyword)
        if place is None:
            continue
        if isinstance(value, dict):
            if keyword in NAMED:
                for name, subschema in value.items():
                    if isinstance(subschema, (dict, bool)):
                        yield Part(keyword, name, subschema, place)
            elif keyword not in LISTED:
                yield Part(keyword, None, value, place)
        elif isinstance(value, list):
            if keyword in LISTED or keyword in _EITHER:
                for at, subschema in enumerate(value):
                    if isinstance(subschema, (dict, bool)):
                        yield Part(keyword, at, subschema, place)
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


def named(schema: Any, keyword: str) -> dict[str, Any]:
    """Return the object under a keyword; empty if there is none."""
    value = schema.get(keyword) if isinstance(schema, Mapping) else None
    return value if isinstance(value, dict) else {}


def properties(schema: Any) -> dict[str, Any]:
    """Return the properties of a schema; empty if it has none."""
    return named(schema, "properties")


def required(schema: Any) -> dict[str, None]:
    """Return the names in ``required``, in their order; there may be very many to look up."""
    value = schema.get("required") if isinstance(schema, Mapping) else None
    names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
    return dict.fromkeys(names)


def branches(schema: Any, keyword: str) -> list[Any]:
    """Return the list under a keyword; empty if there is none."""
    value = schema.get(keyword) if isinstance(schema, Mapping) else None
    return value if isinstance(value, list) else []


def in_place(schema: Any, find: Callable[[Schema, str], Any], budget: Budget) -> Iterator[Schema]:
    """Yield the schemas that apply to one value: itself, its ``allOf``, and what these refer to.

    Each comes once, so a reference that leads back ends there.

    Args:
        schema: The schema.
        find: Returns what a reference leads to, from the schema that has it and its text.
        budget: Pays for each schema.

    Raises:
        SchemaTooComplex: There are too many.
    """
    waiting: list[Any] = [schema]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        budget.spend()
        yield part
        following = branches(part, "allOf")
        reference = part.get("$ref")
        if isinstance(reference, str):
            following = [*following, find(part, reference)]
        waiting += reversed(following)


def tuple_items(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and that of all others (None: not given).

    Before 2020-12 these are ``items`` as a list and ``additionalItems``.
    """
    items = schema.get("items")
    if isinstance(items, list):
        return items, schema.get("additionalItems")
    return branches(schema, "prefixItems"), items


_NAMES: Final = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})


def resolve(document: Any, reference: str) -> Any:
    """Return what a JSON pointer in a ``$ref`` leads to; None if to nothing in the document.

    A list's index may be any text here, and a number of any length.
    """
    if reference == "#":
        return document
    if not reference.startswith("#/"):
        return None
    value = document
    from urllib.parse import unquote

    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and key.isascii() and len(key) < 9:
            value = value[int(key)] if int(key) < len(value) else None
        else:
            return None
    return value


class Resolver:
    """The named places of a document: embedded resources (``$id``) and anchors.

    JSON Schema 2020-12 Core, sections 8.2 (base URI, anchors) and 9.1.2 (initial base URI).
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self.named: bool = False
        """A part of the document has a URI of its own."""
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Schema] = {}
        self._dynamic: dict[str, list[Schema]] = {}
        self._index(root, "")

    def _index(self, root: Any, base: str) -> None:
        waiting: list[tuple[Any, str]] = [(root, base)]
        seen = 0
        while waiting:
            schema, base = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in self._bases:
                continue
            if HOLDS.isdisjoint(schema) and _NAMES.isdisjoint(schema):
                continue
            seen += 1
            if seen > MAX_NODES:
                raise SchemaTooComplex(f"it has more than {MAX_NODES} parts")
            base = self._name(schema, base)
            self._bases[id(schema)] = base
            waiting += [(part.schema, base) for part in parts(schema)]

    def _name(self, schema: Schema, base: str) -> str:
        """Note the names of one schema; return the base URI of what is inside it."""
        base = self._name_resource(schema, base)
        self._name_anchors(schema, base)
        return base

    def _name_resource(self, schema: Schema, base: str) -> str:
        for keyword in ("$id", "id"):
            name = schema.get(keyword)
            if isinstance(name, str):
                place, _, anchor = name.partition("#")
                if place:
                    base = _join(base, place)
                    self._resources[base] = schema
                    self.named = self.named or schema is not self.root
                if anchor:
                    self._anchors[base, anchor] = schema
        return base

    def _name_anchors(self, schema: Schema, base: str) -> None:
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                self._anchors[base, name] = schema
                self.named = self.named or schema is not self.root
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(name, []).append(schema)
        if schema.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(schema)

    def target(self, schema: Schema, reference: str) -> Any:
        """Return what a reference in ``schema`` leads to; None if to nothing in the document."""
        if not self.named and reference.startswith("#/"):
            return resolve(self.root, reference)
        base = self._bases.get(id(schema), "")
        place, _, fragment = reference.partition("#")
        where = _join(base, place) if place else base
        resource = self._resources.get(where)
        if resource is None and not where:
            resource = self.root
        if not fragment:
            return resource
        if fragment.startswith("/"):
            return resolve(resource, f"#{fragment}")
        return self._anchors.get((where, fragment))

    def adopt(self, target: Any, source: Schema) -> None:
        """Index a target that is in no schema, with the base URI of what refers to it."""
        if isinstance(target, dict) and id(target) not in self._bases:
            self._index(target, self._bases.get(id(source), ""))

    def dynamic(self, reference: str) -> list[Schema]:
        """Return every schema that a ``$dynamicRef`` may lead to, depending on the way taken."""
        return self._dynamic.get(reference.rpartition("#")[2], [])


def _join(base: str, place: str) -> str:
    from urllib.parse import urljoin

    try:
        return urljoin(base, place)
    except ValueError:  # a malformed address, such as http://[
        return place
