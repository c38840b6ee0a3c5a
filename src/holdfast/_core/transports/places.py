"""Places for the requests of an HTTP link: so many at once, and so many bytes that wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from holdfast._core.boundary import WireId


class Places:
    """Holds requests back until one of a fixed number of places is free.

    Args:
        count: The most requests on their way at once.
        backlog: The most bytes of requests that wait for a place.
        room: Called when requests are taken again after one was not.
    """

    def __init__(self, count: int, backlog: int, room: Callable[[], object]) -> None:
        self._semaphore = asyncio.Semaphore(count)
        self._backlog = backlog
        self._room = room
        self._waiting: dict[WireId, int] = {}
        """The sizes of the requests that wait."""
        self._bytes = 0
        self._full = False
        self._unsent: set[WireId] = set()

    def __repr__(self) -> str:
        return f"<Places {len(self._waiting)} requests wait, {self._bytes} bytes>"

    @property
    def taken(self) -> bool:
        """True if there is no free place."""
        return self._semaphore.locked()

    @property
    def unsent(self) -> frozenset[WireId]:
        """The requests of which no byte has left."""
        return frozenset(self._unsent)

    def has_left(self, wire_id: WireId) -> bool:
        """Return True if bytes of a request may have left."""
        return wire_id not in self._unsent

    def admit(self, wire_id: WireId, size: int) -> bool:
        """Take a request; return False if too many bytes are waiting already."""
        if self._bytes and self._bytes + size > self._backlog:
            self._full = True
            return False
        self._waiting[wire_id] = size
        self._bytes += size
        self._unsent.add(wire_id)
        return True

    @asynccontextmanager
    async def one_for(self, wire_id: WireId) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        async with self._semaphore:
            self._stop_waiting(wire_id)
            yield

    def hold(self, wire_id: WireId) -> None:
        """Note that the server did not take a request, which will be sent again."""
        self._unsent.add(wire_id)

    def sent(self, wire_id: WireId) -> None:
        """Note that there is a connection: from here on bytes may leave."""
        self._unsent.discard(wire_id)

    def end(self, wire_id: WireId) -> bool:
        """Forget a request; return True if no byte of it has left."""
        unsent = wire_id in self._unsent
        self._unsent.discard(wire_id)
        self._stop_waiting(wire_id)
        return unsent

    def _stop_waiting(self, wire_id: WireId) -> None:
        self._bytes -= self._waiting.pop(wire_id, 0)
        if self._full and self._bytes <= self._backlog // 2:
            self._full = False
            self._room()
