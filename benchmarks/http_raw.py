"""The floor over HTTP: a bare aiohttp loop that makes the same requests and decodes the answers.

No timeouts, no checks, no errors. ``Raw`` makes the requests of the handshake era, ``RawStateless``
those of the stateless one, so that each side is compared with the same work.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import aiohttp
import msgspec
from msgspec import Raw as RawJson
from yarl import URL

from benchmarks.raw import (
    VERSION,
    Envelope,
    Notification,
    OnProgress,
    Request,
    Tool,
    ToolResult,
    decode_progress,
    decode_result,
    decode_tools,
    encode,
)

MODERN: Final = "2026-07-28"
PREFIX: Final = "io.modelcontextprotocol/"
IDENTITY: Final = {"name": "raw", "version": "1"}
BASIC: Final = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}

decode_envelope = msgspec.json.Decoder(Envelope).decode


class Floor:
    """One session of aiohttp, one POST for each request."""

    def __init__(self, url: str) -> None:
        self.url = URL(url)
        self.next_id = 0
        self.headers: dict[str, str] = dict(BASIC)
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))

    async def open(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        await self.http.close()

    def headers_of(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        return self.headers

    async def request(
        self, method: str, params: dict[str, Any], on_progress: OnProgress | None = None
    ) -> RawJson:
        self.next_id += 1
        body = encode(Request(self.next_id, method, params))
        headers = self.headers_of(method, params)
        async with self.http.post(self.url, data=body, headers=headers) as response:
            if "Mcp-Session-Id" in response.headers:
                self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
            if response.headers["Content-Type"] == "text/event-stream":
                return await events(response, on_progress)
            return decode_envelope(await response.read()).result

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, on_progress: OnProgress | None = None
    ) -> ToolResult:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if on_progress is not None:
            params["_meta"] = {"progressToken": self.next_id + 1}
        return decode_result(await self.request("tools/call", params, on_progress))

    async def list_tools(self) -> list[Tool]:
        return decode_tools(await self.request("tools/list", {})).tools


async def events(response: aiohttp.ClientResponse, on_progress: OnProgress | None) -> RawJson:
    """Read to the end of the stream, so that its connection is used again."""
    result = RawJson(b"null")
    pieces: list[bytes] = []
    async for chunk in response.content.iter_any():
        if b"\n" not in chunk:  # the middle of a long event
            pieces.append(chunk)
            continue
        if pieces and chunk.startswith(b"\n"):  # the end of an event may be cut in two
            chunk = pieces.pop() + chunk
        *whole, rest = chunk.split(b"\n\n")
        if whole and pieces:
            whole[0] = b"".join([*pieces, whole[0]])
            pieces.clear()
        if rest:
            pieces.append(rest)
        for event in whole:
            message = decode_envelope(event.partition(b"data: ")[2])
            if message.id is not None:
                result = message.result
            elif on_progress is not None:
                on_progress(decode_progress(message.params))
    return result


class Raw(Floor):
    """The handshake and its session; then what a server would say by itself is asked for."""

    async def open(self) -> None:
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": IDENTITY}
        await self.request("initialize", hello)
        self.headers["MCP-Protocol-Version"] = VERSION
        body = encode(Notification("notifications/initialized"))
        async with self.http.post(self.url, data=body, headers=self.headers) as response:
            await response.read()
        self.own = asyncio.create_task(self.listen())

    async def listen(self) -> None:
        async with self.http.get(self.url, headers=self.headers) as response:
            await response.read()

    async def close(self) -> None:
        await self.own
        async with self.http.delete(self.url, headers=self.headers):
            pass
        await super().close()


class RawStateless(Floor):
    """Every request says who asks, and repeats its name in headers."""

    META: Final = {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientInfo": IDENTITY,
        PREFIX + "clientCapabilities": {},
    }

    async def open(self) -> None:
        self.headers["MCP-Protocol-Version"] = MODERN
        await self.request("server/discover", {})

    def headers_of(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        params["_meta"] = {**self.META, **params.get("_meta", {})}
        headers = {**self.headers, "Mcp-Method": method}
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        return headers


KINDS: dict[str, type[Floor]] = {"raw": Raw, "raw-stateless": RawStateless}
