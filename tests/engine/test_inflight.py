"""Requests under way and tombstones, as one object."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.boundary import Call, WireId
from holdfast._core.engine.inflight import NEVER, Inflight, Stray

CALL = Call("tools/call", idle=30.0, total=300.0)


@pytest.fixture
def inflight() -> Inflight:
    return Inflight(tombstone_ttl=75.0, tombstone_limit=100)


@pytest.mark.req("R1")
def test_tickets_and_wire_ids_rise_and_are_never_used_twice(inflight: Inflight) -> None:
    tickets, wire_ids = [], []
    for round_ in range(10):
        pending = inflight.admit(CALL, 0.0)
        tickets.append(pending.ticket)
        wire_ids.append(inflight.number())
        wire_ids.append(inflight.dispatch(pending))
        if round_ % 2:
            inflight.settle(wire_ids[-1])
        else:
            inflight.end(pending, 0.0)
    assert tickets == sorted(set(tickets))
    assert wire_ids == sorted(set(wire_ids))


def test_a_request_is_parked_until_it_is_dispatched(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    assert inflight.parked() == [pending]
    assert repr(inflight) == "<Inflight 0 sent, 1 parked, 0 buried>"
    wire_id = inflight.dispatch(pending)
    assert inflight.parked() == []
    assert inflight.sent(wire_id) is pending
    assert inflight.find(pending.ticket) is pending
    assert repr(inflight) == "<Inflight 1 sent, 0 parked, 0 buried>"


def test_a_sent_request_can_be_parked_again_and_gets_a_new_id(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    first = inflight.dispatch(pending)
    inflight.park(pending)
    assert inflight.sent(first) is None
    assert inflight.parked() == [pending]
    assert inflight.dispatch(pending) > first


@pytest.mark.req("R2")
def test_an_answer_settles_its_request_once(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    wire_id = inflight.dispatch(pending)
    assert inflight.settle(wire_id) is pending
    assert inflight.settle(wire_id) is None
    assert len(inflight) == 0
    assert inflight.tombstones == 0


@pytest.mark.parametrize("odd", [None, "1", 1.5, 99, object()])
def test_an_answer_to_something_else_settles_nothing(inflight: Inflight, odd: object) -> None:
    inflight.dispatch(inflight.admit(CALL, 0.0))
    assert inflight.settle(odd) is None
    assert inflight.sent(odd) is None
    assert len(inflight) == 1


@pytest.mark.req("R3")
def test_the_deadline_is_the_nearer_of_idle_and_total(inflight: Inflight) -> None:
    idle = inflight.admit(Call("x", idle=5.0, total=9.0), 100.0)
    total = inflight.admit(Call("x", idle=5.0, total=3.0), 100.0)
    assert (idle.deadline, total.deadline) == (105.0, 103.0)
    assert inflight.deadline() == 103.0
    assert list(inflight.expired(102.9)) == []
    assert list(inflight.expired(103.0)) == [total]
    assert list(inflight.expired(105.0)) == [idle]


def test_a_deadline_that_progress_moved_is_met_later(inflight: Inflight) -> None:
    pending = inflight.admit(Call("x", idle=5.0, total=9.0), 0.0)
    pending.wait_until(8.0)
    assert list(inflight.expired(6.0)) == []
    assert inflight.deadline() == 8.0
    assert list(inflight.expired(8.0)) == [pending]


@pytest.mark.req("R5")
def test_answered_requests_leave_no_deadlines_behind(inflight: Inflight) -> None:
    first = inflight.admit(CALL, 0.0)
    for _ in range(10_000):
        inflight.settle(inflight.dispatch(inflight.admit(CALL, 0.0)))
    assert inflight.deadline() == first.deadline
    assert len(inflight._deadlines) < 100
    inflight.end(first, 0.0)
    assert inflight.deadline() == NEVER


def test_requests_that_wait_for_room_go_in_the_order_of_their_tickets(inflight: Inflight) -> None:
    one, two, three = (inflight.admit(CALL, 0.0) for _ in range(3))
    for pending in (three, one, two, one):
        inflight.queue(pending)
    inflight.end(two, 0.0)
    assert [inflight.unqueue(), inflight.unqueue(), inflight.unqueue()] == [one, three, None]
    assert not inflight.waiting


def test_a_lasting_request_has_no_deadline(inflight: Inflight) -> None:
    pending = inflight.admit(Call("subscriptions/listen", lasting=True), 0.0)
    assert pending.deadline == NEVER
    assert inflight.deadline() == NEVER
    assert list(inflight.expired(1e12)) == []


def test_a_retry_is_due_before_the_deadline(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    inflight.retry(pending, 0.5)
    inflight.retry(pending, 1.0)
    assert inflight.deadline() == 0.5
    assert list(inflight.retries(0.9)) == []
    assert inflight.deadline() == 1.0
    assert list(inflight.retries(1.0)) == [pending]


def test_iteration_allows_ending_requests_on_the_way(inflight: Inflight) -> None:
    for _ in range(5):
        inflight.admit(CALL, 0.0)
    for pending in inflight:
        inflight.end(pending, 0.0)
    assert len(inflight) == 0
    assert inflight.tombstones == 0, "what was never sent needs no tombstone"


@pytest.mark.req("R5")
def test_a_late_answer_is_known_for_as_long_as_the_tombstone_lives(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    wire_id = inflight.dispatch(pending)
    inflight.end(pending, 10.0)
    assert inflight.stray(wire_id, 10.0) is Stray.LATE
    assert inflight.stray(wire_id, 84.9) is Stray.LATE
    assert inflight.stray(wire_id, 85.0) is Stray.UNKNOWN, "checked on lookup, before any sweep"
    assert inflight.stray(WireId(wire_id + 1), 10.0) is Stray.UNKNOWN


def test_a_request_that_never_left_can_end_without_a_tombstone(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    inflight.dispatch(pending)
    inflight.end(pending, 0.0, bury=False)
    assert inflight.tombstones == 0


@pytest.mark.req("R5")
def test_a_sweep_drops_the_expired_tombstones_alone(inflight: Inflight) -> None:
    for moment in (0.0, 10.0, 20.0):
        inflight.bury(inflight.number(), moment)
    inflight.sweep(74.0)
    assert inflight.tombstones == 3
    inflight.sweep(85.0)
    assert inflight.tombstones == 1
    inflight.sweep(95.0)
    inflight.sweep(95.0)
    assert inflight.tombstones == 0


@pytest.mark.req("R5")
def test_the_number_of_tombstones_is_bounded_and_the_oldest_go_first() -> None:
    inflight = Inflight(75.0, 3)
    ids = [inflight.number() for _ in range(5)]
    for wire_id in ids:
        inflight.bury(wire_id, 0.0)
    assert inflight.tombstones == 3
    kinds = [inflight.stray(wire_id, 1.0) for wire_id in ids]
    assert kinds == [Stray.UNKNOWN] * 2 + [Stray.LATE] * 3


@pytest.mark.req("R5", "V1")
@given(st.lists(st.floats(0, 500), max_size=50), st.floats(0, 1000))
def test_after_a_sweep_nothing_expired_is_left(gaps: list[float], at: float) -> None:
    inflight = Inflight(75.0, 1000)
    now, ends = 0.0, []
    for gap in gaps:
        now += gap
        inflight.bury(inflight.number(), now)
        ends.append(now + 75.0)
    inflight.sweep(at)
    assert inflight.tombstones == sum(end > at for end in ends)


def test_the_deadline_of_an_answered_request_is_passed_over(inflight: Inflight) -> None:
    inflight.settle(inflight.dispatch(inflight.admit(Call("x", idle=5.0, total=9.0), 0.0)))
    assert list(inflight.expired(10.0)) == []


def test_a_request_under_way_is_found_by_its_wire_id(inflight: Inflight) -> None:
    pending = inflight.admit(CALL, 0.0)
    wire_id = inflight.dispatch(pending)
    assert inflight.ticket_of(wire_id) == pending.ticket
    assert inflight.ticket_of("of the server") is None
