"""Where the values of a document stand in its text: JSON with comments, TOML, YAML.

An editor of other people's files must not write them anew: a parser drops comments, order and
layout. So a reader here gives positions, and an edit replaces the characters between two of them.
The readers are only as strict as they need be, because each text was read by the real parser of its
format before (`config.files.parse`), and each edit is read by it again afterwards.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

Style = Literal["flow", "block"]
"""``flow``: in brackets or braces. ``block``: by lines (TOML's tables, YAML's indentation)."""


class DocumentNode(Struct):
    """One value: where it begins and ends, and what is in it."""

    start: int
    end: int
    style: Style = "flow"
    members: dict[str, DocumentMember] | None = None
    """Of an object, by key."""
    items: list[DocumentNode] | None = None
    """Of a list."""


class DocumentMember(NamedTuple):
    """A key of an object, and its value."""

    start: int
    """Where the key begins."""
    node: DocumentNode
    name: int = -1
    """Where the last part of a dotted key begins (TOML)."""


class Tree(Protocol):
    """Finds values in one text."""

    def find(self, path: tuple[str, ...]) -> DocumentNode | None:
        """Return the value that these keys lead to, with its members or items."""


class NodeTree:
    """A tree that was read whole."""

    def __init__(self, root: DocumentNode) -> None:
        self._root = root

    def find(self, path: tuple[str, ...]) -> DocumentNode | None:
        """Return the value that these keys lead to."""
        node = self._root
        for key in path:
            member = (node.members or {}).get(key)
            if member is None:
                return None
            node = member.node
        return node
