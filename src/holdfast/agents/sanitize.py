"""Schemas as JSON Schema says they are: what is not is left out, before anybody trips over it.

Servers send what they like. After this a list is a list and a number a number, every place
of a schema holds one, and none is nested deeper than a fixed bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from holdfast.agents.schemas import DEEPEST, LISTS, MAPS, SINGLES, Losses, Schema, below, rewrite

TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def sound(schema: Schema, report: Losses) -> Schema:
    """The schema without what is not a part of any schema."""
    found: Schema = _sound(schema, "", report, DEEPEST)
    return found


def _sound(node: Any, where: str, report: Losses, levels: int) -> Any:
    if isinstance(node, bool):
        return node
    if not isinstance(node, dict):
        report.add(where, "schema", "is no schema; any value is told")
        return {}
    if not levels:
        report.add(where, "schema", "too deep; any value is told")
        return {}
    kept: Schema = {}
    for key, value in node.items():
        check = CHECKS.get(key)
        if check is None or check(value):
            kept[key] = value
        else:
            report.add(where, key, "is not what it should be; it is left out")
    found = rewrite(kept, lambda one, at: _sound(one, at, report, levels - 1), where)
    # `rewrite` looks into objects and lists; what else stands for a schema is looked at here.
    for key in SINGLES:
        if key in found and not isinstance(found[key], dict | bool | list):
            found[key] = _sound(found[key], below(where, key), report, levels - 1)
    return found


def _is_type(value: Any) -> bool:
    kinds = value if isinstance(value, list) else [value]
    return bool(kinds) and all(isinstance(one, str) and one in TYPES for one in kinds)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "required": _are_names,
    "enum": lambda value: isinstance(value, list) and bool(value),
    **dict.fromkeys(("$ref", "format", "pattern", "title", "description"), _is_text),
    **dict.fromkeys(MAPS, _is_map),
    **dict.fromkeys(LISTS, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(
        ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"), _is_number
    ),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        _is_count,
    ),
    "examples": _is_list,
}
