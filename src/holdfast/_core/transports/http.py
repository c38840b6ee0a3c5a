"""Streamable HTTP, in both of its shapes: every message a POST, every request its own stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Literal

import aiohttp
from msgspec import Struct
from yarl import URL

from holdfast._core.boundary import (
    Delivered,
    Drained,
    Expired,
    Generation,
    Link,
    Meaning,
    Opened,
    Refused,
    Report,
    StreamOptions,
    Traits,
    WireId,
)
from holdfast._core.transports.http_client import (
    BROKEN,
    EVENTS,
    JSON,
    LINGER,
    Headers,
    Settings,
    Web,
    content_type,
)
from holdfast._core.transports.sse import SseLink
from holdfast._core.wire.framing import FrameTooLarge, SseParser, one_line
from holdfast.errors import ProtocolError, TransportError, ValidationError
from holdfast.policies import Limits

log: logging.Logger = logging.getLogger("holdfast")

FAREWELL: Final = 1.0
"""Seconds for the server to hear that the session ends."""
RETRY: Final = 1.0
"""Seconds before a broken stream is taken up again, where the server does not say."""
SHORTEST_PAUSE: Final = 0.05
"""Seconds, whatever the server says: a stream that ends at once must not become a storm."""
LONGEST_PAUSE: Final = 30.0
MOST_FAILURES: Final = 5
"""Failed connections in a row after which a broken stream is not taken up again."""
OWN_STREAM: Final = WireId(0)
_NO_STREAM: Final = frozenset(
    {Meaning.NO_SUCH_SESSION, Meaning.NOT_UNDERSTOOD, Meaning.REJECTED, Meaning.UNREADABLE}
)

Variant = Literal["auto", "streamable", "sse"]


class Http:
    """How to reach a server by URL: a target, and the transport that leads to it.

    ``headers`` is a mapping, or a function, sync or async, that gives one for each request.
    They, and all credentials, stay with the URL's origin. ``transport="sse"`` chooses the
    transport of 2024-11-05, which is otherwise found out; ``sse_endpoint`` and
    ``message_endpoint`` are its two places below the URL, for a server that does not name them.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | None = None,
        transport: Variant = "auto",
        sse_endpoint: str | None = None,
        message_endpoint: str | None = None,
        ca: str | None = None,
        cert: str | tuple[str, str] | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        connections: int = 100,
    ) -> None:
        if transport not in ("auto", "streamable", "sse"):
            raise ValidationError(f"transport={transport!r}: must be 'auto', 'streamable' or 'sse'")
        self._url = _below(_checked(url), sse_endpoint)
        self._messages = None if message_endpoint is None else _below(self._url, message_endpoint)
        if sse_endpoint is not None or message_endpoint is not None:
            transport = "sse"
        self._transport = transport
        self._settings = Settings(
            url=str(self._url),
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

    @property
    def traits(self) -> Traits:
        own = self._settings.headers
        return Traits(None if callable(own) else repr(sorted((own or {}).items())))

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> Link:
        if variant == "sse" and self._transport == "streamable":
            text = f"{self.name} is not tried as an HTTP+SSE server: transport='streamable'"
            raise TransportError(text)
        try:
            web = Web(self._settings, limits.frame_bytes)
        except OSError as error:
            raise TransportError(f"the TLS settings cannot be used: {error}") from error
        if variant == "sse" or self._transport == "sse":
            return SseLink(web, generation, report, self._messages)
        return HttpLink(web, generation, report)


def _below(url: URL, place: str | None) -> URL:
    """A place at the same origin: another one would be sent our credentials."""
    found = url if place is None else url.join(URL(place))
    if found.origin() != url.origin():
        raise ValidationError(f"endpoint {place!r}: must be of the same origin as {url.origin()}")
    return found


def _checked(url: str) -> URL:
    try:
        parsed = URL(url)
    except ValueError as error:
        raise ValidationError(f"target {url!r}: not a URL: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValidationError(f"target {url!r}: a URL begins with http:// or https:// and a host")
    return parsed


class Stream(Struct):
    """What one request, or the server's own stream, keeps over its connections."""

    wire_id: WireId
    options: StreamOptions
    events: SseParser
    session: str | None = None
    """The name in the head of the first connection."""
    stood: bool = False
    """The server has opened it at least once."""
    heard: bool = False
    """Its connection has brought something."""
    mute: int = 0
    """Connections in a row that brought nothing."""

    def pause(self) -> float:
        """Seconds before the next connection: the server's word, and longer if it stays mute."""
        self.mute = 0 if self.heard else self.mute + 1
        self.heard = False
        said = RETRY if self.events.retry is None else self.events.retry
        grown = RETRY * 2.0 ** min(self.mute - 2, 10) if self.mute > 1 else SHORTEST_PAUSE
        return max(said, min(grown, LONGEST_PAUSE))


class HttpLink:
    """One conversation with one endpoint."""

    def __init__(self, web: Web, generation: Generation, report: Callable[[Report], None]) -> None:
        self._web = web
        self._generation = generation
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._exchanges: dict[WireId, asyncio.Task[None]] = {}
        self._finished: dict[WireId, asyncio.TimerHandle | None] = {}
        """Answered requests whose streams have not ended yet, and when they will be ended."""
        self._others: set[asyncio.Task[None]] = set()
        self._own: asyncio.Task[None] | None = None
        self._gate: asyncio.Event | None = None
        self._closed = False
        self._loop.call_soon(report, Opened(generation, streams=True))

    def __repr__(self) -> str:
        return f"<HttpLink #{self._generation} {self._web.origin} {len(self._exchanges)} streams>"

    # What the driver asks for

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        if self._closed:
            return True
        options = options or StreamOptions({})
        if wire_id is None:
            arrived = asyncio.Event()
            self._spawn(self._tell(frame, options, arrived))
            if options.first:
                self._gate = arrived
        else:
            task = self._loop.create_task(self._exchange(frame, wire_id, options))
            self._exchanges[wire_id] = task
        return True

    def listen(self, options: StreamOptions) -> None:
        if self._own is not None:
            self._own.cancel()
        self._own = self._spawn(self._listen(options))

    def withdraw(self, wire_id: WireId) -> bool:
        task = self._exchanges.pop(wire_id, None)
        if task is not None:
            task.cancel()
        return False

    def finish(self, wire_id: WireId) -> None:
        if wire_id in self._exchanges:
            self._finished.setdefault(wire_id, None)

    def _let_go(self, wire_id: WireId) -> None:
        """A stream that goes on after its answer has a moment left."""
        if wire_id in self._finished and self._finished[wire_id] is None:
            task = self._exchanges[wire_id]
            self._finished[wire_id] = self._loop.call_later(LINGER, task.cancel)

    def unread(self) -> bool:
        return False

    def close(self, farewell: StreamOptions | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._ending = self._loop.create_task(self._end(farewell, self._cancel_all()))

    def kill(self) -> None:
        self._closed = True
        self._cancel_all()
        self._web.drop()

    # Requests

    async def _exchange(self, frame: bytes, wire_id: WireId, options: StreamOptions) -> None:
        """One request and all that comes on its stream."""
        stream = Stream(wire_id, options, SseParser(self._web.limit))
        try:
            await self._greeted()
            async with self._web.slots:
                await self._ask(frame, stream)
            if wire_id not in self._finished:
                await self._resume(stream)
        except Refused as refusal:
            if wire_id not in self._finished:
                self._report(refusal.of(self._generation, wire_id))
        finally:
            self._exchanges.pop(wire_id, None)
            timer = self._finished.pop(wire_id, None)
            if timer is not None:
                timer.cancel()

    async def _greeted(self) -> None:
        """What the server must hear first has been heard."""
        if self._gate is not None and not self._gate.is_set():
            await self._gate.wait()

    async def _ask(self, frame: bytes, stream: Stream) -> None:
        try:
            response = await self._web.open("POST", stream.options.headers, frame)
            try:
                await self._answer(response, stream)
            except BROKEN as error:
                raise self._web.broken(error) from error
            finally:
                response.release()
        except Refused as refusal:
            if not (refusal.broken and self._resumable(stream)):
                raise
            log.debug("%s: %s", self._web.origin, refusal)

    async def _answer(self, response: aiohttp.ClientResponse, stream: Stream) -> None:
        kind = content_type(response)
        stream.session = response.headers.get("Mcp-Session-Id")
        if kind == EVENTS:
            await self._events(response, stream)
            return
        body = await self._web.read(response)
        if kind != JSON:
            raise self._web.wrong_content(response, body)
        self._deliver(one_line(body), stream)
        if stream.wire_id not in self._finished:
            text = f"{self._web.origin} gave no answer in its response"
            raise Refused(ProtocolError(text), Meaning.UNANSWERED)

    async def _events(self, response: aiohttp.ClientResponse, stream: Stream) -> None:
        stream.stood = True
        async for chunk in self._web.chunks(response):
            stream.heard = True
            try:
                found = stream.events.feed(chunk)
            except FrameTooLarge as error:
                raise Refused(self._web.too_large(error), Meaning.UNREADABLE) from None
            data = b"".join(event.line for event in found)
            if data:
                self._deliver(data, stream)
                self._let_go(stream.wire_id)

    def _deliver(self, data: bytes, stream: Stream) -> None:
        self._report(Delivered(self._generation, data, stream.wire_id, stream.session))

    def _resumable(self, stream: Stream) -> bool:
        return stream.options.resume and stream.events.last_id is not None

    async def _resume(self, stream: Stream) -> None:
        """Take a stream up where it broke, or where the server has us ask again."""
        failures = 0
        while stream.wire_id not in self._finished:
            if not self._resumable(stream) or failures >= MOST_FAILURES:
                text = f"{self._web.origin} ended the stream before the answer"
                raise Refused(TransportError(text), Meaning.UNANSWERED)
            await asyncio.sleep(stream.pause())
            try:
                await self._reopen(stream)
                failures = 0
            except Refused as refusal:
                if not refusal.broken:
                    raise self._lost_stream(refusal, stream) from refusal
                log.debug("%s: %s", self._web.origin, refusal)
                failures += 1

    def _lost_stream(self, refusal: Refused, stream: Stream) -> Refused:
        """The stream is gone, but its request was taken: it must not be sent again."""
        if refusal.meaning is Meaning.NO_SUCH_SESSION:
            self._expired(stream)
        return Refused(refusal.error, Meaning.UNANSWERED)

    def _expired(self, stream: Stream) -> None:
        self._report(Expired(self._generation, stream.options.headers["Mcp-Session-Id"]))

    async def _reopen(self, stream: Stream) -> None:
        stream.events.restart()
        headers = {**stream.options.headers, "Accept": EVENTS}
        if stream.events.last_id is not None:
            headers["Last-Event-ID"] = stream.events.last_id
        async with self._web.request("GET", headers) as response:
            if content_type(response) != EVENTS:
                raise self._web.wrong_content(response, b"")
            await self._events(response, stream)

    # Everything else

    async def _tell(self, frame: bytes, options: StreamOptions, arrived: asyncio.Event) -> None:
        """A notification or an answer of ours: nothing comes back but a status."""
        try:
            async with self._web.request("POST", options.headers, body=frame) as response:
                arrived.set()
                await self._web.skip(response)
        except Refused as refusal:
            log.debug("%s: a message was not taken: %s", self._web.origin, refusal)
        finally:
            arrived.set()

    async def _listen(self, options: StreamOptions) -> None:
        """Hold the stream of what the server says of its own accord, where it offers one."""
        await self._greeted()
        stream = Stream(OWN_STREAM, options, SseParser(self._web.limit))
        while True:
            try:
                await self._reopen(stream)
            except Refused as refusal:
                # Some answer 404 for want of a stream: only one that stood can tell of the session.
                if stream.stood and refusal.meaning is Meaning.NO_SUCH_SESSION:
                    self._expired(stream)
                    return
                if refusal.meaning in _NO_STREAM:
                    return
                log.debug("%s: %s", self._web.origin, refusal)
            await asyncio.sleep(stream.pause())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

    def _cancel_all(self) -> list[asyncio.Task[None]]:
        tasks = [*self._exchanges.values(), *self._others]
        for task in tasks:
            task.cancel()
        return tasks

    async def _end(self, farewell: StreamOptions | None, tasks: list[asyncio.Task[None]]) -> None:
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=FAREWELL)
            if farewell is not None:
                async with asyncio.timeout(FAREWELL):
                    await self._delete(farewell)
        except TimeoutError:
            log.debug("%s: no answer to the end of the session", self._web.origin)
        finally:
            await self._web.close()
            self._report(Drained(self._generation))

    async def _delete(self, farewell: StreamOptions) -> None:
        try:
            async with self._web.request("DELETE", farewell.headers):
                pass
        except Refused as refusal:
            log.debug("%s: the session was not deleted: %s", self._web.origin, refusal)
