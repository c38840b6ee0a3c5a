"""The floor: the least a client can do and still speak MCP. No timeouts, no checks, no errors.

``Raw`` uses asyncio's subprocess pipes, ``RawFd`` the pipes' descriptors directly. Both leave the
result raw in the envelope and decode it once more into the type that the call expects, and
keep one future per request in a dict.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from typing import IO, Any, cast

import msgspec
from msgspec import Raw as RawJson
from msgspec import Struct

READ_SIZE = 64 * 1024
NOTHING = RawJson(b"null")
VERSION = "2025-11-25"


class Envelope(Struct, gc=False):
    id: int | None = None
    method: str | None = None
    params: RawJson = NOTHING
    result: RawJson = NOTHING


class Request(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: int
    method: str
    params: Any


class Notification(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    method: str


class Content(Struct, gc=False):
    type: str
    text: str = ""


class ToolResult(Struct):
    content: list[Content]
    is_error: bool = msgspec.field(default=False, name="isError")


class Tool(Struct, gc=False):
    name: str
    description: str | None = None
    title: str | None = None
    input_schema: RawJson = msgspec.field(default=NOTHING, name="inputSchema")
    annotations: RawJson = NOTHING


class ToolList(Struct):
    tools: list[Tool]


class Place(Struct):
    name: str
    latitude: float
    tags: list[str]


class PlaceResult(Struct):
    content: list[Content]
    place: Place = msgspec.field(name="structuredContent")


class Progress(Struct, gc=False):
    token: int = msgspec.field(name="progressToken")
    progress: float
    total: float | None = None


OnProgress = Callable[[Any], object]

encode = msgspec.json.Encoder().encode
decode_envelopes = msgspec.json.Decoder(Envelope).decode_lines
decode_result = msgspec.json.Decoder(ToolResult).decode
decode_place = msgspec.json.Decoder(PlaceResult).decode
decode_tools = msgspec.json.Decoder(ToolList).decode
decode_progress = msgspec.json.Decoder(Progress).decode


class Floor:
    """Ids, futures and lines; how bytes come and go is the subclass's."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.loop = asyncio.get_running_loop()
        self.next_id = 0
        self.waiting: dict[int, asyncio.Future[RawJson]] = {}
        self.watching: dict[int, OnProgress] = {}
        self.pieces: list[bytes] = []
        self.ended: asyncio.Future[None] = self.loop.create_future()

    async def start(self) -> None:
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def open(self) -> None:
        await self.start()
        client = {"name": "raw", "version": "1"}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
        await self.request("initialize", hello)
        self.send(encode(Notification("notifications/initialized")) + b"\n")

    def request(self, method: str, params: Any) -> asyncio.Future[RawJson]:
        self.next_id = wire_id = self.next_id + 1
        self.waiting[wire_id] = future = self.loop.create_future()
        self.send(encode(Request(wire_id, method, params)) + b"\n")
        return future

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, on_progress: OnProgress | None = None
    ) -> ToolResult:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if on_progress is None:
            return decode_result(await self.request("tools/call", params))
        token = self.next_id + 1
        self.watching[token] = on_progress
        params["_meta"] = {"progressToken": token}
        result = decode_result(await self.request("tools/call", params))
        del self.watching[token]
        return result

    async def list_tools(self) -> list[Tool]:
        return decode_tools(await self.request("tools/list", {})).tools

    def feed(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if not end:
            self.pieces.append(data)
            return
        rest = data[end:]
        if rest:
            data = data[:end]
        if self.pieces:
            self.pieces.append(data)
            data = b"".join(self.pieces)
            self.pieces.clear()
        if rest:
            self.pieces.append(rest)
        for message in decode_envelopes(data):
            if message.id is not None:
                future = self.waiting.pop(message.id)
                if not future.done():
                    future.set_result(message.result)
            elif message.method == "notifications/progress":
                progress = decode_progress(message.params)
                self.watching[progress.token](progress)


class PipeProtocol(asyncio.SubprocessProtocol):
    def __init__(self, floor: Floor) -> None:
        self.floor = floor

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.floor.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.floor.ended.set_result(None)


class Raw(Floor):
    """On asyncio's own subprocess transport."""

    async def start(self) -> None:
        self.process, _ = await self.loop.subprocess_exec(
            lambda: PipeProtocol(self), *self.command, stderr=None
        )
        pipe = self.process.get_pipe_transport(0)
        self.stdin = cast(asyncio.WriteTransport, pipe)
        self.send = self.stdin.write  # type: ignore[method-assign]

    async def close(self) -> None:
        self.stdin.close()
        await self.ended


class RawFd(Floor):
    """On the descriptors: one read when readable, one write at once, the rest when writable."""

    def spawn(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.ends = cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)
        self.stdin, self.stdout = (end.fileno() for end in self.ends)
        self.unsent = bytearray()

    async def start(self) -> None:
        self.spawn()
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)
        self.loop.add_reader(self.stdout, self.readable)

    def readable(self) -> None:
        data = os.read(self.stdout, READ_SIZE)
        if data:
            self.feed(data)
        else:
            self.loop.remove_reader(self.stdout)
            self.ended.set_result(None)

    def send(self, data: bytes) -> None:
        if self.unsent:
            self.unsent += data
            return
        try:
            sent = os.write(self.stdin, data)
        except BlockingIOError:
            sent = 0
        if sent != len(data):
            self.unsent += data[sent:]
            self.loop.add_writer(self.stdin, self.writable)

    def writable(self) -> None:
        try:
            del self.unsent[: os.write(self.stdin, self.unsent)]
        except BlockingIOError:
            return
        if not self.unsent:
            self.loop.remove_writer(self.stdin)

    async def close(self) -> None:
        self.ends[0].close()
        await self.ended
        self.process.wait()
        self.ends[1].close()


KINDS: dict[str, type[Floor]] = {"raw": Raw, "raw-fd": RawFd}


async def place(session: Floor) -> Place:
    """A structured result, read as a type."""
    params = {"name": "place", "arguments": {"text": "hello, world"}}
    return decode_place(await session.request("tools/call", params)).place


def cold(kind: str, command: list[str]) -> None:
    """A whole short program: connect, list, one call, close: all that Holdfast sends."""

    async def main() -> None:
        floor = KINDS[kind](command)
        await floor.open()
        await floor.list_tools()
        result = await floor.call_tool("echo", {"text": "hello"})
        assert result.content[0].text == "hello"
        await floor.close()

    asyncio.run(main())
