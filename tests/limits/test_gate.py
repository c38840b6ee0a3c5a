"""Limits of a server and its tools, as a caller meets them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast
from holdfast import Limits, RequestTimeout, ToolPolicy
from holdfast._core.limits.queue import calling_as
from holdfast._core.wire.codes import RATE_LIMITED, RequestError
from holdfast.errors import BackpressureError, RpcError, ShutdownError
from holdfast.events import RequestWaiting
from holdfast.handles import Handle
from holdfast.testing import Peer

HOUR = 3600.0


class Desk:
    """A peer whose tool ``hold`` ends when it is told to, and counts how many are inside."""

    def __init__(self) -> None:
        self.peer = Peer()
        self.inside = self.most = 0
        self.order: list[int] = []
        self.gates: dict[int, asyncio.Event] = {}
        self.arrivals = asyncio.Condition()

        @self.peer.tool()
        async def hold(number: int) -> int:
            return await self.serve(number)

        @self.peer.tool()
        async def other(number: int) -> int:
            return await self.serve(number)

        @self.peer.tool()
        def quick() -> str:
            return "done"

    async def serve(self, number: int) -> int:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.order.append(number)
        async with self.arrivals:
            self.arrivals.notify_all()
        try:
            await self.gate(number).wait()
        finally:
            self.inside -= 1
        return number

    def gate(self, number: int) -> asyncio.Event:
        return self.gates.setdefault(number, asyncio.Event())

    async def seen(self, count: int) -> None:
        """Wait until so many calls have arrived."""
        async with asyncio.timeout(10), self.arrivals:
            await self.arrivals.wait_for(lambda: len(self.order) >= count)

    def open_all(self, count: int) -> None:
        for number in range(count):
            self.gate(number).set()


def call(client: holdfast.Client, number: int, tool: str = "hold", **options: Any) -> Any:
    return asyncio.ensure_future(client.call_tool(tool, {"number": number}, **options))


async def raised(work: Awaitable[Any]) -> Exception:
    try:
        result = await work
    except Exception as error:
        return error
    raise AssertionError(f"nothing was raised: {result!r}")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


@pytest.mark.req("S3")
async def test_the_server_never_sees_more_than_its_places() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=3)) as client:
        calls = [call(client, number) for number in range(10)]
        await desk.seen(3)
        for number in range(10):
            desk.gate(number).set()
            assert (await calls[number]).text == str(number)
        assert desk.most == 3
        assert desk.order == list(range(10)), "in the order of coming"


@pytest.mark.req("S3")
async def test_a_call_that_waits_says_so_once() -> None:
    desk = Desk()
    waits: list[RequestWaiting] = []
    async with holdfast.connect(desk.peer, name="desk", limits=Limits(concurrent=1)) as client:
        client.events.subscribe(waits.append, "request.waiting")
        first = call(client, 0)
        await desk.seen(1)
        assert not waits
        second = call(client, 1)
        await until(lambda: waits)
        desk.open_all(2)
        await asyncio.gather(first, second)
    assert waits == [
        RequestWaiting(
            client="desk",
            method="tools/call",
            about="hold",
            reason="concurrent",
            limit="concurrent=1",
        )
    ]


@pytest.mark.req("S3")
async def test_a_call_waits_within_its_own_timeout_and_nothing_is_sent() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=1)) as client:
        first = call(client, 0)
        await desk.seen(1)
        error = await raised(call(client, 1, timeout=0.02))
        assert isinstance(error, RequestTimeout)
        assert not error.outcome_unknown
        assert "no place became free within 20 ms (concurrent=1); nothing was sent" in error.message
        assert "Limits(concurrent=…) allows more" in str(error)
        desk.open_all(1)
        await first
    assert desk.order == [0]


@pytest.mark.req("S3")
async def test_the_time_at_the_gate_is_not_the_silence_of_the_server() -> None:
    desk = Desk()
    patience = holdfast.Timeouts(request=0.2, total=HOUR)
    async with holdfast.connect(
        desk.peer, limits=Limits(concurrent=1), timeouts=patience
    ) as client:
        first = call(client, 0, timeout=HOUR)
        await desk.seen(1)
        second = call(client, 1)
        await asyncio.wait((second,), timeout=0.3)
        assert not second.done()
        desk.open_all(2)
        await first
        assert (await second).text == "1"


@pytest.mark.req("S3")
async def test_who_is_cancelled_while_waiting_gives_the_turn_to_the_next() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=1)) as client:
        calls = [call(client, number) for number in range(4)]
        await desk.seen(1)
        calls[1].cancel()
        desk.gate(0).set()  # and in the same turn of the loop the place becomes free
        calls[2].cancel()
        desk.open_all(4)
        assert (await calls[3]).text == "3"
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) is asyncio.CancelledError for result in results[1:3]] == [True, True]
        assert (await call(client, 3)).text == "3", "no place was lost"
    assert 1 not in desk.order


@pytest.mark.req("S3")
async def test_thousands_who_are_cancelled_at_once_lose_no_place() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=2, rate="1000000/s")) as client:
        calls = [call(client, number) for number in range(3000)]
        await desk.seen(2)
        for task in calls[2:]:
            task.cancel()
        desk.open_all(2)
        await asyncio.gather(*calls, return_exceptions=True)
        assert (await call(client, 0)).text == "0"


@pytest.mark.req("S3")
async def test_closing_the_client_ends_those_who_wait() -> None:
    desk = Desk()
    client = holdfast.connect(desk.peer, limits=Limits(concurrent=1, rate="1/h"))
    first = call(client, 0)
    await desk.seen(1)
    second = call(client, 1)
    await until(lambda: client._is_busy and len(desk.order) == 1)
    await asyncio.sleep(0)
    await client.close()
    error = await raised(second)
    assert isinstance(error, ShutdownError)
    assert not error.outcome_unknown
    await raised(first)


@pytest.mark.req("S3")
async def test_a_rate_holds_calls_back() -> None:
    desk = Desk()
    waits: list[RequestWaiting] = []
    limits = Limits(rate="2/h")
    async with holdfast.connect(
        desk.peer, limits=limits, tools=ToolPolicy(validate="off")
    ) as client:
        client.events.subscribe(waits.append, "request.waiting")
        assert (await client.call_tool("quick")).text == "done"
        error = await raised(client.call_tool("quick", timeout=0.02))
        assert isinstance(error, RequestTimeout)
        assert "its turn did not come within 20 ms (rate=2/h); nothing was sent" in error.message
        assert [wait.reason for wait in waits] == ["rate"]


@pytest.mark.req("S3")
async def test_calls_under_a_rate_come_one_after_another() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(rate="200/s")) as client:
        await client.list_tools()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.gather(*(client.call_tool("quick") for _ in range(60)))
        assert loop.time() - begun >= (60 - 20) / 200 - 0.01


@pytest.mark.req("S3")
async def test_a_tool_may_have_a_limit_of_its_own() -> None:
    desk = Desk()
    policy = ToolPolicy(concurrent={"hold": 1}, rate={"quick": "1/h"})
    async with holdfast.connect(desk.peer, tools=policy, limits=Limits(concurrent=2)) as client:
        await client.list_tools()
        first, second = call(client, 0), call(client, 1)
        await desk.seen(1)
        third = call(client, 2, tool="other")
        await desk.seen(2)
        assert desk.order == [0, 2], "the one that waits for its tool takes no place of the server"
        desk.open_all(3)
        await asyncio.gather(first, second, third)
        assert (await client.call_tool("quick")).text == "done"
        error = await raised(client.call_tool("quick", timeout=0.02))
        assert "(rate=1/h for quick)" in str(error)


@pytest.mark.req("S3")
async def test_tools_of_one_pattern_share_its_limit() -> None:
    desk = Desk()
    policy = ToolPolicy(concurrent={"*o*": 1})
    async with holdfast.connect(desk.peer, tools=policy) as client:
        await client.list_tools()
        first, second = call(client, 0), call(client, 1, tool="other")
        await desk.seen(1)
        desk.open_all(2)
        await asyncio.gather(first, second)
        assert desk.most == 1


@pytest.mark.req("S3")
async def test_a_caller_with_many_calls_does_not_starve_another() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=1)) as client:
        with calling_as("bulk"):
            bulk = [call(client, number) for number in range(50)]
        await desk.seen(1)
        with calling_as("person"):
            person = call(client, 99)
        await until(lambda: client._is_busy)
        desk.open_all(100)
        await asyncio.gather(*bulk, person)
        assert desk.order.index(99) < 6


@pytest.mark.req("S3")
async def test_handles_on_one_client_take_turns() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=1)) as client:
        many, few = Handle(client, drift="off"), Handle(client, drift="off")
        crowd = [
            asyncio.ensure_future(many.call("hold", {"number": number}, parallel=True))
            for number in range(20)
        ]
        await desk.seen(1)
        single = asyncio.ensure_future(few.call("hold", {"number": 50}))
        await until(lambda: client._is_busy)
        desk.open_all(51)
        await asyncio.gather(*crowd, single)
        assert desk.order.index(50) < 6


@pytest.mark.req("S3")
async def test_what_ends_a_call_needs_no_place() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer, limits=Limits(concurrent=1)) as client:
        first = call(client, 0)
        await desk.seen(1)
        if client.protocol_version in holdfast._core.eras.revisions.HANDSHAKE:
            await client.ping(timeout=5)
        await client.set_log_level("error", timeout=5)
        desk.open_all(1)
        await first


class Busy:
    """A peer that says "later" to its first calls."""

    def __init__(self, times: int, data: Any) -> None:
        self.peer = Peer()
        self.calls = 0

        @self.peer.tool()
        def work() -> str:
            self.calls += 1
            if self.calls <= times:
                raise RequestError(RATE_LIMITED, "slow down", data)
            return "done"


@pytest.mark.req("S3")
async def test_a_call_that_is_told_later_is_made_later() -> None:
    busy = Busy(2, {"retryAfterMs": 5})
    async with holdfast.connect(busy.peer) as client:
        assert (await client.call_tool("work")).text == "done"
    assert busy.calls == 3


@pytest.mark.req("S3")
async def test_later_closes_the_gate_for_all_calls() -> None:
    busy = Busy(1, {"retryAfterMs": 200})
    waits: list[RequestWaiting] = []
    async with holdfast.connect(busy.peer) as client:
        client.events.subscribe(waits.append, "request.waiting")
        await client.list_tools()
        first = asyncio.ensure_future(client.call_tool("work"))
        await until(lambda: busy.calls)
        await until(lambda: client._requester.driver.gate is not None)
        others = [asyncio.ensure_future(client.call_tool("work")) for _ in range(5)]
        await until(lambda: len(waits) == 5)
        assert busy.calls == 1
        assert {wait.reason for wait in waits} == {"later"}
        assert all(0 < (wait.seconds or 0) <= 0.22 for wait in waits)
        await asyncio.gather(first, *others)
    assert busy.calls == 7


@pytest.mark.req("S3")
async def test_those_who_wait_until_later_go_on_in_the_order_of_coming() -> None:
    """Each had a timer of its own, for the same moment: the order was chance."""
    peer, order = Peer(), list[int]()
    refusals = [RequestError(RATE_LIMITED, "slow down", {"retryAfterMs": 300})]

    @peer.tool()
    def work(number: int) -> int:
        if refusals:
            raise refusals.pop()
        order.append(number)
        return number

    async with holdfast.connect(peer, limits=Limits(concurrent=1)) as client:
        await client.list_tools()
        first = asyncio.ensure_future(client.call_tool("work", {"number": 0}))
        gate = client._requester.driver.gate
        assert gate is not None
        await until(lambda: gate.closed_until)
        others = [
            asyncio.ensure_future(client.call_tool("work", {"number": number}))
            for number in range(1, 21)
        ]
        await asyncio.sleep(0)
        others.pop(6).cancel()
        await asyncio.gather(first, *others)
    assert order == [number for number in range(21) if number != 7]


@pytest.mark.req("S3")
@pytest.mark.parametrize("milliseconds", [10 * 365 * 86_400_000, 10**400, 1e300])
async def test_a_hostile_later_is_clamped_and_fails_calls_at_once(milliseconds: float) -> None:
    busy = Busy(100, {"retryAfterMs": milliseconds})
    async with holdfast.connect(busy.peer) as client:
        error = await raised(client.call_tool("work"))
        assert isinstance(error, RpcError)
        assert (error.code, error.outcome_unknown) == (RATE_LIMITED, False)
        error = await raised(client.call_tool("work", timeout=20))
        assert isinstance(error, BackpressureError)
        assert error.retry_in is not None
        assert 299 < error.retry_in <= 330
        assert "takes no calls for another 3" in error.message
        assert not error.outcome_unknown
    assert busy.calls == 1


@pytest.mark.req("S3")
@pytest.mark.parametrize(
    "data", [None, [], {"retryAfterMs": "soon"}, {"retryAfterMs": True}, {"retryAfterMs": -5}]
)
async def test_a_later_without_a_time_is_a_second(data: Any) -> None:
    busy = Busy(1, data)
    async with holdfast.connect(busy.peer) as client:
        await client.list_tools()
        work = asyncio.ensure_future(client.call_tool("work"))
        await until(lambda: client._requester.driver.gate is not None)
        gate = client._requester.driver.gate
        assert gate is not None
        rest = gate.closed_until - asyncio.get_running_loop().time()
        assert 0.5 < rest <= 1.1
        work.cancel()
        await asyncio.wait((work,))


@pytest.mark.req("S3")
async def test_a_server_that_is_down_takes_neither_place_nor_token() -> None:
    import sys

    command = [sys.executable, "-c", "import sys; sys.exit(3)"]
    backoff = holdfast.Backoff(first=HOUR, max=HOUR)
    async with holdfast.connect(command, limits=Limits(rate="1/h"), backoff=backoff) as client:
        await raised(client.call_tool("work"))
        for _ in range(3):
            error = await raised(client.call_tool("work"))
            assert isinstance(error, holdfast.StateError), error
            assert error.retry_in


@pytest.mark.req("S3")
async def test_without_limits_there_is_no_gate() -> None:
    desk = Desk()
    async with holdfast.connect(desk.peer) as client:
        await client.call_tool("quick")
        assert client._requester.driver.gate is None
