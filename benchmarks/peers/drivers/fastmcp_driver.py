"""FastMCP's ``Client``, with its defaults; closed with ``close``, which also ends the server."""

from __future__ import annotations

import importlib
import sys
import time

if sys.argv[1:] == ["import"]:
    started = time.perf_counter()
    found = importlib.import_module("fastmcp").Client
    print(time.perf_counter() - started)
    sys.exit(found is None)

from typing import Any

from benchmarks.peers.drivers import base


class Session:
    async def open(self, target: Any) -> None:
        fastmcp = importlib.import_module("fastmcp")
        transports = importlib.import_module("fastmcp.client.transports")
        if isinstance(target, str):  # named, as "sse" in a URL would be taken for a hint
            transport = transports.StreamableHttpTransport(target)
        else:
            transport = transports.StdioTransport(target[0], target[1:])
        self.client = fastmcp.Client(transport)
        await self.client.__aenter__()

    async def close(self) -> None:
        await self.client.close()

    async def tools(self) -> int:
        return len(await self.client.list_tools())

    async def call(self, name: str, arguments: dict[str, Any], timeout: float | None) -> str:
        result = await self.client.call_tool(name, arguments, timeout=timeout)
        return result.content[0].text  # type: ignore[no-any-return]

    def revision(self) -> str:
        return str(self.client.protocol_version)


if __name__ == "__main__":
    base.main(lambda: Session)
