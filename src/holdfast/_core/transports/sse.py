"""HTTP+SSE (2024-11-05 basic/transports, HTTP with SSE): one stream for all that the server
sends, and an endpoint for what is sent to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from holdfast._core.boundary import (
    Delivered,
    Drained,
    Generation,
    Lost,
    Meaning,
    Opened,
    Refused,
    Report,
    Room,
    StreamOptions,
    WireId,
)
from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_client import (
    EVENTS,
    LINGER,
    HttpClient,
    content_type,
    joined,
    piece_size,
)
from holdfast._core.transports.http_connections import CONNECTED
from holdfast._core.transports.messages import MessagePoster, accepted
from holdfast._core.transports.places import Places
from holdfast._core.wire.framing import FrameTooLarge, ServerSentEvent, SseParser
from holdfast.errors import HoldfastError, ProtocolError, TransportError


class SseLink:
    """One open stream; when it ends, the link is lost."""

    def __init__(
        self,
        client: HttpClient,
        generation: Generation,
        report: Callable[[Report], None],
        backlog: int,
        endpoint: URL | None = None,
    ) -> None:
        self._client = client
        self._generation = generation
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._endpoint = endpoint
        """The address to send to: given, or named by the server's first event."""
        self._posts: dict[WireId, asyncio.Task[None]] = {}
        """Requests that the server has not accepted or refused yet."""
        self._answered: set[WireId] = set()
        """Those among them whose answers have come on the stream."""
        room = partial(self._loop.call_soon, report, Room(generation))
        self._places = Places(client.settings.connections, backlog, room)
        self._messages = MessagePoster(client, backlog)
        self._gate: asyncio.Event | None = None
        self._over = False
        self._closing: asyncio.Task[None] | None = None
        self._stream = self._loop.create_task(self._read())

    def __repr__(self) -> str:
        return f"<SseLink #{self._generation} {self._client.origin} {len(self._posts)} POSTs>"

    # What the driver asks for

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        if self._over:
            return True
        if wire_id is None:
            return self._send_message(frame)
        if self._places.taken:
            self._drop_answered()
        if not self._places.admit(wire_id, len(frame)):
            return False
        self._posts[wire_id] = self._loop.create_task(self._post(frame, wire_id))
        return True

    def _send_message(self, frame: bytes) -> bool:
        arrived = self._messages.post(frame, {}, url=self._endpoint, after=self._gate)
        if self._gate is None:
            # The first notification ends the handshake: what follows must not overtake it.
            self._gate = arrived
        return arrived is not None

    def listen(self, options: StreamOptions) -> None:
        """The stream is open already."""

    def withdraw(self, wire_id: WireId) -> bool:
        """Stop waiting for a request to be accepted; True if it has not been sent."""
        task = self._posts.get(wire_id)
        if task is None:
            return False
        task.cancel()
        return self._end_post(wire_id)

    def finish(self, wire_id: WireId) -> None:
        """There are no streams to end."""

    def unsent(self) -> frozenset[WireId]:
        return self._places.unsent

    def unread(self) -> bool:
        return False

    def close(self, farewell: StreamOptions | None = None) -> None:
        self._over = True
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(self._cancel_all()))

    def kill(self) -> None:
        self._over = True
        self._cancel_all()
        self._client.drop()

    # What comes

    async def _read(self) -> None:
        """Open the stream and hand on what it carries, until it ends."""
        error: HoldfastError = TransportError(f"{self._client.origin} ended the stream")
        size: int | None = None
        try:
            async with self._client.request("GET", {"Accept": EVENTS}) as response:
                if content_type(response) != EVENTS:
                    raise self._client.wrong_content(response, b"")
                if self._endpoint is not None:
                    self._report(Opened(self._generation))
                await self._read_events(response)
        except BaseException as failure:
            if ends_task(failure):
                raise
            refusal = self._client.refused(failure)
            error, size = refusal.error, refusal.frame_size
        if not self._over:
            self._over = True
            self._report(Lost(self._generation, error, self.unsent(), size))

    async def _read_events(self, response: aiohttp.ClientResponse) -> None:
        events = SseParser(self._client.limit)
        async for chunk in self._client.chunks(response):
            size = piece_size(chunk)
            for start in range(0, len(chunk), size):
                try:
                    found = events.feed(chunk[start : start + size])
                except FrameTooLarge as error:
                    raise self._client.too_large(error) from None
                for event in found:
                    self._take(event)
                if size < len(chunk):
                    await asyncio.sleep(0)

    def _take(self, event: ServerSentEvent) -> None:
        if self._endpoint is None:
            self._endpoint = self._named_endpoint(event)
            self._report(Opened(self._generation))
        elif event.name != "endpoint" and event.line and not self._over:
            self._report(Delivered(self._generation, event.line))
            if self._posts:
                self._release_answered(event.data)

    def _named_endpoint(self, event: ServerSentEvent) -> URL:
        """Return where to send to: at the same origin, for our credentials belong there."""
        if event.name != "endpoint":
            text = f"{self._client.origin} opened a stream, but did not name its endpoint first"
            raise Refused(ProtocolError(text), Meaning.UNREADABLE)
        named = event.data.decode("utf-8", "replace").strip()
        endpoint = joined(self._client.url, named)
        if endpoint is None or endpoint.origin() != self._client.url.origin():
            text = f"{self._client.origin} names an endpoint of another origin: {named}"
            raise Refused(ProtocolError(text), Meaning.UNREADABLE)
        return endpoint

    def _release_answered(self, message: bytes) -> None:
        """End a POST that has no response although its request was answered."""
        try:
            wire_id = _id_decoder.decode(message).id
            task = self._posts.get(wire_id)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            return
        if task is not None and wire_id not in self._answered:
            self._answered.add(wire_id)
            self._loop.call_later(LINGER, task.cancel)

    def _drop_answered(self) -> None:
        """Make room by POSTs that only wait for their response."""
        for wire_id in tuple(self._answered):
            self._posts[wire_id].cancel()
            self._end_post(wire_id)

    # What is sent

    async def _post(self, frame: bytes, wire_id: WireId) -> None:
        """Send a request; it has no deadline of its own, for some servers respond when done."""
        taken = False
        CONNECTED.set(partial(self._places.sent, wire_id))
        try:
            if self._gate is not None:
                await accepted(self._gate)
            async with self._places.one_for(wire_id):
                request = self._client.request("POST", {}, body=frame, url=self._endpoint)
                async with request as response:
                    taken = True
                    await self._client.skip(response)
        except BaseException as error:
            if ends_task(error):
                raise
            if not taken and not self._over:
                refusal = self._client.refused(error, sent=self._places.has_left(wire_id))
                self._report(refusal.of(self._generation, wire_id))
        finally:
            self._end_post(wire_id)

    def _end_post(self, wire_id: WireId) -> bool:
        """Forget a request; return True if no byte of it has left."""
        self._posts.pop(wire_id, None)
        self._answered.discard(wire_id)
        return self._places.end(wire_id)

    # The end

    def _cancel_all(self) -> list[asyncio.Task[Any]]:
        tasks = [self._stream, *self._posts.values()]
        for task in tasks:
            task.cancel()
        return [*tasks, *self._messages.cancel()]

    async def _close(self, tasks: list[asyncio.Task[Any]]) -> None:
        try:
            await asyncio.wait(tasks, timeout=LINGER)
            async with asyncio.timeout(LINGER):
                await self._client.close()
        except TimeoutError:
            pass
        finally:
            self._client.drop()
            self._report(Drained(self._generation))


class _Id(Struct):
    id: Any = None


_id_decoder = msgspec.json.Decoder(_Id)
