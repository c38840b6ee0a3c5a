"""How processes divide one limit, as a function of the store's entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.limits.shares import Shares, Timeline, Worker
from holdfast._core.rate import Rate
from tests.rows import rows


@pytest.mark.req("S3")
def test_free_places_go_to_those_who_have_fewest() -> None:
    shares = Shares()
    assert shares.divide("a", 4, running=0, waiting=3) == 3
    shares.workers["b"] = Worker(waits=2, turn=shares.next_turn())
    assert shares.divide("a", 4, running=3, waiting=3) == 3, "the fourth falls to b"
    assert shares.divide("b", 4, running=0, waiting=2) == 1


@pytest.mark.req("S3")
def test_whoever_has_two_more_than_one_who_waits_gives_one_up() -> None:
    shares = Shares()
    assert shares.divide("a", 4, running=0, waiting=9) == 4
    assert shares.divide("b", 4, running=0, waiting=9) == 0
    assert shares.must_yield("a", rotates=False)
    assert shares.divide("a", 4, running=3, waiting=9) == 3
    assert shares.divide("b", 4, running=0, waiting=9) == 1
    assert shares.divide("a", 4, running=2, waiting=9) == 2
    assert shares.divide("b", 4, running=1, waiting=9) == 2
    assert not shares.must_yield("a", rotates=True)


@pytest.mark.req("S3")
def test_one_place_goes_round_among_processes() -> None:
    shares, served = Shares(), []
    holder = None
    for _ in range(9):
        for name in "abc":
            is_holder = holder == name
            places = shares.divide(name, 1, 0, 1, rotates=is_holder)
            if places:
                holder = name
                served.append(name)
    assert {*served} == {"a", "b", "c"}
    assert served[:3] == ["a", "b", "c"]


@pytest.mark.req("S3")
def test_the_places_of_the_dead_come_back() -> None:
    shares = Shares()
    shares.divide("a", 2, running=0, waiting=2)
    assert shares.divide("b", 2, running=0, waiting=2) == 0
    shares.strike_off(["a"])
    assert shares.divide("b", 2, running=0, waiting=2) == 2


@pytest.mark.req("S3")
@given(
    concurrent=st.integers(1, 6),
    steps=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["call", "end", "look", "die"])),
        max_size=120,
    ),
    rotates=st.booleans(),
)
def test_there_are_never_more_calls_than_places(
    concurrent: int, steps: list[tuple[str, str]], rotates: bool
) -> None:
    shares = Shares()
    running = dict.fromkeys("abcd", 0)
    waiting = dict.fromkeys("abcd", 0)
    for name, step in steps:
        if step == "call":
            waiting[name] += 1
        elif step == "end" and running[name]:
            running[name] -= 1
        elif step == "die":
            shares.strike_off([name])
            running[name] = waiting[name] = 0
        places = shares.divide(name, concurrent, running[name], waiting[name], rotates=rotates)
        begin = min(waiting[name], places - running[name])
        running[name] += begin
        waiting[name] -= begin
        assert sum(running.values()) <= concurrent
        assert sum(worker.places for worker in shares.workers.values()) <= concurrent
    # When all calls have ended one by one, everybody who waits has had a place.
    for _ in range(sum(waiting.values()) * 4 + 8):
        for name in "abcd":
            running[name] = 0
            places = shares.divide(name, concurrent, 0, waiting[name])
            begin = min(waiting[name], places)
            running[name], waiting[name] = begin, waiting[name] - begin
    assert not any(waiting.values())


@pytest.mark.req("S3")
@given(
    calls=st.integers(1, 100),
    takes=st.lists(st.tuples(st.floats(0, 3), st.integers(0, 20)), max_size=50),
)
def test_tokens_of_all_processes_together_keep_to_the_rate(
    calls: int, takes: list[tuple[float, int]]
) -> None:
    shares, rate, now, total = Shares(), Rate(calls, 1.0), 1000.0, 0
    for pause, wanted in takes:
        now += pause
        tokens, wait = shares.take_tokens(rate, wanted, now)
        assert tokens <= wanted
        assert wait >= 0
        total += tokens
    assert total <= rate.burst + (now - 1000.0) * calls + 1e-6


@pytest.mark.req("S3")
@pytest.mark.parametrize("ahead", [0.0, 3600.0, -3600.0])
def test_wall_clocks_that_differ_do_not_fill_the_bucket(ahead: float) -> None:
    """Two processes take turns for ten seconds, a hundred times a second."""
    rate, shares, tokens = Rate(60, 60.0), Shares(), 0
    clocks = {"a": (Timeline(30.0), 0.0), "b": (Timeline(30.0), ahead)}
    for step in range(1000):
        timeline, error = clocks["ab"[step % 2]]
        now = step / 100
        at = timeline.time(shares, now, 1_000_000 + now + error)
        tokens += shares.take_tokens(rate, 5, at)[0]
    # What was there at first, what came in ten seconds, and a new process's word for a lease.
    assert rate.burst + 9 <= tokens <= 2 * rate.burst + 10


@pytest.mark.req("S3")
def test_a_wall_clock_that_jumps_changes_no_rate() -> None:
    rate, shares, timeline, tokens = Rate(60, 60.0), Shares(), Timeline(30.0), 0
    for step in range(100):
        wall = 1_000_000 + step + (7200 if step > 30 else 0) - (9000 if step > 60 else 0)
        tokens += shares.take_tokens(rate, 5, timeline.time(shares, float(step), wall))[0]
    assert rate.burst + 98 <= tokens <= rate.burst + 100


@pytest.mark.req("S3")
def test_a_process_that_comes_later_counts_the_time_before_it() -> None:
    rate, shares = Rate(60, 60.0), Shares()
    first = Timeline(30.0)
    assert shares.take_tokens(rate, 6, first.time(shares, 0.0, 1000.0))[0] == 6
    assert shares.take_tokens(rate, 6, Timeline(30.0).time(shares, 500.0, 1004.0))[0] == 4


@pytest.mark.req("S3")
@rows(("until", "rest"), [(900, 0), (1000, 0), (1100, 100), (1330, 330), (4600, 0), (1e300, 0)])
def test_a_rest_is_never_longer_than_a_server_is_believed(until: float, rest: float) -> None:
    assert Shares(closed_until=until).closed_for(1000.0) == rest
