"""Drop what is malformed in a schema.

Servers send anything. After this every keyword has the right type, every place of a schema holds
one, and nesting is bounded.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.agents.schemas import DEEPEST, Losses, below, rewrite
from holdfast.schema.types import well_formed
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
        report.add(where, "schema", "is no schema; any value is accepted")
        return {}
    if not levels:
        report.add(where, "schema", "too deep; any value is accepted")
        return {}
    kept: Schema = {}
    for key, value in node.items():
        if well_formed(key, value) and (key != "enum" or value):
            kept[key] = _only_schemas(key, value, where, report)
        else:
            report.add(where, key, "is not what it should be; it is left out")
    return rewrite(kept, lambda one, at: _sound(one, at, report, levels - 1), where)


def _only_schemas(key: str, value: Any, where: str, report: Losses) -> Any:
    """Return the value of a keyword with something in every place of a schema that is one."""

    def checked(one: Any, *steps: object) -> Any:
        if isinstance(one, dict | bool) or (key == "dependencies" and isinstance(one, list)):
            return one
        report.add(below(where, key, *steps), "schema", "is no schema; any value is accepted")
        return {}

    if key in NAMED and isinstance(value, dict):
        return {name: checked(one, name) for name, one in value.items()}
    if (key in LISTED or key == "items") and isinstance(value, list):
        return [checked(one, at) for at, one in enumerate(value)]
    return checked(value) if key in _SINGLE else value
