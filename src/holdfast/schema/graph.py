"""A schema as a graph: which schemas apply to which parts of a value, references followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from holdfast.schema.walk import (
    HOLDS,
    REFERENCES,
    Elsewhere,
    Part,
    Resolver,
    Schema,
    parts,
)

DIALECTS: Final = ("http://json-schema.org/", "https://json-schema.org/")
"""The dialects' own schemas, which the validator has."""
_BESIDES: Final = frozenset(
    {"patternProperties", "contains", "unevaluatedProperties", "unevaluatedItems"}
)
"""Apply to a property or an item whatever else does."""


class Node:
    """One schema, and the schemas that it applies."""

    __slots__ = (
        "foreign", "here", "item_besides", "items", "leaf", "names", "numbers", "others",
        "own", "placed", "properties", "property_besides", "schema",
    )  # fmt: skip

    def __init__(self, schema: Schema, *, foreign: bool = False) -> None:
        self.schema = schema
        self.foreign = foreign
        """It is the schema of a dialect, which is not read."""
        self.leaf: bool = HOLDS.isdisjoint(schema)
        """It applies no other schema."""
        self.own: int | None = None
        """Steps of its own keywords, once they are counted."""
        self.numbers: int = 0
        """Numbers that a value is compared with; counted with ``own``."""
        self.here: list[Node] = []
        """Apply to the same value."""
        self.properties: dict[str, Node] = {}
        self.others: list[Node] = []
        """Apply to the properties that are not named."""
        self.property_besides: list[Node] = []
        """Apply to properties whatever else does."""
        self.placed: dict[int, Node] = {}
        self.items: list[Node] = []
        """Apply to the items that have no schema by their place."""
        self.item_besides: list[Node] = []
        self.names: list[Node] = []
        """Apply to the names of properties."""

    def apart(self) -> list[Node]:
        """Return the schemas of which one applies to each value inside."""
        return [*self.properties.values(), *self.others, *self.placed.values(), *self.items]

    def all(self) -> list[Node]:
        """Return every schema that this one applies."""
        if self.leaf:
            return []
        besides = (*self.property_besides, *self.item_besides)
        return [*self.here, *self.apart(), *besides, *self.names]

    @property
    def collects(self) -> bool:
        """``unevaluated*`` has to know what the other subschemas in place have covered."""
        schema = self.schema
        return (
            not self.leaf
            and ("unevaluatedProperties" in schema or "unevaluatedItems" in schema)
            and bool(self.here or "contains" in schema)
        )


class Graph:
    """The nodes of one schema, the whole of it first.

    Raises:
        SchemaTooComplex: It has too many parts, or refers to what is not in it.
    """

    def __init__(self, root: Any) -> None:
        self.nodes: list[Node] = []
        self._resolver = Resolver(root)
        self._known: dict[int, Node] = {}
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
        found = self._known.get(id(schema))
        if found is None:
            found = self._known[id(schema)] = Node(schema)
            self.nodes.append(found)
        return found

    def _attach(self, node: Node, part: Part) -> None:
        child = self._node(part.schema)
        if part.place == "here":
            node.here.append(child)
        elif part.place == "name":
            node.names.append(child)
        elif part.place == "property":
            if part.keyword == "properties" and isinstance(part.key, str):
                node.properties[part.key] = child
            else:
                (node.property_besides if part.keyword in _BESIDES else node.others).append(child)
        elif isinstance(part.key, int):
            node.placed[part.key] = child
        else:
            (node.item_besides if part.keyword in _BESIDES else node.items).append(child)

    def _target(self, node: Node, keyword: str, reference: str) -> Node:
        """Return what a reference leads to: one node for all that a dynamic one may lead to."""
        candidates = self._resolver.dynamic(reference) if keyword != "$ref" else []
        if candidates:
            name = reference.rpartition("#")[2]
            if name not in self._groups:
                group = self._groups[name] = Node({})
                group.leaf = False
                group.here = [self._node(one) for one in candidates]
            return self._groups[name]
        target = self._resolver.target(node.schema, reference)
        if isinstance(target, (dict, bool)):
            self._resolver.adopt(target, node.schema)
            return self._node(target)
        if reference.startswith(DIALECTS):
            return FOREIGN
        shown = repr(reference[:200])
        raise Elsewhere(f"it refers to {shown}, which is not in it, and nothing is ever fetched")


LEAF: Final = Node({})
"""``true`` and ``false``."""
FOREIGN: Final = Node({}, foreign=True)


def ordered(starts: Iterable[Node], edges: Callable[[Node], list[Node]]) -> list[Node] | None:
    """Return all nodes that can be reached, each after those it leads to; None for a cycle."""
    order: list[Node] = []
    done: set[int] = set()
    open_: set[int] = set()
    for start in starts:
        stack = [(start, iter(edges(start)))] if id(start) not in done else []
        open_.add(id(start))
        while stack:
            node, following = stack[-1]
            for one in following:
                if id(one) in done:
                    continue
                if id(one) in open_:
                    return None
                if one.leaf:
                    done.add(id(one))
                    order.append(one)
                    continue
                open_.add(id(one))
                stack.append((one, iter(edges(one))))
                break
            else:
                stack.pop()
                open_.discard(id(node))
                done.add(id(node))
                order.append(node)
        open_.discard(id(start))
    return order
