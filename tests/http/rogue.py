"""An HTTP server on bare streams, for which a test decides every byte.

``Rogue`` reads requests, writes them down and asks a handler for each; the handler answers
through a ``Reply``: a JSON body, a stream of events, raw bytes, a reset. ``Modern``,
``Legacy`` and ``Old`` are servers of the three shapes that behave well until a test puts
another handler in their ``on``: by JSON-RPC method, or by HTTP method.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Self, TypeAlias

PATIENCE = 100.0
"""Seconds after which waiting for something counts as hung."""
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
OLD = "2024-11-05"
JSON, EVENTS = "application/json", "text/event-stream"


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    def __repr__(self) -> str:
        said = self.message.get("method", "") if self.body else ""
        return f"<{self.method} {self.path} {said}>"

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str | None:
        found = self.all(name)
        assert len(found) < 2, f"{name} is there {len(found)} times"
        return found[0] if found else None

    @property
    def message(self) -> dict[str, Any]:
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def id(self) -> Any:
        return self.message.get("id")

    @property
    def params(self) -> dict[str, Any]:
        return self.message.get("params") or {}

    @property
    def tool(self) -> str:
        return str(self.params.get("name"))


def answer(wire_id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": wire_id, "result": result}


def fault(wire_id: Any, code: int, message: str = "no", data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": wire_id, "error": error}


def notice(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def text(words: str) -> dict[str, Any]:
    """The result of a tool."""
    return {"content": [{"type": "text", "text": words}]}


def event(data: Any, *, id: str | None = None, name: str | None = None) -> bytes:  # noqa: A002
    shown = data if isinstance(data, str) else json.dumps(data)
    fields = [] if id is None else [f"id: {id}"]
    fields += [] if name is None else [f"event: {name}"]
    fields += [f"data: {line}" for line in shown.split("\n")]
    return ("\n".join(fields) + "\n\n").encode()


class Reply:
    """The way back for one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._chunked = False
        self.over = False
        """The connection ends after this reply."""

    async def raw(self, *pieces: bytes) -> None:
        """Bytes as they are; each piece a write of its own."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    async def head(self, status: int = 200, kind: str | None = None, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Because"]
        lines += [] if kind is None else [f"Content-Type: {kind}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def body(
        self, body: bytes, status: int = 200, kind: str | None = JSON, **headers: str
    ) -> None:
        await self.head(status, kind, Content_Length=str(len(body)), **headers)
        await self.raw(body)

    async def json(self, message: Any, status: int = 200, **headers: str) -> None:
        await self.body(json.dumps(message).encode(), status, **headers)

    async def status(self, status: int, **headers: str) -> None:
        """A status without a body."""
        await self.body(b"", status, None, **headers)

    async def stream(self, *events: bytes, **headers: str) -> None:
        """Open a stream of events, and send these."""
        self._chunked = True
        await self.head(200, EVENTS, Transfer_Encoding="chunked", **headers)
        await self.send(*events)

    async def send(self, *events: bytes) -> None:
        for one in events:
            await self.raw(b"%x\r\n%b\r\n" % (len(one), one))

    async def end(self) -> None:
        """The stream's proper end; the connection may be used again."""
        await self.raw(b"0\r\n\r\n")

    async def gone(self) -> None:
        """Wait until the client has hung up."""
        while await self._reader.read(1000):
            pass
        self.over = True

    def close(self) -> None:
        self.over = True
        self._writer.close()

    def reset(self) -> None:
        """Not even a goodbye: RST."""
        self.over = True
        self._writer.get_extra_info("socket").setsockopt(
            SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)
        )
        self._writer.transport.abort()


Handler: TypeAlias = Callable[[Request, Reply], Awaitable[None]]


class Rogue:
    """A server that a test can look into; ``handle`` decides what it does."""

    def __init__(self, handle: Handler | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        """How many there have been."""
        self.standing = 0
        """How many there are."""
        self.deaf = False
        """It accepts connections and reads nothing from them."""
        self.on: dict[str, Handler] = {}
        self.path = "/mcp"
        self.port = 0
        self._handle = handle
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self._faults: list[BaseException] = []

    @property
    def origin(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.origin + self.path

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert not self._faults, self._faults

    async def start(self) -> None:
        """Listen, on the port of the time before if there was one."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def deafen(self) -> None:
        """Take no more connections."""
        assert self._server is not None
        self._server.close()

    async def stop(self) -> None:
        """End every connection and listen no more."""
        self.deafen()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)

    # What tests look at

    async def until(self, found: Callable[[], Any]) -> Any:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not (value := found()):
                self._changed.clear()
                await self._changed.wait()
        return value

    def changed(self) -> None:
        self._changed.set()

    def posts(self, method: str | None = None) -> list[Request]:
        """The messages that came, all or of one JSON-RPC method."""
        posts = [request for request in self.requests if request.method == "POST"]
        return [
            post for post in posts if method is None or post.message.get("method", "") == method
        ]

    def gets(self) -> list[Request]:
        return [request for request in self.requests if request.method == "GET"]

    def answers(self) -> list[Request]:
        """What the client answered to requests of ours."""
        return [post for post in self.posts() if "method" not in post.message]

    def said(self) -> list[str]:
        """What was asked for, in the order in which it came."""
        return [request.message.get("method", request.method) for request in self.requests]

    async def heard(self, method: str, count: int = 1) -> Request:
        """Wait for the so-many-th message of a method."""

        def found() -> list[Request]:
            return self.posts(method)[count - 1 : count]

        request: Request = (await self.until(found))[0]
        return request

    # Inside

    async def handle(self, request: Request, reply: Reply) -> None:
        own = self.on.get(request.message.get("method", "")) or self.on.get(request.method)
        handle = own or self._handle or self.obey
        await handle(request, reply)

    async def obey(self, request: Request, reply: Reply) -> None:
        await reply.status(404)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.standing += 1
        self.changed()
        try:
            if self.deaf:
                await asyncio.Event().wait()
            await self._serve(reader, writer, self.connections)
        except (OSError, EOFError, asyncio.CancelledError, ssl.SSLError):
            pass
        except Exception as error:
            self._faults.append(error)
        finally:
            self.standing -= 1
            self._tasks.discard(task)
            self.changed()
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        while True:
            request = await read_request(reader, number)
            self.requests.append(request)
            self.changed()
            reply = Reply(reader, writer)
            await self.handle(request, reply)
            if reply.over:
                return


async def read_request(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    request = Request(method, path, headers, b"", connection)
    length = request.header("Content-Length")
    if length is not None:
        request.body = await reader.readexactly(int(length))
    return request


# Servers that behave, until told otherwise


@dataclass
class Gate:
    """Holds handlers back until a test lets them go."""

    waiting: int = 0
    _open: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> None:
        self.waiting += 1
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


class Obliging(Rogue):
    """Answers tool calls; ``events`` says in which of the two ways."""

    events = False

    async def obey(self, request: Request, reply: Reply) -> None:
        if request.method == "POST" and request.id is not None and "method" in request.message:
            await self.respond(request, reply)
        else:
            await self.otherwise(request, reply)

    async def respond(self, request: Request, reply: Reply) -> None:
        result = self.result(request)
        message = fault(request.id, -32601) if result is None else answer(request.id, result)
        await self.give(reply, message)

    async def give(self, reply: Reply, message: Any, **headers: str) -> None:
        if self.events:
            await reply.stream(event(message), **headers)
            await reply.end()
        else:
            await reply.json(message, 200, **headers)

    async def otherwise(self, request: Request, reply: Reply) -> None:
        await reply.status(202 if request.method == "POST" else 405)

    def result(self, request: Request) -> Any:
        method = request.message["method"]
        if method == "tools/call":
            return text(str(request.params.get("arguments", {}).get("text", request.tool)))
        if method == "tools/list":
            return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        if method == "resources/read":
            return {"contents": [{"uri": request.params["uri"], "text": "content"}]}
        if method == "prompts/get":
            return {"messages": []}
        return {} if method in ("ping", "resources/subscribe", "logging/setLevel") else None


class Modern(Obliging):
    """A server of 2026-07-28."""

    versions: tuple[str, ...] = (MODERN,)
    capabilities: dict[str, Any] = {}  # noqa: RUF012

    def result(self, request: Request) -> Any:
        if request.message["method"] == "server/discover":
            return {
                "resultType": "complete",
                "supportedVersions": list(self.versions),
                "capabilities": self.capabilities,
            }
        found = super().result(request)
        return None if found is None else {"resultType": "complete", **found}


class Legacy(Obliging):
    """A server of 2025-11-25: sessions, a stream of its own, no discovery.

    ``sessions`` are those that it knows; a request of another one gets 404.
    """

    version = LEGACY

    def __init__(self, handle: Handler | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(handle, tls=tls)
        self.sessions: list[str] = []
        self.named = True
        """It gives sessions a name."""
        self._numbers = itertools.count(1)

    async def handle(self, request: Request, reply: Reply) -> None:
        session = request.header("Mcp-Session-Id")
        if session is not None and session not in self.sessions:
            await reply.json(fault(None, -32001, "Session not found"), 404)
        else:
            await super().handle(request, reply)

    async def respond(self, request: Request, reply: Reply) -> None:
        method = request.message["method"]
        if method == "initialize":
            headers = {"Mcp_Session_Id": self.begin()} if self.named else {}
            result = {"protocolVersion": self.version, "capabilities": {}, "serverInfo": {}}
            await self.give(reply, answer(request.id, result), **headers)
        elif method == "server/discover":
            await reply.json(fault(None, -32000, "Bad Request: no session"), 400)
        else:
            await super().respond(request, reply)

    def begin(self) -> str:
        session = f"session-{next(self._numbers)}"
        self.sessions.append(session)
        return session

    async def otherwise(self, request: Request, reply: Reply) -> None:
        if request.method == "DELETE":
            self.sessions.remove(request.header("Mcp-Session-Id") or "")
            await reply.status(200)
        else:
            await super().otherwise(request, reply)


class Old(Obliging):
    """A server of 2024-11-05: one stream, and an endpoint that it names."""

    version = OLD

    def __init__(self, handle: Handler | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(handle, tls=tls)
        self.endpoint = "/messages?session=1"
        self.stream: Reply | None = None

    async def obey(self, request: Request, reply: Reply) -> None:
        if request.method == "GET" and request.path == self.path:
            await reply.stream(event(self.endpoint, name="endpoint"))
            self.stream = reply
            self.changed()
            await reply.gone()
        elif request.path != self.endpoint:
            await reply.status(404)
        else:
            await reply.body(b"Accepted", 202, "text/plain")
            await super().obey(request, reply)

    async def respond(self, request: Request, reply: Reply) -> None:
        await self.give(reply, self.reply_to(request))

    def reply_to(self, request: Request) -> dict[str, Any]:
        if request.message["method"] == "initialize":
            result = {"protocolVersion": self.version, "capabilities": {}, "serverInfo": {}}
            return answer(request.id, result)
        found = self.result(request)
        return fault(request.id, -32601) if found is None else answer(request.id, found)

    async def give(self, reply: Reply, message: Any, **headers: str) -> None:
        assert self.stream is not None
        await self.stream.send(event(message))

    async def otherwise(self, request: Request, reply: Reply) -> None:
        """Nothing more is said."""


@asynccontextmanager
async def nobody() -> AsyncIterator[str]:
    """A URL at which nobody listens."""
    rogue = Rogue()
    await rogue.start()
    await rogue.stop()
    yield rogue.url
