"""Server objects of the SDKs that are installed here, connected to without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import holdfast


def high_level() -> list[Any]:
    """Return a server object of each library here that makes them from functions."""
    kinds: list[Any] = []
    try:
        from mcp.server.mcpserver import MCPServer

        kinds.append(MCPServer)
    except ImportError:
        from mcp.server.fastmcp import FastMCP as OldFastMCP

        kinds.append(OldFastMCP)
    try:
        from fastmcp import FastMCP

        kinds.append(FastMCP)
    except ImportError:
        pass
    made = []
    for kind in kinds:
        server = kind("adder")

        def add(a: int, b: int) -> int:
            return a + b

        server.tool()(add)
        made.append(server)
    return made


async def calls(server: Any, protocol: str | None) -> list[Any]:
    async with holdfast.connect(server, protocol=protocol) as client:
        names = [tool.name for tool in await client.list_tools()]
        result = await client.call_tool("add", {"a": 1, "b": 2}, timeout=5)
        again = await asyncio.gather(
            *(client.call_tool("add", {"a": n, "b": 0}, timeout=5) for n in range(5))
        )
        return [client.protocol_version, names, result.text, [one.text for one in again]]


async def main() -> None:
    found: dict[str, Any] = {}
    for server in high_level():
        kind = f"{type(server).__module__.split('.')[0]}.{type(server).__name__}"
        found[kind] = [await calls(server, None), await calls(server, "2025-06-18")]
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
