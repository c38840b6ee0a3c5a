"""Long use leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import Backoff, HoldfastError, Limits

SERVER = Path(__file__).with_name("server.py")
CALLS = 30_000
AT_ONCE = 64


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> set[str]:
    """Our children but the guard, which lives as long as we do."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if "trap" not in Path(f"/proc/{pid}/cmdline").read_text():
                found.add(pid)
    return found


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Soak:
    """Workers that call, cancel, time out and crash the server, by a seeded plan."""

    def __init__(self, client: holdfast.Client, calls: int) -> None:
        self.client = client
        self.left = calls
        self.outcomes: dict[str, int] = {}
        self.plan = random.Random(7)

    async def run(self) -> None:
        await asyncio.gather(*(self.worker() for _ in range(AT_ONCE)))

    async def worker(self) -> None:
        while self.left > 0:
            self.left -= 1
            outcome = await self.one(self.plan.random())
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    async def one(self, jitter: float) -> str:
        if jitter < 0.0002:
            return await self.call("die")
        if jitter < 0.002:
            return await self.call("silent", timeout=0.02)
        if jitter < 0.01:
            return await self.cancel()
        return await self.call("echo")

    async def call(self, name: str, timeout: float = 20.0) -> str:
        try:
            await self.client.call_tool(name, timeout=timeout)
        except HoldfastError as error:
            return error.kind
        return "ok"

    async def cancel(self) -> str:
        task = asyncio.create_task(self.client.call_tool("silent", timeout=20.0))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        except HoldfastError as error:
            return error.kind
        return "ok"


@pytest.mark.req("R2", "L5", "L8", "V1")
@pytest.mark.long
async def test_thirty_thousand_calls_leave_nothing_behind() -> None:
    command = [sys.executable, str(SERVER)]
    options = {"backoff": Backoff(first=0.01, max=0.02), "limits": Limits(tombstones=1000)}
    async with holdfast.connect(command, when_down="wait", **options) as client:  # type: ignore[arg-type]
        await Soak(client, 2_000).run()
        gc.collect()
        before = (descriptors(), len(asyncio.all_tasks()), resident())
        soak = Soak(client, CALLS)
        await soak.run()
        await client.wait_ready(20)
        driver = client._requester.driver
        assert len(driver.engine.inflight) == 0
        assert driver._waiters == {}
        assert driver.engine.inflight.tombstones <= 1000
        while driver._links.keys() - {driver.engine.link.generation}:
            await driver.change()
        gc.collect()
        fds, tasks, memory = (descriptors(), len(asyncio.all_tasks()), resident())
        assert (fds, tasks) == before[:2]
        assert memory - before[2] < 8 * 1024 * 1024
        assert sum(soak.outcomes.values()) == CALLS
        expected = {"ok", "cancelled", "timeout", "transport"}
        # On a busy machine some calls end before the server has read them.
        assert expected <= set(soak.outcomes) <= expected | {"backpressure"}
        assert soak.outcomes["ok"] > CALLS * 0.9
    assert children() == set()
