"""The order of those who wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.limits.queue import FairQueue


@pytest.mark.req("S3")
def test_one_caller_is_served_in_order_of_coming() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(5):
        queue.add("a", number)
    assert [queue.next() for _ in range(5)] == [0, 1, 2, 3, 4]
    assert not queue


@pytest.mark.req("S3")
def test_callers_have_their_turns_one_after_another() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        queue.add("many", f"many {number}")
    queue.add("one", "one 0")
    queue.add("two", "two 0")
    queue.add("two", "two 1")
    order = [queue.next() for _ in range(6)]
    assert order == ["many 0", "one 0", "two 0", "many 1", "two 1", "many 2"]


@pytest.mark.req("S3")
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["add", "next", "remove"]))))
def test_everybody_who_stays_has_a_turn_once(steps: list[tuple[int, str]]) -> None:
    queue: FairQueue[int] = FairQueue()
    waiting: dict[int, int] = {}
    served: list[int] = []
    for number, (caller, step) in enumerate(steps):
        if step == "add":
            queue.add(caller, number)
            waiting[number] = caller
        elif step == "next" and queue:
            served.append(queue.next())
            waiting.pop(served[-1])
        elif step == "remove":
            for waiter in [waiter for waiter, who in waiting.items() if who == caller][-1:]:
                assert queue.remove(caller, waiter)
                waiting.pop(waiter)
        assert len(queue) == len(waiting)
    while queue:
        served.append(queue.next())
    assert len(served) == len(set(served))
    assert set(waiting) <= set(served)
    assert not any(queue.remove(0, waiter) for waiter in served)
