"""The official client as a host of ``holdfast serve``; it prints what it was told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.types import ListRootsResult


async def main(command: list[str]) -> None:
    async def roots(context: Any) -> Any:
        return ListRootsResult.model_validate({"roots": [{"uri": "file:///a"}]})

    async def text(name: str) -> Any:
        return (await session.call_tool(name, {})).content[0].text

    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    told: dict[str, Any] = {}
    async with (
        stdio_client(server) as (reader, writer),
        ClientSession(reader, writer, list_roots_callback=roots) as session,
    ):
        await session.initialize()
        told["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        first = await text("pid")
        told["asked"] = await text("ask")
        try:
            await session.call_tool("die", {})
        except Exception as error:
            told["error"] = error.error.data  # type: ignore[attr-defined]
        told["lives"] = await text("pid") != first
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
