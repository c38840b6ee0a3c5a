"""Gemini's two ways to take a schema.

``parameters`` is a subset of OpenAPI 3.0: one type each, no references, enums of strings
only. An unknown word in it makes the API refuse the whole request. ``parametersJsonSchema``
is JSON Schema, of which a part counts; it came later.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from holdfast.agents.schemas import (
    SILENT,
    Expansion,
    Losses,
    below,
    inferred_types,
    join,
    object_root,
    rewrite,
    sieve,
    tell,
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
_USED: Final = frozenset(
    {"type", "description", "title", "format", "enum", "items", "prefixItems", "anyOf"}
    | {"properties", "required"}
)
_TOLD: Final = frozenset(
    {"format", "default", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"}
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
        node = _without_const(without_all_of(given, where, self._report))
        return without_one_of(node, where, self._report)

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
        if kind == "object" and not node.get("properties"):
            return self._any_keys(node, where)
        found: Schema = {"type": kind.upper(), **self._described(node)}
        notes: dict[str, Any] = {}
        for key, value in _without_exclusive(node).items():
            if key in _WORDS[kind]:
                found[key] = value
            elif key not in _USED and key not in SILENT:
                self._drop(where, key, value, notes)
        self._add_format(found, node, where, notes)
        self._add_enum(found, node, where, notes)
        self._add_parts(found, node, where)
        return tell(found, notes)

    def _any_keys(self, node: Schema, where: str) -> Schema:
        """Return an object that names no properties, which Gemini refuses, as JSON in a text."""
        self._report.add(where, "properties", "an object of any keys; it is passed as JSON text")
        text = " ".join([*self._described(node).values(), "(a JSON object, written as text)"])
        return {"type": "STRING", "description": text}

    def _described(self, node: Schema) -> Schema:
        text = node.get("description") or node.get("title")
        return {"description": text} if isinstance(text, str) and text else {}

    def _drop(self, where: str, key: str, value: Any, notes: dict[str, Any]) -> None:
        if key in _TOLD:
            notes[key] = value
            self._report.add(where, key, "is stated in the description only")
        elif not (key == "additionalProperties" and value is False):
            self._report.add(where, key, "is not part of Gemini's schemas")

    def _add_format(self, found: Schema, node: Schema, where: str, notes: dict[str, Any]) -> None:
        form = node.get("format")
        if form is None:
            return
        if form in _FORMATS.get(node["type"], ()):
            found["format"] = form
        else:
            self._drop(where, "format", form, notes)

    def _add_enum(self, found: Schema, node: Schema, where: str, notes: dict[str, Any]) -> None:
        values = node.get("enum")
        if not isinstance(values, list):
            return
        values = [one for one in values if one is not None]
        if node["type"] == "string" and values and all(_is_text(one) for one in values):
            found["enum"] = values
        else:
            notes["one of"] = values
            self._report.add(where, "enum", "is stated in the description only")

    def _add_parts(self, found: Schema, node: Schema, where: str) -> None:
        if node["type"] == "array":
            items = node.get("items", {})
            if isinstance(items, list) or "prefixItems" in node:
                self._report.add(where, "prefixItems", "becomes a list of any of its values")
                items = {"anyOf": items if isinstance(items, list) else node["prefixItems"]}
            found["items"] = self.node(items, below(where, "items"))
        properties = node.get("properties")
        if node["type"] != "object" or not isinstance(properties, dict):
            return
        found["properties"] = {
            name: self.node(one, below(where, "properties", name))
            for name, one in properties.items()
        }
        required = [name for name in node.get("required") or () if name in properties]
        if required:
            found["required"] = required


def _without_const(node: Schema) -> Schema:
    """Return a schema with the one value that it allows as an enum."""
    if "const" not in node:
        return node
    rest = {key: value for key, value in node.items() if key != "const"}
    return {**rest, "enum": [node["const"]]}


def _is_null(node: Schema) -> bool:
    return node.get("type") == "null"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


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


# JSON Schema


KEPT: Final = frozenset(
    {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum"}
    | {"items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf"}
    | {"properties", "additionalProperties", "required"}
)


def json_schema(schema: Schema, report: Losses) -> Schema | None:
    """Return the schema for ``parametersJsonSchema``; None without arguments."""
    root = object_root(schema, report)
    if not root["properties"]:
        return None
    definitions = root.pop("definitions", None)
    if isinstance(definitions, dict):
        root["$defs"] = {**definitions, **(root.get("$defs") or {})}
    found: Schema = _pruned(root, "", report)
    return found


def _pruned(node: Any, where: str, report: Losses) -> Any:
    if not isinstance(node, dict):
        return node
    node = _without_const(without_all_of(node, where, report))
    kept = sieve(
        node,
        where,
        report,
        fits=lambda key, value: key in KEPT,
        told=_TOLD,
        lost="is not among the words that Gemini reads",
    )
    return rewrite(_lone_reference(kept), lambda one, place: _pruned(one, place, report), where)


def _lone_reference(node: Schema) -> Schema:
    """Return a reference alone, leading into ``$defs``."""
    pointer = node.get("$ref")
    if not isinstance(pointer, str):
        return node
    if pointer.startswith("#/definitions/"):
        pointer = "#/$defs/" + pointer.removeprefix("#/definitions/")
    beside = {key: value for key, value in node.items() if key != "$ref"}
    if all(key.startswith("$") for key in beside):
        return {**beside, "$ref": pointer}
    return {**beside, "anyOf": [{"$ref": pointer}]}


def revive(value: Any, schema: Any) -> Any:
    """Return arguments with the objects that were passed as JSON text read again."""
    nodes = list(_alternatives(schema))
    kinds = {kind for node in nodes for kind in inferred_types(node)}
    if isinstance(value, str) and "object" in kinds and "string" not in kinds:
        value = _object(value)
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


def _object(text: str) -> Any:
    """Return the object that a text is the JSON of; any other text as it is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text
