"""The official Python SDK, version 1: a transport and a ``ClientSession`` around it."""

from __future__ import annotations

import importlib
import sys
import time

if sys.argv[1:] == ["import"]:
    started = time.perf_counter()
    found = importlib.import_module("mcp").ClientSession
    print(time.perf_counter() - started)
    sys.exit(found is None)

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from benchmarks.peers.drivers import base


class Session:
    async def open(self, target: Any) -> None:
        mcp = importlib.import_module("mcp")
        if isinstance(target, str):
            http = importlib.import_module("mcp.client.streamable_http")
            transport = http.streamable_http_client(target)
        else:
            command = mcp.StdioServerParameters(command=target[0], args=target[1:])
            transport = mcp.stdio_client(command)
        self.stack = AsyncExitStack()
        read, write, *_ = await self.stack.enter_async_context(transport)
        self.client = await self.stack.enter_async_context(mcp.ClientSession(read, write))
        self.agreed = (await self.client.initialize()).protocolVersion

    async def close(self) -> None:
        await self.stack.aclose()

    async def tools(self) -> int:
        return len((await self.client.list_tools()).tools)

    async def call(self, name: str, arguments: dict[str, Any], timeout: float | None) -> str:
        limit = None if timeout is None else timedelta(seconds=timeout)
        result = await self.client.call_tool(name, arguments, read_timeout_seconds=limit)
        return result.content[0].text  # type: ignore[no-any-return]

    def revision(self) -> str:
        return str(self.agreed)


if __name__ == "__main__":
    base.main(lambda: Session)
