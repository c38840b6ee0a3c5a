"""Properties that a schema annotates: with a default, or as secret.

Many servers list a parameter as required although they fill it in themselves: generators of
schemas describe the value after parsing. Callers may leave it out. Secret is what ``writeOnly``
or ``format: password`` says.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache, partial
from typing import Any, Final

from msgspec import Raw

from holdfast.schema import walk
from holdfast.schema.walk import SchemaTooComplex, branches, named, parts, properties, required
from holdfast.types.tools import UNREADABLE, decode_schema

_REQUIRES: Final = frozenset({"required", "dependentRequired", "dependencies"})


def demanded(schema: Any, root: Any) -> list[str]:
    """Return the required properties that have no default: the caller has to give these."""
    try:
        return _Defaults(root, walk.Budget()).without(required(schema), schema)
    except SchemaTooComplex:
        return list(required(schema))


def without_defaulted(root: Any, budget: walk.Budget) -> Any:
    """Return the schema as a receiver reads it that fills in defaults; itself if that is the same.

    Where it excludes alternatives, it may refuse what the schema itself allows.
    """
    keywords: set[str] = set()
    waiting: list[Any] = [root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, dict):
            keywords.update(schema)
            waiting += [part.schema for part in parts(schema)]
    if "default" not in keywords or _REQUIRES.isdisjoint(keywords):
        return root
    relaxed = _Defaults(root, budget).relaxed(root)
    return root if relaxed == root else relaxed


class _Defaults:
    """The defaults of one document."""

    def __init__(self, root: Any, budget: walk.Budget) -> None:
        self._in_place = partial(walk.in_place, find=walk.Resolver(root).target, budget=budget)

    def relaxed(
        self, schema: Any, owner: walk.Schema | None = None, depth: int = 2 * walk.MAX_DEPTH
    ) -> Any:
        """Return a schema that requires nothing with a default; ``owner`` stands around it."""
        if not isinstance(schema, dict) or depth == 0:
            return schema

        def change(part: walk.Part) -> Any:
            return self.relaxed(part.schema, schema if part.place == "here" else None, depth - 1)

        copy = walk.rewrite(schema, change)
        if "required" in schema:
            copy["required"] = self.without(required(schema), schema, owner)
        for keyword in ("dependentRequired", "dependencies"):
            needs = named(schema, keyword)
            lists = {name: demands for name, demands in needs.items() if isinstance(demands, list)}
            if lists:
                less = {
                    name: self.without(demands, schema, owner) for name, demands in lists.items()
                }
                copy[keyword] = {**copy[keyword], **less}
        return copy

    def without(self, names: Collection[Any], *schemas: Any) -> list[Any]:
        """Return the names of properties that have no default in any of the schemas."""
        applied = [part for schema in schemas if names for part in self._in_place(schema)]
        properties_of_each = [properties(part) for part in applied]
        return [
            name
            for name in names
            if not isinstance(name, str)
            or not any(self._has(by_name.get(name)) for by_name in properties_of_each)
        ]

    def _has(self, schema: Any) -> bool:
        """Return whether a property has a default, itself or in one of its alternatives."""
        applied = [*self._in_place(schema)]
        options = [*applied]
        for part in applied:
            for option in (*branches(part, "anyOf"), *branches(part, "oneOf")):
                options += self._in_place(option)
        return any("default" in option for option in options)


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
    names = _read(raw)
    return None if WHOLE in names else names


@lru_cache(64)
def _read(text: bytes) -> frozenset[str]:
    """Return the properties under which a secret is declared."""
    root = decode_schema(text)
    if not isinstance(root, dict) or UNREADABLE in root:
        return frozenset({WHOLE})
    from holdfast.schema.graph import Graph, Node

    secrets: set[str] = set()
    seen: set[tuple[Node, str]] = set()
    try:
        waiting, budget = [(Graph(root).top, WHOLE)], walk.Budget()
        while waiting:
            node, owner = at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            budget.spend()
            if node.schema.get("writeOnly") is True or node.schema.get("format") == "password":
                secrets.add(owner)
                continue
            waiting += [(inner, name) for name, inner in node.properties.by_key.items()]
            unnamed = [*node.properties.others, *node.items.by_key.values(), *node.items.others]
            waiting += [(inner, owner) for inner in (*node.here, *unnamed, *node.every)]
    except SchemaTooComplex:
        return frozenset({WHOLE})
    return frozenset(secrets)
