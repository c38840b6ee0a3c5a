"""HTTP+SSE (2024-11-05 basic/transports, HTTP with SSE): one stream for all that the server
sends, and an endpoint for what is sent to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from holdfast._core import boundary as b
from holdfast._core.callbacks import ends_task
from holdfast._core.transports.http_bodies import content_type, skip_body
from holdfast._core.transports.http_client import EVENTS, HttpClient
from holdfast._core.transports.http_link import PLAIN, HttpLink
from holdfast._core.wire.framing import ServerSentEvent, SseParser
from holdfast.errors import HoldfastError, ProtocolError, TransportError


class SseLink(HttpLink):
    """One open stream; when it ends, the link is lost."""

    def __init__(
        self,
        client: HttpClient,
        generation: b.Generation,
        report: Callable[[b.Report], None],
        backlog: int,
        endpoint: URL | None = None,
    ) -> None:
        super().__init__(client, generation, report, backlog)
        self._endpoint = endpoint
        """The address to send to: given, or named by the server's first event."""
        self._stream = self._loop.create_task(self._read())

    # What the driver asks for

    def send(
        self, frame: bytes, wire_id: b.WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        if self._over:
            return True
        if wire_id is None:
            # The first notification ends the handshake: what follows must not overtake it.
            return self._send_message(frame, {}, first=self._gate is None)
        if len(self._requests.placed) >= self._requests.most:
            # Make room by POSTs that only wait for their response.
            for answered in tuple(self._answered):
                self.withdraw(answered)
        return self._send(frame, wire_id, PLAIN)

    def listen(self, options: b.StreamOptions) -> None:
        """The stream is open already."""

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

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
                    self._report(b.Opened(self._generation))
                await self._read_events(
                    response, partial(self._feed, SseParser(self._client.limit))
                )
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
        """Return where to send to: at the same origin, for our credentials belong there."""
        if event.name != "endpoint":
            text = f"{self._client.origin} opened a stream, but did not name its endpoint first"
            raise b.Refused(ProtocolError(text), b.Meaning.UNREADABLE)
        named = event.data.decode("utf-8", "replace").strip()
        endpoint = self._client.joined(self._client.url, named)
        if endpoint is None:
            text = f"{self._client.origin} names an endpoint of another origin: {named}"
            raise b.Refused(ProtocolError(text), b.Meaning.UNREADABLE)
        return endpoint

    def _release_answered(self, message: bytes) -> None:
        """End a POST that has no response although its request was answered."""
        try:
            wire_id = _id_decoder.decode(message).id
            known = wire_id in self._requests.tasks
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            return
        if known:
            self._let_linger(wire_id)

    # What is sent

    async def _ask(self, frame: bytes, wire_id: b.WireId, options: b.StreamOptions) -> None:
        """Send a request; it has no deadline of its own, for some servers respond when done."""
        request = self._client.request("POST", {}, body=frame, url=self._endpoint)
        async with request as response:
            # The server has taken it: the answer comes on the stream, whatever comes here.
            self._answered.setdefault(wire_id, None)
            await skip_body(response)


class _Id(Struct):
    id: Any = None


_id_decoder = msgspec.json.Decoder(_Id)
