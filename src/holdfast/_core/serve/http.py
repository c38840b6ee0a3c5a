"""The server side over Streamable HTTP, by aiohttp.web.

A request of the stateless era is a session of its own: it ends with its response, or with the
connection. In the handshake era ``initialize`` opens a session with an id; what does not belong
to a request goes to the stream that the client opens with GET.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import UNSET

from holdfast._core.eras import headers
from holdfast._core.eras.revisions import HEADER_MISMATCH, PROTOCOL_VERSION, VERSIONS
from holdfast._core.eras.serving import Json, is_stateless, known_version
from holdfast._core.serve.runner import LoopRunner
from holdfast._core.server.message import ClientMessage, decode, meta_of, read
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.wire.codes import PARSE_ERROR, RequestError
from holdfast._core.wire.jsonrpc import encode

Handle: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_SESSIONS: Final = 1_000
MOST_WAITING: Final = 1_000
LARGEST_BODY: Final = 64 * 1024 * 1024


MOST_OPEN: Final = 1_000
"""Requests and streams that are open at once."""
_END: Final = b""
"""The last message of a response that ends with the server."""


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
    """Messages for one response."""

    reader: asyncio.Task[Any] | None = None
    """The task of the stream that they go to, if any."""

    def add(self, line: bytes) -> None:
        """Add a message; notifications are dropped while the client does not read."""
        if self.qsize() < MOST_WAITING or b'"method":"notifications/' not in line[:200]:
            self.put_nowait(line)

    def is_whole(self, session: ServerSession, ids: list[int | str]) -> bool:
        """Return whether nothing more will come for these requests."""
        return self.empty() and not any(map(session.is_running, ids))

    def keep(self, line: bytes) -> None:
        """Add a message that belongs to no request; the oldest goes if nobody reads them."""
        if self.qsize() >= MOST_WAITING:
            self.get_nowait()
        self.put_nowait(line)


class _Connection(NamedTuple):
    """A session of the handshake era, and the messages that wait for its GET stream."""

    path: str
    session: ServerSession
    waiting: _Written

    def close(self) -> None:
        self.session.close()
        self.waiting.put_nowait(_END)


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
            app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0
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
            written.put_nowait(_END)
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
            sent = request.headers.get("Authorization", "").encode()
            if not hmac.compare_digest(sent, f"Bearer {self._token}".encode()):
                needed = {"WWW-Authenticate": "Bearer"}
                raise web.HTTPUnauthorized(text="a bearer token is needed", headers=needed)
        if request.path not in self._endpoints:
            raise web.HTTPNotFound(text=f"nothing is served at {request.path}")
        if len(self._open) >= MOST_OPEN:
            raise web.HTTPServiceUnavailable(text=f"{MOST_OPEN} requests are open already")
        return await handler(request)

    # What is asked

    async def _post(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message = read(body)[0]
        if isinstance(message, RequestError):
            if message.code == PARSE_ERROR:
                return _refused(None, message)
        elif is_stateless(meta := meta_of(message.fields()), VERSIONS):
            server = self._endpoints[request.path].stateless()
            if is_stateless(meta, server.versions):
                return await self._post_stateless(request, server, message, meta)
        if isinstance(message, ClientMessage) and message.method == "initialize":
            return await self._post_initialize(request, message)
        session = self._connection(request).session
        batches = session.era is not None and session.era.batches
        return await self._exchange(request, session, read(body, batches=batches))

    async def _post_stateless(
        self, request: web.Request, server: Server, message: ClientMessage, meta: Json
    ) -> web.StreamResponse:
        version, method = str(meta.get(PROTOCOL_VERSION)), str(message.method)
        try:
            params = {} if message.params is UNSET else decode(message.params)
        except RequestError as error:
            return _refused(message.request_id, error)
        wrong = headers.mismatch(request.headers, version, method, params)
        if wrong is not None:
            fault = RequestError(HEADER_MISMATCH, f"header {wrong} does not match the body")
            return _refused(message.request_id, fault)
        # What belongs to no request is dropped: the stateless era has no channel for it.
        session = ServerSession(server, lambda line: None, LoopRunner(), next(self._numbers))
        try:
            return await self._exchange(request, session, [message])
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
            stream = await _stream(request, {})
            while (line := await waiting.get()) is not _END:
                await stream.write(_event(line))
            return stream
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
    ) -> web.StreamResponse:
        """Answer a POST: with JSON if the response is all there is, else with a stream."""
        written = _Written()
        self._open.add(written)
        try:
            for message in messages:
                session.take(message, written.add)
            ids = _requests(messages)
            if not ids and written.empty():
                return web.Response(status=202)
            line = await written.get()
            if line is _END:
                return web.Response(status=503, text="the server ends")
            if written.is_whole(session, ids):
                return web.Response(body=line, content_type="application/json", headers=extra)
            stream = await _stream(request, extra or {})
            await stream.write(_event(line))
            while not written.is_whole(session, ids) and (line := await written.get()) is not _END:
                await stream.write(_event(line))
            return stream
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


def _requests(messages: list[ClientMessage | RequestError]) -> list[int | str]:
    """Return the ids of the requests among some messages."""
    readable = [message for message in messages if isinstance(message, ClientMessage)]
    ids = [message.request_id for message in readable if message.method is not UNSET]
    return [request_id for request_id in ids if request_id is not None]


async def _stream(request: web.Request, extra: Mapping[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Cache-Control": "no-store", **extra})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    return response


def _event(line: bytes) -> bytes:
    return b"data: " + line.rstrip(b"\n") + b"\n\n"


def _refused(request_id: int | str | None, error: RequestError) -> web.Response:
    answered = {} if request_id is None else {"id": request_id}
    body = encode({"jsonrpc": "2.0", **answered, "error": error.fault})
    return web.Response(body=body, status=400, content_type="application/json")
