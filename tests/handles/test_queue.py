"""The queue: turns, stepping out of it, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StateError
from holdfast.handles.handle import CallQueue


class Works:
    """Pieces of work that begin when they are called and end when they are told to."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self._gates: dict[str, asyncio.Future[str]] = {}

    def __call__(self, name: str) -> Callable[[], Awaitable[str]]:
        gate = self._gates[name] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            self.story.append(f"{name} begins")
            try:
                await gate
                return name
            finally:
                self.story.append(f"{name} ends")

        return work

    def finish(self, name: str) -> None:
        if not self._gates[name].cancelled():
            self._gates[name].set_result(name)

    def fail(self, name: str) -> None:
        if not self._gates[name].cancelled():
            self._gates[name].set_exception(ValueError(name))


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def start(
    queue: CallQueue, works: Works, name: str, *, parallel: bool = False
) -> asyncio.Task[str]:
    return asyncio.create_task(queue.run(name, works(name), parallel=parallel))


@pytest.mark.req("H6")
async def test_calls_go_one_after_the_other_in_the_order_they_came() -> None:
    queue, works = CallQueue("server"), Works()
    calls = [start(queue, works, name) for name in "abc"]
    await settle()
    assert works.story == ["a begins"]
    for name in "abc":
        works.finish(name)
    assert await asyncio.gather(*calls) == ["a", "b", "c"]
    assert works.story == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


@pytest.mark.req("H6")
async def test_a_parallel_call_neither_waits_nor_keeps_others_waiting() -> None:
    queue, works = CallQueue("server"), Works()
    first = start(queue, works, "first")
    await settle()
    aside = start(queue, works, "aside", parallel=True)
    await settle()
    assert works.story == ["first begins", "aside begins"]
    works.finish("first")
    assert await first == "first"
    second = start(queue, works, "second")
    await settle()
    assert works.story[-1] == "second begins"
    works.finish("aside")
    works.finish("second")
    await asyncio.gather(aside, second)


@pytest.mark.req("H6")
async def test_a_failed_call_does_not_poison_the_next() -> None:
    queue, works = CallQueue("server"), Works()
    bad, good = start(queue, works, "bad"), start(queue, works, "good")
    await settle()
    works.fail("bad")
    works.finish("good")
    with pytest.raises(ValueError, match=r"bad"):
        await bad
    assert await good == "good"


@pytest.mark.req("H6")
async def test_a_cancelled_call_does_not_poison_the_next() -> None:
    queue, works = CallQueue("server"), Works()
    bad, good = start(queue, works, "bad"), start(queue, works, "good")
    await settle()
    bad.cancel()
    works.finish("good")
    assert await good == "good"
    assert bad.cancelled()


@pytest.mark.req("H6")
async def test_a_call_cancelled_in_the_queue_never_begins() -> None:
    queue, works = CallQueue("server"), Works()
    first, second, third = (start(queue, works, name) for name in ("1", "2", "3"))
    await settle()
    second.cancel()
    works.finish("1")
    works.finish("3")
    assert [await first, await third] == ["1", "3"]
    assert "2 begins" not in works.story


async def test_a_turn_that_meets_a_cancellation_goes_to_the_next() -> None:
    queue, works = CallQueue("server"), Works()

    async def first() -> None:
        await queue.run("1", works("1"))
        # The second has its turn now, and has not taken it up yet.
        second.cancel()

    one = asyncio.create_task(first())
    await settle()
    second, third = (start(queue, works, name) for name in ("2", "3"))
    await settle()
    works.finish("1")
    works.finish("3")
    await one
    assert await third == "3"
    assert second.cancelled()
    assert "2 begins" not in works.story


async def test_many_cancellations_leave_the_queue_in_order() -> None:
    queue, works = CallQueue("server"), Works()
    calls = {str(number): start(queue, works, str(number)) for number in range(50)}
    await settle()
    for number in range(0, 50, 3):
        calls[str(number)].cancel()
    for name in calls:
        works.finish(name)
    await asyncio.gather(*calls.values(), return_exceptions=True)
    begun = [int(one.split()[0]) for one in works.story if one.endswith("begins")]
    assert begun == [0, *(number for number in range(50) if number % 3)]
    assert repr(queue) == "<CallQueue open 0 running, 0 queued>"


@pytest.mark.req("H6")
async def test_what_waits_is_refused_at_the_end_and_what_runs_goes_on() -> None:
    queue, works = CallQueue("server"), Works()
    running, waiting = start(queue, works, "running"), start(queue, works, "waiting")
    await settle()
    queue.close()
    with pytest.raises(StateError, match=r"^server: waiting: the handle is closed; nothing was"):
        await waiting
    works.finish("running")
    assert await running == "running"
    assert "waiting begins" not in works.story


@pytest.mark.req("H6")
async def test_a_turn_that_meets_the_end_is_refused() -> None:
    queue, works = CallQueue("server"), Works()

    async def first() -> None:
        await queue.run("1", works("1"))
        # The second has its turn now, and has not taken it up yet.
        queue.close()

    one = asyncio.create_task(first())
    await settle()
    second = start(queue, works, "2")
    await settle()
    works.finish("1")
    await one
    with pytest.raises(StateError, match="the handle is closed"):
        await second
    assert "2 begins" not in works.story


@pytest.mark.req("H6")
@pytest.mark.parametrize("parallel", [False, True])
async def test_nothing_begins_after_the_end(parallel: bool) -> None:
    queue, works = CallQueue("server"), Works()
    queue.close(ValueError("no luck"))
    queue.close()
    with pytest.raises(
        StateError, match=r"closed, since it could not be opened .no luck."
    ) as caught:
        await queue.run("late", works("late"), parallel=parallel)
    assert caught.value.state == "closed"
    assert works.story == []


async def test_one_can_wait_until_nothing_runs() -> None:
    queue, works = CallQueue("server"), Works()
    assert await queue.idle(60)
    calls = [start(queue, works, name, parallel=True) for name in "ab"]
    await settle()
    waiting = asyncio.create_task(queue.idle(60))
    await settle()
    works.finish("a")
    await settle()
    assert not waiting.done()
    works.finish("b")
    assert await waiting
    await asyncio.gather(*calls)


async def test_the_wait_until_nothing_runs_has_an_end() -> None:
    queue, works = CallQueue("server"), Works()
    call = start(queue, works, "a")
    await settle()
    assert not await queue.idle(0)
    works.finish("a")
    await call


FATES = ("finish", "fail", "cancel")


@pytest.mark.req("H6")
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(FATES)), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
async def test_whatever_becomes_of_calls_the_others_have_their_turn(
    plan: list[tuple[bool, str]], luck: Random
) -> None:
    # All chance first: hypothesis may stop a test where it draws, and tasks that are left behind
    # would be reported while something else is at work (in 3.11 that breaks an ast.parse).
    order = luck.sample(range(len(plan)), len(plan))
    pauses = [luck.randrange(4) for _ in plan]
    queue, works = CallQueue("server"), Works()
    names = [str(number) for number in range(len(plan))]
    calls = [
        start(queue, works, name, parallel=parallel)
        for name, (parallel, _) in zip(names, plan, strict=True)
    ]
    await settle()
    for place, pause in zip(order, pauses, strict=True):
        fate = plan[place][1]
        if fate == "cancel":
            calls[place].cancel()
        elif fate == "fail":
            works.fail(names[place])
        else:
            works.finish(names[place])
        for _ in range(pause):
            await asyncio.sleep(0)
    results = await asyncio.gather(*calls, return_exceptions=True)
    for name, result, (_, fate) in zip(names, results, plan, strict=True):
        expected = {"finish": str, "fail": ValueError, "cancel": asyncio.CancelledError}[fate]
        assert isinstance(result, expected), (name, result)
    serial = {name for name, (parallel, _) in zip(names, plan, strict=True) if not parallel}
    story = [one for one in works.story if one.split()[0] in serial]
    assert [one.split()[0] for one in story[::2]] == [one.split()[0] for one in story[1::2]]
    begun = [int(one.split()[0]) for one in story[::2]]
    assert begun == sorted(begun)
    assert repr(queue) == "<CallQueue open 0 running, 0 queued>"
