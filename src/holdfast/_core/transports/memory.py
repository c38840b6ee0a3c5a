"""A server in the same process: for tests, and for servers that are Python objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Protocol

from holdfast._core.boundary import (
    Delivered,
    Drained,
    Generation,
    Lost,
    Opened,
    Report,
    StreamOptions,
    Traits,
    WireId,
)
from holdfast._core.wire.framing import FrameTooLarge, Lines
from holdfast.errors import TransportError
from holdfast.policies import Limits


class MemoryServer(Protocol):
    """A server object in the same process."""

    name: str

    def accept(self, line: ServerLine) -> Callable[[bytes], None]:
        """Accept a client; return the function that receives its frames."""


class ServerLine:
    """The end of a link that the server writes to."""

    def __init__(self, link: MemoryLink) -> None:
        self._link = link
        self.on_end: Callable[[], None] | None = None
        """Called when the client has closed the link."""

    @property
    def open(self) -> bool:
        return not self._link.over

    def write(self, data: bytes) -> None:
        """Send bytes; they need not be whole lines."""
        self._link.deliver(data)

    def hang_up(self, reason: str = "the server hung up") -> None:
        self._link.lose(TransportError(reason))


class Memory:
    """The transport to one in-process server."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    def __repr__(self) -> str:
        return f"Memory({self._server!r})"

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def key(self) -> Hashable | None:
        return None

    @property
    def traits(self) -> Traits:
        return Traits()

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> MemoryLink:
        return MemoryLink(self._server, generation, limits, report)


class MemoryLink:
    """A link whose frames arrive in later turns of the loop, as they would over a pipe."""

    def __init__(
        self,
        server: MemoryServer,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
    ) -> None:
        self.over: bool = False
        self._drained = False
        self._loop = asyncio.get_running_loop()
        self._generation = generation
        self._report = report
        self._lines = Lines(limits.frame_bytes)
        self._unsent: set[WireId] = set()
        """The requests that the server has not been given."""
        self._line = ServerLine(self)
        self._take = server.accept(self._line)
        self._loop.call_soon(report, Opened(generation))

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        if wire_id is not None:
            self._unsent.add(wire_id)
        self._loop.call_soon(self._hand_over, frame, wire_id)
        return True

    def withdraw(self, wire_id: WireId) -> bool:
        return False

    def unsent(self) -> frozenset[WireId]:
        return frozenset(self._unsent)

    def unread(self) -> bool:
        return False

    def finish(self, wire_id: WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: StreamOptions | None = None) -> None:
        self._end()
        if self._drained:
            return
        self._drained = True
        self._loop.call_soon(self._report, Drained(self._generation))

    def kill(self) -> None:
        self._end()

    def _end(self) -> None:
        self.over = True
        if self._line.on_end is not None:
            self._line.on_end()
            self._line.on_end = None

    def deliver(self, data: bytes) -> None:
        self._loop.call_soon(self._read, data)

    def lose(self, error: TransportError) -> None:
        self._loop.call_soon(self._lose, error)

    def _hand_over(self, frame: bytes, wire_id: WireId | None) -> None:
        if not self.over:
            self._unsent.discard(wire_id)
            self._take(frame)

    def _read(self, data: bytes) -> None:
        if self.over:
            return
        try:
            lines = self._lines.feed(data)
        except FrameTooLarge as error:
            self._lose(TransportError(f"the server sent {error}"), error.size)
            return
        if lines:
            self._report(Delivered(self._generation, lines))

    def _lose(self, error: TransportError, frame_size: int | None = None) -> None:
        if not self.over:
            self.over = True
            self._report(Lost(self._generation, error, self.unsent(), frame_size))
