"""A process that makes calls under a shared limit. Its tool holds a connection to a counter."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import holdfast
from holdfast._core.limits import shared
from holdfast.testing import Peer

SLOW = 600.0
"""Seconds for a store that others use at the same time, on a machine that is busy."""
NEVER = 1e8
LEAP = 1000.0


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward, past every lease."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def leap(self) -> None:
        self.ahead += LEAP


def store_at(place: str) -> Any:
    if place.startswith("redis://"):
        from holdfast.stores import RedisStore

        return RedisStore(place, patience=SLOW)
    from holdfast.stores import SqliteStore

    return SqliteStore(place)


async def main(loop: Loop, place: str, port: int, calls: int, lease: float) -> None:
    peer = Peer()
    loop.add_signal_handler(signal.SIGUSR1, loop.leap)

    @peer.tool()
    async def work() -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return (await reader.readline()).decode().strip()
        finally:
            writer.close()

    limits = holdfast.Limits(concurrent=4, store=store_at(place), key="proof", lease=lease)
    timeouts = holdfast.Timeouts(request=NEVER, total=NEVER)
    async with holdfast.connect(peer, limits=limits, timeouts=timeouts) as client:
        results = await asyncio.gather(*(client.call_tool("work") for _ in range(calls)))
    assert [result.text for result in results] == ["done"] * calls
    print("all done")


if __name__ == "__main__":
    vars(shared)["PATIENCE"] = NEVER
    with asyncio.Runner(loop_factory=Loop) as runner:
        place, port, calls, lease = sys.argv[1:]
        loop = runner.get_loop()
        assert isinstance(loop, Loop)
        runner.run(main(loop, place, int(port), int(calls), float(lease)))
