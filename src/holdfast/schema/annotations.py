"""Properties that a schema annotates: with a default, or as secret.

Many servers list a parameter as required although they fill it in themselves: generators of
schemas describe the value after parsing. Callers may leave it out. Secret is what ``writeOnly``
or ``format: password`` says.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    required,
    resolve,
    rewrite,
)
from holdfast.types.tools import UNREADABLE, decode_schema

_STRICT: Final = frozenset({"oneOf", "not", "if", "contains", "dependentSchemas", "dependencies"})
"""What is under these may only be fitted more often if the whole is to be fitted less often."""

MOST_JOINED: Final = 8
"""Schemas of one ``allOf`` or ``anyOf`` in which defaults are looked for: not all, for each of
many properties may refer to the same long list."""


def has_default(schema: Any, root: Any, hops: int = 8, *, inside: bool = True) -> bool:
    """Return whether a property has a default: itself, in its parts, or where it refers to."""
    if not isinstance(schema, dict) or hops == 0:
        return False
    if "default" in schema:
        return True
    reference = schema.get("$ref")
    behind = resolve(root, reference) if isinstance(reference, str) else None
    if has_default(behind, root, hops - 1, inside=inside):
        return True
    return inside and any(
        has_default(one, root, inside=False) for one in _joined(schema, "allOf", "anyOf")
    )


def _joined(schema: Schema, *keywords: str) -> list[Any]:
    """Return the first of the schemas that stand in the lists under these keywords."""
    groups = (schema.get(keyword) for keyword in keywords)
    return [one for group in groups if isinstance(group, list) for one in group[:MOST_JOINED]]


def _together(schema: Schema, root: Any) -> list[Any]:
    """Return the schemas that describe one object: this one, and those in its ``allOf``."""
    found: list[Any] = [schema]
    for one in _joined(schema, "allOf"):
        reference = one.get("$ref") if isinstance(one, dict) else None
        found += [one, resolve(root, reference) if isinstance(reference, str) else None]
    return found


def _is_filled(name: str, schemas: Iterable[Any], root: Any) -> bool:
    for schema in schemas:
        own = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(own, dict) and has_default(own.get(name), root):
            return True
    return False


def demanded(schema: Any, root: Any) -> list[str]:
    """Return the required properties that have no default: the caller has to give these."""
    names = required(schema)
    together = _together(schema, root) if names else ()
    return [name for name in names if not _is_filled(name, together, root)]


def without_defaulted(root: Any) -> Any:
    """Return the schema with ``required`` naming only what has no default.

    Only where that cannot make the whole refuse more than before.
    """
    if not isinstance(root, dict) or not _concerned(root):
        return root
    strict = _strict(root)
    return _relaxed(root, root, strict)


def _concerned(root: Schema) -> bool:
    """Return whether anything is required, and anything has a default."""
    requires = defaults = False
    waiting: list[Any] = [root]
    while waiting and not (requires and defaults):
        schema = waiting.pop()
        if isinstance(schema, dict):
            requires, defaults = requires or "required" in schema, defaults or "default" in schema
            waiting += [part.schema for part in parts(schema)]
    return requires and defaults


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


def _relaxed(
    schema: Any,
    root: Schema,
    strict: set[int],
    owner: Schema | None = None,
    depth: int = 2 * LIMITS.depth,
) -> Any:
    """Return the schema as its receiver reads it; ``owner`` describes the same object."""
    if not isinstance(schema, dict) or depth == 0:
        return schema

    def change(part: Part) -> Any:
        own = schema if part.place == "here" else None
        return _relaxed(part.schema, root, strict, own, depth - 1)

    copy = rewrite(schema, change)
    if "required" in schema and id(schema) not in strict:
        around = () if owner is None else _together(owner, root)
        copy["required"] = [
            name for name in demanded(schema, root) if not _is_filled(name, around, root)
        ]
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
