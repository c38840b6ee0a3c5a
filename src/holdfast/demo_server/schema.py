"""Checks a tool's arguments against the part of JSON Schema that the tools here use."""

from __future__ import annotations

import re
from typing import Any

from .wire import Json

_KINDS: dict[str, Any] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}


def arguments_schema(parameters: dict[str, Json]) -> Json:
    """The input schema of a tool: parameters without a default are required."""
    schema: Json = {"type": "object", "properties": parameters, "additionalProperties": False}
    required = [name for name, parameter in parameters.items() if "default" not in parameter]
    if required:
        schema["required"] = required
    return schema


def faults(parameters: dict[str, Json], arguments: Json) -> list[str]:
    """What is wrong with the arguments, each fault naming its argument."""
    found = [f"unknown argument {name!r}" for name in arguments if name not in parameters]
    for name, parameter in parameters.items():
        if name in arguments:
            fault = _fault(parameter, arguments[name])
            found += [f"argument {name!r} must be {fault}"] if fault else []
        elif "default" not in parameter:
            found.append(f"argument {name!r} is missing")
    return found


def _fault(schema: Json, value: Any) -> str | None:
    """What the value should have been, or None if it is that."""
    if not isinstance(value, _KINDS[schema["type"]]) or isinstance(value, bool):
        return f"of type {schema['type']}"
    if "minimum" in schema and value < schema["minimum"]:
        return f"at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"at most {schema['maximum']}"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return f"like {schema['pattern']}"
    return None
