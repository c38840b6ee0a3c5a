"""What is remembered from one attempt to connect to the next."""

from __future__ import annotations

import itertools

import pytest

from holdfast._core.engine.inflight import Inflight
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.engine.recovery import MOST_RESTARTS, Recovery
from holdfast._core.eras.conversation import Opening, Plan
from holdfast.errors import TransportError
from holdfast.policies import Backoff, Identity

FIRST, SECOND = TransportError("first"), TransportError("second")


def plan(opening: Opening | None = None, pin: str | None = None) -> Plan:
    return Plan(Identity(name="x", version="1"), opening=opening, pin=pin)


def recovery(backoff: Backoff | None = None, opening: Opening | None = None) -> Recovery:
    return Recovery(
        plan(opening), backoff or Backoff(first=1, max=8, jitter=0), itertools.repeat(0.5)
    )


@pytest.mark.req("L5")
def test_the_pause_doubles_up_to_its_most() -> None:
    memory = recovery()
    pauses = []
    for _ in range(6):
        memory.lost(FIRST, connected=False, now=0)
        pauses.append(memory.pause())
    assert pauses == [1, 2, 4, 8, 8, 8]


@pytest.mark.req("L5")
def test_only_a_stretch_of_health_resets_the_pause() -> None:
    memory = recovery(Backoff(first=1, max=8, jitter=0, healthy_after=10))
    for _ in range(3):
        memory.lost(FIRST, connected=False, now=0)
    memory.agreed("discover", 0)
    memory.lost(FIRST, connected=True, now=9)
    assert memory.pause() == 8, "a good handshake alone is not health"
    memory.agreed("discover", 20)
    memory.lost(FIRST, connected=True, now=30)
    assert memory.pause() == 1


@pytest.mark.req("L5")
def test_attempts_in_a_row_come_to_an_end_if_they_shall() -> None:
    memory = recovery(Backoff(first=1, max=8, jitter=0, attempts=2))
    memory.lost(FIRST, connected=False, now=0)
    assert memory.pause() is not None
    memory.lost(FIRST, connected=False, now=0)
    assert memory.pause() is None


@pytest.mark.req("L5")
def test_the_loss_of_a_healthy_link_is_no_failed_attempt() -> None:
    memory = recovery(Backoff(first=1, max=8, jitter=0, attempts=1, healthy_after=0))
    memory.agreed("discover", 0)
    memory.lost(FIRST, connected=True, now=5)
    assert memory.pause() is not None
    memory.lost(FIRST, connected=False, now=6)
    assert memory.pause() is None


@pytest.mark.req("L3")
def test_what_worked_is_how_the_next_link_begins() -> None:
    memory = recovery()
    assert memory.plan(streams=True).opening is None
    memory.agreed("initialize", 0)
    memory.lost(FIRST, connected=True, now=1)
    again = memory.plan(streams=True)
    assert (again.opening, again.streams) == ("initialize", True)


@pytest.mark.req("L3", "X3")
def test_what_does_not_work_any_more_is_forgotten() -> None:
    memory = recovery(opening="discover")
    memory.restart("initialize", "sse", FIRST)
    assert (memory.plan(streams=False).opening, memory.variant) == ("initialize", "sse")
    memory.lost(SECOND, connected=False, now=0)
    assert (memory.opening, memory.variant) == (None, None)


@pytest.mark.req("X3")
def test_another_way_is_kept_while_it_works() -> None:
    memory = recovery()
    memory.restart("initialize", "sse", FIRST)
    memory.agreed("initialize", 0)
    memory.lost(SECOND, connected=True, now=1)
    assert memory.variant == "sse"
    assert memory.reason is SECOND, "the story of the first try is over"


@pytest.mark.req("E2", "X3")
def test_two_failures_of_one_attempt_are_told_together() -> None:
    memory = recovery()
    memory.restart("initialize", "sse", FIRST)
    error = memory.lost(SECOND, connected=False, now=0)
    assert str(error) == "second (and before that: first)"
    assert memory.reason is error
    assert str(memory.lost(SECOND, connected=False, now=0)) == "second", "and once only"


@pytest.mark.req("R2")
def test_starting_again_without_a_pause_is_bounded() -> None:
    memory = recovery()
    granted = [memory.restart("discover", None, None) for _ in range(MOST_RESTARTS + 1)]
    assert granted == [True] * MOST_RESTARTS + [False]
    memory.agreed("discover", 0)
    assert memory.restart("discover", None, None), "an agreement starts the count over"


@pytest.mark.req("L3")
def test_a_server_that_died_of_the_probe_gets_the_other_opening_once() -> None:
    memory = recovery()
    negotiator = Negotiator(plan(), Inflight(75, 100))
    assert memory.died_of_probe(negotiator)
    memory.restart("initialize", None, FIRST)
    assert not memory.died_of_probe(negotiator)


@pytest.mark.req("L3")
@pytest.mark.parametrize("known", [plan("discover"), plan("initialize"), plan(pin="2025-11-25")])
def test_a_server_that_was_not_probed_cannot_have_died_of_it(known: Plan) -> None:
    assert not recovery().died_of_probe(Negotiator(known, Inflight(75, 100)))
    assert not recovery().died_of_probe(None)


@pytest.mark.req("L3")
def test_a_server_that_answered_did_not_die_of_the_probe() -> None:
    negotiator = Negotiator(plan(), Inflight(75, 100))
    negotiator.answered = True
    assert not recovery().died_of_probe(negotiator)


def test_it_shows_how_often_it_failed() -> None:
    memory = recovery()
    memory.lost(FIRST, connected=False, now=0)
    assert "1 failures" in repr(memory)
