"""What becomes of a request: answered, timed out, cancelled, held up, lost, kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.boundary import Effect, Failed, Progressed, Retract, Send, Ticket
from holdfast._core.engine.inflight import NEVER
from holdfast._core.engine.requests import BATCH, POLL
from holdfast.errors import (
    BackpressureError,
    CancelledCallError,
    HoldfastError,
    RequestTimeout,
    ShutdownError,
    TransportError,
    ValidationError,
)
from holdfast.policies import Backoff, Policy, Timeouts
from tests.engine.rig import CRASH, Rig, frames, get_ready, methods, one, only, ready, reconnect
from tests.rows import rows

SAFE = Policy(replay="safe")


def progress(wire_id: int, amount: float = 1) -> dict[str, Any]:
    params = {"progressToken": wire_id, "progress": amount}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def told_to_stop(effects: list[Effect]) -> list[int]:
    """The requests that the server is told to drop."""
    told = []
    for retract in only(effects, Retract):
        assert retract.frame is not None
        message = json.loads(retract.frame)
        assert message["method"] == "notifications/cancelled"
        assert message["params"]["requestId"] == retract.wire_id
        told.append(int(retract.wire_id))
    return told


# Sending


@pytest.mark.req("R1")
def test_wire_ids_are_unique_and_rise_over_reconnects() -> None:
    rig = ready(policy=SAFE)
    for _ in range(3):
        for _ in range(3):
            rig.request(repeatable=True)
        rig.lose()
        reconnect(rig)
    sent = [frame["id"] for frame in frames(rig.effects) if "id" in frame]
    assert len(sent) > 12
    assert sent == sorted(set(sent))


def test_a_request_goes_out_as_the_era_stamps_it() -> None:
    rig = ready("stateless")
    rig.call("tools/call", params={"name": "add"}, meta={"trace": "1"}, progress=True)
    (sent,) = frames(rig.effects[-1:])
    assert sent["params"]["name"] == "add"
    assert sent["params"]["_meta"]["trace"] == "1"
    assert sent["params"]["_meta"]["progressToken"] == sent["id"]
    assert "io.modelcontextprotocol/protocolVersion" in sent["params"]["_meta"]


@pytest.mark.req("P5")
@pytest.mark.req("Y1")
def test_answers_are_for_a_server_that_reads_them() -> None:
    """One without sessions asks by a result; another would run the call from the start."""
    rig = ready("handshake")
    sent = len(rig.effects)
    ticket = rig.call("tools/call", params={"name": "add"}, answers=True)
    assert methods(rig.effects[sent:]) == []
    error = rig.error(ticket)
    assert error.outcome_unknown
    assert "the new one asks differently" in error.message
    rig = ready("stateless")
    rig.call("tools/call", params={"name": "add"}, answers=True)
    assert methods(rig.effects[-1:]) == ["tools/call"]


def test_progress_is_asked_for_only_if_the_caller_wants_it() -> None:
    rig = ready()
    rig.call("tools/call", params={"name": "add"})
    assert "_meta" not in frames(rig.effects[-1:])[0]["params"]
    rig.call("tools/call", progress=True)
    (sent,) = frames(rig.effects[-1:])
    assert sent["params"] == {"_meta": {"progressToken": sent["id"]}}


@pytest.mark.req("R2")
def test_parameters_that_json_cannot_hold_fail_the_call_and_nothing_is_sent() -> None:
    rig = ready()
    mark = len(rig.effects)
    ticket = rig.call("tools/call", params={"x": object()}, about="add")
    error = rig.error(ticket)
    assert isinstance(error, ValidationError)
    assert "cannot be written as JSON" in error.message
    assert only(rig.effects[mark:], Send) == []
    assert rig.engine.inflight.tombstones == 0


# Deadlines


@pytest.mark.req("R3", "R4")
def test_without_an_answer_a_request_fails_after_its_idle_time() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=5.0, total=60.0)
    assert rig.engine.due == 5.0
    assert rig.at(4.999) == []
    effects = rig.at(5.0)
    error = rig.error(ticket)
    assert isinstance(error, RequestTimeout)
    assert isinstance(error, TimeoutError)
    assert error.outcome_unknown
    assert told_to_stop(effects) == [wire_id]


@pytest.mark.req("R3")
def test_progress_resets_the_idle_clock_but_never_past_the_total() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=5.0, total=12.0, progress=True)
    for moment in (4.0, 8.0, 11.0):
        rig.at(moment)
        assert one(rig.deliver(progress(wire_id)), Progressed).ticket == ticket
    assert rig.at(11.999) == []
    rig.at(12.0)
    assert "12 s in all" in rig.error(ticket).message


@pytest.mark.req("R3")
def test_after_the_last_progress_the_idle_clock_runs_from_there() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=5.0, total=300.0, progress=True)
    rig.at(4.0)
    rig.deliver(progress(wire_id))
    rig.at(8.999)
    assert rig.open_tickets() == {ticket}
    rig.at(9.0)
    assert "(timeout)" in rig.error(ticket).message


@pytest.mark.req("R3", "V1")
@given(
    st.floats(0.1, 100),
    st.floats(0.1, 100),
    st.lists(st.floats(0.01, 50), max_size=20),
)
def test_whatever_progress_comes_a_request_ends_between_idle_and_total(
    idle: float, total: float, gaps: list[float]
) -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=idle, total=total, progress=True)
    last, moment = 0.0, 0.0
    for gap in gaps:
        moment += gap
        rig.at(moment)
        if rig.outcomes[ticket]:
            break
        rig.deliver(progress(wire_id))
        last = moment
    expected = min(last + idle, total)
    rig.at(expected - 1e-9)
    before = bool(rig.outcomes[ticket])
    rig.at(expected + 1e-9)
    assert isinstance(rig.error(ticket), RequestTimeout)
    assert not before or moment >= expected - 1e-9


@pytest.mark.req("R3", "P5")
def test_progress_of_one_request_does_nothing_for_another() -> None:
    rig = ready()
    _, chatty = rig.request(idle=5.0)
    quiet, _ = rig.request(idle=5.0)
    rig.at(4.0)
    rig.deliver(progress(chatty))
    rig.at(5.0)
    assert isinstance(rig.error(quiet), RequestTimeout)
    assert len(rig.open_tickets()) == 1


@pytest.mark.req("R3")
def test_deadlines_are_per_request() -> None:
    rig = ready()
    times = Timeouts(tools=1.0, resources=0.5)
    tool = rig.call("tools/call", idle=times.for_method("tools/call"))
    rig.call("resources/read", idle=times.for_method("resources/read"))
    other = rig.call("ping", idle=times.for_method("ping"))
    rig.at(0.5)
    assert rig.open_tickets() == {tool, other}
    rig.at(1.0)
    assert rig.open_tickets() == {other}
    rig.at(30.0)
    assert rig.open_tickets() == set()


def test_a_lasting_request_has_no_deadline_and_progress_gives_it_none() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request("subscriptions/listen", lasting=True)
    rig.deliver(progress(wire_id))
    rig.at(1e6)
    pending = rig.engine.inflight.sent(wire_id)
    assert pending is not None
    assert pending.deadline == NEVER
    assert rig.open_tickets() == {ticket}
    rig.answer(wire_id)
    assert rig.result(ticket) == {}


@pytest.mark.req("R3", "L11")
def test_the_deadline_runs_while_the_server_is_still_starting() -> None:
    rig = Rig()
    ticket = rig.call(idle=2.0)
    rig.opened()
    effects = rig.at(2.0)
    error = rig.error(ticket)
    assert isinstance(error, RequestTimeout)
    assert "nothing was sent" in error.message
    assert not error.outcome_unknown
    assert only(effects, Retract) == []


# Late answers


@pytest.mark.req("R4", "R5")
def test_a_late_answer_is_dropped_quietly() -> None:
    rig = ready()
    _, wire_id = rig.request(idle=5.0)
    rig.at(5.0)
    assert rig.engine.inflight.tombstones == 1
    assert rig.answer(wire_id) == []
    assert rig.answer(wire_id) == [], "and so is its duplicate"
    assert rig.engine.violations == {}


@pytest.mark.req("R5")
def test_an_answer_later_than_the_tombstone_is_an_unknown_one() -> None:
    rig = ready()
    _, wire_id = rig.request(idle=5.0)
    rig.at(5.0)
    rig.now = 5.0 + 74.9
    assert rig.answer(wire_id) == []
    rig.now = 5.0 + 75.0
    rig.answer(wire_id)
    assert rig.violations() == ["answer to an unknown request"]


@pytest.mark.req("R5")
def test_tombstones_are_swept_every_minute() -> None:
    rig = ready()
    rig.request(idle=5.0)
    rig.at(5.0)
    assert rig.engine.due == 65.0
    rig.at(65.0)
    assert rig.engine.inflight.tombstones == 1, "it lives for 75 s"
    assert rig.engine.due == 125.0
    rig.at(125.0)
    assert rig.engine.inflight.tombstones == 0
    assert rig.engine.due == float("inf"), "nothing left to wake up for"


# Cancelling


@pytest.mark.req("R6")
def test_cancelling_ends_the_request_and_tells_the_server() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    effects = rig.cancel(ticket, "enough")
    assert isinstance(rig.error(ticket), CancelledCallError)
    assert rig.error(ticket).outcome_unknown
    assert told_to_stop(effects) == [wire_id]
    frame = one(effects, Retract).frame
    assert frame is not None
    assert json.loads(frame)["params"]["reason"] == "enough"


@pytest.mark.req("R6", "V1")
@given(st.integers(1, 10), st.integers(0, 5), st.booleans())
def test_cancelling_many_times_is_cancelling_once(times: int, others: int, late: bool) -> None:
    rig = ready()
    neighbours = {rig.call() for _ in range(others)}
    ticket, wire_id = rig.request()
    mark = len(rig.effects)
    for _ in range(times):
        rig.cancel(ticket)
    if late:
        assert rig.answer(wire_id) == []
    assert told_to_stop(rig.effects[mark:]) == [wire_id]
    assert len(rig.outcomes[ticket]) == 1
    assert rig.open_tickets() == neighbours
    assert len(rig.effects[mark:]) == 2


@pytest.mark.req("R6")
def test_cancelling_what_is_done_does_nothing() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.answer(wire_id)
    assert rig.cancel(ticket) == []
    assert rig.cancel(Ticket(999)) == []


@pytest.mark.req("R6")
def test_cancelling_what_was_never_sent_tells_nobody() -> None:
    rig = Rig()
    ticket = rig.call()
    effects = rig.cancel(ticket)
    assert only(effects, Retract) == []
    assert not rig.error(ticket).outcome_unknown
    assert methods(get_ready(rig)) == ["server/discover"], "and it is not sent later"


# A link that takes no more


@pytest.mark.req("R7")
@pytest.mark.parametrize("spans", [{"idle": 2.5}, {"idle": 9.0, "total": 2.5}])
def test_a_request_waits_for_room_until_its_own_deadline(spans: dict[str, Any]) -> None:
    rig = ready()
    ticket, wire_id = rig.request(**spans)
    while not rig.outcomes[ticket]:
        rig.busy(wire_id)
        for effect in only(rig.at(rig.engine.due), Send):
            assert effect.wire_id is not None
            wire_id = effect.wire_id
    assert rig.now == 2.5
    error = rig.error(ticket)
    assert isinstance(error, BackpressureError)
    assert "within 2.5 s" in error.message
    assert not error.outcome_unknown
    assert rig.engine.inflight.tombstones == 0, "nothing was sent, no answer can come"


@pytest.mark.req("R7")
@pytest.mark.parametrize("reports_room", [True, False])
def test_a_request_that_is_taken_at_last_goes_its_usual_way(reports_room: bool) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.busy(wire_id)
    (again,) = frames(rig.room() if reports_room else rig.at(POLL))
    rig.answer(again["id"], {"result": {"ok": True}})
    assert rig.result(ticket) == {"ok": True}


@pytest.mark.req("R7")
def test_later_requests_queue_behind_those_that_wait_for_room() -> None:
    rig = ready()
    _, wire_id = rig.request("one")
    rig.busy(wire_id)
    mark = len(rig.effects)
    for method in ("two", "three"):
        rig.call(method)
    assert only(rig.effects[mark:], Send) == []
    assert methods(rig.room()) == ["one", "two", "three"]


@pytest.mark.req("R7")
def test_a_request_whose_time_is_up_is_not_offered_again() -> None:
    """The loop was late: the next offer and the deadline are both behind us."""
    rig = ready()
    ticket, wire_id = rig.request(idle=1.0)
    rig.busy(wire_id)
    rig.now = 2.0
    effects = rig.tick()
    assert only(effects, Send) == []
    assert isinstance(rig.error(ticket), BackpressureError)


@pytest.mark.req("R7", "L5")
def test_an_offer_that_waits_while_the_link_is_lost_does_not_make_the_timer_spin() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.busy(wire_id)
    rig.lose()
    rig.at(0.5)
    assert rig.state == "backoff"
    assert methods(reconnect(rig)) == ["initialize", "notifications/initialized", "tools/call"]
    assert rig.open_tickets() == {ticket}


@pytest.mark.req("R7")
def test_a_cancelled_request_is_not_offered_again() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.busy(wire_id)
    rig.cancel(ticket)
    assert rig.wait(1.0) == []


def test_busy_for_a_request_that_is_over_changes_nothing() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.cancel(ticket)
    assert rig.busy(wire_id) == []


# Loss


@pytest.mark.req("R11")
def test_a_request_that_had_been_sent_fails_with_its_outcome_unknown() -> None:
    rig = ready()
    ticket, _ = rig.request()
    rig.lose()
    error = rig.error(ticket)
    assert isinstance(error, TransportError)
    assert error.outcome_unknown
    assert "it may have run" in error.message
    assert "tools/call" not in methods(reconnect(rig))


@pytest.mark.req("R11")
def test_a_request_of_which_nothing_had_left_goes_again_after_the_reconnect() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.lose(unsent=frozenset({wire_id}))
    assert rig.open_tickets() == {ticket}
    (again,) = [frame for frame in frames(reconnect(rig)) if frame["method"] == "tools/call"]
    assert again["id"] > wire_id
    rig.answer(again["id"], {"result": {"ok": 1}})
    assert rig.result(ticket) == {"ok": 1}


@pytest.mark.req("R11")
def test_a_request_that_had_not_left_fails_if_the_next_attempt_fails_too() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.lose(unsent=frozenset({wire_id}))
    rig.at(rig.engine.due)
    rig.lose()
    error = rig.error(ticket)
    assert "it had not been sent" in error.message
    assert not error.outcome_unknown


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    ("replay", "repeatable", "kept"),
    [("safe", True, True), ("safe", False, False), ("never", True, False), ("never", False, False)],
)
def test_a_sent_request_is_repeated_only_where_that_is_harmless_and_wanted(
    replay: Any, repeatable: bool, kept: bool
) -> None:
    rig = ready(policy=Policy(replay=replay))
    ticket, _ = rig.request("resources/read", repeatable=repeatable)
    rig.lose()
    assert (ticket in rig.open_tickets()) is kept
    assert methods(reconnect(rig)).count("resources/read") == kept


@pytest.mark.req("R11")
def test_nothing_is_repeated_a_second_time() -> None:
    rig = ready(policy=SAFE)
    ticket, _ = rig.request("resources/read", repeatable=True)
    rig.lose()
    reconnect(rig)
    rig.lose()
    assert isinstance(rig.error(ticket), TransportError)
    assert rig.error(ticket).outcome_unknown


@pytest.mark.req("R11")
def test_a_repeat_of_which_nothing_had_left_does_not_count() -> None:
    rig = ready(policy=SAFE)
    ticket, _ = rig.request("resources/read", repeatable=True)
    rig.lose()
    effects = reconnect(rig)
    again = only(effects, Send)[-1].wire_id
    assert again is not None
    rig.lose(unsent=frozenset({again}))
    assert rig.open_tickets() == {ticket}
    assert "resources/read" in methods(reconnect(rig))
    rig.lose()
    assert rig.error(ticket).outcome_unknown, "it has left twice: no third time"


def repeated_but_not_out() -> tuple[Rig, Ticket]:
    """A request that left on the first link, and of which no byte has left on the second."""
    rig = ready(policy=SAFE)
    ticket, _ = rig.request("resources/read", repeatable=True, idle=5.0)
    rig.lose()
    again = only(reconnect(rig), Send)[-1].wire_id
    assert again is not None
    rig.unsent = {again}
    return rig, ticket


@pytest.mark.req("R11")
@pytest.mark.parametrize("ending", ["timeout", "cancel"])
def test_a_repeat_that_is_withdrawn_may_have_run_the_first_time(ending: str) -> None:
    rig, ticket = repeated_but_not_out()
    if ending == "cancel":
        rig.cancel(ticket)
    else:
        rig.wait(5.0)
    outcome = rig.outcome(ticket)
    assert isinstance(outcome, Failed)
    assert rig.error(ticket).outcome_unknown
    assert outcome.unsent is None, "whether or not the link can withdraw it"


@pytest.mark.req("R11")
def test_closing_before_a_repeat_has_left_says_that_it_may_have_run() -> None:
    rig, ticket = repeated_but_not_out()
    rig.close()
    assert rig.error(ticket).outcome_unknown


def wait_for_the_reconnect(rig: Rig, ticket: Ticket) -> None:
    rig.at(5.0)


def cancel(rig: Rig, ticket: Ticket) -> None:
    rig.cancel(ticket)


def close(rig: Rig, ticket: Ticket) -> None:
    rig.close()


def lose_again(rig: Rig, ticket: Ticket) -> None:
    rig.at(rig.engine.due)
    rig.lose()


def stay_busy(rig: Rig, ticket: Ticket) -> None:
    reconnect(rig)
    rig.busy(only(rig.effects, Send)[-1].wire_id)  # type: ignore[arg-type]
    rig.wait(5.0)


@pytest.mark.req("R11")
@rows(
    ("ending", "kind"),
    [
        (wait_for_the_reconnect, RequestTimeout),
        (cancel, CancelledCallError),
        (close, ShutdownError),
        (lose_again, TransportError),
        (stay_busy, RequestTimeout),
    ],
    ids=lambda value: value.__name__,
)
def test_a_request_that_waits_to_be_repeated_had_been_sent_all_the_same(
    ending: Callable[[Rig, Ticket], None], kind: type[HoldfastError]
) -> None:
    """It left on the lost link, so it may have run there, however it ends now."""
    policy = Policy(replay="safe", backoff=Backoff(first=60.0, max=60.0))
    rig = ready(policy=SAFE if ending in (stay_busy, lose_again) else policy)
    ticket, _ = rig.request("resources/read", repeatable=True, idle=5.0)
    rig.lose()
    ending(rig, ticket)
    error = rig.error(ticket)
    assert isinstance(error, kind)
    assert error.outcome_unknown
    assert "nothing was sent" not in error.message
    assert "had not been sent" not in error.message


@pytest.mark.req("R11")
def test_giving_up_on_a_request_that_had_been_sent_says_so() -> None:
    rig = ready(policy=Policy(replay="safe", backoff=Backoff(attempts=2)))
    ticket, _ = rig.request("resources/read", repeatable=True)
    rig.lose()
    assert rig.state == "backoff"
    rig.at(rig.engine.due)
    rig.lose()
    assert rig.state == "closed"
    assert rig.error(ticket).outcome_unknown


@pytest.mark.req("R11", "R5")
def test_the_old_id_of_a_repeated_request_is_buried() -> None:
    """A server that outlives its link may still answer it, on the new one."""
    rig = ready(policy=SAFE)
    ticket, wire_id = rig.request("resources/read", repeatable=True)
    rig.lose()
    reconnect(rig)
    assert rig.answer(wire_id) == []
    assert rig.violations() == []
    assert rig.open_tickets() == {ticket}


@pytest.mark.req("R2", "L11")
@pytest.mark.parametrize("wait", [None, False, True])
@pytest.mark.parametrize("when_down", ["fail", "wait"])
def test_a_call_made_while_starting_waits_for_the_first_attempt_alone_unless_told_to_wait(
    wait: bool | None, when_down: Any
) -> None:
    rig = Rig(policy=Policy(when_down=when_down))
    ticket = rig.call(wait=wait, idle=100.0)
    rig.lose(CRASH)
    waits = when_down == "wait" if wait is None else wait
    assert (ticket in rig.open_tickets()) is waits
    if waits:
        assert "tools/call" in methods(reconnect(rig))
    else:
        assert "it had not been sent" in rig.error(ticket).message


@pytest.mark.req("R7", "R9")
def test_what_waits_for_room_is_encoded_a_batch_at_a_time() -> None:
    """All frames would be in memory at once otherwise, and a slow server has many waiting."""
    rig = ready()
    _, wire_id = rig.request(params={"x": "." * BATCH})
    rig.busy(wire_id)
    for _ in range(9):
        rig.call(params={"x": "." * BATCH})
    sent = [len(only(rig.room(), Send))]
    while rig.engine.due < rig.now + POLL:
        sent.append(len(only(rig.at(rig.engine.due), Send)))
    assert sent == [1] * 10 + [0]


@pytest.mark.req("R7", "L5")
@pytest.mark.parametrize("state", ["backoff", "closed"])
def test_room_on_a_link_that_is_not_ready_sends_nothing(state: str) -> None:
    rig = ready()
    _, wire_id = rig.request()
    rig.busy(wire_id)
    rig.lose()
    if state == "closed":
        rig.close()
    assert only(rig.room(), Send) == []
