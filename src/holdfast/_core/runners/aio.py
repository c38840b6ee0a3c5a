"""The server side on asyncio: in memory, and over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, BinaryIO, Protocol

import msgspec

from holdfast._core.server.incoming import Incoming
from holdfast._core.server.server import Server, ServerSession
from holdfast._core.wire.codes import PARSE_ERROR, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED, encode


class Line(Protocol):
    """The server's end of a link in memory."""

    @property
    def open(self) -> bool: ...

    def write(self, data: bytes) -> None: ...


class LoopRunner:
    """Runs each handler that waits as a task of the running loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, incoming: Incoming, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        incoming.stop = task.cancel

    def answer(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)

    def encode(self, message: Any) -> bytes:
        return encode(message)

    def decode(self, frame: bytes) -> Any:
        try:
            return msgspec.json.decode(frame)
        except MALFORMED as error:
            raise RequestError(PARSE_ERROR, f"not JSON: {error}") from None


def accept(server: Server, line: Line, number: int = 1) -> ServerSession:
    """Return the session of a client that connected in memory."""
    write = lambda data: line.write(data) if line.open else None  # noqa: E731
    return ServerSession(server, write, LoopRunner(), number)


async def serve_stdio(
    server: Server, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None
) -> None:
    """Serve on standard input and output until the input ends, or nobody reads the output."""
    # Not sys.stdin itself: a thread may still read at the end, and Python would wait for it.
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb") if stdin is None else stdin
    line = _Output(sys.stdout.buffer if stdout is None else stdout)
    session = accept(server, line)
    loop = asyncio.get_running_loop()
    frames: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        try:
            for frame in iter(source.readline, b""):
                loop.call_soon_threadsafe(frames.put_nowait, frame)
            loop.call_soon_threadsafe(frames.put_nowait, b"")
        except (OSError, ValueError, RuntimeError):
            pass  # the loop, or the input, is gone

    # A daemon: a read that waits for input must not hold up the end.
    threading.Thread(target=read, name="holdfast-stdin", daemon=True).start()
    while line.open and (frame := await frames.get()):
        session.feed(frame)
    session.close()


class _Output:
    """Standard output as the server's end of a link."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.open: bool = True

    def write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.open = False
