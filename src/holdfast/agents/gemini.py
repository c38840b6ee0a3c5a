"""Schemas for Gemini, and the way back from a model's arguments.

``parameters`` of a declaration is a subset of OpenAPI 3.0: one type each, no references, enums of
strings only. An unknown word in it makes the API refuse the whole request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeGuard

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
from holdfast.schema.walk import Schema

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
    {
        "enum",
        "format",
        "default",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "uniqueItems",
    }
    | {"examples", "pattern", "minLength", "maxLength", "minimum", "maximum"}
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
        nullable = {"nullable": True} if any(_is_null(one) for one in variants) else {}
        variants = [one for one in variants if not _is_null(one)]
        if not variants:
            self._report.add(where, "type", "only null; becomes text that may be null")
            return {"type": "STRING", **self._described(node), **nullable}
        if len(variants) == 1:
            return {**self._typed(variants[0], where), **nullable}
        choices = [self._typed(one, below(where, "anyOf", i)) for i, one in enumerate(variants)]
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
        choices = node.get("anyOf")
        if isinstance(choices, list) and choices:
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
            items = node.get("items", {})
            if isinstance(items, list) or "prefixItems" in node:
                self._report.add(where, "prefixItems", "becomes a list of any of its values")
                items = {"anyOf": items if isinstance(items, list) else node["prefixItems"]}
            return {"items": self.node(items, below(where, "items"))}
        properties = node.get("properties")
        if node["type"] != "object" or not isinstance(properties, dict):
            return {}
        converted = {
            name: self.node(one, below(where, "properties", name))
            for name, one in properties.items()
        }
        required = [name for name in node.get("required") or () if name in properties]
        return {"properties": converted, **({"required": required} if required else {})}


def _fits(kind: str, key: str, value: Any) -> bool:
    """Return True if a type may have a keyword with this value."""
    if key == "format":
        return value in _FORMATS.get(kind, ())
    if key == "enum":
        texts = kind == "string" and isinstance(value, list) and value
        return bool(texts) and all(isinstance(one, str) and one for one in value)
    return key == "description" or key in _WORDS[kind]


def _is_null(node: Schema) -> bool:
    return node.get("type") == "null"


def _without_exclusive(node: Schema) -> Schema:
    """Return exclusive bounds of integers as inclusive ones."""
    low, high = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    if node["type"] != "integer":
        return node
    found = dict(node)
    if _is_number(low):
        del found["exclusiveMinimum"]
        found["minimum"] = max(math.floor(low) + 1, found.get("minimum", -math.inf))
    if _is_number(high):
        del found["exclusiveMaximum"]
        found["maximum"] = min(math.ceil(high) - 1, found.get("maximum", math.inf))
    return found


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
        found = [node["properties"] for node in nodes if isinstance(node.get("properties"), dict)]
        return {
            key: revive(one, {"anyOf": [inner[key] for inner in found if key in inner]})
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [revive(one, {"anyOf": _items(nodes, at)}) for at, one in enumerate(value)]
    return value


def _alternatives(schema: Any) -> Iterator[Schema]:
    """Return a schema and all that it is an alternative of, each without ``allOf``."""
    if isinstance(schema, dict):
        node = without_all_of(schema, "", Losses())
        yield node
        for choice in (*(node.get("anyOf") or ()), *(node.get("oneOf") or ())):
            yield from _alternatives(choice)


def _items(nodes: list[Schema], at: int) -> list[Any]:
    """Return the schemas of the item at one place of a list."""
    found = []
    for node in nodes:
        items = node.get("items")
        first = items if isinstance(items, list) else node.get("prefixItems") or []
        found.append(first[at] if at < len(first) else items)
    return found
