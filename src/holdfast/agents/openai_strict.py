"""OpenAI's strict mode: the model cannot but fit the schema, if the schema fits the mode.

Every object is closed and every property required; what may be left out may be null instead,
and `loosen` takes those nulls out of the arguments again. Of JSON Schema a part is taken. A
tool that cannot be said in it stays as it is, without strict mode.
"""

from __future__ import annotations

import re
from typing import Any, Final

from holdfast.agents.schemas import (
    Expansion,
    Losses,
    accepts_null,
    inferred_types,
    object_root,
    rewrite,
    sieve,
    types_of,
    without_all_of,
    without_one_of,
)
from holdfast.schema.walk import Schema

LEVELS: Final = 10
PROPERTIES: Final = 5000
ENUMS: Final = 1000
FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
KEPT: Final = frozenset(
    {"type", "description", "title", "enum", "const", "properties", "required", "items", "anyOf"}
    | {"additionalProperties", "pattern", "format", "minItems", "maxItems"}
    | {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_TOLD: Final = frozenset(
    {"minLength", "maxLength", "default", "uniqueItems", "minProperties", "maxProperties"}
    | {"examples", "minContains", "maxContains", "format", "pattern"}
)
_LOOKS_AROUND: Final = re.compile(r"\(\?<?[=!]")


class NotStrict(Exception):  # noqa: N818  (an answer rather than an error)
    """The schema cannot be expressed in strict mode; says why."""

    def __init__(self, where: str, keyword: str, text: str) -> None:
        super().__init__(text)
        self.where, self.keyword, self.text = where, keyword, text


def tighten(schema: Schema, report: Losses) -> Schema:
    """Return the schema for strict mode. Raises `NotStrict`."""
    unfolding = Losses()
    root = Expansion(object_root(schema, report), unfolding).run()
    for loss in unfolding:
        raise NotStrict(loss.where, loss.keyword, loss.text)
    if not root["properties"] and root.get("additionalProperties") not in (None, False):
        raise NotStrict("", "additionalProperties", "takes arguments of any name")
    return _Tightening(report).node(root, "", 1)


class _Tightening:
    def __init__(self, report: Losses) -> None:
        self._report = report
        self._properties = 0
        self._enums = 0

    def node(self, node: Any, where: str, level: int) -> Schema:
        """Convert one schema."""
        if not isinstance(node, dict):
            raise NotStrict(where, "schema", "takes any value")
        if level > LEVELS:
            raise NotStrict(where, "schema", f"is nested deeper than {LEVELS} levels")
        node = without_all_of(node, where, self._report)
        node = without_one_of(node, where, self._report)
        kinds = inferred_types(node)
        if not kinds and not {"anyOf", "const"} & node.keys():
            raise NotStrict(where, "type", "takes any value")
        if kinds and not types_of(node) and "anyOf" not in node:
            node = {**node, "type": kinds[0] if len(kinds) == 1 else kinds}
        lost = "is not part of strict mode"
        node = sieve(node, where, self._report, fits=_fits, told=_TOLD, lost=lost)
        node = self._closed(node, where) if "object" in kinds else node
        if "array" in kinds and not isinstance(node.get("items"), dict):
            raise NotStrict(where, "items", "a list of any values")
        self._count(node, where)
        inner = level + ("object" in kinds)
        found = rewrite(node, lambda one, place: self.node(one, place, inner), where)
        if "object" not in kinds:
            return found
        required = node.get("required") or ()
        properties = {
            name: one if name in required else _nullable(one)
            for name, one in found["properties"].items()
        }
        return {**found, "properties": properties, "required": list(properties)}

    def _closed(self, node: Schema, where: str) -> Schema:
        more = node.get("additionalProperties")
        properties = node.get("properties")
        if not isinstance(properties, dict) or (not properties and where and more is not False):
            raise NotStrict(where, "additionalProperties", "an object of any keys")
        if more not in (None, False):
            self._report.add(where, "additionalProperties", "takes only the properties named")
        return {**node, "additionalProperties": False}

    def _count(self, node: Schema, where: str) -> None:
        self._properties += len(node.get("properties") or ())
        self._enums += len(node.get("enum") or ())
        if self._properties > PROPERTIES:
            raise NotStrict(where, "properties", f"more than {PROPERTIES} properties in all")
        if self._enums > ENUMS:
            raise NotStrict(where, "enum", f"more than {ENUMS} enum values in all")


def _fits(key: str, value: Any) -> bool:
    if key == "format":
        return value in FORMATS
    if key == "pattern":
        return isinstance(value, str) and _LOOKS_AROUND.search(value) is None
    return key in KEPT


def _nullable(node: Schema) -> Schema:
    if accepts_null(node):
        return node
    kinds = types_of(node)
    if not kinds or "const" in node or "anyOf" in node:
        variants = node["anyOf"] if node.keys() == {"anyOf"} else [node]
        return {"anyOf": [*variants, {"type": "null"}]}
    enum = {"enum": [*node["enum"], None]} if "enum" in node else {}
    return {**node, "type": [*kinds, "null"], **enum}


def loosen(arguments: Any, schema: Schema) -> Any:
    """Arguments without the nulls that stand for what was left out.

    ``schema`` is the tool's own, references resolved: a null that it takes is kept.
    """
    return _loosen(arguments, object_root(schema, Losses()))


def _loosen(value: Any, node: Any) -> Any:
    if not isinstance(node, dict):
        return value
    node = without_all_of(node, "", Losses())
    if isinstance(value, list) and isinstance(node.get("items"), dict):
        return [_loosen(one, node["items"]) for one in value]
    if not isinstance(value, dict):
        return value
    # An object was made for the first alternative that has all its keys.
    for one in (*(node.get("anyOf") or ()), *(node.get("oneOf") or ())):
        if isinstance(one, dict) and value.keys() <= (one.get("properties") or {}).keys():
            node = one
            break
    properties, required = node.get("properties") or {}, node.get("required") or ()
    return {
        name: _loosen(one, properties.get(name))
        for name, one in value.items()
        if one is not None or name in required or accepts_null(properties.get(name, True))
    }
