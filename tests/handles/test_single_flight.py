"""What is done once for many."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import ToolError
from holdfast.handles.queue import SharedTask


class Work:
    def __init__(self) -> None:
        self.count = 0
        self.gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> None:
        self.count += 1
        await self.gate


async def test_many_wait_for_one_and_the_next_begins_anew() -> None:
    work = Work()
    flight = SharedTask(work)
    waiting = [asyncio.create_task(flight.join()) for _ in range(3)]
    await asyncio.sleep(0)
    assert repr(flight) == "<SharedTask running>"
    work.gate.set_result(None)
    assert await asyncio.gather(*waiting) == [True, True, True]
    assert work.count == 1
    assert await flight.join()
    assert work.count == 2


async def test_who_stops_waiting_leaves_it_to_the_others() -> None:
    work = Work()
    flight = SharedTask(work)
    first, second = (asyncio.create_task(flight.join()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    work.gate.set_result(None)
    assert await second
    assert first.cancelled()


async def test_each_waiter_gets_a_failure_of_its_own() -> None:
    work = Work()
    flight = SharedTask(work)
    waiting = [asyncio.create_task(flight.join()) for _ in range(2)]
    await asyncio.sleep(0)
    work.gate.set_exception(ToolError("no luck"))
    one, other = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(one, ToolError)
    assert isinstance(other, ToolError)
    assert one is not other


async def test_a_failure_nobody_waits_for_is_no_unhandled_error() -> None:
    work = Work()
    flight = SharedTask(work)
    waiting = asyncio.create_task(flight.join())
    await asyncio.sleep(0)
    waiting.cancel()
    work.gate.set_exception(ToolError("no luck"))
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_work_can_be_stopped_and_those_who_wait_are_told() -> None:
    flight = SharedTask(Work())
    waiting = asyncio.create_task(flight.join())
    await asyncio.sleep(0)
    await flight.stop()
    assert await waiting is False
    await flight.stop()
    assert repr(flight) == "<SharedTask idle>"
