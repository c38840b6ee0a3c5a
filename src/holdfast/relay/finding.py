"""Three tools that stand for all: search, describe, call. For hosts that many tools overwhelm."""

from __future__ import annotations

import inspect
import json
from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.eras.serving import Json
from holdfast._core.server.request import ServerRequest, error_result, text_result
from holdfast._core.server.server import Server
from holdfast._core.wire.codes import INVALID_PARAMS, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.agents.listing import ServerTool
from holdfast.agents.search import CALL, SEARCH, ToolIndex, described
from holdfast.relay.envelope import fields_of
from holdfast.relay.merging import listing, pages, renamed, text_in
from holdfast.types.base import decode
from holdfast.types.base import encode as encode_wire
from holdfast.types.tools import Tool

MOST_HITS: Final = 20

_DESCRIBE: Final = Tool.make(
    "describe_tool",
    description="Show the whole definition of a tool that search_tools found.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name, as search_tools gave it"}
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)


class Finder:
    """Takes the place of the tools of a server.

    Args:
        server: The server side of a relay; its handlers of tools are replaced.
    """

    def __init__(self, server: Server) -> None:
        self._list = server.handlers.get("tools/list") or server.default
        self._call = server.handlers.get("tools/call") or server.default
        self._definitions: list[Raw] = []
        self._index = ToolIndex(())
        server.handlers |= {"tools/list": self._offer, "tools/call": self._run}

    def __repr__(self) -> str:
        return f"<Finder {self._index!r}>"

    def _offer(self, request: ServerRequest) -> Json:
        return {"tools": [Raw(encode_wire(tool)) for tool in (SEARCH, _DESCRIBE, CALL)]}

    async def _run(self, request: ServerRequest) -> Any:
        name = request.get("name")
        try:
            arguments = fields_of.decode(request.fields.get("arguments", b"{}"))
        except MALFORMED:
            raise RequestError(INVALID_PARAMS, "arguments must be an object") from None
        if name == SEARCH.name:
            return await self._search(request, request.get("arguments") or {})
        if name == _DESCRIBE.name:
            return await self._describe(request, request.get("arguments") or {})
        if name != CALL.name:
            raise RequestError(INVALID_PARAMS, f"unknown tool: {name!r}")
        # The tool's own arguments pass as they came.
        inner = arguments.get("arguments", Raw(b"null"))
        passed = {} if bytes(inner) == b"null" else inner
        return await self._handle(
            self._call, renamed(request, name=arguments.get("name"), arguments=passed)
        )

    async def _search(self, request: ServerRequest, arguments: Json) -> Json:
        query, limit = arguments.get("query"), arguments.get("limit", 5)
        if not isinstance(query, str) or not isinstance(limit, int):
            return error_result("query must be a text, and limit a whole number")
        await self._refresh(request)
        hits = self._index.search(query, max(1, min(limit, MOST_HITS)))
        return text_result(_json({"tools": [described(hit.tool, fence=False) for hit in hits]}))

    async def _describe(self, request: ServerRequest, arguments: Json) -> Json:
        await self._refresh(request)
        name = arguments.get("name")
        for tool, definition in zip(self._index.tools, self._definitions, strict=True):
            if tool.name == name:
                return text_result(_json(msgspec.json.decode(definition)))
        return error_result(f"there is no tool {name!r}: search_tools finds their names")

    async def _refresh(self, request: ServerRequest) -> None:
        """List the tools, and index them if they are not those of before."""
        handle = lambda page: self._handle(self._list, page)  # noqa: E731
        listed = pages(handle, listing(request, "tools/list"))
        # What cannot be read has no name to find it by.
        definitions = [item async for item in listed if text_in(item, "name") is not None]
        if definitions != self._definitions:
            tools = [decode(definition, Tool) for definition in definitions]
            self._definitions = definitions
            self._index = ToolIndex(ServerTool("", tool, tool.name) for tool in tools)

    async def _handle(self, handler: Any, request: ServerRequest) -> Any:
        result = handler(request)
        return await result if inspect.isawaitable(result) else result


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
