"""Positions in JSON with comments, found level by level: a host's file may have megabytes."""

from __future__ import annotations

from holdfast.config.files import JsonText
from holdfast.hosts.nodes import DocumentMember, DocumentNode


class JsonTree:
    """Finds values without reading those beside them more than once."""

    def __init__(self, text: str) -> None:
        self._json = JsonText(text)
        self._nodes: dict[tuple[str, ...], DocumentNode | None] = {}

    def find(self, path: tuple[str, ...]) -> DocumentNode | None:
        """Return the value that these keys lead to, with its members or items."""
        if path not in self._nodes:
            self._nodes[path] = self._find(path)
        return self._nodes[path]

    def _find(self, path: tuple[str, ...]) -> DocumentNode | None:
        if not path:
            start = self._json.top
            return self._opened(start, -1) if start >= 0 else None
        parent = self.find(path[:-1])
        member = None if parent is None else (parent.members or {}).get(path[-1])
        return None if member is None else self._opened(member.node.start, member.node.end)

    def _opened(self, start: int, end: int) -> DocumentNode:
        """Return a value with what is in it."""
        first = self._json.plain[start]
        if first == "{":
            members, last = self._json.members(start)
            inside = {
                member.key: DocumentMember(member.start, DocumentNode(member.value, member.end))
                for member in members
            }
            return DocumentNode(start, last + 1, members=inside)
        if first == "[":
            items = [DocumentNode(*span) for span in self._json.items(start)]
            return DocumentNode(start, end, items=items)
        return DocumentNode(start, end)
