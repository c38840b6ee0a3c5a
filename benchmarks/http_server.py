"""A small MCP server over HTTP, on a bare asyncio protocol, so that little of a row is the server.

The path says how it behaves: ``/handshake/json/8`` is a server of the handshake era that answers
in JSON and has 8 tools, ``/stateless/sse/100`` a stateless one that answers with event streams.
It prints its port, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from benchmarks.echo_server import (
    LEGACY,
    LINE,
    MODERN,
    REAL,
    SERVER_INFO,
    listed_tool,
    real_tool,
)

BACKLOG: Final = 256
TOOLS: tuple[tuple[str, str, str, str, str], ...] = REAL
"""Tools that can be called; others are only listed."""
PIECE: Final = 64 * 1024
JSON, EVENTS = b"application/json", b"text/event-stream"
NOBODY: Final = Raw(b"null")
ABSENT: Final = Raw(b"")

encode = msgspec.json.encode


class Arguments(Struct):
    text: Raw = Raw(b'"hello"')
    size: int = 0
    count: int = 0


class Meta(Struct):
    token: Raw = msgspec.field(name="progressToken", default=ABSENT)


class Params(Struct):
    name: str = ""
    arguments: Arguments = msgspec.field(default_factory=Arguments)
    meta: Meta = msgspec.field(name="_meta", default_factory=Meta)


class Message(Struct):
    id: Raw = ABSENT
    method: str = ""
    params: Params = msgspec.field(default_factory=Params)


decode = msgspec.json.Decoder(Message).decode


# -- what is said --------------------------------------------------------------------------------


@cache
def text_of(size: int) -> bytes:
    return encode((LINE * (size // len(LINE) + 1))[:size])


@cache
def reports(count: int, width: int) -> tuple[bytes, bytes]:
    """All progress events of a call, each in a chunk as servers send them, and what to replace."""
    token = b"@" * width
    report = (
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":%b,"progress":%d,"total":%d}}'
    )
    return b"".join(chunk(report % (token, n, count)) for n in range(1, count + 1)), token


def chunk(data: bytes) -> bytes:
    """A message as an event, and the event as a chunk of its own."""
    event = b"event: message\ndata: %b\n\n" % data
    return b"%x\r\n%b\r\n" % (len(event), event)


def answer(request: Message, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (bytes(request.id), result)


def fault(code: int, message: str, wire_id: Raw = NOBODY) -> bytes:
    error = {"code": code, "message": message}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (bytes(wire_id), encode(error))


class Mode:
    """One way to behave, as a path names it."""

    def __init__(self, era: str, answers: str, tools: int) -> None:
        self.sessions: set[bytes] | None = set() if era == "handshake" else None
        self.streams = answers == "sse"
        real = [real_tool(*row) for row in TOOLS[:tools]]
        listed = real + [listed_tool(number) for number in range(len(real), tools)]
        self.before = b'{"resultType":"complete",' if era == "stateless" else b"{"
        caching = b'"ttlMs":0,"cacheScope":"public",' if era == "stateless" else b""
        self.tools = b'%b%b"tools":%b}' % (self.before, caching, encode(listed))

    def result(self, request: Message) -> bytes | None:
        """None for what is not known here."""
        found = METHODS.get(request.method)
        return None if found is None else found(self, request)

    def call(self, request: Message) -> bytes | None:
        arguments = request.params.arguments
        match request.params.name:
            case "echo":
                text = bytes(arguments.text)
            case "blob":
                text = text_of(arguments.size)
            case "progress":
                text = b'"done"'
            case _:
                return None
        return b'%b"content":[{"type":"text","text":%b}]}' % (self.before, text)

    def initialize(self, request: Message) -> bytes | None:
        if self.sessions is None:
            return None
        hello = {
            "protocolVersion": LEGACY[0],
            "capabilities": {"tools": {}},
            "serverInfo": SERVER_INFO,
        }
        return encode(hello)

    def discover(self, request: Message) -> bytes | None:
        if self.sessions is not None:
            return None
        return encode(
            {
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO},
            }
        )

    def list_tools(self, request: Message) -> bytes | None:
        return self.tools

    def ping(self, request: Message) -> bytes | None:
        return self.before.rstrip(b",") + b"}"


METHODS: Final[dict[str, Callable[[Mode, Message], bytes | None]]] = {
    "tools/call": Mode.call,
    "tools/list": Mode.list_tools,
    "initialize": Mode.initialize,
    "server/discover": Mode.discover,
    "ping": Mode.ping,
}


@cache
def mode(path: bytes) -> Mode | None:
    match path.decode("ascii", "replace").strip("/").split("/"):
        case [("handshake" | "stateless") as era, ("json" | "sse") as answers, tools]:
            return Mode(era, answers, int(tools)) if tools.isdigit() else None
    return None


# -- how it is said ------------------------------------------------------------------------------

Headers = dict[bytes, bytes]


class Connection(asyncio.Protocol):
    """HTTP/1.1, kept alive, requests one after another."""

    def __init__(self) -> None:
        self.unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.unread += data
        while (end := self.unread.find(b"\r\n\r\n")) >= 0:
            first, *rest = self.unread[:end].split(b"\r\n")
            headers = {key.lower(): value.strip() for key, _, value in map(halves, rest)}
            if b"transfer-encoding" in headers:
                self.reply(b"411 Length Required", fault(-32600, "A length is needed"))
                self.transport.close()
                return
            whole = end + 4 + int(headers.get(b"content-length", b"0"))
            if len(self.unread) < whole:
                return
            body, self.unread = self.unread[end + 4 : whole], self.unread[whole:]
            verb, path, _ = first.split(b" ", 2)
            self.handle(verb, path, headers, body)

    def handle(self, verb: bytes, path: bytes, headers: Headers, body: bytes) -> None:
        chosen = mode(path)
        if chosen is None:
            self.reply(b"404 Not Found", fault(-32600, "No such path"))
        elif verb == b"POST":
            self.post(chosen, headers, body)
        elif verb == b"DELETE" and chosen.sessions is not None:
            chosen.sessions.discard(headers.get(b"mcp-session-id", b""))
            self.reply(b"200 OK", b"")
        else:
            self.reply(b"405 Method Not Allowed", b"", extra=b"Allow: POST\r\n")

    def post(self, chosen: Mode, headers: Headers, body: bytes) -> None:
        try:
            request = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.reply(b"400 Bad Request", fault(-32700, str(error)))
            return
        if refusal := unwelcome(chosen, headers, request):
            self.reply(*refusal)
        elif not bytes(request.id):
            self.reply(b"202 Accepted", b"")
        else:
            self.serve(chosen, request)

    def serve(self, chosen: Mode, request: Message) -> None:
        result = chosen.result(request)
        extra = b""
        if request.method == "initialize" and result is not None and chosen.sessions is not None:
            session = secrets.token_hex(16).encode()
            chosen.sessions.add(session)
            extra = b"Mcp-Session-Id: %b\r\n" % session
        if result is None:
            said = fault(-32601, "Not known here", request.id)
            self.reply(b"404 Not Found" if chosen.sessions is None else b"200 OK", said)
        elif chosen.streams:
            self.stream(request, answer(request, result), extra)
        else:
            self.reply(b"200 OK", answer(request, result), extra=extra)

    def reply(self, status: bytes, body: bytes, *, extra: bytes = b"") -> None:
        kind = b"Content-Type: %b\r\n" % JSON if body else b""
        head = b"HTTP/1.1 %b\r\n%b%bContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, kind, extra, len(body)) + body)

    def stream(self, request: Message, body: bytes, extra: bytes) -> None:
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nCache-Control: no-cache\r\n"
            b"X-Accel-Buffering: no\r\n%bTransfer-Encoding: chunked\r\n\r\n"
        )
        said = head % (EVENTS, extra) + progress(request) + chunk(body) + b"0\r\n\r\n"
        for start in range(0, len(said), PIECE):
            self.transport.write(said[start : start + PIECE])


def halves(line: bytes) -> tuple[bytes, bytes, bytes]:
    return line.partition(b":")


def unwelcome(chosen: Mode, headers: Headers, request: Message) -> tuple[bytes, bytes] | None:
    """The status and body that refuse a request which does not fit the era."""
    if chosen.sessions is None:
        if headers.get(b"mcp-method", b"").decode() != request.method:
            return b"400 Bad Request", fault(-32020, "The headers do not match the body")
        return None
    session = headers.get(b"mcp-session-id")
    if session in chosen.sessions or request.method == "initialize":
        return None
    if session is None:
        return b"400 Bad Request", fault(-32000, "There is no session id")
    return b"404 Not Found", fault(-32001, "The session has ended")


def progress(request: Message) -> bytes:
    params = request.params
    token = bytes(params.meta.token)
    if params.name != "progress" or not token:
        return b""
    template, placeholder = reports(params.arguments.count, len(token))
    return template.replace(placeholder, token)


# -- a process of its own ------------------------------------------------------------------------


@contextmanager
def running(path: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The server in a process of its own, on the CPU of the starter; its address and process."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "benchmarks.http_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process.pid
        process.stdin.close()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster loop where it is installed: the less of a row is the server, the better."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def about() -> str:
    return "http_server.py " + ("(uvloop)" if loop_factory() else "(asyncio)")


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(0, ended.set)
    await ended.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve())
