"""The two kinds of HTTP links: Streamable HTTP in both of its shapes, and HTTP+SSE before it.

Streamable HTTP: every message is a POST, every request has its own stream. Up to 2025-11-25
(basic/transports, Streamable HTTP) there are sessions, a GET stream for what the server sends of
its own accord, and streams that are resumed; since 2026-07-28 (basic/transports/streamable-http)
there are none of these. What a message needs is in its `StreamOptions`; the link does not know the
revision. HTTP+SSE (2024-11-05 basic/transports, HTTP with SSE): one stream for all that the server
sends, and an endpoint for what is sent to it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from yarl import URL

from holdfast._core import boundary as b
from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import EVENTS, JSON
from holdfast._core.transports.http_link import PLAIN, HttpLink, accepted, log
from holdfast._core.transports.http_responses import (
    BROKEN,
    SESSION,
    content_type,
    read_body,
    read_start,
)
from holdfast._core.wire.jsonrpc import MALFORMED, Envelope
from holdfast._core.wire.sse import ServerSentEvent, SseParser
from holdfast.errors import HoldfastError, ProtocolError, TransportError

RETRY: Final = 1.0
"""Seconds before a broken stream is resumed, where the server does not say."""
SHORTEST_PAUSE: Final = 0.05
"""Seconds, whatever the server says: a stream that ends at once must not become a storm."""
LONGEST_PAUSE: Final = 30.0
MAX_FAILURES: Final = 5
"""Failed connections in a row after which a broken stream is not resumed again."""
OWN_STREAM: Final = b.WireId(0)
"""The stream of unsolicited messages."""
_NO_STREAM: Final = frozenset(
    {
        b.RefusalReason.NO_SUCH_SESSION,
        b.RefusalReason.NOT_UNDERSTOOD,
        b.RefusalReason.REJECTED,
        b.RefusalReason.UNREADABLE,
    }
)


class Stream(Struct):
    """The state of one event stream over all of its connections."""

    wire_id: b.WireId
    options: b.StreamOptions
    events: SseParser
    session: str | None = None
    """The session named in the head of the first response."""
    opened: bool = False
    """The server has opened it at least once by a GET."""
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
        requested = RETRY if self.events.retry is None else self.events.retry
        grown = RETRY * 2.0 ** min(self.mute - 2, 10) if self.mute > 1 else SHORTEST_PAUSE
        return max(requested, min(grown, LONGEST_PAUSE))


class StreamableLink(HttpLink):
    """One conversation with one endpoint."""

    def _open(self) -> None:
        self._stream_headers: dict[str, str] = {}
        self._loop.call_soon(self._report, b.Opened(self._generation, streams=True))

    # What the driver asks for

    def send(
        self, frame: bytes, wire_id: b.WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        if self._over:
            return True
        options = options or PLAIN
        if wire_id is None:
            return self._send_message(frame, options.headers, first=options.first)
        if self._stream is not None and options.headers != self._stream_headers:
            # Another session, or a negotiation: the server's own stream belongs to neither, but
            # a proxy may hold it open.
            self._stream.cancel()
            self._stream = None
        return self._send(frame, wire_id, options)

    def listen(self, options: b.StreamOptions) -> None:
        if self._stream is not None:
            self._stream.cancel()
        self._stream_headers = options.headers
        self._stream = self._loop.create_task(self._listen(options))

    def finish(self, wire_id: b.WireId) -> None:
        if wire_id in self._requests.tasks:
            self._answered.setdefault(wire_id, None)

    # Requests

    async def _ask(self, frame: bytes, wire_id: b.WireId, options: b.StreamOptions) -> None:
        client = self._client
        held = partial(self._hold, wire_id)
        response = await client.open("POST", options.headers, frame, held=held)
        stream: Stream | None = None
        try:
            session = response.headers.get(SESSION)
            kind = content_type(response)
            if kind == EVENTS:
                stream = Stream(wire_id, options, SseParser(client.limit), session)
                await self._read_events(response, partial(self._feed, stream))
            else:
                body = await read_body(response, client.limit)
                if kind != JSON:
                    raise client.wrong_content(response, body)
                self._report(b.Delivered(self._generation, body, wire_id, session, whole=True))
        except BROKEN as error:
            refusal = client.refused(error)
            if stream is None or not stream.resumable:
                raise refusal from error
            log.debug("%s: %s", client.origin, refusal)
        finally:
            if not response.closed:
                response.release()
        if wire_id in self._answered:
            return
        if stream is None:
            text = f"{client.origin} gave no answer in its response"
            raise b.Refused(ProtocolError(text), b.RefusalReason.UNANSWERED)
        self._requests.leave_place(wire_id)
        await self._resume(stream)

    def _feed(self, stream: Stream, chunk: bytes) -> None:
        stream.heard = True
        lines = stream.events.messages(chunk)
        if lines:
            wire_id = stream.wire_id
            self._report(b.Delivered(self._generation, lines, wire_id, stream.session))
            # 2026-07-28 basic/transports/streamable-http, Receiving Messages: the response SHOULD
            # terminate the stream, so some do not.
            if wire_id in self._answered:
                self._let_linger(wire_id)

    # Streams over several connections

    async def _resume(self, stream: Stream) -> None:
        """Resume a stream that broke, or that the server closed so that it is polled."""
        failures = 0
        while stream.wire_id not in self._answered:
            if not stream.resumable or failures >= MAX_FAILURES:
                text = f"{self._client.origin} ended the stream before the answer"
                raise b.Refused(TransportError(text), b.RefusalReason.UNANSWERED)
            await asyncio.sleep(stream.pause())
            try:
                await self._reopen(stream)
                failures = 0
            except b.Refused as refusal:
                if not refusal.broken:
                    if refusal.reason is b.RefusalReason.NO_SUCH_SESSION:
                        self._report(b.Expired(self._generation, stream.options.headers[SESSION]))
                    # The stream is gone, but its request was accepted: never send it again.
                    raise b.Refused(refusal.error, b.RefusalReason.UNANSWERED) from refusal
                log.debug("%s: %s", self._client.origin, refusal)
                failures += 1

    async def _reopen(self, stream: Stream) -> None:
        """Connect to a stream by GET, from the last event that was read."""
        stream.events.restart()
        headers = stream.options.headers
        if stream.events.last_id is not None:
            headers = {**headers, "Last-Event-ID": stream.events.last_id}
        async with self._events(headers) as response:
            stream.opened = True
            await self._read_events(response, partial(self._feed, stream))

    async def _listen(self, options: b.StreamOptions) -> None:
        """Keep the GET stream of unsolicited messages open, if the server offers one."""
        await accepted(self._gate)
        stream = Stream(OWN_STREAM, options, SseParser(self._client.limit))
        while True:
            try:
                await self._reopen(stream)
            except b.Refused as refusal:
                # Servers without a GET stream may answer 404 too: only after a stream was open
                # does it mean that the session has expired.
                if stream.opened and refusal.reason is b.RefusalReason.NO_SUCH_SESSION:
                    self._report(b.Expired(self._generation, options.headers[SESSION]))
                    return
                if refusal.reason in _NO_STREAM:
                    return
                log.debug("%s: %s", self._client.origin, refusal)
            await asyncio.sleep(stream.pause())


class SseLink(HttpLink):
    """One open stream; when it ends, the link is lost.

    The endpoint is given, or named by the server's first event.
    """

    def _open(self) -> None:
        self._stream = self._loop.create_task(self._read())

    def send(
        self, frame: bytes, wire_id: b.WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        if self._over:
            return True
        if wire_id is None:
            # The first notification ends the handshake: what follows must not overtake it.
            return self._send_message(frame, {}, first=self._gate is None)
        if len(self._requests.placed) >= self._requests.most:
            # Free places: cancel POSTs whose requests are answered and that only wait to end.
            for answered_id in tuple(self._answered):
                self.withdraw(answered_id)
        return self._send(frame, wire_id, PLAIN)

    def listen(self, options: b.StreamOptions) -> None:
        """The stream is open already."""

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

    # What comes

    async def _read(self) -> None:
        """Open the stream and report its messages until it ends."""
        error: HoldfastError = TransportError(f"{self._client.origin} ended the stream")
        size: int | None = None
        try:
            async with self._events({}) as response:
                if self._endpoint is not None:
                    self._report(b.Opened(self._generation))
                feed = partial(self._feed, SseParser(self._client.limit))
                await self._read_events(response, feed)
        except BaseException as failure:
            if ends_task(failure):
                raise
            refusal = self._client.refused(failure)
            error, size = refusal.error, refusal.frame_size
        if not self._over:
            self._over = True
            self._report(b.Lost(self._generation, error, self.unsent(), size))

    def _feed(self, events: SseParser, chunk: bytes) -> None:
        for event in events.feed(chunk):
            if self._endpoint is None:
                self._endpoint = self._named_endpoint(event)
                self._report(b.Opened(self._generation))
            elif event.name != "endpoint" and event.line and not self._over:
                self._report(b.Delivered(self._generation, event.line))
                if self._requests.tasks:
                    self._release_answered(event.data)

    def _named_endpoint(self, event: ServerSentEvent) -> URL:
        """Return the endpoint that the server names; credentials must stay at its origin."""
        if event.name != "endpoint":
            text = f"{self._client.origin} opened a stream, but did not name its endpoint first"
            raise b.Refused(ProtocolError(text), b.RefusalReason.UNREADABLE)
        address = event.data.decode("utf-8", "replace").strip()
        endpoint = self._client.joined(self._client.url, address)
        if endpoint is None:
            text = f"{self._client.origin} names an endpoint of another origin: {address}"
            raise b.Refused(ProtocolError(text), b.RefusalReason.UNREADABLE)
        return endpoint

    def _release_answered(self, message: bytes) -> None:
        """Cancel a POST that got no response although its request was answered."""
        try:
            wire_id = msgspec.json.decode(message, type=Envelope).id
        except MALFORMED:
            return
        if wire_id in self._requests.tasks:
            self._let_linger(wire_id)  # type: ignore[arg-type]

    # What is sent

    async def _ask(self, frame: bytes, wire_id: b.WireId, options: b.StreamOptions) -> None:
        """Send a request; without a deadline, as some servers respond only when done."""
        request = self._client.request("POST", {}, body=frame, url=self._endpoint)
        async with request as response:
            # The server has accepted it: the answer comes on the stream, not here.
            self._answered.setdefault(wire_id, None)
            await read_start(response)
