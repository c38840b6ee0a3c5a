"""As much of an MCP server as the two of this example need; standard library only.

`Offer` is what a server has: tools and, perhaps, things to read. `Session` answers for it in the
handshake revisions, `Stateless` in 2026-07-28. How messages travel is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
NOT_FOUND: Final = -32002
UNSUPPORTED_VERSION: Final = -32022

_META: Final = "io.modelcontextprotocol/"


class Refused(Exception):  # noqa: N818  (an answer, not a fault of ours)
    """The tool ran and says no: a result with ``isError``."""


class RpcError(Exception):
    """Answers a request with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message} | ({} if data is None else {"data": data})


@dataclass(frozen=True)
class Tool:
    """A tool: how it is listed, and what it does."""

    name: str
    description: str
    parameters: Json
    """Property by property; all of them are required."""
    returns: Json
    annotations: Json
    run: Callable[[Json], Awaitable[Json]]

    def listed(self) -> Json:
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": _object(self.parameters),
            "outputSchema": _object(self.returns),
            "annotations": self.annotations,
        }


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Offer:
    """What a server has to give."""

    name: str
    instructions: str
    tools: tuple[Tool, ...]
    read: Callable[[str], str | None] | None = None
    """The text of a resource by its URI, if there is such a resource."""

    @property
    def capabilities(self) -> Json:
        return {"tools": {}} | ({} if self.read is None else {"resources": {}})

    @property
    def info(self) -> Json:
        return {"name": self.name, "version": "1.0.0"}

    def list_tools(self, _: Json) -> Json:
        return {"tools": [tool.listed() for tool in self.tools]}

    async def call_tool(self, params: Json) -> Json:
        wanted = params.get("name")
        tool = next((one for one in self.tools if one.name == wanted), None)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"no such tool: {wanted}")
        try:
            found = await tool.run(params.get("arguments") or {})
        except Refused as refusal:
            return {"content": [{"type": "text", "text": str(refusal)}], "isError": True}
        text = json.dumps(found)
        return {"content": [{"type": "text", "text": text}], "structuredContent": found}

    def read_resource(self, params: Json) -> Json:
        uri = str(params.get("uri"))
        text = None if self.read is None else self.read(uri)
        if text is None:
            raise RpcError(NOT_FOUND, f"no such resource: {uri}", {"uri": uri})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}


@dataclass
class Session:
    """A server of the handshake revisions, for one client."""

    offer: Offer
    revision: str = "2025-11-25"

    async def answer(self, method: str, params: Json) -> Json:
        if method == "initialize":
            return {
                "protocolVersion": self.revision,
                "capabilities": self.offer.capabilities,
                "serverInfo": self.offer.info,
                "instructions": self.offer.instructions,
            }
        if method == "ping":
            return {}
        return await _answer(self.offer, method, params)


@dataclass
class Stateless:
    """A server of 2026-07-28: every request says all there is to know."""

    offer: Offer
    revision: str = "2026-07-28"
    kept: Json = field(default_factory=lambda: {"ttlMs": 60_000, "cacheScope": "public"})
    """How long lists may be kept."""

    async def answer(self, method: str, params: Json) -> Json:
        asked = (params.get("_meta") or {}).get(f"{_META}protocolVersion")
        if asked != self.revision:
            known = {"supported": [self.revision], "requested": str(asked)}
            raise RpcError(UNSUPPORTED_VERSION, f"unsupported protocol version: {asked}", known)
        result = await self._result(method, params)
        hints = {} if method == "tools/call" else self.kept
        meta = {f"{_META}serverInfo": self.offer.info}
        return {"resultType": "complete", **result, **hints, "_meta": meta}

    async def _result(self, method: str, params: Json) -> Json:
        if method == "server/discover":
            return {
                "supportedVersions": [self.revision],
                "capabilities": self.offer.capabilities,
                "instructions": self.offer.instructions,
            }
        return await _answer(self.offer, method, params)


async def _answer(offer: Offer, method: str, params: Json) -> Json:
    if method == "tools/list":
        return offer.list_tools(params)
    if method == "tools/call":
        return await offer.call_tool(params)
    if method == "resources/read":
        return offer.read_resource(params)
    raise RpcError(METHOD_NOT_FOUND, f"method not found: {method}")


async def respond(server: Session | Stateless, message: Json) -> Json | None:
    """The answer to a message; None for one that gets none."""
    if "id" not in message or "method" not in message:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        result = await server.answer(message["method"], message.get("params") or {})
    except RpcError as error:
        return {**head, "error": error.body}
    return {**head, "result": result}
