"""A process that makes calls under a shared limit. Its tool holds a connection to a counter."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import holdfast
from holdfast.testing import Peer


def store_at(place: str) -> Any:
    if place.startswith("redis://"):
        from holdfast.stores import RedisStore

        return RedisStore(place)
    from holdfast.stores import SqliteStore

    return SqliteStore(place)


async def main(place: str, port: int, calls: int, lease: float) -> None:
    peer = Peer()

    @peer.tool()
    async def work() -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()

    limits = holdfast.Limits(concurrent=4, store=store_at(place), key="proof", lease=lease)
    timeouts = holdfast.Timeouts(request=300, total=600)
    async with holdfast.connect(peer, limits=limits, timeouts=timeouts) as client:
        results = await asyncio.gather(*(client.call_tool("work") for _ in range(calls)))
    assert [result.text for result in results] == ["done"] * calls
    print("all done")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
