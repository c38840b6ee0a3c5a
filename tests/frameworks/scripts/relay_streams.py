"""Clients of ``mcp`` and FastMCP on streams of Holdfast; prints what each was told."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession
from mcp.types import ListRootsResult

import holdfast
from holdfast.relay import streams


async def _roots(context: Any) -> Any:
    return ListRootsResult.model_validate({"roots": [{"uri": "file:///a"}]})


async def _story(session: Any) -> dict[str, Any]:
    async def text(name: str) -> Any:
        return (await session.call_tool(name, {})).content[0].text

    listed = await session.list_tools()
    report: dict[str, Any] = {"tools": [tool.name for tool in getattr(listed, "tools", listed)]}
    first = await text("pid")
    report["asked"] = await text("ask")
    try:
        await session.call_tool("die", {})
    except Exception as error:
        fault = getattr(error, "error", error)
        report["error"] = getattr(fault, "data", repr(error))
    report["lives"] = await text("pid") != first
    return report


async def main(command: list[str]) -> None:
    reports: dict[str, Any] = {}
    async with holdfast.connect(command, when_down="wait", inherit_env=["RUNS"]) as client:
        async with (
            streams(client) as (read, write),
            ClientSession(read, write, list_roots_callback=_roots) as session,
        ):
            await session.initialize()
            reports["session"] = await _story(session)
        # Another session on the same client, and so on the same server.
        async with (
            streams(client) as (read, write),
            ClientSession(read, write, list_roots_callback=_roots) as session,
        ):
            await session.initialize()
            reports["again"] = await _story(session)
    try:
        from mcp import Client
    except ImportError:
        pass  # mcp 1
    else:
        async with (
            holdfast.connect(command, when_down="wait", inherit_env=["RUNS"]) as client,
            Client(streams(client), list_roots_callback=_roots) as host,
        ):
            reports["client"] = await _story(host)
    try:
        import fastmcp
    except ImportError:
        pass
    else:
        async with holdfast.connect(command, when_down="wait", inherit_env=["RUNS"]) as client:
            host = fastmcp.Client(streams(client), roots=["file:///a"])
            async with host:
                reports["fastmcp"] = await _story(host)
    print(json.dumps(reports))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
