"""FastMCP's client as a host of ``holdfast serve``; it prints what it was told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main(command: list[str]) -> None:
    async def roots(context: Any) -> Any:
        return ["file:///a"]

    async def text(name: str) -> Any:
        return (await client.call_tool(name, {})).content[0].text

    transport = StdioTransport(command[0], command[1:], env=dict(os.environ))
    told: dict[str, Any] = {}
    async with Client(transport, roots=roots) as client:
        told["tools"] = [tool.name for tool in await client.list_tools()]
        first = await text("pid")
        told["asked"] = await text("ask")
        try:
            await client.call_tool("die", {})
        except Exception as error:
            told["error"] = error.error.data  # type: ignore[attr-defined]
        told["lives"] = await text("pid") != first
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
