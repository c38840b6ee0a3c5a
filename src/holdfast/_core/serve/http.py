"""The server side over Streamable HTTP, by aiohttp.web.

A request of the stateless era is a session of its own: it ends with its response, or with the
connection. In the handshake era ``initialize`` opens a session with an id; what does not belong
to a request goes to the stream that the client opens with GET.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import UNSET

from holdfast._core.eras import headers
from holdfast._core.eras.revisions import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    PROTOCOL_VERSION,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSIONS,
)
from holdfast._core.eras.serving import Json, StatelessServing, is_stateless, known_version
from holdfast._core.serve.runner import LoopRunner
from holdfast._core.serve.unread import has_room, may_wait
from holdfast._core.server.message import ClientMessage, Id, decode, meta_of, read, read_message
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.wire.codes import METHOD_NOT_FOUND, PARSE_ERROR, RequestError
from holdfast._core.wire.framing import one_line
from holdfast._core.wire.jsonrpc import decode_error_object, encode

log: logging.Logger = logging.getLogger("holdfast")

Handle: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_SESSIONS: Final = 1_000
PART: Final = 64 * 1024
"""Bytes of an answer that are written at once."""
LARGEST_BODY: Final = 64 * 1024 * 1024
MOST_OPEN: Final = 1_000
"""Requests and streams that are open at once."""
KEEP_ALIVE: Final = 15.0
"""Seconds without a message after which a stream gets a comment: idle ones are cut on the way."""


STATELESS_STATUSES: Final[Mapping[int, int]] = {
    METHOD_NOT_FOUND: 404,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""2026-07-28 basic/transports/streamable-http, Protocol Version Header; basic/index, _meta."""


class Endpoint(Protocol):
    """What is served at one path."""

    def session(self) -> Server:
        """Return what a new session of the handshake era is served."""

    def stateless(self) -> Server:
        """Return what requests of the stateless era are served."""


class _Alike(NamedTuple):
    """Serves everybody the same server."""

    server: Server

    def session(self) -> Server:
        return self.server

    def stateless(self) -> Server:
        return self.server


class _Written(asyncio.Queue[bytes]):
    """Messages for one response. An empty one wakes its reader: a request is not answered."""

    reader: asyncio.Task[Any] | None = None
    """The task of the stream that they go to, if any."""
    is_over: bool = False
    """Nothing more comes, because the server or the session ends."""
    is_whole: Callable[[], bool] = staticmethod(lambda: False)
    """Returns whether no request waits any more for an answer among them."""
    size: int = 0
    """The bytes that wait."""

    def _put(self, line: bytes) -> None:
        super()._put(line)
        self.size += len(line)

    def _get(self) -> bytes:
        line = super()._get()
        self.size -= len(line)
        return line

    def add(self, line: bytes) -> None:
        """Add a message; notifications are dropped while the client does not read."""
        if may_wait(line, self.qsize(), self.size):
            self.put_nowait(line)

    def keep(self, line: bytes) -> None:
        """Add a message that belongs to no request; the oldest go if nobody reads them."""
        while not has_room(line, self.qsize(), self.size):
            self.get_nowait()
        self.put_nowait(line)

    def end(self) -> None:
        """End the response, after what is there."""
        self.is_over = True
        self.put_nowait(b"")

    async def next(self) -> bytes | None:
        """Return the next message; None after the last one."""
        while not (self.empty() and self.is_whole()):
            line = await self.get()
            if line:
                return line
            if self.is_over:
                break
        return None


class _Connection(NamedTuple):
    """A session of the handshake era, and the messages that wait for its GET stream."""

    path: str
    session: ServerSession
    waiting: _Written

    def close(self) -> None:
        self.session.close()
        self.waiting.end()


class HttpServer:
    """Serves servers on loopback, or on another address to those who have a token.

    Args:
        server: What is served, at the path ``/mcp``; or what is served at each of some paths.
        host: The address to listen on.
        token: The bearer token that every request must have; None: none is needed.
    """

    def __init__(
        self,
        server: Server | Mapping[str, Endpoint],
        host: str = "127.0.0.1",
        token: str | None = None,
    ) -> None:
        endpoints = {"/mcp": _Alike(server)} if isinstance(server, Server) else server
        self._endpoints: Mapping[str, Endpoint] = endpoints
        self._host = host
        self._token = token
        self._connections: OrderedDict[str, _Connection] = OrderedDict()
        """Handshake sessions by id, the one used last at the end."""
        self._open: set[_Written] = set()
        """The responses that are being written."""
        self._numbers = itertools.count(1)
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._admit])
        app.router.add_post("/{path:.*}", self._post)
        app.router.add_get("/{path:.*}", self._get, allow_head=False)
        app.router.add_delete("/{path:.*}", self._delete)
        # A client ends a stateless request by closing its connection.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0, logger=log
        )

    def __repr__(self) -> str:
        return f"<HttpServer {self._host} {len(self._connections)} sessions>"

    async def start(self, port: int = 0) -> int:
        """Listen, and return the port.

        Raises:
            OSError: The address cannot be used.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, port).start()
        except BaseException:
            await self._runner.cleanup()
            raise
        address: tuple[Any, ...] = self._runner.addresses[0]
        return int(address[1])

    async def close(self) -> None:
        """End every session and stop listening."""
        while self._connections:
            self._connections.popitem()[1].close()
        for written in self._open:
            written.end()
        await self._runner.cleanup()

    # Who may

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handle) -> web.StreamResponse:
        """Refuse foreign hosts and origins, those without the token, and too many.

        A page in a browser can reach loopback by DNS rebinding, but cannot forge these headers
        (Transports: Security Warning).
        """
        if not _is_welcome(request, self._host):
            raise web.HTTPForbidden(text="Host or Origin is not accepted")
        if self._token is not None:
            scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
            proof = sent.strip().encode(errors="surrogateescape")
            is_right = hmac.compare_digest(proof, self._token.encode())
            # RFC 9110 section 11.1: the case of a scheme's name does not matter.
            if scheme.lower() != "bearer" or not is_right:
                needed = {"WWW-Authenticate": "Bearer"}
                raise web.HTTPUnauthorized(text="a bearer token is needed", headers=needed)
        if request.path not in self._endpoints:
            raise web.HTTPNotFound(text=f"nothing is served at {request.path}")
        if len(self._open) >= MOST_OPEN:
            raise web.HTTPServiceUnavailable(text=f"{MOST_OPEN} requests are open already")
        return await handler(request)

    # What is asked

    async def _post(self, request: web.Request) -> web.StreamResponse:
        try:
            body = one_line(await request.read())
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(text="the body cannot be read as it is encoded") from None
        message = read(body)[0]
        if isinstance(message, RequestError):
            if message.code == PARSE_ERROR:
                return _refused(message.request_id, message)
        elif is_stateless(meta := meta_of(message.fields()), VERSIONS):
            server = self._endpoints[request.path].stateless()
            if is_stateless(meta, server.versions):
                return await self._post_stateless(request, server, message, meta)
        if isinstance(message, ClientMessage) and message.method == "initialize":
            return await self._post_initialize(request, message)
        if _is_stateless_by_header_alone(request, message):
            return _refused(message.request_id, _mismatch(headers.VERSION))
        session = self._connection(request).session
        batches = session.era is not None and session.era.batches
        return await self._exchange(request, session, read(body, batches=batches))

    async def _post_stateless(
        self, request: web.Request, server: Server, message: ClientMessage, meta: Json
    ) -> web.StreamResponse:
        version, method = str(meta.get(PROTOCOL_VERSION)), str(message.method)
        fields = message.fields()
        params = {name: decode(fields[name]) for name in headers.NAMING & fields.keys()}
        is_request = message.request_id is not None
        try:
            # 2026-07-28 basic/transports/streamable-http, Sending Messages: "header requirements
            # for notification POSTs are not defined by this revision".
            wrong = headers.mismatch(request.headers, version, method, params)
            if wrong is not None and (is_request or wrong in request.headers):
                raise _mismatch(wrong)
            if is_request:
                # The same, basic/index: what lacks a required field is 400 as well.
                StatelessServing(meta).check(server.versions)
        except RequestError as fault:
            return _refused(message.request_id, fault)
        # What belongs to no request is dropped: the stateless era has no channel for it.
        session = ServerSession(server, lambda line: None, LoopRunner(), next(self._numbers))
        try:
            return await self._exchange(request, session, [message], statuses=STATELESS_STATUSES)
        finally:
            session.close()

    async def _post_initialize(
        self, request: web.Request, message: ClientMessage
    ) -> web.StreamResponse:
        waiting = _Written()
        server = self._endpoints[request.path].session()
        session = ServerSession(server, waiting.keep, LoopRunner(), next(self._numbers))
        name = secrets.token_urlsafe(24)
        try:
            return await self._exchange(request, session, [message], {headers.SESSION: name})
        finally:
            if session.era is None:
                session.close()
            else:
                self._connections[name] = _Connection(request.path, session, waiting)
            while len(self._connections) > MOST_SESSIONS:
                self._connections.popitem(last=False)[1].close()

    async def _get(self, request: web.Request) -> web.StreamResponse:
        waiting = self._connection(request).waiting
        if waiting.reader is not None:
            # A client that comes back may not have closed the connection that it lost.
            waiting.reader.cancel()
        waiting.reader = asyncio.current_task()
        self._open.add(waiting)
        try:
            return await _stream(request, waiting, {})
        finally:
            if waiting.reader is asyncio.current_task():
                waiting.reader = None
                self._open.discard(waiting)

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self._connection(request).close()
        del self._connections[request.headers[headers.SESSION]]
        return web.Response(status=204)

    def _connection(self, request: web.Request) -> _Connection:
        if not known_version(request.headers.get(headers.VERSION)):
            raise web.HTTPBadRequest(text=f"{headers.VERSION} is not supported")
        name = request.headers.get(headers.SESSION)
        if name is None:
            raise web.HTTPBadRequest(text=f"{headers.SESSION} is missing")
        connection = self._connections.get(name)
        if connection is None or connection.path != request.path:
            raise web.HTTPNotFound(text="no such session")
        self._connections.move_to_end(name)
        return connection

    async def _exchange(
        self,
        request: web.Request,
        session: ServerSession,
        messages: list[ClientMessage | RequestError],
        extra: Mapping[str, str] | None = None,
        statuses: Mapping[int, int] | None = None,
    ) -> web.StreamResponse:
        """Answer a POST: with JSON if the response is all there is, else with a stream.

        ``statuses`` are those of errors that have another than 200, by their codes.
        """
        written = _Written()
        self._open.add(written)
        try:
            for message in messages:
                session.take(message, written.add)
            ids = _requests(messages)
            if not ids and written.empty():
                return web.Response(status=202)
            written.is_whole = lambda: not any(session.is_running(id_, written.add) for id_ in ids)
            return await _answer(request, written, extra or {}, statuses or {})
        finally:
            self._open.discard(written)


def _is_welcome(request: web.Request, bound: str) -> bool:
    """Return whether a request names this machine; beyond loopback, a token proves more."""
    origin = request.headers.get("Origin")
    try:
        host = urlsplit(f"//{request.host}").hostname
        origins = [] if origin is None else [urlsplit(origin).hostname]
    except ValueError:
        return False
    if is_loopback(bound):
        return {*LOOPBACK, bound}.issuperset([host, *origins])
    return {*LOOPBACK, host}.issuperset(origins)


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _requests(messages: list[ClientMessage | RequestError]) -> list[Id]:
    """Return the ids of the requests among some messages."""
    readable = [message for message in messages if isinstance(message, ClientMessage)]
    ids = [message.request_id for message in readable if message.method is not UNSET]
    return [request_id for request_id in ids if request_id is not None]


async def _answer(
    request: web.Request,
    written: _Written,
    extra: Mapping[str, str],
    statuses: Mapping[int, int],
) -> web.StreamResponse:
    """Answer with JSON if one message is all there is, else with a stream; it may have none."""
    line = await written.next()
    if line is None and written.is_over:
        return web.Response(status=503, text="the server ends")
    if line is not None and written.empty() and written.is_whole():
        return await _json(request, line, extra, statuses.get(_error_code(line), 200))
    return await _stream(request, written, extra, line)


async def _stream(
    request: web.Request,
    written: _Written,
    extra: Mapping[str, str],
    line: bytes | None = None,
) -> web.StreamResponse:
    """Answer with one message, if there is one, and with those that follow."""
    # 2026-07-28 basic/transports/streamable-http: proxies should not hold events back.
    unbuffered = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    response = web.StreamResponse(headers={**unbuffered, **extra})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    if line is not None:
        await _write_event(response, line)
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE):
                line = await written.next()
        except TimeoutError:
            await response.write(b":\n\n")
            continue
        if line is None:
            return response
        await _write_event(response, line)


def _error_code(line: bytes) -> int:
    """Return the code of an error; 0 for any other message, and for what is large."""
    message = read_message(line) if len(line) <= PART else None
    if not isinstance(message, ClientMessage) or message.error is UNSET:
        return 0
    fault = decode_error_object(message.error)
    return fault.code if fault is not None and isinstance(fault.code, int) else 0


async def _json(
    request: web.Request, line: bytes, extra: Mapping[str, str], status: int
) -> web.StreamResponse:
    """Answer with one message."""
    if len(line) <= PART:
        kind = "application/json"
        return web.Response(body=line, status=status, content_type=kind, headers=extra)
    response = web.StreamResponse(headers=extra)
    response.content_type = "application/json"
    response.content_length = len(line)
    await response.prepare(request)
    await _write_parts(response, line)
    return response


async def _write_event(stream: web.StreamResponse, line: bytes) -> None:
    if len(line) <= PART:
        await stream.write(b"data: " + line.rstrip(b"\n") + b"\n\n")
        return
    await stream.write(b"data: ")
    await _write_parts(stream, line)
    await stream.write(b"\n" if line.endswith(b"\n") else b"\n\n")


async def _write_parts(response: web.StreamResponse, data: bytes) -> None:
    """Write what is large in parts: the transport copies what the client has not read yet."""
    for start in range(0, len(data), PART):
        await response.write(data[start : start + PART])


def _is_stateless_by_header_alone(
    request: web.Request, message: ClientMessage | RequestError
) -> bool:
    """Return whether the header names that era and the body does not.

    If both do, and it is not served, the client is to find out that there is an older one.
    """
    if request.headers.get(headers.VERSION) not in STATELESS:
        return False
    if isinstance(message, RequestError):
        return True
    return not is_stateless(meta_of(message.fields()), VERSIONS)


def _mismatch(header: str) -> RequestError:
    return RequestError(HEADER_MISMATCH, f"header {header} does not match the body")


def _refused(request_id: Id | None, error: RequestError) -> web.Response:
    answered = {} if request_id is None else {"id": request_id}
    body = encode({"jsonrpc": "2.0", **answered, "error": error.fault})
    return web.Response(body=body, status=400, content_type="application/json")
