"""The properties that a schema declares secret, by ``writeOnly`` or ``format: password``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from msgspec import Raw

from holdfast.schema.walk import REFERENCES, Budget, Resolver, SchemaTooComplex, parts
from holdfast.types.tools import UNREADABLE, decode_schema

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
