"""Properties that a schema annotates: with a default, or as secret.

Many servers list a parameter as required although they fill it in themselves: generators of
schemas describe the value after parsing. Callers may leave it out. Secret is what ``writeOnly``
or ``format: password`` says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from msgspec import Raw

from holdfast.schema.walk import (
    LIMITS,
    REFERENCES,
    Budget,
    Part,
    Resolver,
    Schema,
    SchemaTooComplex,
    parts,
    properties,
    required,
    resolve,
    rewrite,
)
from holdfast.types.tools import UNREADABLE, decode_schema

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


# Secrets


WHOLE: Final = ""
"""The owner of what is not inside a property: the value itself."""


def secret_names(text: Raw) -> frozenset[str] | None:
    """Return the names of secret properties, wherever they are; None if all may be secret.

    It is None if the value itself is secret, or if the schema cannot be read within bounds and
    may say something. Items and unnamed properties that are secret make the property secret
    that holds them.
    """
    raw = bytes(text)
    if b"writeOnly" not in raw and b"password" not in raw:
        return frozenset()
    return _read(raw)


@lru_cache(64)
def _read(text: bytes) -> frozenset[str] | None:
    schema = decode_schema(text)
    if not isinstance(schema, dict) or UNREADABLE in schema:
        return None
    try:
        names = _owners(schema)
    except SchemaTooComplex:
        return None
    return None if WHOLE in names else frozenset(names)


def _owners(root: dict[str, Any]) -> set[str]:
    """Return the properties under which a secret is declared."""
    resolver, budget = Resolver(root), Budget()
    found: set[str] = set()
    seen: set[tuple[int, str]] = set()
    waiting: list[tuple[Any, str]] = [(root, WHOLE)]
    while waiting:
        schema, owner = waiting.pop()
        if not isinstance(schema, dict) or (id(schema), owner) in seen:
            continue
        seen.add((id(schema), owner))
        budget.spend()
        if schema.get("writeOnly") is True or schema.get("format") == "password":
            found.add(owner)
            continue
        for part in parts(schema):
            if part.place not in ("apart", "name"):
                named = part.keyword == "properties" and isinstance(part.key, str)
                waiting.append((part.schema, str(part.key) if named else owner))
        for keyword in REFERENCES:
            reference = schema.get(keyword)
            if isinstance(reference, str):
                targets = [resolver.target(schema, reference), *resolver.dynamic(reference)]
                waiting += [(target, owner) for target in targets]
    return found
