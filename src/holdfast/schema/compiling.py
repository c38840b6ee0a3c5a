"""The cost of compiling a schema, in units, counted before it is compiled."""

from __future__ import annotations

import re
from typing import Any, Final

from holdfast.schema.graph import Node, ordered
from holdfast.schema.walk import REFERENCES, Schema, SchemaLimits, SchemaTooComplex

UNITS: Final = 5_000
"""Units of one compilation, and of counting before it: 25 ms."""
_CAP: Final = 1 << 60
_COLLECTS: Final = ("unevaluatedProperties", "unevaluatedItems")
_COUNTED: Final = re.compile(r"\{(\d{1,4})(?:,(\d{1,4}))?")


def collects(node: Node) -> bool:
    """Return True if a schema has ``unevaluated*``, which asks for all that is in place."""
    return not node.leaf and any(map(node.collects, _COLLECTS))


def units(root: Any, limits: SchemaLimits) -> int:
    """Return the units of all JSON values in a schema, wherever they stand."""
    count = values = 0
    level: list[tuple[Any, int, int]] = [(root, 0, 0)]
    for _ in range(2 * limits.depth):
        following: list[tuple[Any, int, int]] = []
        for value, copies, path in level:
            # The validator keeps a copy of what is under ``not``, and a pointer to each part.
            count += 1 + copies // 8 + path // 400
            if isinstance(value, dict):
                count += 2 + _reference_units(value)
                for key, item in value.items():
                    following.append((item, copies + (key == "not"), path + len(key)))
            elif isinstance(value, list):
                following += [(item, copies, path + 2) for item in value]
            elif isinstance(value, int) and value.bit_length() > 64:
                count += value.bit_length()
        values += len(level)
        if values + len(following) > limits.nodes:
            raise SchemaTooComplex(f"it has more than {limits.nodes} parts")
        if not following:
            return count
        level = following
    raise SchemaTooComplex(f"it is more than {2 * limits.depth} levels deep")


def _reference_units(schema: Schema) -> int:
    units = 0
    for keyword in REFERENCES:
        reference = schema.get(keyword)
        if isinstance(reference, str):
            units += 6 + 3 * reference.count("/") // 2 + len(reference) // 64
    return units + 8 * (isinstance(schema.get("$id"), str) or isinstance(schema.get("id"), str))


def expansion_units(inner: list[Node]) -> int:
    """Return the units of ``unevaluated*``, for which every way in place is followed anew."""
    order = ordered(inner, _expanded)
    if order is None:
        raise SchemaTooComplex("it would take too long to compile")
    ways: dict[int, int] = {}
    units = 0
    for node in order:
        refers = 8 * any(keyword in node.schema for keyword in REFERENCES)
        total = 1 + refers + len(node.schema) // 8 + len(node.properties) // 4
        total += sum(ways[id(one)] for one in node.here)
        if "unevaluatedItems" in node.schema:
            total += 2 * sum(ways[id(one)] for one in node.item_besides)
        ways[id(node)] = min(_CAP, total)
        if collects(node):
            units += ways[id(node)]
    return units


def _expanded(node: Node) -> list[Node]:
    """Return what ``unevaluated*`` compiles once more; ``contains`` and all inside it too."""
    return [*node.here, *node.item_besides] if "unevaluatedItems" in node.schema else node.here


def pattern_units(pattern: str) -> int:
    """Return the units of compiling one regular expression."""
    counted = sum(int(high or low) for low, high in _COUNTED.findall(pattern[:4096]))
    return 40 + len(pattern) // 2 + min(counted, 4_000)
