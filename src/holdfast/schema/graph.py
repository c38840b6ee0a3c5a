"""A schema as a graph: which schemas apply to which parts of a value, references followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, NamedTuple

from holdfast._core.text import truncate
from holdfast.schema.walk import (
    HOLDS,
    REFERENCES,
    ExternalReference,
    Part,
    Resolver,
    Schema,
    parts,
)

DIALECTS: Final = ("http://json-schema.org/", "https://json-schema.org/")
"""The dialects' own schemas, which the validator has."""
_EVERY: Final = frozenset(
    {"patternProperties", "contains", "unevaluatedProperties", "unevaluatedItems"}
)
"""Apply to a property or an item whatever else does."""


class Inside(NamedTuple):
    """The schemas for the properties of an object, or for the items of an array."""

    by_key: dict[Any, Node]
    others: list[Node]
    """For those without one by their name or number."""
    every: list[Node]


class Node:
    """One schema, and the schemas that it applies."""

    __slots__ = ("foreign", "here", "items", "leaf", "names", "properties", "schema")

    def __init__(self, schema: Schema, *, foreign: bool = False) -> None:
        self.schema = schema
        self.foreign = foreign
        """It is the schema of a dialect, which is not read."""
        self.leaf: bool = HOLDS.isdisjoint(schema) and not foreign
        """It applies no other schema."""
        self.here: list[Node] = []
        """Apply to the same value."""
        self.names: list[Node] = []
        """Apply to the names of properties."""
        self.properties: Inside = _NOTHING if self.leaf else Inside({}, [], [])
        self.items: Inside = _NOTHING if self.leaf else Inside({}, [], [])

    @property
    def every(self) -> list[Node]:
        """The schemas that apply to each value inside."""
        return [*self.properties.every, *self.items.every]

    def all(self) -> list[Node]:
        """Return every schema that this one applies."""
        if self.leaf:
            return []
        apart = [
            node
            for inside in (self.properties, self.items)
            for node in (*inside.by_key.values(), *inside.others)
        ]
        return [*self.here, *apart, *self.every, *self.names]

    @property
    def collects(self) -> bool:
        """``unevaluated*`` has to know what the other subschemas in place have covered."""
        schema = self.schema
        return (
            not self.leaf
            and ("unevaluatedProperties" in schema or "unevaluatedItems" in schema)
            and bool(self.here or "contains" in schema)
        )


_NOTHING: Final = Inside({}, [], [])


class Graph:
    """The nodes of one schema, the whole of it first.

    Raises:
        SchemaTooComplex: It has too many parts, or refers to what is not in it.
    """

    def __init__(self, root: Any) -> None:
        self.nodes: list[Node] = []
        self._resolver = Resolver(root)
        self._by_schema: dict[int, Node] = {}
        self._groups: dict[str, Node] = {}
        self.top: Node = self._node(root)
        for node in self.nodes:  # grows while it is read
            if node.leaf:
                continue
            for part in parts(node.schema):
                if part.place != "apart":
                    self._attach(node, part)
            for keyword in REFERENCES:
                reference = node.schema.get(keyword)
                if isinstance(reference, str):
                    node.here.append(self._target(node, keyword, reference))

    def _node(self, schema: Any) -> Node:
        if not isinstance(schema, dict):
            return LEAF
        node = self._by_schema.get(id(schema))
        if node is None:
            node = self._by_schema[id(schema)] = Node(schema)
            self.nodes.append(node)
        return node

    def _attach(self, node: Node, part: Part) -> None:
        child = self._node(part.schema)
        if part.place in ("here", "name"):
            (node.here if part.place == "here" else node.names).append(child)
            return
        inside = node.properties if part.place == "property" else node.items
        if part.keyword in _EVERY:
            inside.every.append(child)
        elif part.key is None:
            inside.others.append(child)
        else:
            inside.by_key[part.key] = child

    def _target(self, node: Node, keyword: str, reference: str) -> Node:
        """Return what a reference leads to: one node for all that a dynamic one may lead to."""
        candidates = self._resolver.dynamic(reference) if keyword != "$ref" else []
        if candidates:
            name = reference.rpartition("#")[2]
            if name not in self._groups:
                group = self._groups[name] = Node({})
                group.leaf = False
                group.here = [self._node(candidate) for candidate in candidates]
            return self._groups[name]
        target = self._resolver.target(node.schema, reference)
        if isinstance(target, (dict, bool)):
            self._resolver.adopt(target, node.schema)
            return self._node(target)
        if reference.startswith(DIALECTS):
            return FOREIGN
        quoted = repr(truncate(reference, 200))
        text = f"it refers to {quoted}, which is not in it, and nothing is ever fetched"
        raise ExternalReference(text)


LEAF: Final = Node({})
"""``true`` and ``false``."""
FOREIGN: Final = Node({}, foreign=True)
# A dialect describes schemas, so it applies to each value inside of another, too.
FOREIGN.properties.others.append(FOREIGN)
FOREIGN.items.others.append(FOREIGN)


def ordered(starts: Iterable[Node], edges: Callable[[Node], list[Node]]) -> list[Node] | None:
    """Return all nodes that can be reached, each after those it leads to; None for a cycle."""
    graph: dict[Node, list[Node]] = {}
    waiting = [*starts]
    while waiting:
        node = waiting.pop()
        if node not in graph:
            graph[node] = following = [] if node.leaf else edges(node)
            waiting += following
    try:
        return [*TopologicalSorter(graph).static_order()]
    except CycleError:
        return None
