"""The cache store: a small interface, and the built-in store in memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

from msgspec import Struct


class CacheEntry(Struct):
    """One answer as it came. Times are seconds since the epoch."""

    raw: bytes
    asked: float
    """The time the request was sent; an invalidation after it makes the entry stale."""
    received: float
    ttl: float
    """Seconds for which it is fresh, from when it was received."""
    memo: Any = None
    """The decoded result, so that it is decoded only once. Never persisted."""


class Store(Protocol):
    """Keeps entries by key. It may forget any of them at any time.

    Keys tell servers and authorization contexts apart, so one store may serve many clients.
    What a store raises is logged and costs a request, never a call.
    """

    async def get(self, key: str) -> CacheEntry | None: ...

    async def put(self, key: str, entry: CacheEntry) -> None: ...


OVERHEAD = 500
"""Bytes that an entry takes besides its text and its key."""


class MemoryStore:
    """Entries in memory, bounded in number and bytes; the least recently used go first."""

    def __init__(self, entries: int = 1000, bytes: int = 64 * 1024 * 1024) -> None:  # noqa: A002
        self._most = entries
        self._room = bytes
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()
        self.used: int = 0
        """Bytes taken."""

    def __repr__(self) -> str:
        return f"<MemoryStore {len(self)} entries, {self.used} bytes>"

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: str) -> CacheEntry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    async def put(self, key: str, entry: CacheEntry) -> None:
        self._drop(key)
        if _size(key, entry) > self._room:
            return
        self._entries[key] = entry
        self.used += _size(key, entry)
        while len(self._entries) > self._most or self.used > self._room:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.used -= _size(key, entry)


def _size(key: str, entry: CacheEntry) -> int:
    """The text, and as much again for what is read from it."""
    return 2 * len(entry.raw) + len(key) + OVERHEAD
