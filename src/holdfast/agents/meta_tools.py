"""Two tools that stand for hundreds: a model searches, then calls what it found.

They cost a model's context two definitions, whatever the servers offer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from holdfast.agents.budget import READ_MORE, budget_of
from holdfast.agents.listing import ModelTool, ServerTool
from holdfast.errors import ValidationError
from holdfast.types.content import TextContent
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.servers.group import Servers

MOST: Final = 20

_SEARCH: Final = Tool.make(
    "search_tools",
    description=(
        "Find tools by keywords. Gives the names, descriptions and parameters of those that "
        "fit best; call them with call_tool."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, in a few words"},
            "limit": {
                "type": "integer",
                "description": "How many to give at most (5 if left out)",
                "minimum": 1,
                "maximum": MOST,
            },
        },
        "required": ["query"],
    },
)
_CALL: Final = Tool.make(
    "call_tool",
    description="Call a tool that search_tools found.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name, as search_tools gave it"},
            "arguments": {"type": "object", "description": "What to give the tool"},
        },
        "required": ["name"],
    },
)


def finder_tools(servers: Servers) -> list[ModelTool]:
    """Return the two. They belong to no server."""
    return [
        ModelTool("", tool, tool.name, partial(run, servers))
        for tool, run in ((_SEARCH, _search), (_CALL, _call))
    ]


async def _search(
    servers: Servers, name: str, arguments: Mapping[str, Any], **options: Any
) -> ToolResult:
    query, limit = arguments.get("query"), arguments.get("limit")
    if not isinstance(query, str):
        raise ValidationError("search_tools: query must be a text")
    if limit is not None and not isinstance(limit, int | float):
        raise ValidationError("search_tools: limit must be a number")
    hits = await servers.search(query, limit=5 if limit is None else _within(limit))
    found: dict[str, Any] = {"tools": [_described(hit.tool) for hit in hits]}
    if hits.failures:
        found["unavailable"] = [failure.server for failure in hits.failures]
    return ToolResult(content=[TextContent(text=json.dumps(found, ensure_ascii=False))])


def _within(limit: float) -> int:
    return 1 if not limit >= 1 else MOST if limit > MOST else int(limit)


def _described(one: ServerTool) -> dict[str, Any]:
    return {
        "name": one.name,
        "description": one.description,
        "parameters": one.tool.input_schema,
    }


async def _call(
    servers: Servers, name: Any, arguments: Mapping[str, Any], **options: Any
) -> ToolResult:
    name, given = arguments.get("name"), arguments.get("arguments")
    if not isinstance(name, str):
        raise ValidationError("call_tool: name must be a text")
    if isinstance(given, str):
        # Models often write an object as text.
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            pass
    if given is not None and not isinstance(given, Mapping):
        raise ValidationError("call_tool: arguments must be an object")
    if name == READ_MORE.name:
        return await servers._read_more(name, given or {})
    server, tool = servers.model_names.resolve(name)
    client = servers[server]
    return budget_of(client).fit(tool, await client.call_tool(tool, given, **options))
