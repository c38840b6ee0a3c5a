"""What the two kinds of HTTP links share: bounded requests, each a POST in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final

import aiohttp

from holdfast._core.boundary import (
    Drained,
    Generation,
    Held,
    Refused,
    Released,
    Report,
    Room,
    StreamOptions,
    WireId,
)
from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import LINGER, PIECE, HttpClient
from holdfast._core.transports.http_connections import CONNECTED
from holdfast._core.transports.messages import MessagePoster, accepted
from holdfast._core.wire.framing import FrameTooLarge

log: logging.Logger = logging.getLogger("holdfast")

CLOSE_WAIT: Final = 1.0
"""Seconds for each step of closing: tasks end, the server deletes the session, sockets close."""
PLAIN: Final = StreamOptions({})
_MANY_LINES: Final = 256


class HttpLink:
    """Sends requests: so many at once, and so many bytes that wait for a place.

    Args:
        client: Sends them; its settings say how many at once.
        generation: The number of the link.
        report: Takes what happens.
        backlog: The most bytes of requests that wait for a place.
    """

    def __init__(
        self,
        client: HttpClient,
        generation: Generation,
        report: Callable[[Report], None],
        backlog: int,
    ) -> None:
        self._client = client
        self._generation = generation
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[WireId, asyncio.Task[None]] = {}
        """Requests under way."""
        self._placed: set[WireId] = set()
        """Those of them that hold a place."""
        self._unsent: set[WireId] = set()
        """Requests of which no byte has left."""
        self._held: set[WireId] = set()
        """Requests that wait for credentials."""
        self._answered: dict[WireId, asyncio.TimerHandle | None] = {}
        """Answered requests whose responses have not ended yet, and when they will be ended."""
        self._waiting: OrderedDict[WireId, tuple[bytes, StreamOptions, Context]] = OrderedDict()
        """Requests that wait for a place."""
        self._waiting_bytes = 0
        self._most = client.settings.connections
        self._backlog = backlog
        self._full = False
        self._messages = MessagePoster(client, backlog)
        self._gate: asyncio.Event | None = None
        """Set when the server has accepted what it must hear before anything else."""
        self._over = False
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        count = f"{len(self._tasks)} requests, {len(self._waiting)} wait"
        return f"<{type(self).__name__} #{self._generation} {self._client.origin} {count}>"

    # What the driver asks for

    def withdraw(self, wire_id: WireId) -> bool:
        """End a request, or its stream: since 2026-07-28 that is its cancellation."""
        if wire_id in self._tasks:
            self._tasks[wire_id].cancel()
        # A task that is cancelled before it ran does not reach its ``finally``.
        return self._end(wire_id)

    def unsent(self) -> frozenset[WireId]:
        return frozenset(self._unsent)

    def unread(self) -> bool:
        return bool(self._held)

    def close(self, farewell: StreamOptions | None = None) -> None:
        self._over = True
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(farewell, self._cancel_all()))

    def kill(self) -> None:
        self._over = True
        self._cancel_all()
        self._client.drop()

    # Requests

    def _admit(self, frame: bytes, wire_id: WireId, options: StreamOptions) -> bool:
        """Send a request, or let it wait; return False if too many bytes wait already."""
        if len(self._placed) < self._most:
            self._start(frame, wire_id, options)
            return True
        if self._waiting and self._waiting_bytes + len(frame) > self._backlog:
            self._full = True
            return False
        # A function that gives credentials may depend on the context of the caller.
        self._waiting[wire_id] = (frame, options, copy_context())
        self._waiting_bytes += len(frame)
        self._unsent.add(wire_id)
        return True

    def _start(
        self,
        frame: bytes,
        wire_id: WireId,
        options: StreamOptions,
        context: Context | None = None,
    ) -> None:
        self._unsent.add(wire_id)
        self._placed.add(wire_id)
        task = self._loop.create_task(self._exchange(frame, wire_id, options), context=context)
        self._tasks[wire_id] = task

    async def _exchange(self, frame: bytes, wire_id: WireId, options: StreamOptions) -> None:
        """Send one request, and report why it failed if it did."""
        CONNECTED.set(partial(self._unsent.discard, wire_id))
        try:
            if self._gate is not None and not self._gate.is_set():
                await accepted(self._gate)
            await self._ask(frame, wire_id, options)
        except BaseException as error:
            if ends_task(error):
                raise
            if wire_id not in self._answered and not self._over:
                refusal = self._client.refused(error, sent=wire_id not in self._unsent)
                self._report(refusal.of(self._generation, wire_id))
        finally:
            self._end(wire_id)

    async def _ask(self, frame: bytes, wire_id: WireId, options: StreamOptions) -> None:
        """POST a request and read its response."""
        raise NotImplementedError

    def _hold(self, wire_id: WireId, held: bool) -> None:
        """Note that a request waits for credentials: the server has not taken it."""
        if held:
            self._unsent.add(wire_id)
            self._held.add(wire_id)
        else:
            self._held.discard(wire_id)
        if wire_id in self._tasks and wire_id not in self._answered:
            report = Held if held else Released
            self._report(report(self._generation, wire_id))

    def _end(self, wire_id: WireId) -> bool:
        """Forget a request; return True if no byte of it has left."""
        self._tasks.pop(wire_id, None)
        self._held.discard(wire_id)
        timer = self._answered.pop(wire_id, None)
        if timer is not None:
            timer.cancel()
        unsent = wire_id in self._unsent
        self._unsent.discard(wire_id)
        if wire_id in self._waiting:
            self._waiting_bytes -= len(self._waiting.pop(wire_id)[0])
        self._placed.discard(wire_id)
        if self._waiting or self._full:
            self._advance()
        return unsent

    def _advance(self) -> None:
        """Start the requests that wait, as far as there are places."""
        while self._waiting and len(self._placed) < self._most:
            wire_id, (frame, options, context) = self._waiting.popitem(last=False)
            self._waiting_bytes -= len(frame)
            self._start(frame, wire_id, options, context)
        if self._full and self._waiting_bytes <= self._backlog // 2:
            self._full = False
            self._loop.call_soon(self._report, Room(self._generation))

    def _let_linger(self, wire_id: WireId) -> None:
        """End the response of a request soon that goes on after the answer."""
        if self._answered.get(wire_id) is None:
            task = self._tasks[wire_id]
            self._answered[wire_id] = self._loop.call_later(LINGER, task.cancel)

    async def _read_events(
        self, response: aiohttp.ClientResponse, take: Callable[[bytes], None]
    ) -> None:
        """Hand on what a stream brings; other tasks run within a flood of tiny lines."""
        read = self._client.reader(response)
        try:
            while chunk := await read():
                lines = 0
                if len(chunk) > PIECE:
                    lines = chunk.count(b"\n") + chunk.count(b"\r")
                if lines <= _MANY_LINES:
                    take(chunk)
                    continue
                for start in range(0, len(chunk), PIECE):
                    take(chunk[start : start + PIECE])
                    await asyncio.sleep(0)
        except FrameTooLarge as error:
            raise self._client.too_large(error) from None

    # The end

    def _cancel_all(self) -> list[asyncio.Task[Any]]:
        self._waiting.clear()
        tasks = [*self._tasks.values(), *self._streams()]
        for task in tasks:
            task.cancel()
        return [*tasks, *self._messages.cancel()]

    def _streams(self) -> list[asyncio.Task[None]]:
        """Return the tasks that read what the server sends of its own accord."""
        raise NotImplementedError

    async def _close(self, farewell: StreamOptions | None, tasks: list[asyncio.Task[Any]]) -> None:
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_WAIT)
            if farewell is not None:
                await self._within(self._delete(farewell), "deleting the session")
            await self._within(self._client.close(), "closing the connections")
        finally:
            self._client.drop()
            self._report(Drained(self._generation))

    async def _within(self, step: Coroutine[Any, Any, None], what: str) -> None:
        try:
            async with asyncio.timeout(CLOSE_WAIT):
                await step
        except TimeoutError:
            log.debug("%s: %s took too long", self._client.origin, what)

    async def _delete(self, farewell: StreamOptions) -> None:
        try:
            async with self._client.request("DELETE", farewell.headers):
                pass
        except Refused as refusal:
            log.debug("%s: the session was not deleted: %s", self._client.origin, refusal)
