"""Schemas for Gemini, and the way back from a model's arguments.

``parameters`` of a declaration is a subset of OpenAPI 3.0: one type each, no references, enums of
strings only. An unknown word in it makes the API refuse the whole request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from holdfast.agents.schemas import (
    Expansion,
    Losses,
    below,
    inferred_types,
    join,
    object_root,
    sieve,
    without_all_of,
    without_one_of,
)
from holdfast.schema.types import is_number
from holdfast.schema.walk import Schema, branches, properties, required, tuple_items

_FORMATS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"date-time"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
_WORDS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"minProperties", "maxProperties"}),
}
"""The plain words that each type may have."""
_BUILT: Final = frozenset(
    {"type", "description", "title", "items", "prefixItems", "anyOf", "properties", "required"}
)
"""Words that are converted apart from the others."""
_TOLD: Final = frozenset(
    {"format", "default", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"}
    | {"enum", "examples", "pattern", "minLength", "maxLength", "minimum", "maximum"}
)
_ANY: Final = ("string", "number", "boolean")


def subset(schema: Schema, report: Losses) -> Schema | None:
    """Return the schema for ``parameters``; None without arguments: an empty object is refused."""
    root = Expansion(object_root(schema, report), report).run()
    if not root["properties"]:
        return None
    return _Conversion(report).node(root, "")


class _Conversion:
    def __init__(self, report: Losses) -> None:
        self._report = report

    def node(self, node: Any, where: str) -> Schema:
        """Convert one schema."""
        node = self._normal(node, where)
        variants = self._variants(node, where)
        found = [one for one in variants if one["type"] != "null"]
        nullable = {"nullable": True} if len(found) < len(variants) else {}
        if not found:
            self._report.add(where, "type", "only null; becomes text that may be null")
            return {"type": "STRING", **self._described(node), **nullable}
        if len(found) == 1:
            return {**self._typed(found[0], where), **nullable}
        choices = [self._typed(one, below(where, "anyOf", i)) for i, one in enumerate(found)]
        return {"anyOf": choices, **self._described(node), **nullable}

    def _normal(self, given: Any, where: str) -> Schema:
        """Return the schema without keywords that can be expressed by others."""
        if not isinstance(given, dict):
            if given is False:
                self._report.add(where, "schema", "nothing fits it; any value is accepted")
            return {}
        node = without_one_of(without_all_of(given, where, self._report), where, self._report)
        if "const" not in node:
            return node
        rest = {key: value for key, value in node.items() if key != "const"}
        return {**rest, "enum": [node["const"]]}

    def _variants(self, node: Schema, where: str) -> list[Schema]:
        """Return one schema for each alternative and each type."""
        if choices := branches(node, "anyOf"):
            rest = {key: value for key, value in node.items() if key != "anyOf"}
            found: list[Schema] = []
            for index, choice in enumerate(choices):
                place = below(where, "anyOf", index)
                whole = join([self._normal(choice, place), rest], place, self._report)
                found += self._variants(whole, place)
            return found
        kinds = inferred_types(node)
        if not kinds:
            self._report.add(where, "type", "any value; becomes text, number or boolean")
            kinds = list(_ANY)
        null = [{"type": "null"}] if node.get("nullable") is True else []
        return [*({**node, "type": kind} for kind in kinds), *null]

    def _typed(self, node: Schema, where: str) -> Schema:
        """Return a schema of one type, with the keywords of that type."""
        kind = node["type"]
        described = self._described(node)
        if kind == "object" and not node.get("properties"):
            # Gemini refuses an object that names no properties.
            text = "an object of any keys; it is passed as JSON text"
            self._report.add(where, "properties", text)
            text = " ".join([*described.values(), "(a JSON object, written as text)"])
            return {"type": "STRING", "description": text}
        plain = {key: one for key, one in _without_exclusive(node).items() if key not in _BUILT}
        if plain.get("additionalProperties") is False:
            del plain["additionalProperties"]
        if isinstance(plain.get("enum"), list):
            plain["enum"] = [one for one in plain["enum"] if one is not None]
        lost = "is not part of Gemini's schemas"
        fits = partial(_fits, kind)
        found = sieve({**described, **plain}, where, self._report, fits=fits, told=_TOLD, lost=lost)
        return {"type": kind.upper(), **found, **self._parts(node, where)}

    def _described(self, node: Schema) -> Schema:
        text = node.get("description") or node.get("title")
        return {"description": text} if isinstance(text, str) and text else {}

    def _parts(self, node: Schema, where: str) -> Schema:
        """Return the keywords that hold other schemas."""
        if node["type"] == "array":
            first, items = tuple_items(node)
            if first:
                self._report.add(where, "prefixItems", "becomes a list of any of its values")
                items = {"anyOf": first}
            return {"items": self.node({} if items is None else items, below(where, "items"))}
        if node["type"] != "object":
            return {}
        found = {
            name: self.node(one, below(where, "properties", name))
            for name, one in properties(node).items()
        }
        needed = [name for name in required(node) if name in found]
        return {"properties": found, **({"required": needed} if needed else {})}


def _fits(kind: str, key: str, value: Any) -> bool:
    """Return True if a type may have a keyword with this value."""
    if key == "format":
        return value in _FORMATS.get(kind, ())
    if key == "enum":
        texts = kind == "string" and isinstance(value, list) and value
        return bool(texts) and all(isinstance(one, str) and one for one in value)
    return key == "description" or key in _WORDS[kind]


def _without_exclusive(node: Schema) -> Schema:
    """Return exclusive bounds of integers as inclusive ones."""
    if node["type"] != "integer":
        return node
    found = dict(node)
    low, high = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    if low is not None and is_number(low) and math.isfinite(low):
        del found["exclusiveMinimum"]
        found["minimum"] = max(math.floor(low) + 1, found.get("minimum", -math.inf))
    if high is not None and is_number(high) and math.isfinite(high):
        del found["exclusiveMaximum"]
        found["maximum"] = min(math.ceil(high) - 1, found.get("maximum", math.inf))
    return found


# The way back


def revive(value: Any, schema: Any) -> Any:
    """Return arguments with the objects that were passed as JSON text read again."""
    nodes = list(_alternatives(schema))
    kinds = {kind for node in nodes for kind in inferred_types(node)}
    if isinstance(value, str) and "object" in kinds and "string" not in kinds:
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        value = read if isinstance(read, dict) else value
    if isinstance(value, dict):
        named = [properties(node) for node in nodes]
        return {
            key: revive(one, {"anyOf": [inner[key] for inner in named if key in inner]})
            for key, one in value.items()
        }
    if isinstance(value, list):
        listed = [tuple_items(node) for node in nodes]
        return [
            revive(one, {"anyOf": [some[at] if at < len(some) else rest for some, rest in listed]})
            for at, one in enumerate(value)
        ]
    return value


def _alternatives(schema: Any) -> Iterator[Schema]:
    """Return a schema and all that it is an alternative of, each without ``allOf``."""
    if isinstance(schema, dict):
        node = without_all_of(schema, "", Losses())
        yield node
        for choice in (*branches(node, "anyOf"), *branches(node, "oneOf")):
            yield from _alternatives(choice)
