"""Streamable HTTP, in both of its shapes: every message a POST, every request its own stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Literal

import aiohttp
from yarl import URL

from holdfast.boundary import (
    Delivered,
    Drained,
    Dress,
    Expired,
    Generation,
    Link,
    Opened,
    Report,
    WireId,
)
from holdfast.config import Limits
from holdfast.errors import ProtocolError, TransportError, ValidationError
from holdfast.transports.sse import SseLink
from holdfast.transports.web import EVENTS, JSON, Headers, Refusal, Settings, Web, content_type
from holdfast.wire.framing import Event, Events, FrameTooLarge

log = logging.getLogger("holdfast")

FAREWELL: Final = 1.0
"""Seconds for the server to hear that the session ends."""
LINGER: Final = 2.0
"""Seconds for a stream to end by itself after its answer, so that its connection is used again."""
RETRY: Final = 1.0
"""Seconds before a broken stream is taken up again, where the server does not say."""
MOST_RESUMPTIONS: Final = 5
"""Attempts at a broken stream that bring nothing new."""
LONGEST_PAUSE: Final = 30.0
OWN_STREAM: Final = WireId(0)
"""The stream of what the server says of its own accord."""
_NO_STREAM: Final = frozenset({400, 404, 405, 406, 501})
_NOT_FOUND: Final = 404
_NO_CONTENT: Final = frozenset({202, 204})

Manner = Literal["auto", "streamable", "sse"]


class Http:
    """How to reach a server by URL: a target, and the transport that leads to it.

    ``headers`` is a mapping, or a function, sync or async, that gives one for each request.
    They, and all credentials, stay with the URL's origin. ``transport="sse"`` chooses the
    transport of 2024-11-05, which is otherwise found out.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | None = None,
        transport: Manner = "auto",
        ca: str | None = None,
        cert: str | tuple[str, str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        connections: int = 100,
    ) -> None:
        if transport not in ("auto", "streamable", "sse"):
            raise ValidationError(f"transport={transport!r}: must be 'auto', 'streamable' or 'sse'")
        self._url = _checked(url)
        self._transport = transport
        self._settings = Settings(
            url=url,
            headers=headers,
            ca=ca,
            cert=cert,
            proxy=proxy,
            trust_env=trust_env,
            connections=connections,
        )

    def __repr__(self) -> str:
        return f"Http({str(self._url.with_user(None))!r})"

    @property
    def name(self) -> str:
        return self._url.authority.rpartition("@")[2]

    @property
    def key(self) -> Hashable | None:
        return ("http", str(self._url))

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        manner: str | None = None,
    ) -> Link:
        try:
            web = Web(self._settings, limits.frame_bytes)
        except OSError as error:
            raise TransportError(f"the TLS settings cannot be used: {error}") from error
        if manner == "sse" or self._transport == "sse":
            return SseLink(web, generation, report)
        return HttpLink(web, generation, report)


def _checked(url: str) -> URL:
    try:
        parsed = URL(url)
    except ValueError as error:
        raise ValidationError(f"target {url!r}: not a URL: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValidationError(f"target {url!r}: a URL begins with http:// or https:// and a host")
    return parsed


class HttpLink:
    """One conversation with one endpoint."""

    def __init__(self, web: Web, generation: Generation, report: Callable[[Report], None]) -> None:
        self._web = web
        self._generation = generation
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._exchanges: dict[WireId, asyncio.Task[None]] = {}
        self._finished: set[WireId] = set()
        self._others: set[asyncio.Task[None]] = set()
        self._own: asyncio.Task[None] | None = None
        self._gate: asyncio.Task[None] | None = None
        self._closed = False
        self._loop.call_soon(report, Opened(generation, streams=True))

    def __repr__(self) -> str:
        return f"<HttpLink #{self._generation} {self._web.origin} {len(self._exchanges)} streams>"

    # What the driver asks for

    def send(self, frame: bytes, wire_id: WireId | None, dress: Dress | None = None) -> bool:
        if self._closed:
            return True
        worn = dress or Dress({})
        if wire_id is None:
            task = self._spawn(self._tell(frame, worn))
            if worn.first:
                self._gate = task
        else:
            task = self._loop.create_task(self._exchange(frame, wire_id, worn))
            self._exchanges[wire_id] = task
        return True

    def listen(self, dress: Dress) -> None:
        if self._own is not None:
            self._own.cancel()
        self._own = self._spawn(self._listen(dress))

    def withdraw(self, wire_id: WireId) -> bool:
        task = self._exchanges.pop(wire_id, None)
        if task is not None:
            task.cancel()
        return False

    def finish(self, wire_id: WireId) -> None:
        task = self._exchanges.get(wire_id)
        if task is not None and wire_id not in self._finished:
            self._finished.add(wire_id)
            self._loop.call_later(LINGER, task.cancel)

    def unread(self) -> bool:
        return False

    def close(self, farewell: Dress | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._cancel_all()
            self._ending = self._loop.create_task(self._end(farewell))

    def kill(self) -> None:
        self._closed = True
        self._cancel_all()
        self._web.drop()

    # Requests

    async def _exchange(self, frame: bytes, wire_id: WireId, dress: Dress) -> None:
        """One request and all that comes on its stream."""
        try:
            await self._greeted()
            events = Events(self._web.limit)
            try:
                async with self._web.request("POST", dress.headers, body=frame) as response:
                    await self._answer(response, wire_id, events)
            except Refusal:
                if not (dress.resume and events.last_id):
                    raise
            if wire_id not in self._finished:
                await self._resume(wire_id, dress, events)
        except Refusal as refusal:
            if wire_id not in self._finished:
                self._report(refusal.report(self._generation, wire_id))
        finally:
            self._exchanges.pop(wire_id, None)
            self._finished.discard(wire_id)

    async def _greeted(self) -> None:
        """What the server must hear first has been heard."""
        if self._gate is not None and not self._gate.done():
            await asyncio.wait([self._gate])

    async def _answer(
        self, response: aiohttp.ClientResponse, wire_id: WireId, events: Events
    ) -> None:
        kind = content_type(response)
        session = response.headers.get("Mcp-Session-Id")
        if kind == EVENTS:
            await self._events(response, wire_id, events, session)
            return
        body = await self._web.read(response)
        if kind != JSON:
            raise self._web.wrong_content(response, body)
        self._deliver(body, wire_id, session)
        if wire_id not in self._finished:
            raise Refusal(ProtocolError(f"{self._web.origin} gave no answer in its response"))

    async def _events(
        self,
        response: aiohttp.ClientResponse,
        wire_id: WireId,
        events: Events,
        session: str | None = None,
    ) -> None:
        async for chunk in self._web.chunks(response):
            try:
                found = events.feed(chunk)
            except FrameTooLarge as error:
                raise Refusal(self._web.too_large(error)) from None
            data = lines(found)
            if data:
                self._report(Delivered(self._generation, data, wire_id, session))

    def _deliver(self, body: bytes, wire_id: WireId, session: str | None) -> None:
        self._report(Delivered(self._generation, one_line(body), wire_id, session))

    async def _resume(self, wire_id: WireId, dress: Dress, events: Events) -> None:
        """Take a stream up where it broke, as long as that brings anything new."""
        fruitless = 0
        while wire_id not in self._finished:
            if not dress.resume or events.last_id is None or fruitless >= MOST_RESUMPTIONS:
                text = f"{self._web.origin} ended the stream before the answer"
                raise Refusal(TransportError(text))
            seen = events.last_id
            await asyncio.sleep(RETRY if events.retry is None else events.retry)
            try:
                await self._reopen(wire_id, dress, events)
            except Refusal as refusal:
                if refusal.status is not None:
                    raise
                log.debug("%s: %s", self._web.origin, refusal)
            fruitless = 0 if events.last_id != seen else fruitless + 1

    async def _reopen(self, wire_id: WireId, dress: Dress, events: Events) -> None:
        headers = {**dress.headers, "Accept": EVENTS}
        if events.last_id is not None:
            headers["Last-Event-ID"] = events.last_id
        async with self._web.request("GET", headers) as response:
            if content_type(response) != EVENTS:
                raise self._web.wrong_content(response, b"")
            await self._events(response, wire_id, events)

    # Everything else

    async def _tell(self, frame: bytes, dress: Dress) -> None:
        """A notification or an answer of ours: nothing comes back but a status."""
        try:
            async with self._web.request("POST", dress.headers, body=frame) as response:
                await self._web.read(response, 64 * 1024)
        except Refusal as refusal:
            log.debug("%s: a message was not taken: %s", self._web.origin, refusal)

    async def _listen(self, dress: Dress) -> None:
        """Hold the stream of what the server says of its own accord, where it offers one."""
        await self._greeted()
        events = Events(self._web.limit)
        pause = RETRY
        while True:
            try:
                await self._reopen(OWN_STREAM, dress, events)
                pause = RETRY
            except Refusal as refusal:
                if refusal.status == _NOT_FOUND and "Mcp-Session-Id" in dress.headers:
                    self._report(Expired(self._generation))
                    return
                if refusal.status in _NO_STREAM or isinstance(refusal.error, ProtocolError):
                    return
                log.debug("%s: %s", self._web.origin, refusal)
            await asyncio.sleep(pause if events.retry is None else events.retry)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

    def _cancel_all(self) -> None:
        for task in [*self._exchanges.values(), *self._others]:
            task.cancel()

    async def _end(self, farewell: Dress | None) -> None:
        try:
            if farewell is not None:
                async with asyncio.timeout(FAREWELL):
                    await self._delete(farewell)
        except TimeoutError:
            log.debug("%s: no answer to the end of the session", self._web.origin)
        finally:
            await self._web.close()
            self._report(Drained(self._generation))

    async def _delete(self, farewell: Dress) -> None:
        try:
            async with self._web.request("DELETE", farewell.headers):
                pass
        except Refusal as refusal:
            log.debug("%s: the session was not deleted: %s", self._web.origin, refusal)


def one_line(body: bytes) -> bytes:
    """A JSON text as one line: outside of strings its line ends are only white space."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def lines(events: list[Event]) -> bytes:
    """The messages of some events, one a line; priming events have no data."""
    return b"".join(one_line(event.data) for event in events if event.data.strip())
