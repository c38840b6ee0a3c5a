"""Schemas for Gemini.

``parameters`` of a declaration is a subset of OpenAPI 3.0: one type each, no references, enums of
strings only. An unknown word in it makes the API refuse the whole request.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from holdfast.agents.schemas import MOST_NODES, Losses, inferred_types, join, keep_supported
from holdfast.schema.explain import pointer
from holdfast.schema.walk import Budget, Schema, branches, properties, required, tuple_items

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
_ANY: Final = ("string", "number", "boolean")


def subset(root: Schema, report: Losses) -> Schema | None:
    """Return the plain schema of some arguments for ``parameters``.

    None without arguments: an object without properties is refused.
    """
    return _Conversion(report).node(root, "") if root["properties"] else None


class _Conversion:
    def __init__(self, report: Losses) -> None:
        self._report = report
        # Each alternative has all that stands beside it, alternatives of properties included.
        self._budget = Budget(MOST_NODES)

    def node(self, node: Any, where: str) -> Schema:
        """Convert one schema."""
        if node is False:
            self._report.add(where, "schema", "nothing fits it; any value is accepted")
        if not self._budget.afford():
            self._report.add(where, "schema", "too large; any value is accepted")
            node = {}
        node = node if isinstance(node, dict) else {}
        variants = self._variants(node, where)
        real = [variant for variant in variants if variant["type"] != "null"]
        nullable = {"nullable": True} if len(real) < len(variants) else {}
        if not real:
            self._report.add(where, "type", "only null; becomes text that may be null")
            return {"type": "STRING", **_described(node), **nullable}
        if len(real) == 1:
            return {**self._typed(real[0], where), **nullable}
        choices = [
            self._typed(variant, where + pointer("anyOf", i)) for i, variant in enumerate(real)
        ]
        return {"anyOf": choices, **_described(node), **nullable}

    def _variants(self, node: Schema, where: str) -> list[Schema]:
        """Return one schema for each alternative and each type."""
        if choices := [choice for choice in branches(node, "anyOf") if choice is not False]:
            rest = {key: value for key, value in node.items() if key != "anyOf"}
            variants: list[Schema] = []
            for index, choice in enumerate(choices):
                place = where + pointer("anyOf", index)
                parts = [choice, rest] if isinstance(choice, dict) else [rest]
                variants += self._variants(join(parts, place, self._report), place)
            return variants
        kinds = inferred_types(node)
        if not kinds:
            self._report.add(where, "type", "any value; becomes text, number or boolean")
            kinds = list(_ANY)
        null = [{"type": "null"}] if node.get("nullable") is True else []
        return [*({**node, "type": kind} for kind in kinds), *null]

    def _typed(self, node: Schema, where: str) -> Schema:
        """Return a schema of one type, with the keywords of that type."""
        kind = node["type"]
        described = _described(node)
        if kind == "object" and not node.get("properties"):
            # Gemini refuses an object that names no properties.
            text = "an object of any keys; it is passed as JSON text"
            self._report.add(where, "properties", text)
            text = " ".join([*described.values(), "(a JSON object, written as text)"])
            return {"type": "STRING", "description": text}
        plain = {
            key: choice for key, choice in _without_exclusive(node).items() if key not in _BUILT
        }
        if plain.get("additionalProperties") is False:
            del plain["additionalProperties"]
        if "enum" in plain:
            plain["enum"] = [choice for choice in plain["enum"] if choice is not None]
        typed = keep_supported({**described, **plain}, where, self._report, partial(_fits, kind))
        return {"type": kind.upper(), **typed, **self._parts(node, where)}

    def _parts(self, node: Schema, where: str) -> Schema:
        """Return the keywords that hold other schemas."""
        if node["type"] == "array":
            first, items = tuple_items(node)
            if first:
                self._report.add(where, "prefixItems", "becomes a list of any of its values")
                items = {"anyOf": first}
            return {"items": self.node({} if items is None else items, where + "/items")}
        if node["type"] != "object":
            return {}
        by_name = {
            name: self.node(part, where + pointer("properties", name))
            for name, part in properties(node).items()
        }
        needed = [name for name in required(node) if name in by_name]
        return {"properties": by_name, **({"required": needed} if needed else {})}


def _described(node: Schema) -> Schema:
    text = node.get("description") or node.get("title")
    return {"description": text} if text else {}


def _fits(kind: str, key: str, value: Any) -> bool:
    """Return True if a type may have a keyword with this value."""
    if key == "format":
        return value in _FORMATS.get(kind, ())
    if key == "enum":
        texts = bool(value) and all(isinstance(choice, str) and choice for choice in value)
        return kind == "string" and texts
    return key == "description" or key in _WORDS[kind]


def _without_exclusive(node: Schema) -> Schema:
    """Return exclusive bounds of integers as inclusive ones."""
    if node["type"] != "integer":
        return node
    inclusive = dict(node)
    low, high = inclusive.pop("exclusiveMinimum", None), inclusive.pop("exclusiveMaximum", None)
    if low is not None:
        inclusive["minimum"] = max(math.floor(low) + 1, inclusive.get("minimum", -math.inf))
    if high is not None:
        inclusive["maximum"] = min(math.ceil(high) - 1, inclusive.get("maximum", math.inf))
    return inclusive
