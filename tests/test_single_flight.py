"""Work that is done once for many callers."""

from __future__ import annotations

import asyncio

import pytest

from holdfast._core.single_flight import SingleFlight, WorkStopped
from holdfast.errors import ToolError


class Work:
    def __init__(self) -> None:
        self.count = 0
        self.gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> int:
        self.count += 1
        return await self.gate


async def test_many_wait_for_one_and_the_next_begins_anew() -> None:
    work, flights = Work(), SingleFlight()
    waiting = [asyncio.create_task(flights.join("a", work)) for _ in range(3)]
    await asyncio.sleep(0)
    assert "a" in flights
    work.gate.set_result(7)
    assert await asyncio.gather(*waiting) == [7, 7, 7]
    assert work.count == 1
    assert "a" not in flights
    assert await flights.join("a", work) == 7
    assert work.count == 2


async def test_another_key_is_other_work_and_so_is_work_begun_anew() -> None:
    work, flights = Work(), SingleFlight()
    waiting = [
        asyncio.create_task(flights.join("a", work)),
        asyncio.create_task(flights.join("b", work)),
        asyncio.create_task(flights.join("a", work, anew=True)),
        asyncio.create_task(flights.join("a", work)),
    ]
    await asyncio.sleep(0)
    work.gate.set_result(7)
    assert await asyncio.gather(*waiting) == [7, 7, 7, 7]
    assert work.count == 3


@pytest.mark.parametrize("abandon", [True, False])
async def test_who_stops_waiting_leaves_it_to_the_others(abandon: bool) -> None:
    work, flights = Work(), SingleFlight(abandon=abandon)
    first, second = (asyncio.create_task(flights.join("a", work)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    work.gate.set_result(7)
    assert await second == 7
    assert first.cancelled()


@pytest.mark.parametrize("abandon", [True, False])
async def test_work_that_nobody_waits_for_goes_on_unless_it_is_to_be_abandoned(
    abandon: bool,
) -> None:
    work, flights = Work(), SingleFlight(abandon=abandon)
    waiting = asyncio.create_task(flights.join("a", work))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert work.gate.cancelled() is abandon
    assert ("a" in flights) is not abandon


async def test_each_waiter_gets_a_failure_of_its_own() -> None:
    work, flights = Work(), SingleFlight()
    waiting = [asyncio.create_task(flights.join("a", work)) for _ in range(2)]
    await asyncio.sleep(0)
    work.gate.set_exception(ToolError("no luck"))
    one, other = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(one, ToolError)
    assert isinstance(other, ToolError)
    assert one is not other


async def test_a_failure_nobody_waits_for_is_no_unhandled_error() -> None:
    work, flights = Work(), SingleFlight()
    waiting = asyncio.create_task(flights.join("a", work))
    await asyncio.sleep(0)
    waiting.cancel()
    work.gate.set_exception(ToolError("no luck"))
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_closing_stops_what_it_names_and_waits_for_the_rest() -> None:
    work, flights = Work(), SingleFlight()
    stopped, rest = (asyncio.create_task(flights.join(key, Work())) for key in "ab")
    kept = asyncio.create_task(flights.join("c", work))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(work.gate.set_result, 7)
    await flights.close(cancel=("a", "b"))
    with pytest.raises(WorkStopped):
        await stopped
    with pytest.raises(WorkStopped):
        await rest
    assert await kept == 7
    await flights.close()
