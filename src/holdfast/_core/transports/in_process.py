"""Server objects of FastMCP and of the official SDK, served in this process without a socket.

The SDK's own stdio server is given lines in memory instead of files, so that both of its major
versions, and FastMCP on them, are served as they would be over a pipe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, Protocol

from holdfast._core.transports.memory import ServerLine

GRACE: Final = 1.0
"""Seconds for a server to end by itself when its client is gone."""


class ServerObject(Protocol):
    """A server object of FastMCP or of the official SDK."""

    @property
    def name(self) -> str: ...

    @property
    def run(self) -> Callable[..., Any]: ...


def lowlevel_server(target: Any) -> Any:
    """Return the low-level server in an SDK's server object; None for any other object."""
    for found in (
        getattr(target, "_lowlevel_server", None),
        getattr(target, "_mcp_server", None),
        target,
    ):
        if callable(getattr(found, "create_initialization_options", None)):
            return found
    return None


class SdkServer:
    """A server object as a `MemoryServer`."""

    def __init__(self, server: Any) -> None:
        self.name: str = str(getattr(server, "name", None) or "server")
        self._server = server
        self._lowlevel = lowlevel_server(server)
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<SdkServer {self.name}>"

    def accept(self, line: ServerLine) -> Callable[[bytes], None]:
        """Serve one connection; return the function that takes its frames."""
        frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._serve(_Input(frames), _Output(line), line))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def end() -> None:
            frames.put_nowait(None)
            loop.call_later(GRACE, task.cancel)

        line.on_end = end
        return frames.put_nowait

    async def _serve(self, given: _Input, output: _Output, line: ServerLine) -> None:
        from mcp.server.stdio import stdio_server

        lifespan = getattr(self._server, "_lifespan_manager", nullcontext)
        try:
            async with lifespan(), stdio_server(given, output) as (read, write):
                options = self._lowlevel.create_initialization_options()
                await self._lowlevel.run(read, write, options)
        except Exception as error:
            line.hang_up(f"the server failed: {type(error).__name__}: {error}")
        else:
            line.hang_up("the server ended")


class _Input:
    """The lines that a client sent, as a file that is read asynchronously."""

    def __init__(self, frames: asyncio.Queue[bytes | None]) -> None:
        self._frames = frames

    def __aiter__(self) -> _Input:
        return self

    async def __anext__(self) -> str:
        frame = await self._frames.get()
        if frame is None:
            raise StopAsyncIteration
        return frame.decode("utf-8", "replace")


class _Output:
    """The lines for the client, as a file that is written asynchronously."""

    def __init__(self, line: ServerLine) -> None:
        self._line = line

    async def write(self, text: str) -> None:
        self._line.write(text.encode())

    async def flush(self) -> None:
        """Do nothing: what is written is sent."""
