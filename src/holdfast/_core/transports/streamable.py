"""Streamable HTTP, in both of its shapes: every message a POST, every request its own stream.

Up to 2025-11-25 (basic/transports, Streamable HTTP) there are sessions, a GET stream for what the
server sends of its own accord, and streams that are resumed; since 2026-07-28
(basic/transports/streamable-http) there are none of these. What a message needs is in its
`StreamOptions`; the link does not know the revision.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import aiohttp
from msgspec import Struct

from holdfast._core.boundary import (
    Delivered,
    Drained,
    Expired,
    Generation,
    Held,
    Meaning,
    Opened,
    Refused,
    Released,
    Report,
    Room,
    StreamOptions,
    WireId,
)
from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import (
    BROKEN,
    EVENTS,
    JSON,
    LINGER,
    HttpClient,
    content_type,
    piece_size,
)
from holdfast._core.transports.http_connections import CONNECTED
from holdfast._core.transports.http_errors import SESSION
from holdfast._core.transports.messages import MessagePoster, accepted
from holdfast._core.transports.places import Places
from holdfast._core.wire.framing import FrameTooLarge, SseParser
from holdfast.errors import ProtocolError, TransportError

log: logging.Logger = logging.getLogger("holdfast")

CLOSE_WAIT: Final = 1.0
"""Seconds for each step of closing: tasks end, the server deletes the session, sockets close."""
RETRY: Final = 1.0
"""Seconds before a broken stream is resumed, where the server does not say."""
SHORTEST_PAUSE: Final = 0.05
"""Seconds, whatever the server says: a stream that ends at once must not become a storm."""
LONGEST_PAUSE: Final = 30.0
MAX_FAILURES: Final = 5
"""Failed connections in a row after which a broken stream is not resumed again."""
OWN_STREAM: Final = WireId(0)
"""The stream of unsolicited messages."""
_NO_STREAM: Final = frozenset(
    {Meaning.NO_SUCH_SESSION, Meaning.NOT_UNDERSTOOD, Meaning.REJECTED, Meaning.UNREADABLE}
)
_PLAIN: Final = StreamOptions({})


class Stream(Struct):
    """The state of one event stream over all of its connections."""

    wire_id: WireId
    options: StreamOptions
    events: SseParser
    session: str | None = None
    """The session named in the head of the first response."""
    opened: bool = False
    """The server has opened it at least once."""
    heard: bool = False
    """Its connection has brought something."""
    mute: int = 0
    """Connections in a row that brought nothing."""

    @property
    def resumable(self) -> bool:
        """2025-11-25 basic/transports, Resumability: only a stream whose events had an id."""
        return self.options.resume and self.events.last_id is not None

    def pause(self) -> float:
        """Return the seconds before the next connection, longer for a server that stays mute.

        2025-11-25 basic/transports, Sending Messages: the ``retry`` field is to be respected.
        """
        self.mute = 0 if self.heard else self.mute + 1
        self.heard = False
        said = RETRY if self.events.retry is None else self.events.retry
        grown = RETRY * 2.0 ** min(self.mute - 2, 10) if self.mute > 1 else SHORTEST_PAUSE
        return max(said, min(grown, LONGEST_PAUSE))


class StreamableLink:
    """One conversation with one endpoint."""

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
        self._exchanges: dict[WireId, asyncio.Task[None]] = {}
        self._finished: dict[WireId, asyncio.TimerHandle | None] = {}
        """Answered requests whose streams have not ended yet, and when they will be ended."""
        self._messages = MessagePoster(client, backlog)
        self._gate: asyncio.Event | None = None
        """Set when the server has accepted what it must hear before anything else."""
        room = partial(self._loop.call_soon, report, Room(generation))
        self._places = Places(client.settings.connections, backlog, room)
        self._held: set[WireId] = set()
        """Requests that wait for credentials."""
        self._own: asyncio.Task[None] | None = None
        self._own_headers: dict[str, str] = {}
        self._closed = False
        self._loop.call_soon(report, Opened(generation, streams=True))

    def __repr__(self) -> str:
        streams = len(self._exchanges)
        return f"<StreamableLink #{self._generation} {self._client.origin} {streams} streams>"

    # What the driver asks for

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        if self._closed:
            return True
        options = options or _PLAIN
        if wire_id is None:
            return self._send_message(frame, options)
        if self._own is not None and options.headers != self._own_headers:
            # Another session, or a negotiation: the server's own stream belongs to neither, but
            # a proxy may hold it open.
            self._end_own_stream()
        if not self._places.admit(wire_id, len(frame)):
            return False
        self._exchanges[wire_id] = self._loop.create_task(self._exchange(frame, wire_id, options))
        return True

    def _send_message(self, frame: bytes, options: StreamOptions) -> bool:
        arrived = self._messages.post(frame, options.headers)
        if arrived is not None and options.first:
            self._gate = arrived
        return arrived is not None

    def listen(self, options: StreamOptions) -> None:
        self._end_own_stream()
        self._own_headers = options.headers
        self._own = self._loop.create_task(self._listen(options))

    def withdraw(self, wire_id: WireId) -> bool:
        """End the stream of a request: since 2026-07-28 that is its cancellation."""
        task = self._exchanges.get(wire_id)
        if task is None:
            return False
        task.cancel()
        # A task that is cancelled before it ran does not reach its ``finally``.
        return self._end_exchange(wire_id)

    def finish(self, wire_id: WireId) -> None:
        if wire_id in self._exchanges:
            self._finished.setdefault(wire_id, None)

    def unsent(self) -> frozenset[WireId]:
        return self._places.unsent

    def unread(self) -> bool:
        return bool(self._held)

    def close(self, farewell: StreamOptions | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._closing = self._loop.create_task(self._close(farewell, self._cancel_all()))

    def kill(self) -> None:
        self._closed = True
        self._cancel_all()
        self._client.drop()

    # Requests

    async def _exchange(self, frame: bytes, wire_id: WireId, options: StreamOptions) -> None:
        """Send one request and hand on all that comes on its stream."""
        CONNECTED.set(partial(self._places.sent, wire_id))
        try:
            if self._gate is not None:
                await self._pass_gate()
            async with self._places.one_for(wire_id):
                stream = await self._ask(frame, wire_id, options)
            if stream is not None and wire_id not in self._finished:
                await self._resume(stream)
        except BaseException as error:
            if ends_task(error):
                raise
            if wire_id not in self._finished:
                refusal = self._client.refused(error, sent=self._places.has_left(wire_id))
                self._report(refusal.of(self._generation, wire_id))
        finally:
            self._end_exchange(wire_id)

    async def _pass_gate(self) -> None:
        gate = self._gate
        if gate is not None:
            await accepted(gate)
            if self._gate is gate:
                self._gate = None

    def _hold(self, wire_id: WireId, held: bool) -> None:
        """Note that a request waits for credentials: the server has not taken it."""
        if held:
            self._places.hold(wire_id)
            self._held.add(wire_id)
        else:
            self._held.discard(wire_id)
        if wire_id in self._exchanges and wire_id not in self._finished:
            report = Held if held else Released
            self._report(report(self._generation, wire_id))

    def _end_exchange(self, wire_id: WireId) -> bool:
        """Forget a request; return True if no byte of it has left."""
        self._held.discard(wire_id)
        self._exchanges.pop(wire_id, None)
        timer = self._finished.pop(wire_id, None)
        if timer is not None:
            timer.cancel()
        return self._places.end(wire_id)

    async def _ask(self, frame: bytes, wire_id: WireId, options: StreamOptions) -> Stream | None:
        """POST a request and read its response; return the stream if it is one of events."""
        client = self._client
        held = partial(self._hold, wire_id)
        response = await client.open("POST", options.headers, frame, held=held)
        stream: Stream | None = None
        try:
            session = response.headers.get(SESSION)
            kind = content_type(response)
            if kind != EVENTS:
                await self._read_json(response, kind, wire_id, session)
            else:
                stream = Stream(wire_id, options, SseParser(client.limit), session)
                await self._read_events(response, stream)
        except BROKEN as error:
            refusal = client.broken(error, fresh=False)
            if stream is None or not stream.resumable:
                raise refusal from error
            log.debug("%s: %s", client.origin, refusal)
        finally:
            response.release()
        return stream

    async def _read_json(
        self, response: aiohttp.ClientResponse, kind: str, wire_id: WireId, session: str | None
    ) -> None:
        body = await self._client.read(response)
        if kind != JSON:
            raise self._client.wrong_content(response, body)
        self._report(Delivered(self._generation, body, wire_id, session, whole=True))
        if wire_id not in self._finished:
            text = f"{self._client.origin} gave no answer in its response"
            raise Refused(ProtocolError(text), Meaning.UNANSWERED)

    async def _read_events(self, response: aiohttp.ClientResponse, stream: Stream) -> None:
        stream.opened = True
        async for chunk in self._client.chunks(response):
            stream.heard = True
            size = piece_size(chunk)
            for start in range(0, len(chunk), size):
                self._feed(stream, chunk[start : start + size])
                if size < len(chunk):
                    await asyncio.sleep(0)

    def _feed(self, stream: Stream, chunk: bytes) -> None:
        try:
            found = stream.events.feed(chunk)
        except FrameTooLarge as error:
            raise self._client.too_large(error) from None
        lines = b"".join(event.line for event in found)
        if lines:
            wire_id = stream.wire_id
            self._report(Delivered(self._generation, lines, wire_id, stream.session))
            self._let_linger(wire_id)

    def _let_linger(self, wire_id: WireId) -> None:
        """End a stream soon that goes on after its answer.

        2026-07-28 basic/transports/streamable-http, Receiving Messages: the response SHOULD
        terminate the stream, so some do not.
        """
        if wire_id in self._finished and self._finished[wire_id] is None:
            task = self._exchanges[wire_id]
            self._finished[wire_id] = self._loop.call_later(LINGER, task.cancel)

    # Streams over several connections

    async def _resume(self, stream: Stream) -> None:
        """Take a stream up where it broke, or where the server closed it to be polled."""
        failures = 0
        while stream.wire_id not in self._finished:
            if not stream.resumable or failures >= MAX_FAILURES:
                text = f"{self._client.origin} ended the stream before the answer"
                raise Refused(TransportError(text), Meaning.UNANSWERED)
            await asyncio.sleep(stream.pause())
            try:
                await self._reopen(stream)
                failures = 0
            except Refused as refusal:
                if not refusal.broken:
                    raise self._lost_stream(refusal, stream) from refusal
                log.debug("%s: %s", self._client.origin, refusal)
                failures += 1

    def _lost_stream(self, refusal: Refused, stream: Stream) -> Refused:
        """The stream is gone, but its request was accepted: it must not be sent again."""
        if refusal.meaning is Meaning.NO_SUCH_SESSION:
            self._report(Expired(self._generation, stream.options.headers[SESSION]))
        return Refused(refusal.error, Meaning.UNANSWERED)

    async def _reopen(self, stream: Stream) -> None:
        """Connect to a stream by GET, from the last event that was read."""
        stream.events.restart()
        headers = {**stream.options.headers, "Accept": EVENTS}
        if stream.events.last_id is not None:
            headers["Last-Event-ID"] = stream.events.last_id
        async with self._client.request("GET", headers) as response:
            if content_type(response) != EVENTS:
                raise self._client.wrong_content(response, b"")
            await self._read_events(response, stream)

    async def _listen(self, options: StreamOptions) -> None:
        """Hold the stream of unsolicited messages open, if the server offers one."""
        await self._pass_gate()
        stream = Stream(OWN_STREAM, options, SseParser(self._client.limit))
        while True:
            try:
                await self._reopen(stream)
            except Refused as refusal:
                # Some answer 404 for want of a stream: only one that was open can tell of the
                # session.
                if stream.opened and refusal.meaning is Meaning.NO_SUCH_SESSION:
                    self._report(Expired(self._generation, options.headers[SESSION]))
                    return
                if refusal.meaning in _NO_STREAM:
                    return
                log.debug("%s: %s", self._client.origin, refusal)
            await asyncio.sleep(stream.pause())

    def _end_own_stream(self) -> None:
        if self._own is not None:
            self._own.cancel()
            self._own = None

    # The end

    def _cancel_all(self) -> list[asyncio.Task[Any]]:
        own = [] if self._own is None else [self._own]
        tasks = [*self._exchanges.values(), *own]
        for task in tasks:
            task.cancel()
        return [*tasks, *self._messages.cancel()]

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
