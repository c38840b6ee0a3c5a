"""A server in the same process: for tests, and for servers that are Python objects.

Server objects of FastMCP and of the official SDK are served without a socket: the SDK's own stdio
server is given lines in memory instead of files, so that both of its major versions, and FastMCP
on them, are served as they would be over a pipe.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import nullcontext
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from holdfast._core import boundary as b
from holdfast._core.wire.framing import FrameTooLarge, Lines
from holdfast.errors import HoldfastError, ProtocolError, TransportError
from holdfast.policies import Limits

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer

GRACE: Final = 1.0
"""Seconds for a server object to end by itself when its client is gone."""


class MemoryServer(Protocol):
    """A server object in the same process."""

    name: str

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        """Accept a client; return the function that receives its frames."""


class Memory:
    """The transport to one in-process server."""

    key: Hashable | None = None
    authorizer: Authorizer | None = None

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self.name: str = server.name
        self.instance: str = instance_of(getattr(server, "served", server))
        """The same for every transport to one server object."""

    @property
    def traits(self) -> b.Traits:
        return b.Traits()

    def __repr__(self) -> str:
        return f"Memory({self._server!r})"

    def open(
        self,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        variant: str | None = None,
    ) -> MemoryLink:
        return MemoryLink(self._server, generation, limits, report)


class MemoryLink:
    """A link without a pipe.

    The server is given a frame at once, inside of whoever sends it. What it writes meanwhile, or in
    a task, arrives in a later turn of the loop: an answer never overtakes the end of the sending,
    and a task that writes is not interrupted by what others do with it. Only what it writes in a
    turn of its own, as a relay that has read an answer, arrives in that turn.
    """

    def __init__(
        self,
        server: MemoryServer,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
    ) -> None:
        self.open: bool = True
        self.on_end: Callable[[], None] | None = None
        """Called when the client has closed the link."""
        self._drained = False
        self._loop = asyncio.get_running_loop()
        self._generation = generation
        self._report = report
        self._lines = Lines(limits.frame_bytes)
        self._delayed = 0
        """What its frames have to wait for: those before them, or the end of a sending."""
        self._has_hung_up = False
        self._unsent: set[b.WireId] = set()
        """The requests that came after the server had hung up."""
        self._take = server.accept(self)
        self._loop.call_soon(report, b.Opened(generation))

    # For the server

    def write(self, data: bytes) -> None:
        """Send bytes to the client; they need not be whole lines."""
        if self._delayed or asyncio.current_task(self._loop) is not None:
            self._delayed += 1
            self._loop.call_soon(self._read_late, data)
        else:
            self._read(data)

    def hang_up(self, reason: str = "the server hung up") -> None:
        self._has_hung_up = True
        self._delayed += 1  # for good
        self._loop.call_soon(self._lose, TransportError(reason))

    # For the driver

    def send(
        self, frame: bytes, wire_id: b.WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        if self.open and not self._has_hung_up:
            self._delayed += 1
            try:
                self._take(frame)
            finally:
                self._delayed -= 1
        elif wire_id is not None:
            self._unsent.add(wire_id)
        return True

    def withdraw(self, wire_id: b.WireId) -> bool:
        return False

    def unsent(self) -> frozenset[b.WireId]:
        return frozenset(self._unsent)

    def unread(self) -> bool:
        return False

    def received(self) -> None:
        """All that is read is reported at once."""

    def agreed(self) -> None:
        """There is nothing to forget."""

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: b.StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        self.kill()
        if not self._drained:
            self._drained = True
            self._loop.call_soon(self._report, b.Drained(self._generation))

    def kill(self) -> None:
        self.open = False
        if self.on_end is not None:
            self.on_end()
            self.on_end = None

    def _read_late(self, data: bytes) -> None:
        self._delayed -= 1
        self._read(data)

    def _read(self, data: bytes) -> None:
        if not self.open:
            return
        lines = self._lines
        if lines.pieces or data[-1:] != b"\n" or len(data) > lines.limit:
            try:
                data = lines.feed(data)
            except FrameTooLarge as error:
                self._lose(ProtocolError(f"the server sent {error}"), error.size)
                return
        if data:
            self._report(b.Delivered(self._generation, data))

    def _lose(self, error: HoldfastError, frame_size: int | None = None) -> None:
        if self.open:
            self.open = False
            self._report(b.Lost(self._generation, error, self.unsent(), frame_size))


# Server objects of FastMCP and of the official SDK


_INSTANCES: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()


def instance_of(server: Any) -> str:
    """Return a name for a server object, the same as long as it lives."""
    try:
        return _INSTANCES.setdefault(server, token_hex(16))
    except TypeError:  # it cannot be a key, or not be referred to weakly
        return token_hex(16)


class ServerObject(Protocol):
    """A server object of FastMCP or of the official SDK."""

    @property
    def name(self) -> str: ...

    @property
    def run(self) -> Callable[..., Any]: ...


def lowlevel_server(target: Any) -> Any:
    """Return the low-level server in an SDK's server object; None for any other object."""
    for candidate in (
        getattr(target, "_lowlevel_server", None),
        getattr(target, "_mcp_server", None),
        target,
    ):
        if callable(getattr(candidate, "create_initialization_options", None)):
            return candidate
    return None


class SdkServer:
    """A server object as a `MemoryServer`."""

    def __init__(self, server: Any) -> None:
        self.name: str = str(getattr(server, "name", None) or "server")
        self.served: Any = server
        self._lowlevel = lowlevel_server(server)
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<SdkServer {self.name}>"

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        """Serve one connection; return the function that takes its frames."""
        frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._serve(frames, line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def end() -> None:
            frames.put_nowait(None)
            loop.call_later(GRACE, task.cancel)

        line.on_end = end
        return frames.put_nowait

    async def _serve(self, frames: asyncio.Queue[bytes | None], line: MemoryLink) -> None:
        from mcp.server.stdio import stdio_server

        lifespan = getattr(self.served, "_lifespan_manager", nullcontext)
        source: Any = _lines(frames)
        output: Any = _Output(line)
        try:
            async with lifespan(), stdio_server(source, output) as (read, write):
                options = self._lowlevel.create_initialization_options()
                await self._lowlevel.run(read, write, options)
        except Exception as error:
            line.hang_up(f"the server failed: {type(error).__name__}: {error}")
        else:
            line.hang_up("the server ended")


async def _lines(frames: asyncio.Queue[bytes | None]) -> AsyncIterator[str]:
    """Yield the lines that a client sent, as a file that is read asynchronously."""
    while (frame := await frames.get()) is not None:
        yield frame.decode("utf-8", "replace")


class _Output:
    """The lines for the client, as a file that is written asynchronously."""

    def __init__(self, line: MemoryLink) -> None:
        self._line = line

    async def write(self, text: str) -> None:
        self._line.write(text.encode())

    async def flush(self) -> None:
        """Do nothing: what is written is sent."""
