"""The server side on asyncio: in memory, and below HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

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
