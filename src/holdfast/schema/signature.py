"""Tools as signatures and as calls: ``git_log(repo_path: str, max_count: int = 10)``. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.schema.types import admitted_types, flatten
from holdfast.schema.walk import Budget, SchemaTooComplex, branches, properties, required
from holdfast.schema.walk import resolve as pointed

Definition = Mapping[str, Any]

DEPTH: Final = 4
"""Levels of nested objects that are shown."""
FEW: Final = 5
"""Values of an ``enum`` that are listed in a type."""
_NAMES: Final[dict[str, tuple[str, Any]]] = {
    "string": ("str", "text"),
    "integer": ("int", 1),
    "number": ("float", 1),
    "boolean": ("bool", True),
    "array": ("list", []),
    "object": ("dict", {}),
    "null": ("None", None),
}
"""The name of each type in Python, and a value."""
_FORMATS: Final = {"uri": "https://example.org", "email": "someone@example.org"}


def signature(name: str, schema: Any) -> str:
    """Return a tool as a signature; ``name?`` may be left out."""
    schema = schema if isinstance(schema, Mapping) else {}
    needed = required(schema)
    parts = []
    for parameter, part in properties(schema).items():
        part = resolve(part, schema)
        kind = type_text(part, schema)
        if "default" in part:
            parts.append(f"{parameter}: {kind} = {_literal(part['default'])}")
        else:
            parts.append(f"{parameter}{'' if parameter in needed else '?'}: {kind}")
    return f"{name}({', '.join(parts)})"


def _choices(part: Definition) -> list[Any]:
    """Return the only values that fit, if they are few enough to be listed."""
    choices = part.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= FEW:
        return choices
    return [part["const"]] if "const" in part else []


def type_text(part: Any, schema: Definition, levels: int = DEPTH) -> str:
    """Return a schema as a Python type, in few words."""
    if not isinstance(part, Mapping):
        return "any"
    if choices := _choices(part):
        return " | ".join(_literal(choice) for choice in choices)
    kinds = [kind for kind in _NAMES if kind in admitted_types(part)]
    if kinds == ["array"] and levels:
        inner = type_text(resolve(part.get("items"), schema), schema, levels - 1)
        return f"list[{inner}]" if inner != "any" else "list"
    return " | ".join(_NAMES[kind][0] for kind in kinds) or "any"


def _literal(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else json.dumps(value)
    return text if len(text) <= 40 else "…"


def resolve(part: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a schema with its ``allOf``, and what it refers to, merged in."""
    try:
        return flatten(part, lambda _, reference: pointed(schema, reference), Budget(100)).schema
    except SchemaTooComplex:
        return dict(part)


def fields(
    schema: Any, root: Definition, prefix: str = "", levels: int = DEPTH
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield every parameter, nested ones too: path, schema, whether it is required."""
    needed = required(schema)
    for name, part in properties(schema).items():
        resolved = resolve(part, root)
        path = f"{prefix}{name}"
        yield path, resolved, name in needed
        if not levels:
            continue
        items = resolve(resolved.get("items"), root) if "items" in resolved else {}
        if properties(resolved):
            yield from fields(resolved, root, f"{path}.", levels - 1)
        elif properties(items):
            yield from fields(items, root, f"{path}[].", levels - 1)


def sample(part: Any, root: Definition, levels: int = DEPTH) -> Any:
    """Return a value that fits, from the schema's own examples where it has some."""
    if not isinstance(part, Mapping):
        return "text"
    default = [part["default"]] if "default" in part else []
    for values in (branches(part, "examples"), default, branches(part, "enum")):
        if values and values[0] is not None:
            return values[0]
    if "const" in part:
        return part["const"]
    kind = next((inner for inner in _NAMES if inner in admitted_types(part)), "string")
    if kind == "object" and levels:
        by_name = properties(part)
        inside = {name: resolve(by_name.get(name), root) for name in required(part)}
        return {name: sample(inner, root, levels - 1) for name, inner in inside.items()}
    if kind == "array" and levels and isinstance(part.get("items"), Mapping):
        return [sample(resolve(part["items"], root), root, levels - 1)]
    if kind in ("integer", "number") and isinstance(part.get("minimum"), int | float):
        return part["minimum"]
    return _FORMATS.get(str(part.get("format")), _NAMES[kind][1])


def example(schema: Any) -> str:
    """Return the required arguments as words that can be pasted into a shell."""
    by_name = properties(schema)
    words = []
    for name in required(schema):
        value = sample(resolve(by_name.get(name), schema), schema)
        if isinstance(value, str):
            word = f"{name}={value}" if not value.startswith("@") else f"{name}=@{value}"
        else:
            text = json.dumps(value, ensure_ascii=False)
            word = f"{name}:={text}" if isinstance(value, dict | list) else f"{name}={text}"
        words.append(" " + shlex.quote(word))
    return "".join(words)
