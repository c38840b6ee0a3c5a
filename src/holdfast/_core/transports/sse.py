"""HTTP+SSE of 2024-11-05: one stream for all that comes, and an endpoint for what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp
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
    StreamOptions,
    WireId,
)
from holdfast._core.transports.http_client import EVENTS, LINGER, Web, content_type, joined
from holdfast._core.wire.framing import FrameTooLarge, ServerSentEvent, SseParser
from holdfast.errors import HoldfastError, ProtocolError, TransportError


class SseLink:
    """One open stream; when it ends, the link is lost."""

    def __init__(
        self,
        web: Web,
        generation: Generation,
        report: Callable[[Report], None],
        endpoint: URL | None = None,
    ) -> None:
        self._web = web
        self._generation = generation
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._endpoint = endpoint
        """Where to send to: given, or named by the server's first event."""
        self._posts: set[asyncio.Task[None]] = set()
        self._gate: asyncio.Event | None = None
        self._over = False
        self._closing = False
        self._stream = self._loop.create_task(self._read())

    def __repr__(self) -> str:
        return f"<SseLink #{self._generation} {self._web.origin}>"

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        if self._over:
            return True
        arrived, gate = asyncio.Event(), self._gate
        if wire_id is None and gate is None:
            # The first notification ends the handshake: what follows must not overtake it.
            self._gate = arrived
        task = self._loop.create_task(self._post(frame, wire_id, gate, arrived))
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        return True

    def listen(self, options: StreamOptions) -> None:
        """The stream is open already."""

    def withdraw(self, wire_id: WireId) -> bool:
        return False

    def finish(self, wire_id: WireId) -> None:
        """There are no streams to end."""

    def unread(self) -> bool:
        return False

    def close(self, farewell: StreamOptions | None = None) -> None:
        self._over = True
        if not self._closing:
            self._closing = True
            self._ending = self._loop.create_task(self._end(self._cancel_all()))

    def kill(self) -> None:
        self._over = True
        self._cancel_all()
        self._web.drop()

    async def _read(self) -> None:
        """Open the stream and hand on what it carries, until it ends."""
        error: HoldfastError = TransportError(f"{self._web.origin} ended the stream")
        try:
            async with self._web.request("GET", {"Accept": EVENTS}) as response:
                if content_type(response) != EVENTS:
                    raise self._web.wrong_content(response, b"")
                if self._endpoint is not None:
                    self._report(Opened(self._generation))
                await self._events(response)
        except Refused as refusal:
            error = refusal.error
        if not self._over:
            self._over = True
            self._report(Lost(self._generation, error))

    async def _events(self, response: aiohttp.ClientResponse) -> None:
        events = SseParser(self._web.limit)
        async for chunk in self._web.chunks(response):
            try:
                found = events.feed(chunk)
            except FrameTooLarge as error:
                raise Refused(self._web.too_large(error), Meaning.UNREADABLE) from None
            for event in found:
                self._take(event)

    def _take(self, event: ServerSentEvent) -> None:
        if self._endpoint is None:
            self._endpoint = self._checked(event)
            self._report(Opened(self._generation))
        elif event.name != "endpoint" and event.line and not self._over:
            self._report(Delivered(self._generation, event.line))

    def _checked(self, event: ServerSentEvent) -> URL:
        """Where to send to: only ever at home, for that is where our credentials belong."""
        if event.name != "endpoint":
            text = f"{self._web.origin} opened a stream, but did not name its endpoint first"
            raise Refused(ProtocolError(text), Meaning.UNREADABLE)
        named = event.data.decode("utf-8", "replace").strip()
        endpoint = joined(self._web.url, named)
        if endpoint is None or endpoint.origin() != self._web.url.origin():
            text = f"{self._web.origin} names an endpoint of another origin: {named}"
            raise Refused(ProtocolError(text), Meaning.UNREADABLE)
        return endpoint

    async def _post(
        self,
        frame: bytes,
        wire_id: WireId | None,
        gate: asyncio.Event | None,
        arrived: asyncio.Event,
    ) -> None:
        if gate is not None:
            await gate.wait()
        try:
            async with (
                self._web.slots,
                self._web.request("POST", {}, body=frame, url=self._endpoint) as response,
            ):
                arrived.set()
                await self._web.skip(response)
        except Refused as refusal:
            if wire_id is not None and not arrived.is_set() and not self._over:
                self._report(refusal.of(self._generation, wire_id))
        finally:
            arrived.set()

    def _cancel_all(self) -> list[asyncio.Task[None]]:
        tasks = [self._stream, *self._posts]
        for task in tasks:
            task.cancel()
        return tasks

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        await asyncio.wait(tasks, timeout=LINGER)
        await self._web.close()
        self._report(Drained(self._generation))
