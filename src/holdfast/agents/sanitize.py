"""Drop what is malformed in a schema.

Servers send anything. After this every keyword has the right type, every place of a schema holds
one, and nesting is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from holdfast.agents.schemas import DEEPEST, Losses, below, rewrite
from holdfast.schema.types import TYPES
from holdfast.schema.walk import HOLDS, LISTED, NAMED, REFERENCES, Schema

_SINGLE: Final = HOLDS - NAMED - LISTED - {*REFERENCES}


def sound(schema: Schema, report: Losses) -> Schema:
    """Return the schema without what is not a part of any schema."""
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
            kept[key] = _only_schemas(key, value, where, report)
        else:
            report.add(where, key, "is not what it should be; it is left out")
    return rewrite(kept, lambda one, at: _sound(one, at, report, levels - 1), where)


def _only_schemas(key: str, value: Any, where: str, report: Losses) -> Any:
    """Return the value of a keyword with something in every place of a schema that is one."""

    def checked(one: Any, *steps: object) -> Any:
        if isinstance(one, dict | bool) or (key == "dependencies" and isinstance(one, list)):
            return one
        report.add(below(where, key, *steps), "schema", "is no schema; any value is told")
        return {}

    if key in NAMED and isinstance(value, dict):
        return {name: checked(one, name) for name, one in value.items()}
    if (key in LISTED or key == "items") and isinstance(value, list):
        return [checked(one, at) for at, one in enumerate(value)]
    return checked(value) if key in _SINGLE else value


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
    **dict.fromkeys(NAMED, _is_map),
    **dict.fromkeys(LISTED, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(
        ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"), _is_number
    ),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        _is_count,
    ),
    "examples": _is_list,
}
