"""Entries in the memory of this process, bounded."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from holdfast.stores.base import LOCK_TTL, TaskLocks, poll, require_entry, require_swap

V = TypeVar("V")

ENTRIES: Final = 1000
BYTES: Final = 64 * 1024 * 1024
OVERHEAD: Final = 500
"""Bytes that an entry takes besides its data and its key."""


class RecentlyUsed(Generic[V]):
    """Values by key, bounded in number and bytes; the least recently used goes first."""

    def __init__(self, entries: int, room: int) -> None:
        self._most = entries
        self._room = room
        self._values: OrderedDict[str, tuple[V, int]] = OrderedDict()
        self.used: int = 0
        """Bytes taken."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> V | None:
        """Return a value, which is then the most recently used one."""
        entry = self._values.get(key)
        if entry is None:
            return None
        self._values.move_to_end(key)
        return entry[0]

    def put(self, key: str, value: V, size: int) -> None:
        """Store a value of ``size`` bytes, unless it is larger than all the room."""
        self.pop(key)
        size += len(key) + OVERHEAD
        if size > self._room:
            return
        self._values[key] = (value, size)
        self.used += size
        while len(self._values) > self._most or self.used > self._room:
            self.pop(next(iter(self._values)))

    def pop(self, key: str) -> None:
        """Drop a value, if there is one."""
        entry = self._values.pop(key, None)
        if entry is not None:
            self.used -= entry[1]

    def keys(self) -> list[str]:
        return list(self._values)


class _Passing(NamedTuple):
    data: bytes
    until: float
    """The end of its time, on the store's clock."""


class MemoryStore:
    """Keep entries for as long as this object lives.

    Args:
        entries: The most entries with a time to live; the least recently used go first.
        bytes: The most bytes that these take.
        clock: Returns the time in seconds.

    Entries without a time to live are not bounded: whoever puts them deletes them.
    """

    _lasting: dict[str, bytes]
    """The entries without a time to live."""

    def __init__(
        self,
        entries: int = ENTRIES,
        bytes: int = BYTES,  # noqa: A002
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._lasting = {}
        self._passing: RecentlyUsed[_Passing] = RecentlyUsed(entries, bytes)
        self._changing = threading.RLock()
        """Held while entries change: loops of several threads may share a store."""
        self._tasks = TaskLocks()
        self._numbers = count(1)
        self._locks: WeakValueDictionary[str, _LoopLock] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<MemoryStore {len(self)} entries>"

    def __len__(self) -> int:
        return len(self._lasting) + len(self._passing)

    def __bool__(self) -> bool:
        return True  # an empty store is a store

    async def get(self, key: str) -> bytes | None:
        """Return an entry."""
        data = self._lasting.get(key)
        if data is not None:
            return data
        entry = self._passing.get(key)
        if entry is None:
            return None
        if entry.until <= self._clock():
            self._passing.pop(key)
            return None
        return entry.data

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        """Replace an entry."""
        require_entry(key, data)
        with self._changing:
            await self.delete(key)
            if ttl is None:
                self._lasting[key] = data
            elif ttl > 0:
                self._passing.put(key, _Passing(data, self._clock() + ttl), len(data))

    async def delete(self, key: str) -> None:
        """Delete an entry."""
        with self._changing:
            self._lasting.pop(key, None)
            self._passing.pop(key)

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        """Replace an entry if it is still ``old``."""
        require_swap(key, old, new)
        with self._changing:
            if await self.get(key) != old:
                return False
            await (self.delete(key) if new is None else self.put(key, new, ttl))
            return True

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix."""
        keys = [key for key in (*self._lasting, *self._passing.keys()) if key.startswith(prefix)]
        return sorted([key for key in keys if await self.get(key) is not None])

    @asynccontextmanager
    async def lock(self, name: str, ttl: float = LOCK_TTL) -> AsyncIterator[int]:
        """Hold a lock between the tasks and threads of this process."""
        async with self._tasks.hold(name):
            # A loop in another thread, such as that of `holdfast.sync`, has locks of its own.
            lock = self._locks.setdefault(name, _LoopLock())
            await poll(lock.attempt)
            try:
                yield next(self._numbers)
            finally:
                lock.release()


class _LoopLock:
    """A lock between event loops. `threading.Lock` itself cannot be referred to weakly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.release = self._lock.release

    async def attempt(self) -> bool | None:
        return self._lock.acquire(blocking=False) or None
