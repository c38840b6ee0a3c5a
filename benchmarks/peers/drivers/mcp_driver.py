"""The official Python SDK, version 2: its ``Client``, with its defaults."""

from __future__ import annotations

import importlib
import sys
import time

if sys.argv[1:] == ["import"]:
    started = time.perf_counter()
    found = importlib.import_module("mcp").Client
    print(time.perf_counter() - started)
    sys.exit(found is None)

from contextlib import AsyncExitStack
from typing import Any

from benchmarks.peers.drivers import base


class Session:
    async def open(self, target: Any) -> None:
        mcp = importlib.import_module("mcp")
        if not isinstance(target, str):
            target = mcp.StdioServerParameters(command=target[0], args=target[1:])
        self.stack = AsyncExitStack()
        self.client = await self.stack.enter_async_context(mcp.Client(target))

    async def close(self) -> None:
        await self.stack.aclose()

    async def tools(self) -> int:
        return len((await self.client.list_tools()).tools)

    async def call(self, name: str, arguments: dict[str, Any], timeout: float | None) -> str:
        result = await self.client.call_tool(name, arguments, read_timeout_seconds=timeout)
        return result.content[0].text  # type: ignore[no-any-return]

    def revision(self) -> str:
        return str(self.client.protocol_version)


if __name__ == "__main__":
    base.main(lambda: Session)
