"""Holdfast, through its public names and with its defaults."""

from __future__ import annotations

import sys
import time

if sys.argv[1:] == ["import"]:
    started = time.perf_counter()
    from holdfast import connect

    print(time.perf_counter() - started)
    sys.exit(connect is None)

from typing import Any

from benchmarks.peers.drivers import base


class Session:
    async def open(self, target: Any) -> None:
        import holdfast

        self.client = holdfast.connect(target)
        await self.client.open()

    async def close(self) -> None:
        await self.client.close()

    async def tools(self) -> int:
        return len(await self.client.list_tools())

    async def call(self, name: str, arguments: dict[str, Any], timeout: float | None) -> str:
        result = await self.client.call_tool(name, arguments, timeout=timeout)
        return result.content[0].text  # type: ignore[union-attr]

    def revision(self) -> str:
        return str(self.client.protocol_version)


if __name__ == "__main__":
    base.main(lambda: Session)
