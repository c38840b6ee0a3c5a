"""The server side over Streamable HTTP, by aiohttp.web.

A request of the stateless era is a session of its own: it ends with its response, or with the
connection. In the handshake era ``initialize`` opens a session with an id; what does not belong
to a request goes to the stream that the client opens with GET.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import UNSET

from holdfast._core.eras import headers
from holdfast._core.eras.revisions import HEADER_MISMATCH, PROTOCOL_VERSION
from holdfast._core.eras.serving import Json, is_stateless, known_version
from holdfast._core.serve.runner import LoopRunner
from holdfast._core.server.message import ClientMessage, decode, read
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.wire.codes import PARSE_ERROR, RequestError
from holdfast._core.wire.jsonrpc import encode

Handle: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_SESSIONS: Final = 1_000
MOST_WAITING: Final = 1_000
LARGEST_BODY: Final = 64 * 1024 * 1024


class _Written(asyncio.Queue[bytes]):
    """Messages for one response."""

    def add(self, line: bytes) -> None:
        """Add a message; notifications are dropped while the client does not read."""
        if self.qsize() < MOST_WAITING or b'"method":"notifications/' not in line[:200]:
            self.put_nowait(line)

    def keep(self, line: bytes) -> None:
        """Add a message that belongs to no request; the oldest goes if nobody reads them."""
        if self.qsize() >= MOST_WAITING:
            self.get_nowait()
        self.put_nowait(line)


class HttpServer:
    """Serves one server on loopback, at the path ``/mcp``."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connections: OrderedDict[str, tuple[ServerSession, _Written]] = OrderedDict()
        """Handshake sessions by id, each with the messages that wait for its GET stream."""
        self._numbers = itertools.count(1)
        app = web.Application(client_max_size=LARGEST_BODY, middlewares=[_refuse_strangers])
        app.router.add_post("/mcp", self._post)
        app.router.add_get("/mcp", self._get, allow_head=False)
        app.router.add_delete("/mcp", self._delete)
        # A client ends a stateless request by closing its connection.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)

    async def start(self, port: int = 0) -> int:
        """Listen, and return the port."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        address: tuple[Any, ...] = self._runner.addresses[0]
        return int(address[1])

    async def close(self) -> None:
        """End every session and stop listening."""
        for session, _ in self._connections.values():
            session.close()
        self._connections.clear()
        await self._runner.cleanup()

    async def _post(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message = read(body)[0]
        if isinstance(message, RequestError):
            if message.code == PARSE_ERROR:
                return _refused(None, message)
        elif is_stateless(meta := message.meta(), self._server.versions):
            return await self._post_stateless(request, message, meta)
        elif message.method == "initialize":
            return await self._post_initialize(request, message)
        session, _ = self._connection(request)
        batches = session.era is not None and session.era.batches
        return await _exchange(request, session, read(body, batches=batches))

    async def _post_stateless(
        self, request: web.Request, message: ClientMessage, meta: Json
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
        session = ServerSession(self._server, lambda line: None, LoopRunner(), next(self._numbers))
        try:
            return await _exchange(request, session, [message])
        finally:
            session.close()

    async def _post_initialize(
        self, request: web.Request, message: ClientMessage
    ) -> web.StreamResponse:
        waiting = _Written()
        session = ServerSession(self._server, waiting.keep, LoopRunner(), next(self._numbers))
        name = secrets.token_urlsafe(24)
        reply = await _exchange(request, session, [message], {headers.SESSION: name})
        if session.era is not None:
            self._connections[name] = (session, waiting)
            while len(self._connections) > MOST_SESSIONS:
                self._connections.popitem(last=False)[1][0].close()
        return reply

    async def _get(self, request: web.Request) -> web.StreamResponse:
        _, waiting = self._connection(request)
        stream = await _stream(request, {})
        while True:
            await stream.write(_event(await waiting.get()))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self._connection(request)[0].close()
        del self._connections[request.headers[headers.SESSION]]
        return web.Response(status=204)

    def _connection(self, request: web.Request) -> tuple[ServerSession, _Written]:
        if not known_version(request.headers.get(headers.VERSION)):
            raise web.HTTPBadRequest(text=f"{headers.VERSION} is not supported")
        name = request.headers.get(headers.SESSION)
        if name is None:
            raise web.HTTPBadRequest(text=f"{headers.SESSION} is missing")
        if name not in self._connections:
            raise web.HTTPNotFound(text="no such session")
        return self._connections[name]


@web.middleware
async def _refuse_strangers(request: web.Request, handler: Handle) -> web.StreamResponse:
    """Refuse foreign hosts and origins.

    A page in a browser can reach loopback by DNS rebinding, but cannot forge these headers
    (Transports: Security Warning).
    """
    origin = request.headers.get("Origin")
    hosts = [urlsplit(f"//{request.host}").hostname]
    hosts += [] if origin is None else [urlsplit(origin).hostname]
    if not LOOPBACK.issuperset(hosts):
        raise web.HTTPForbidden(text="Host or Origin is not accepted")
    return await handler(request)


async def _exchange(
    request: web.Request,
    session: ServerSession,
    messages: list[ClientMessage | RequestError],
    extra: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Answer a POST: with JSON if the response is all there is, else with a stream."""
    written = _Written()
    for message in messages:
        session.take(message, written.add)
    ids = _requests(messages)
    if not ids and written.empty():
        return web.Response(status=202)
    line = await written.get()
    if written.empty() and not any(map(session.is_running, ids)):
        return web.Response(body=line, content_type="application/json", headers=extra)
    stream = await _stream(request, extra or {})
    await stream.write(_event(line))
    while any(map(session.is_running, ids)) or not written.empty():
        await stream.write(_event(await written.get()))
    return stream


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
