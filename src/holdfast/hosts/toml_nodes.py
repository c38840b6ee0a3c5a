"""Positions in TOML. `tomllib` has read the text before, so what is here need not be checked."""

from __future__ import annotations

import re
from typing import Final

from holdfast.hosts.nodes import DocumentMember, DocumentNode, NodeTree

_SPACE: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_BLANK: Final = re.compile(r"[ \t]*+")
_STRING: Final = re.compile(
    r"'''.*?'''(?!')|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"(?!\")))*+\"\"\"(?!\")"
    r"|'[^'\n]*+'|\"(?:[^\"\\\n]|\\.)*+\"",
    re.S,
)
_BARE: Final = re.compile(r"[\w-]+")
_SCALAR: Final = re.compile(r"[^,\]}\n\r#]+")


def toml_tree(text: str) -> NodeTree:
    """Return the values of a TOML text by their places."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> NodeTree:
        root = DocumentNode(0, len(self._text), "block", {})
        table = root
        while True:
            self._skip(_SPACE)
            if self._at >= len(self._text):
                return NodeTree(root)
            start = self._at
            if self._text[start] == "[":
                table = self._header(root)
            else:
                self._assignment(table)

    # Tables

    def _header(self, root: DocumentNode) -> DocumentNode:
        """Read ``[a.b]`` or ``[[a.b]]``; return the table that it begins."""
        start = self._at
        brackets = 2 if self._text.startswith("[[", start) else 1
        self._at += brackets
        parts = self._key()
        self._skip(_BLANK)
        self._at += brackets
        *path, (name, _) = parts
        parent = root
        for key, _ in path:
            parent = _table(parent, key, start)
        if brackets == 1:
            return _table(parent, name, start)
        # A list of tables: keys below it mean its last one.
        table = DocumentNode(start, self._at, "block", {})
        assert parent.members is not None
        parent.members[name] = DocumentMember(start, table)
        return table

    def _assignment(self, table: DocumentNode) -> None:
        """Read ``a.b = value`` into a table."""
        start = self._at
        parts = self._key()
        self._skip(_BLANK)
        self._at += 1  # the "="
        self._skip(_BLANK)
        value = self._value()
        *path, (name, place) = parts
        for key, _ in path:
            table = _table(table, key, start, table.style)
        assert table.members is not None
        table.members[name] = DocumentMember(start, value, place)

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key; return its parts, each with its place."""
        parts: list[tuple[str, int]] = []
        while True:
            self._skip(_BLANK)
            start = self._at
            if self._text[start] in "\"'":
                self._skip(_STRING)
                parts.append((_unquoted(self._text[start : self._at]), start))
            else:
                self._skip(_BARE)
                parts.append((self._text[start : self._at], start))
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return parts
            self._at += 1

    # Values

    def _value(self) -> DocumentNode:
        start = self._at
        first = self._text[start]
        if first in "\"'":
            self._skip(_STRING)
            return DocumentNode(start, self._at)
        if first == "[":
            return self._list()
        if first == "{":
            return self._inline_table()
        self._skip(_SCALAR)
        return DocumentNode(start, start + len(self._text[start : self._at].rstrip()))

    def _list(self) -> DocumentNode:
        node = DocumentNode(self._at, -1, items=[])
        assert node.items is not None
        self._at += 1
        while not self._ends("]"):
            node.items.append(self._value())
        node.end = self._at
        return node

    def _inline_table(self) -> DocumentNode:
        node = DocumentNode(self._at, -1, members={})
        self._at += 1
        while not self._ends("}"):
            self._assignment(node)
        node.end = self._at
        return node

    def _ends(self, closing: str) -> bool:
        """Skip to the next item; return whether there is none, and step over the bracket."""
        self._skip(_SPACE)
        if self._text[self._at] == ",":
            self._at += 1
            self._skip(_SPACE)
        if self._text[self._at] != closing:
            return False
        self._at += 1
        return True

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()


def _table(parent: DocumentNode, key: str, start: int, style: str = "block") -> DocumentNode:
    """Return a table in another, made at its first mention."""
    assert parent.members is not None
    member = parent.members.get(key)
    if member is None:
        node = DocumentNode(start, start, "flow" if style == "flow" else "block", {})
        member = parent.members[key] = DocumentMember(start, node)
    return member.node


def _unquoted(key: str) -> str:
    import tomllib

    return next(iter(tomllib.loads(f"{key} = 0")))
