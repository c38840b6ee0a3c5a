"""Required properties that have a default.

Many servers list a parameter as required although they fill it in themselves: generators of
schemas describe the value after parsing. Callers may leave it out.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.schema.walk import LIMITS, Part, Schema, parts, properties, required, resolve, rewrite

_STRICT: Final = frozenset({"oneOf", "not", "if", "contains", "dependentSchemas", "dependencies"})
"""What is under these may only be fitted more often if the whole is to be fitted less often."""


def has_default(schema: Any, root: Any, hops: int = 8) -> bool:
    """Return whether a property has a default, itself or where it refers to."""
    if not isinstance(schema, dict) or hops == 0:
        return False
    if "default" in schema:
        return True
    reference = schema.get("$ref")
    behind = resolve(root, reference) if isinstance(reference, str) else None
    return has_default(behind, root, hops - 1)


def demanded(schema: Any, root: Any) -> list[str]:
    """Return the required properties that have no default: the caller has to give these."""
    own = properties(schema)
    return [name for name in required(schema) if not has_default(own.get(name), root)]


def without_defaulted(root: Any) -> Any:
    """Return the schema with ``required`` naming only what has no default.

    Only where that cannot make the whole refuse more than before.
    """
    if not isinstance(root, dict) or not _concerned(root):
        return root
    strict = _strict(root)
    return _relaxed(root, root, strict)


def _concerned(root: Schema) -> bool:
    waiting: list[Any] = [root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, dict):
            if "required" in schema and demanded(schema, root) != required(schema):
                return True
            waiting += [part.schema for part in parts(schema)]
    return False


def _strict(root: Schema) -> set[int]:
    """Return the schemas that apply under a strict keyword, by any way."""
    found: set[int] = set()
    seen: set[tuple[int, bool]] = set()
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        schema, strict = waiting.pop()
        if not isinstance(schema, dict) or (id(schema), strict) in seen:
            continue
        seen.add((id(schema), strict))
        if strict:
            found.add(id(schema))
        waiting += [
            (part.schema, strict or part.keyword in _STRICT)
            for part in parts(schema)
            if part.place != "apart"
        ]
        references = (schema.get(keyword) for keyword in ("$ref", "$dynamicRef"))
        waiting += [(resolve(root, one), strict) for one in references if isinstance(one, str)]
    return found


def _relaxed(schema: Any, root: Schema, strict: set[int], depth: int = 2 * LIMITS.depth) -> Any:
    if not isinstance(schema, dict) or depth == 0:
        return schema

    def change(part: Part) -> Any:
        return _relaxed(part.schema, root, strict, depth - 1)

    copy = rewrite(schema, change)
    if "required" in schema and id(schema) not in strict:
        wanted = demanded(schema, root)
        if wanted != required(schema):
            copy["required"] = wanted
    return copy
