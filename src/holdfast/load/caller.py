"""The process that makes the calls of Locust's users: ``python -m holdfast.load.caller``.

Locust runs on gevent, which puts its own sockets, threads and processes in the place of Python's.
An event loop on top of those is neither reliable nor a fair measure. So the clients live here, in
a process where nothing is patched; orders come as lines of JSON on standard input, and each answer
goes to standard output as it comes. Durations are measured here, and so without the time that a
busy Locust takes to read them. The process ends when its input does.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from holdfast._connect import connect
from holdfast._core.bulk.outcomes import RowOutcome, of_error, of_result
from holdfast.client import Client
from holdfast.errors import ValidationError
from holdfast.types.tools import ToolResult


class OpenUser(Struct, tag="open"):
    """Connect a user to its server."""

    id: int
    user: int
    target: str | list[str]
    options: dict[str, Any]
    """Of `holdfast.connect`."""


class CallForUser(Struct, tag="call"):
    """Call a tool for a user."""

    id: int
    user: int
    tool: str
    arguments: dict[str, Any]
    options: dict[str, Any]
    """Of `Client.call_tool`."""


class Cancel(Struct, tag="cancel"):
    """Give up an order whose user has been stopped."""

    id: int


class CloseUser(Struct, tag="close"):
    """Disconnect a user."""

    user: int


Order = OpenUser | CallForUser | Cancel | CloseUser


class Answer(Struct):
    """How an order ended."""

    id: int
    outcome: RowOutcome
    length: int = 0
    """Bytes of the result, as JSON."""


_encoder: Final = msgspec.json.Encoder(enc_hook=repr)
_decoder: Final = msgspec.json.Decoder(Order)


class Caller:
    """The clients of one Locust process.

    Args:
        answer: Called with each answer, as a line.
    """

    def __init__(self, answer: Callable[[bytes], None]) -> None:
        self._answer = answer
        self._clients: dict[int, tuple[Client, AsyncExitStack]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def take(self, line: bytes) -> None:
        """Carry out an order."""
        match _decoder.decode(line):
            case OpenUser() as order:
                self._begin(order.id, partial(self._open, order))
            case CallForUser() as order:
                self._begin(order.id, partial(self._call, order))
            case Cancel(id=number):
                if (task := self._tasks.get(number)) is not None:
                    task.cancel()
            case CloseUser(user=user):
                task = asyncio.create_task(self._close(user))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Cancel what is under way, and close every client."""
        for task in tuple(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), *self._closing, return_exceptions=True)
        await asyncio.gather(*(self._close(user) for user in tuple(self._clients)))

    def _begin(self, number: int, call: Callable[[], Awaitable[ToolResult]]) -> None:
        task = asyncio.create_task(self._run(number, call))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number))

    async def _run(self, number: int, call: Callable[[], Awaitable[ToolResult]]) -> None:
        begun = time.perf_counter()
        try:
            result = await call()
            outcome = of_result(0, result, 1, _since(begun))
        except Exception as error:
            outcome = of_error(0, error, 1, _since(begun))
        length = len(_encoder.encode(outcome.result)) if outcome.ok else 0
        self._answer(_encoder.encode(Answer(number, outcome, length)) + b"\n")

    async def _open(self, order: OpenUser) -> ToolResult:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connect(order.target, **order.options))
            await client.list_tools()
            self._clients[order.user] = client, stack.pop_all()
        return ToolResult(content=[])

    async def _call(self, order: CallForUser) -> ToolResult:
        if order.user not in self._clients:
            raise ValidationError(f"user {order.user} is not connected")
        client, _ = self._clients[order.user]
        return await client.call_tool(order.tool, order.arguments, **order.options)

    async def _close(self, user: int) -> None:
        _, stack = self._clients.pop(user, (None, None))
        if stack is not None:
            await stack.aclose()


async def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Carry out the orders of ``source`` until it ends; write the answers to ``target``.

    Both are served by threads: a pipe that is not read must not hold up the calls.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    answers: SimpleQueue[bytes | None] = SimpleQueue()
    caller = Caller(answers.put)

    def read() -> None:
        for line in source:
            loop.call_soon_threadsafe(caller.take, line)
        loop.call_soon_threadsafe(ended.set)

    def write() -> None:
        while (line := answers.get()) is not None:
            try:
                target.write(line)
                target.flush()
            except OSError:  # Locust is gone, and with it the end of the input
                return

    threads = [threading.Thread(target=work, daemon=True) for work in (read, write)]
    for thread in threads:
        thread.start()
    await ended.wait()
    await caller.aclose()
    answers.put(None)


def _since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)


if __name__ == "__main__":
    asyncio.run(serve(sys.stdin.buffer, sys.stdout.buffer))
