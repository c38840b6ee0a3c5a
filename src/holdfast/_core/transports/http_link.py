"""What the two kinds of HTTP links share: POSTs, bounded in number, in bytes and in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from typing import Any, Final

import aiohttp
from yarl import URL

from holdfast._core import boundary as b
from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import CONNECTED, EVENTS, HttpClient
from holdfast._core.transports.http_responses import (
    LINGER,
    TURN,
    body_reader,
    content_type,
    read_start,
)

log: logging.Logger = logging.getLogger("holdfast")

# A link of many exchanges
# ------------------------
#
# Over a pipe a link is one thing that lives or dies. Over HTTP each request is a POST of its own,
# on a connection of its own for the time being, and fails alone. What holds them together:
#
# - A request has a *place*. There are as many places as connections, and requests beyond them
#   wait here, where they count as unsent and can be withdrawn, not inside of aiohttp, where
#   nothing is known of them. A request whose stream was closed by the server, to be resumed by
#   polling, gives its place away: otherwise a few slow tools would stop all others.
# - Messages that have no answer have places and a time of their own. Every request may be waiting
#   for our answer to a question of the server; if that answer had to wait for a place of a request,
#   both would wait for ever.
# - *Unsent* is decided at one moment: when the request is given its connection (`CONNECTED`).
#   Before it, no byte has left, and the engine may send the request again or say "nothing was
#   sent". After it, it may have run, whatever the error says.
# - *Held* is a request that waits for credentials, which may mean for a person. Its clock stands
#   still meanwhile, and it is unsent again, because the refused one was not run.
# - *Answered* requests may have a response that does not end, though the specification wants it
#   to. They get LINGER, for the sake of the connection, and are cancelled then.
# - The *gate*: a handshake is over for the server when it has read ``notifications/initialized``,
#   and POSTs overtake each other. So all that is sent later waits until that one was accepted,
#   but FIRST seconds at most: a server that never accepts it is no reason to be silent.
#
# Who may end what. A caller's cancellation and a deadline end one exchange (`withdraw`); since
# 2026-07-28 closing the stream is the cancellation itself. `close` ends all of them, says farewell
# to the session, and reports ``Drained`` in any case, within two CLOSE_WAITs. `kill` is for a loop
# that goes away: everything is dropped, and nothing is reported.

AT_ONCE: Final = 32
"""Messages without an answer on their way at once. They need places of their own: every request
may be waiting for an answer of ours."""
CLOSE_WAIT: Final = 1.0
"""Seconds for each step of closing: tasks end; the session is deleted and the sockets close."""
FIRST: Final = 3.0
"""Seconds for the server to accept the message that must come first."""
PLAIN: Final = b.StreamOptions({})
LINES: Final = 2048
"""Lines of an event stream, on average, that are read before other tasks run."""


class PostQueue:
    """Runs ``most`` POSTs at once, each in a task; at most ``backlog`` bytes of others wait.

    With ``hold`` the bytes of a POST count until it has ended. ``room`` is called when there is
    room again after `add` has returned False.
    """

    def __init__(
        self, most: int, backlog: int, room: Callable[[], None], *, hold: bool = False
    ) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.placed: set[int] = set()
        """The POSTs that count towards ``most``; see `leave_place`."""
        self.most = most
        self._backlog = backlog
        self._room = room
        self._hold = hold
        self._waiting: dict[int, tuple[Callable[[], Coroutine[Any, Any, None]], Context]] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._refused = False
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self.tasks) + len(self._waiting)

    def add(self, key: int, size: int, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Start ``work``, or queue it; return False if too many bytes wait already."""
        if self._bytes and self._bytes + size > self._backlog:
            self._refused = True
            return False
        begins = not self._waiting and len(self.placed) < self.most
        if self._hold or not begins:
            self._sizes[key] = size
            self._bytes += size
        if begins:
            self.placed.add(key)
            self.tasks[key] = self._loop.create_task(work())
        else:
            # A function that gives credentials may depend on the context of the caller.
            self._waiting[key] = (work, copy_context())
        return True

    def leave_place(self, key: int) -> None:
        """Let another POST start: this one only waits for the server."""
        self.placed.discard(key)
        self._advance()

    def end(self, key: int) -> None:
        """Forget a POST."""
        self.tasks.pop(key, None)
        self._waiting.pop(key, None)
        self._bytes -= self._sizes.pop(key, 0)
        self.placed.discard(key)
        if self._waiting or self._refused:
            self._advance()

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel everything; return the tasks to wait for."""
        self._waiting.clear()
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        return tasks

    def _advance(self) -> None:
        while self._waiting and len(self.placed) < self.most:
            key = next(iter(self._waiting))
            work, context = self._waiting.pop(key)
            if not self._hold:
                self._bytes -= self._sizes.pop(key)
            self.placed.add(key)
            self.tasks[key] = self._loop.create_task(work(), context=context)
        if self._refused and self._bytes <= self._backlog // 2:
            self._refused = False
            self._loop.call_soon(self._room)


class HttpLink:
    """Sends requests, and messages that have no answer: notifications, our own answers.

    An attack to withstand: a server that asks thousands of things, or makes thousands of calls
    time out, and never responds to what we POST. Without bounds each of these would hold a
    socket and a task for ever.
    """

    def __init__(
        self,
        client: HttpClient,
        generation: b.Generation,
        report: Callable[[b.Report], None],
        backlog: int,
        endpoint: URL | None = None,
    ) -> None:
        self._client = client
        self._generation = generation
        self._report = report
        self._loop = asyncio.get_running_loop()
        room = partial(report, b.Room(generation))
        self._requests = PostQueue(client.http.connections, backlog, room)
        self._messages = PostQueue(AT_ONCE, backlog, room, hold=True)
        self._count = count()
        self._unsent: set[b.WireId] = set()
        """Requests of which no byte has left."""
        self._held: set[b.WireId] = set()
        """Requests that wait for credentials."""
        self._answered: dict[b.WireId, asyncio.TimerHandle | None] = {}
        """Answered requests whose responses have not ended yet, and when they will be ended."""
        self._endpoint = endpoint
        """The address to send to, if it is not that of the client."""
        self._gate: asyncio.Event | None = None
        """Set when the server has accepted the message that must come first."""
        self._stream: asyncio.Task[None] | None = None
        """Reads what the server sends of its own accord."""
        self._over = False
        self._closing: asyncio.Task[None] | asyncio.Handle | None = None
        self._open()

    def _open(self) -> None:
        """Begin, so that ``Opened`` is reported soon."""
        raise NotImplementedError

    def __repr__(self) -> str:
        count = f"{len(self._requests)} requests, {len(self._messages)} messages"
        return f"<{type(self).__name__} #{self._generation} {self._client.origin} {count}>"

    # What the driver asks for

    def withdraw(self, wire_id: b.WireId) -> bool:
        """End a request, or its stream: since 2026-07-28 that is its cancellation."""
        task = self._requests.tasks.get(wire_id)
        if task is not None:
            task.cancel()
        # A task that is cancelled before it ran does not reach its ``finally``.
        return self._end(wire_id)

    def unsent(self) -> frozenset[b.WireId]:
        return frozenset(self._unsent)

    def unread(self) -> bool:
        return bool(self._held)

    def received(self) -> int:
        return self._client.received

    def agreed(self) -> None:
        """There is nothing to forget."""

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        self._over = True
        if self._closing is not None:
            return
        tasks = self._cancel_all()
        if tasks or farewell is not None or self._client.secure:
            self._closing = self._loop.create_task(self._close(farewell, tasks))
        else:
            self._client.drop()
            self._closing = self._loop.call_soon(self._report, b.Drained(self._generation))

    def kill(self) -> None:
        self._over = True
        self._cancel_all()
        self._client.drop()

    # Requests

    def _send(self, frame: bytes, wire_id: b.WireId, options: b.StreamOptions) -> bool:
        """Send a request, or queue it; return False if too many bytes wait already."""
        work = partial(self._exchange, frame, wire_id, options)
        taken = self._requests.add(wire_id, len(frame), work)
        if taken:
            self._unsent.add(wire_id)
        return taken

    async def _exchange(self, frame: bytes, wire_id: b.WireId, options: b.StreamOptions) -> None:
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

    async def _ask(self, frame: bytes, wire_id: b.WireId, options: b.StreamOptions) -> None:
        """POST a request and read its response."""
        raise NotImplementedError

    def _hold(self, wire_id: b.WireId, held: bool) -> None:
        """Report that a request waits for credentials: the server has not received it."""
        if held:
            self._unsent.add(wire_id)
            self._held.add(wire_id)
        else:
            self._held.discard(wire_id)
        if wire_id in self._requests.tasks and wire_id not in self._answered:
            report = b.Held if held else b.Released
            self._report(report(self._generation, wire_id))

    def _end(self, wire_id: b.WireId) -> bool:
        """Forget a request; return True if no byte of it has left."""
        self._held.discard(wire_id)
        timer = self._answered.pop(wire_id, None)
        if timer is not None:
            timer.cancel()
        unsent = wire_id in self._unsent
        self._unsent.discard(wire_id)
        self._requests.end(wire_id)
        return unsent

    def _let_linger(self, wire_id: b.WireId) -> None:
        """Cancel the response of an answered request if it does not end soon."""
        if self._answered.get(wire_id) is None:
            task = self._requests.tasks[wire_id]
            self._answered[wire_id] = self._loop.call_later(LINGER, task.cancel)

    @asynccontextmanager
    async def _events(self, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a stream by GET."""
        async with self._client.request("GET", {**headers, "Accept": EVENTS}) as response:
            if content_type(response) != EVENTS:
                raise self._client.wrong_content(response, b"")
            yield response

    async def _read_events(
        self, response: aiohttp.ClientResponse, take: Callable[[bytes], None]
    ) -> None:
        """Pass on the chunks of a stream; let other tasks run during a flood of tiny lines."""
        read = body_reader(response)
        while chunk := await read():
            lines = chunk.count(b"\n") + chunk.count(b"\r") if len(chunk) > TURN else 0
            if lines <= LINES:
                take(chunk)
                continue
            step = max(TURN // 4, len(chunk) * LINES // lines)
            for start in range(0, len(chunk), step):
                take(chunk[start : start + step])
                await asyncio.sleep(0)

    # Messages that have no answer

    def _send_message(self, frame: bytes, headers: Mapping[str, str], *, first: bool) -> bool:
        """Send a message in the background; return False if too much waits already.

        ``first``: all that is sent later waits until the server has accepted this one.
        """
        client, gate, key, arrived = self._client, self._gate, next(self._count), asyncio.Event()
        until = self._loop.time() + client.http.message_timeout

        async def post() -> None:
            try:
                if self._loop.time() >= until:
                    raise TimeoutError
                async with asyncio.timeout_at(until):
                    await accepted(gate)
                    request = client.request("POST", headers, body=frame, url=self._endpoint)
                    async with request as response:
                        arrived.set()
                        await read_start(response)
            except BaseException as error:
                if ends_task(error):
                    raise
                why = str(error) or "timeout"
                log.debug("%s: a message was not accepted: %s", client.origin, why)
            finally:
                arrived.set()
                self._messages.end(key)

        taken = self._messages.add(key, len(frame), post)
        if taken and first:
            self._gate = arrived
        return taken

    # The end

    def _cancel_all(self) -> list[asyncio.Task[None]]:
        listening = [] if self._stream is None else [self._stream]
        for task in listening:
            task.cancel()
        return [*listening, *self._requests.cancel(), *self._messages.cancel()]

    async def _close(
        self, farewell: b.StreamOptions | None, tasks: list[asyncio.Task[None]]
    ) -> None:
        client = self._client
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_WAIT)
            async with asyncio.timeout(CLOSE_WAIT):
                if farewell is not None:
                    async with client.request("DELETE", farewell.headers):
                        pass
                if client.secure:
                    await client.close()
        except (TimeoutError, b.Refused) as error:
            log.debug(
                "%s: not closed in an orderly way: %s", client.origin, str(error) or "timeout"
            )
        finally:
            client.drop()
            self._report(b.Drained(self._generation))


async def accepted(first: asyncio.Event | None) -> None:
    """Wait until the server has accepted the message that must come first, but not for ever."""
    if first is None or first.is_set():
        return
    try:
        async with asyncio.timeout(FIRST):
            await first.wait()
    except TimeoutError:
        first.set()
