"""OpenAI's strict mode, in which the model always follows the schema.

Every object is closed and every property required. An optional property may be null instead, and
`restore` removes those nulls from the arguments again. The mode supports a part of JSON Schema; a
tool whose schema cannot be expressed in that part is given without strict mode.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from holdfast.agents.schemas import Losses, accepts_null, inferred_types, keep_supported
from holdfast.schema.explain import pointer
from holdfast.schema.types import listed_types
from holdfast.schema.walk import Schema, required, rewrite

LEVELS: Final = 10
PROPERTIES: Final = 5000
ENUMS: Final = 1000
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_KEPT: Final = frozenset(
    {"type", "description", "title", "enum", "properties", "required", "items", "anyOf"}
    | {"additionalProperties", "minItems", "maxItems"}
    | {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
_LOOKS_AROUND: Final = re.compile(r"\(\?<?[=!]")


class NotStrict(Exception):  # noqa: N818  (an answer rather than an error)
    """The schema cannot be expressed in strict mode; says why."""

    def __init__(self, where: str, keyword: str, text: str) -> None:
        super().__init__(text)
        self.where, self.keyword = where, keyword


def to_strict(root: Schema, report: Losses) -> Schema:
    """Return the plain schema of some arguments for strict mode. Raises `NotStrict`."""
    for loss in report:
        if loss.keyword in ("$ref", "schema"):  # something was left open
            raise NotStrict(loss.where, loss.keyword, loss.text)
    if not root["properties"] and root.get("additionalProperties") not in (None, False):
        raise NotStrict("", "additionalProperties", "takes arguments of any name")
    return _Tightening(report).node(root, "", 1)


class _Tightening:
    def __init__(self, report: Losses) -> None:
        self._report = report
        self._left = {"properties": PROPERTIES, "enum": ENUMS}

    def node(self, node: Any, where: str, level: int) -> Schema:
        """Convert one schema."""
        if level > LEVELS:
            raise NotStrict(where, "schema", f"is nested deeper than {LEVELS} levels")
        kinds = inferred_types(node) if isinstance(node, dict) else []
        if not kinds and (not isinstance(node, dict) or "anyOf" not in node):
            raise NotStrict(where, "type", "takes any value")
        node = keep_supported(_with_type(node, kinds), where, self._report, _fits)
        is_object = "object" in kinds
        if is_object:
            self._close(node, where)
        if "array" in kinds and not isinstance(node.get("items"), dict):
            raise NotStrict(where, "items", "a list of any values")
        self._count(node, where)
        strict = rewrite(
            node,
            lambda part: (
                part.schema
                if part.keyword == "additionalProperties"
                else self.node(part.schema, where + pointer(*part.steps), level + is_object)
            ),
        )
        if is_object:
            _require_all(strict, required(node))
        return strict

    def _count(self, node: Schema, where: str) -> None:
        """Count what OpenAI takes only so many of in a whole schema."""
        for key, most in (("properties", PROPERTIES), ("enum", ENUMS)):
            self._left[key] -= len(node.get(key) or ())
            if self._left[key] < 0:
                what = "properties" if key == "properties" else "enum values"
                raise NotStrict(where, key, f"more than {most} {what} in all")

    def _close(self, node: Schema, where: str) -> None:
        others = node.get("additionalProperties")
        if "properties" not in node or (not node["properties"] and where and others is not False):
            raise NotStrict(where, "additionalProperties", "an object of any keys")
        if others not in (None, False):
            self._report.add(where, "additionalProperties", "takes only the properties named")
        node["additionalProperties"] = False


def _fits(key: str, value: Any) -> bool:
    if key == "format":
        return value in _FORMATS
    if key == "pattern":
        return _LOOKS_AROUND.search(value) is None
    return key in _KEPT


def _nullable(node: Schema) -> Schema:
    if accepts_null(node):
        return node
    if "anyOf" in node:
        variants = node["anyOf"] if node.keys() == {"anyOf"} else [node]
        return {"anyOf": [*variants, {"type": "null"}]}
    enum = {"enum": [*node["enum"], None]} if "enum" in node else {}
    return {**node, "type": [*listed_types(node), "null"], **enum}


def _with_type(node: Schema, kinds: list[str]) -> Schema:
    if not kinds or "anyOf" in node:
        return node
    return {**node, "type": kinds[0] if len(kinds) == 1 else kinds}


def _require_all(strict: Schema, needed: Collection[str]) -> None:
    """Require every property; null stands for one that was not needed."""
    strict["properties"] = {
        name: converted if name in needed else _nullable(converted)
        for name, converted in strict["properties"].items()
    }
    strict["required"] = list(strict["properties"])
