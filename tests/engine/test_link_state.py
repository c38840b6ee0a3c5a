"""The state and the times of the current link."""

from __future__ import annotations

import pytest

from holdfast._core.boundary import Call, Generation, WireId
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.engine.link_state import SWEEP, LinkState, Timers
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.eras.conversation import Plan
from holdfast._core.eras.handshake import Handshake
from holdfast.policies import Identity


@pytest.mark.req("L9")
def test_every_advance_is_a_new_generation() -> None:
    line = LinkState()
    assert [line.advance() for _ in range(3)] == [Generation(1), Generation(2), Generation(3)]
    assert line.generation == Generation(3)


def test_the_greeting_ends_with_its_link_and_the_era_outlives_it() -> None:
    era = Handshake("2025-11-25")
    line = LinkState(negotiator=Negotiator(Plan(Identity()), Inflight(75.0, 10)), era=era)
    line.advance()
    assert line.negotiator is None
    assert line.era is era


@pytest.mark.req("R3")
def test_the_earliest_moment_counts() -> None:
    timers = Timers()
    for at in (5.0, 3.0, 4.0):
        timers.alarm(at)
    assert timers.due == 3.0


@pytest.mark.req("L6")
def test_an_attempt_to_connect_ends_the_wait_for_the_next() -> None:
    timers = Timers()
    timers.retry_at(7.0)
    assert (timers.retry, timers.due) == (7.0, 7.0)
    timers.expect_agreement(5.0)
    assert (timers.retry, timers.handshake, timers.due) == (NEVER, 5.0, 5.0)
    timers.rest()
    assert timers.handshake == NEVER


@pytest.mark.req("L5", "S3")
def test_the_next_attempt_waits_for_the_time_that_the_server_named() -> None:
    timers = Timers()
    timers.delay_retry(20.0, 1.0)
    assert timers.retry == NEVER, "there is no attempt to come"
    timers.retry_at(3.0)
    timers.delay_retry(None, 1.0)
    timers.delay_retry(1.0, 1.0)
    assert timers.retry == 3.0, "backoff is longer"
    timers.delay_retry(20.0, 1.0)
    assert timers.retry == 21.0


@pytest.mark.req("R5")
def test_tombstones_are_swept_in_their_time_and_the_first_alarm_stands() -> None:
    timers, inflight = Timers(), Inflight(75, 100)
    timers.watch(inflight, 1.0)
    assert timers.sweep == NEVER
    inflight.bury(WireId(1), 1.0)
    timers.watch(inflight, 1.0)
    timers.watch(inflight, 30.0)
    assert timers.sweep == timers.due == 1.0 + SWEEP


@pytest.mark.req("R3")
def test_looking_at_everything_anew_finds_the_earliest_of_all() -> None:
    timers, inflight = Timers(due=1.0), Inflight(75, 100)
    timers.arm(inflight, 2.0)
    assert timers.due == NEVER
    inflight.admit(Call("x", idle=10, total=20), 2.0)
    timers.arm(inflight, 2.0)
    assert timers.due == 12.0
    timers.arm(inflight, 2.0, NEVER, 6.0)
    assert timers.due == 6.0
    timers.handshake = 5.0
    timers.retry = 4.0
    timers.arm(inflight, 2.0)
    assert timers.due == 4.0
