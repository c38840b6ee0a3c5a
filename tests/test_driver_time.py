"""The driver's time: never ahead of the clock, whenever its timer fires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core import boundary as b
from holdfast._core.alarm import RESOLUTION
from holdfast._core.boundary import Call, Generation, Link, Report, WireId
from holdfast._core.driver import Driver
from holdfast._core.eras.conversation import Plan
from holdfast.errors import HandshakeTimeout, HoldfastError, RequestTimeout, TransportError
from holdfast.policies import Backoff, Identity, Limits, Policy, Timeouts

HANDSHAKE = 25.0
POLICY = Policy(
    timeouts=Timeouts(handshake=HANDSHAKE),
    backoff=Backoff(first=0.5, max=4.0, jitter=0.0),
)


class Timer:
    """One timer that was asked for."""

    def __init__(self, when: float, function: Callable[[], None]) -> None:
        self.when = when
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """An event loop whose time is a number and whose timers fire when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []
        self._loop = asyncio.get_running_loop()
        self.create_future = self._loop.create_future
        self.call_soon = self._loop.call_soon

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, function: Callable[[], None]) -> Timer:
        timer = Timer(when, function)
        self.timers.append(timer)
        return timer

    def next_timer(self) -> Timer | None:
        self.timers = [timer for timer in self.timers if not timer.cancelled]
        return min(self.timers, key=lambda timer: timer.when, default=None)

    def fire(self, timer: Timer) -> None:
        self.timers.remove(timer)
        timer.function()


class Unreachable:
    """A transport whose links never open, its link, and the driver's listener."""

    name = "unreachable"
    key: Hashable | None = None
    traits = b.Traits()
    authorizer = None

    def __init__(self) -> None:
        self.opened_at: list[float] = []
        self.generation = Generation(0)
        self.report: Callable[[Report], None] | None = None
        self.clock: Clock | None = None

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> Link:
        assert self.clock is not None
        self.opened_at.append(self.clock.now)
        self.generation, self.report = generation, report
        return self

    def lose(self) -> None:
        if self.report is not None:
            self.report(b.Lost(self.generation, TransportError("gone")))

    def send(self, *_: Any) -> bool:
        return True

    def withdraw(self, wire_id: WireId) -> bool:
        return True

    def unsent(self) -> frozenset[WireId]:
        return frozenset()

    def received(self) -> None:
        pass

    def agreed(self) -> None:
        pass

    def unread(self) -> bool:
        return False

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        assert self.report is not None
        asyncio.get_running_loop().call_soon(self.report, b.Drained(self.generation))

    def _nothing(self, *_: Any) -> None: ...

    listen = finish = kill = _nothing
    notified = noticed = asked = dismissed = moved = starting = violated = _nothing
    waiting = store_down = _nothing


class Bench:
    """A driver on a clock of its own, and what became of each call, and when."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.transport = Unreachable()
        self.transport.clock = self.clock
        plan = Plan(Identity(name="x", version="1"))
        self.driver = Driver("server", self.transport, POLICY, plan, self.transport)
        self.driver.loop = self.clock  # type: ignore[assignment]
        self.driver._alarm._loop = self.clock  # type: ignore[assignment]
        self.calls: list[asyncio.Task[Any]] = []

    async def step(self, name: str, span: float) -> None:
        """Do one thing that may happen to a driver."""
        timer = self.clock.next_timer()
        if name in ("call", "call that waits"):
            waits = name == "call that waits"
            self.calls.append(asyncio.create_task(self._call(span, wait=waits)))
        elif name == "lost":
            self.transport.lose()
        elif name == "retry now":
            self.driver.retry_now()
        elif name == "the timer does not fire":
            self.clock.now += span
        elif timer is not None:
            # A loop may fire early or late: by less than its resolution, or by any time.
            due = timer.when - span if name == "the timer fires early" else timer.when + span
            self.clock.now = max(self.clock.now, due)
            self.clock.fire(timer)
        for _ in range(4):
            await asyncio.sleep(0)

    async def _call(self, timeout: float, *, wait: bool) -> None:
        began = self.clock.now
        call = Call("tools/call", {}, idle=timeout, total=timeout, wait=wait)
        try:
            await self.driver.request(call)
        except HandshakeTimeout:
            assert self.clock.now >= self.transport.opened_at[-1] + HANDSHAKE - RESOLUTION
        except RequestTimeout:
            assert self.clock.now >= began + timeout - RESOLUTION
        except HoldfastError:
            pass

    async def finish(self) -> None:
        """Fire every timer at its time until each call has its outcome."""
        for _ in range(500):
            if all(call.done() for call in self.calls):
                break
            await self.step("the timer fires late", 0.0)
        for call in self.calls:
            assert call.done()
            await call
        await self.driver.close()


STEPS = (
    "call",
    "call that waits",
    "lost",
    "retry now",
    "the timer does not fire",
    "the timer fires early",
    "the timer fires late",
)
SPANS = st.one_of(st.floats(0.001, 60.0), st.sampled_from([0.0, 1e-9, 1e-4, 0.0005, 0.5]))


@pytest.mark.req("R3", "L6")
@given(st.lists(st.tuples(st.sampled_from(STEPS), SPANS), max_size=25))
def test_no_deadline_is_judged_before_its_time_whenever_timers_fire(
    steps: list[tuple[str, float]],
) -> None:
    async def main() -> None:
        bench = Bench()
        for name, span in [("call that waits", 40.0), *steps]:
            await bench.step(name, span)
        await bench.finish()

    asyncio.run(main())


@pytest.mark.req("L6")
async def test_a_timer_set_for_a_pause_that_was_cut_short_does_not_end_the_handshake() -> None:
    bench = Bench()
    await bench.step("call that waits", 40.0)
    await bench.step("lost", 0.0)
    await bench.step("retry now", 0.0)
    assert len(bench.transport.opened_at) == 2
    await bench.step("the timer fires late", 0.0)
    assert bench.clock.now < 1001.0
    assert bench.driver.engine.state == "starting"
    assert not bench.calls[0].done()
    await bench.finish()


@pytest.mark.req("R3")
async def test_a_timer_that_fires_early_by_the_clocks_resolution_is_not_set_again() -> None:
    bench = Bench()
    await bench.step("call", 5.0)
    await bench.step("the timer fires early", RESOLUTION / 2)
    assert bench.calls[0].done()
    await bench.finish()


@pytest.mark.req("R3")
async def test_a_timer_that_fires_much_too_early_is_set_again() -> None:
    bench = Bench()
    await bench.step("call", 5.0)
    await bench.step("the timer fires early", 3.0)
    assert not bench.calls[0].done()
    timer = bench.clock.next_timer()
    assert timer is not None
    assert timer.when == 1005.0
    await bench.finish()
