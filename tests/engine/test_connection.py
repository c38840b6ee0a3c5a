"""The life of a connection: states, loss and return, giving up, closing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.boundary import (
    Asked,
    Busy,
    Call,
    Close,
    Completed,
    Delivered,
    Drained,
    Effect,
    Failed,
    Generation,
    Lost,
    Moved,
    Open,
    Opened,
    ReadChecked,
    Report,
    Send,
    Starting,
    Ticket,
    Violated,
    WireId,
)
from holdfast._core.engine.inflight import NEVER
from holdfast._core.engine.recovery import MOST_RESTARTS
from holdfast._core.engine.state import TABLE, State, Step
from holdfast._core.eras.conversation import StartAgain
from holdfast.errors import (
    HandshakeTimeout,
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    RpcError,
    ShutdownError,
    StateError,
    TransportError,
)
from holdfast.policies import Backoff, Policy, Timeouts
from tests.engine.rig import (
    CRASH,
    DISCOVERED,
    INITIALIZED,
    Rig,
    frames,
    get_ready,
    line,
    methods,
    one,
    only,
    ready,
    reconnect,
    refusal,
    unsupported,
)
from tests.rows import rows

# Getting to every state


def new() -> Rig:
    return Rig(opening="initialize")


def starting() -> Rig:
    rig = new()
    rig.open()
    return rig


def initializing() -> Rig:
    rig = starting()
    rig.opened()
    return rig


def backoff() -> Rig:
    rig = starting()
    rig.lose()
    return rig


def closing() -> Rig:
    rig = ready()
    rig.close()
    return rig


def closed() -> Rig:
    rig = closing()
    rig.drained()
    return rig


STATES: dict[str, Callable[[], Rig]] = {
    "new": new,
    "starting": starting,
    "initializing": initializing,
    "ready": ready,
    "backoff": backoff,
    "closing": closing,
    "closed": closed,
}
LIVE = ("starting", "initializing", "ready")


@pytest.fixture(params=STATES)
def rig(request: pytest.FixtureRequest) -> Rig:
    """A connection in each of the states."""
    found = STATES[request.param]()
    assert found.state == request.param
    return found


def snapshot(rig: Rig) -> tuple[Any, ...]:
    engine = rig.engine
    facts = (engine.state, engine.link.generation, engine.due, engine.reason, engine.facts)
    return (*facts, repr(engine), engine.opening, engine.violations)


# The table, at the level of the connection


@pytest.mark.req("L1")
def test_the_happy_way_passes_through_the_states_in_order() -> None:
    rig = Rig()
    rig.open()
    get_ready(rig)
    rig.lose()
    reconnect(rig)
    rig.close()
    rig.drained()
    assert rig.moves() == [
        *("starting", "initializing", "ready", "backoff"),
        *("starting", "initializing", "ready", "closing", "closed"),
    ]
    chain = only(rig.effects, Moved)
    assert all(before.new == after.old for before, after in itertools.pairwise(chain))


@pytest.mark.req("L1", "V2")
def test_a_report_that_does_not_fit_the_state_changes_nothing(rig: Rig) -> None:
    generation = rig.engine.link.generation
    fitting: dict[type[Report], tuple[str, ...]] = {
        Opened: ("starting",),
        Drained: ("closing",),
        Lost: (*LIVE, "closing"),
        Delivered: ("ready", "initializing"),
        ReadChecked: ("initializing",),
    }
    reports: list[Report] = [
        Opened(generation),
        Drained(generation),
        Lost(generation, CRASH),
        Delivered(generation, b'{"id":1,"result":{}}\n'),
        ReadChecked(generation, False),
        Busy(generation, Send(b"", WireId(999))),
    ]
    before = snapshot(rig)
    for report in reports:
        if rig.state not in fitting.get(type(report), ()):
            assert rig.report(report) == []
            assert snapshot(rig) == before


@pytest.mark.req("L1", "V2")
@pytest.mark.parametrize("step", Step)
def test_an_illegal_step_raises_and_changes_nothing(rig: Rig, step: Step) -> None:
    if step in TABLE[rig.engine.state]:
        return
    before, out = snapshot(rig), list[Effect]()
    with pytest.raises(StateError, match=f"step '{step}' in state '{rig.state}'"):
        rig.engine._move(step, out)
    assert out == []
    assert snapshot(rig) == before


@pytest.mark.req("L1")
def test_opening_starts_a_new_client_and_otherwise_changes_nothing(rig: Rig) -> None:
    if rig.state == "new":
        effects = rig.open()
        assert rig.state == "starting"
        assert effects == [Moved("new", "starting"), Open(Generation(1))]
        return
    before = snapshot(rig)
    if rig.state in ("closing", "closed"):
        with pytest.raises(ShutdownError, match=f"the client is {rig.state}"):
            rig.open()
    else:
        assert rig.open() == []
    assert snapshot(rig) == before


@pytest.mark.req("L11")
def test_opening_while_down_fails_at_once_for_who_does_not_wait() -> None:
    rig = backoff()
    before = snapshot(rig)
    with pytest.raises(StateError, match="next attempt in 1 s"):
        rig.engine.open(rig.now)
    assert snapshot(rig) == before


@pytest.mark.req("L4")
def test_the_first_call_starts_the_server_and_goes_out_when_it_is_ready() -> None:
    rig = Rig()
    ticket = rig.call("tools/list")
    assert rig.state == "starting"
    effects = get_ready(rig)
    assert methods(effects) == ["server/discover", "tools/list"]
    rig.answer(frames(effects)[-1]["id"])
    assert rig.result(ticket) == {}


@pytest.mark.req("L4")
def test_calls_made_on_the_way_go_out_in_their_order() -> None:
    rig = Rig(opening="initialize")
    rig.call("first")
    rig.opened()
    rig.call("second")
    (asked,) = [frame for frame in frames(rig.effects) if "id" in frame]
    effects = rig.answer(asked["id"], INITIALIZED)
    assert methods(effects) == ["notifications/initialized", "first", "second"]


@pytest.mark.req("L10")
def test_what_the_server_said_of_itself_is_known_when_ready() -> None:
    rig = ready("stateless")
    facts = rig.engine.facts
    assert facts is not None
    assert facts.version == "2026-07-28"
    assert facts.instructions == "Mind the gap."
    assert facts.info is not None
    assert json.loads(bytes(facts.info)) == {"name": "modern", "version": "2"}
    assert rig.engine.link.era is not None
    rig.lose()
    assert rig.engine.facts is facts, "it is still known while the server is down"
    assert rig.engine.link.era is not None


def test_the_state_shows() -> None:
    rig = ready()
    rig.call()
    assert repr(rig.engine) == "<Connection server ready #1 <Inflight 1 sent, 0 parked, 0 buried>>"


# Notifications of ours, and the log level


def test_a_notification_of_ours_goes_out_only_on_a_ready_link(rig: Rig) -> None:
    effects = rig.engine.notify("notifications/roots/list_changed", {"x": 1})
    if rig.state == "ready":
        (sent,) = frames(effects)
        assert sent["method"] == "notifications/roots/list_changed"
        assert sent["params"] == {"x": 1}
    else:
        assert effects == []


def test_the_stateless_era_has_no_notifications_of_ours() -> None:
    assert ready("stateless").engine.notify("notifications/roots/list_changed") == []


def test_notifications_that_nobody_knows_go_where_there_is_one_channel() -> None:
    rig = ready("stateless")
    (sent,) = frames(rig.engine.notify("notifications/vendor", {"x": 1}))
    assert (sent["method"], sent["params"]) == ("notifications/vendor", {"x": 1})
    rig.engine.link.streams = True
    assert rig.engine.notify("notifications/vendor", {"x": 1}) == []


@pytest.mark.req("P5")
def test_the_log_level_is_told_again_on_every_new_link() -> None:
    rig = ready()
    rig.engine.log_level = "debug"
    rig.lose()
    effects = reconnect(rig)
    assert methods(effects) == ["initialize", "notifications/initialized", "logging/setLevel"]
    told = frames(effects)[-1]
    assert told["params"] == {"level": "debug"}
    assert rig.answer(told["id"]) == [], "its answer concerns nobody"


@pytest.mark.req("P5")
def test_the_log_level_of_the_stateless_era_goes_with_every_request() -> None:
    rig = ready("stateless")
    rig.engine.log_level = "debug"
    rig.lose()
    rig.call(wait=True)
    sent = frames(reconnect(rig))[-1]
    assert sent["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "debug"


# Loss, and coming back


def pause(rig: Rig) -> float:
    """How long it takes until the next attempt."""
    assert rig.state == "backoff"
    since = rig.now
    while rig.state == "backoff":
        rig.at(rig.engine.due)
    return rig.now - since


def lose_ready(rig: Rig, uptime: float) -> float:
    """Lose the link after so much uptime: the pause before the next attempt."""
    rig.at(rig.now + uptime)
    rig.lose()
    return pause(rig)


@pytest.mark.req("L5")
def test_the_pauses_double_from_one_second_to_thirty() -> None:
    rig = starting()
    pauses = []
    for _ in range(8):
        effects = rig.lose()
        assert only(effects, Close) == [Close(Generation(rig.engine.link.generation - 1))]
        pauses.append(pause(rig))
        assert rig.state == "starting"
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.req("L5")
@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=10, max_size=10))
def test_every_pause_is_within_a_fifth_of_its_length(draws: list[float]) -> None:
    rig = Rig(jitter=iter(draws))
    rig.open()
    for failures in range(10):
        rig.lose()
        centre = min(30.0, 2.0**failures)
        assert centre * 0.8 - 1e-6 <= pause(rig) <= centre * 1.2 + 1e-6


@pytest.mark.req("L5")
def test_a_server_that_dies_right_after_its_handshake_waits_longer_each_time() -> None:
    rig = ready()
    pauses = []
    for _ in range(6):
        pauses.append(lose_ready(rig, uptime=0.1))
        get_ready(rig)
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 30])


@pytest.mark.req("L5")
def test_healthy_uptime_and_nothing_less_starts_the_pauses_over() -> None:
    rig = ready()
    lose_ready(rig, 0.0)
    get_ready(rig)
    assert lose_ready(rig, 9.99) == pytest.approx(2.0)
    get_ready(rig)
    assert lose_ready(rig, 10.0) == pytest.approx(1.0)


@pytest.mark.req("L5")
def test_a_pause_is_not_cut_short_by_opening_or_calling() -> None:
    rig = backoff()
    due = rig.engine.due
    rig.open()
    rig.call(wait=True)
    rig.at(due - 0.001)
    assert rig.state == "backoff"
    rig.at(due)
    assert rig.state == "starting"


@pytest.mark.req("L5")
def test_a_move_into_backoff_carries_the_reason() -> None:
    moved = one(starting().lose(), Moved)
    assert moved == Moved("starting", "backoff", CRASH)


@pytest.mark.req("L5")
def test_after_the_allowed_attempts_the_client_gives_up() -> None:
    rig = Rig(policy=Policy(backoff=Backoff(attempts=3), when_down="wait"))
    ticket = rig.call(idle=1000.0)
    for attempt in range(3):
        assert rig.state == "starting", attempt
        rig.lose()
        if attempt < 2:
            rig.at(rig.engine.due)
    assert rig.state == "closed"
    assert isinstance(rig.error(ticket), TransportError)
    assert rig.engine.due == NEVER or rig.at(1e6) == []
    with pytest.raises(TransportError, match="given up: the server exited with code 1") as failure:
        rig.call("tools/call", about="add")
    assert "tools/call 'add'" in failure.value.message
    rig.close()
    with pytest.raises(TransportError, match="given up"):
        rig.call()


@pytest.mark.req("L6")
def test_a_handshake_that_takes_too_long_leads_to_backoff_with_the_reason() -> None:
    rig = initializing()
    assert rig.engine.due == 10.0
    rig.at(9.999)
    assert rig.state == "initializing"
    effects = rig.at(10.0)
    assert rig.state == "backoff"
    assert isinstance(rig.engine.reason, HandshakeTimeout)
    assert "no answer to initialize" in rig.engine.reason.message
    assert one(effects, Moved).reason is rig.engine.reason
    assert one(effects, Close).generation == Generation(1)
    assert rig.engine.due == 11.0, "and it is tried again"


@pytest.mark.req("L6")
def test_a_link_that_does_not_open_in_time_leads_to_backoff() -> None:
    rig = Rig(policy=Policy(timeouts=Timeouts(handshake=2.0)))
    rig.open()
    rig.at(2.0)
    assert rig.state == "backoff"
    assert isinstance(rig.engine.reason, HandshakeTimeout)
    assert "within 2 s" in rig.engine.reason.message


@pytest.mark.req("L6")
def test_a_handshake_in_time_leaves_no_timer() -> None:
    rig = ready()
    assert rig.at(100.0) == []
    assert rig.engine.due == NEVER


@pytest.mark.req("L6", "L11")
def test_callers_of_a_failed_handshake_hear_the_reason() -> None:
    rig = initializing()
    ticket = rig.call()
    rig.at(10.0)
    error = rig.error(ticket)
    assert isinstance(error, HandshakeTimeout)
    assert "it had not been sent" in error.message
    assert not error.outcome_unknown


@pytest.mark.req("L3")
def test_an_answer_that_cannot_be_bettered_by_trying_again_gives_up() -> None:
    rig = Rig()
    ticket = rig.call()
    (asked,) = frames(rig.opened())
    effects = rig.answer(asked["id"], unsupported("2031-01-01"))
    assert rig.state == "closed"
    assert one(effects, Close).generation == Generation(1)
    error = rig.error(ticket)
    assert isinstance(error, ProtocolError)
    assert "no common protocol revision" in error.message
    with pytest.raises(ProtocolError, match="given up"):
        rig.call()
    assert rig.at(1e4) == []


# The generation gate


@pytest.mark.req("L9")
def test_a_frame_of_the_old_link_can_never_answer_a_request_of_the_new_one() -> None:
    rig = ready()
    old = rig.engine.link.generation
    rig.lose()
    reconnect(rig)
    ticket, wire_id = rig.request()
    answer = b'{"id":%d,"result":{"from":"the old link"}}\n' % wire_id
    assert rig.report(Delivered(old, answer)) == []
    assert rig.open_tickets() == {ticket}
    rig.report(Delivered(rig.engine.link.generation, answer.replace(b"old", b"new")))
    assert rig.result(ticket) == {"from": "the new link"}


@pytest.mark.req("L9")
def test_no_report_of_another_link_is_heard(rig: Rig) -> None:
    before = snapshot(rig)
    now = rig.engine.link.generation
    for other in (Generation(now - 1), Generation(now + 1), Generation(0), Generation(99)):
        if other == now:
            continue
        reports: list[Report] = [
            Opened(other),
            Delivered(other, b'{"id":1,"result":{}}\n{"id":7,"method":"ping"}\njunk\n'),
            Busy(other, Send(b"", WireId(1))),
            ReadChecked(other, False),
            Lost(other, CRASH),
            Drained(other),
        ]
        for report in reports:
            assert rig.report(report) == []
    assert snapshot(rig) == before


@pytest.mark.req("L9")
def test_every_link_has_a_generation_of_its_own() -> None:
    rig = ready()
    for _ in range(3):
        rig.lose()
        reconnect(rig)
    opened = [command.generation for command in only(rig.effects, Open)]
    assert opened == sorted(set(opened))
    assert [command.generation for command in only(rig.effects, Close)] == opened[:-1]


# Calls while down


@pytest.mark.req("L11")
def test_a_call_in_backoff_fails_at_once_and_says_when_the_next_attempt_is() -> None:
    rig = backoff()
    rig.now = 0.25
    mark = len(rig.effects)
    with pytest.raises(StateError, match="next attempt in 750 ms") as failure:
        rig.call("tools/call", about="add")
    assert failure.value.retry_in == pytest.approx(0.75)
    assert failure.value.state == "backoff"
    assert failure.value.__cause__ is CRASH
    assert "server: tools/call 'add'" in failure.value.message
    assert len(rig.effects) == mark
    assert len(rig.engine.inflight) == 0


@pytest.mark.req("L11")
def test_the_time_to_the_next_attempt_is_never_negative() -> None:
    rig = backoff()
    rig.now = 5.0
    with pytest.raises(StateError) as failure:
        rig.call()
    assert failure.value.retry_in == 0.0


@pytest.mark.req("L11")
@pytest.mark.parametrize(
    ("when_down", "wait", "parks"),
    [
        ("fail", None, False),
        ("fail", True, True),
        ("wait", None, True),
        ("wait", False, False),
    ],
)
def test_whether_a_call_waits_is_the_policys_word_and_the_calls_own(
    when_down: Any, wait: bool | None, parks: bool
) -> None:
    rig = Rig(policy=Policy(when_down=when_down))
    rig.open()
    rig.lose()
    if not parks:
        with pytest.raises(StateError):
            rig.call(wait=wait)
        return
    ticket = rig.call(wait=wait)
    assert "tools/call" in methods(reconnect(rig))
    assert rig.open_tickets() == {ticket}


@pytest.mark.req("L11", "R3")
def test_a_call_that_waits_does_so_within_its_own_deadline() -> None:
    rig = backoff()
    ticket = rig.call(wait=True, idle=0.5)
    rig.at(0.5)
    error = rig.error(ticket)
    assert isinstance(error, RequestTimeout)
    reason = f"the last attempt: {CRASH.message}"
    assert f"not connected within 500 ms ({reason}); nothing was sent" in error.message
    assert error.__cause__ is rig.engine.reason


@pytest.mark.req("L11")
def test_a_call_that_waits_for_the_first_connection_names_no_attempt() -> None:
    rig = Rig()
    ticket = rig.call(wait=True, idle=0.5)
    rig.at(0.5)
    assert "not connected within 500 ms; nothing was sent" in rig.error(ticket).message


@pytest.mark.req("L3", "L11")
def test_a_revision_that_the_server_refuses_ends_the_calls_that_wait_for_it() -> None:
    rig = Rig({"initialize": refusal(-32022, "not that one")}, policy=Policy(when_down="wait"))
    ticket = rig.call(idle=8.0)
    rig.run(0.1)
    assert rig.state == "closed"
    assert "-32022: not that one" in rig.error(ticket).message
    with pytest.raises(RpcError, match="the client has given up"):
        rig.call()


@pytest.mark.req("L11")
@pytest.mark.parametrize("state", ["closing", "closed"])
def test_a_call_after_the_close_is_refused(state: str) -> None:
    rig = STATES[state]()
    for wait in (None, True):
        with pytest.raises(ShutdownError, match=f"the client is {state}; open a new one"):
            rig.call(wait=wait)


# Closing


@pytest.mark.req("L7", "V2")
def test_closing_ends_every_caller_at_once_in_any_state(rig: Rig) -> None:
    before = rig.state
    if before not in ("closing", "closed"):
        tickets = [rig.call(wait=True) for _ in range(3)]
        if before == "new":
            before = "starting"
        effects = rig.close()
        for ticket in tickets:
            error = rig.error(ticket)
            assert isinstance(error, ShutdownError)
            assert error.outcome_unknown is (before == "ready")
        assert len(only(effects, Close)) == (before in LIVE)
    assert rig.open_tickets() == set()
    assert rig.close() == []
    assert rig.close() == []
    assert rig.state == ("closing" if before in ("ready", "closing") else "closed")


@pytest.mark.req("L7")
def test_closing_a_client_that_never_started_closes_nothing_else() -> None:
    rig = new()
    assert rig.close() == [Moved("new", "closed")]


@pytest.mark.req("L7")
@rows("state", STATES)
def test_after_the_close_nothing_comes_but_the_last_move(state: str) -> None:
    rig = STATES[state]()
    wire_id = rig.request()[1] if state == "ready" else WireId(1)
    rig.close()
    mark = len(rig.effects)
    rig.opened()
    rig.deliver({"id": wire_id, "result": {}}, {"id": 7, "method": "ping"}, b"junk")
    rig.busy(wire_id)
    rig.sounded()
    rig.at(1000.0)
    rig.lose()
    rig.drained()
    rig.close()
    rig.at(2000.0)
    after = rig.effects[mark:]
    assert all(isinstance(effect, Moved) for effect in after)
    assert len(after) == (state in ("ready", "closing"))
    assert rig.state == "closed"


@pytest.mark.req("L7")
@rows("state", STATES)
def test_after_the_close_no_timer_is_left_but_that_of_the_tombstones(state: str) -> None:
    rig = STATES[state]()
    if state == "ready":
        rig.call()
    rig.close()
    rig.tick()
    assert rig.engine.due == (60.0 if state == "ready" else NEVER)
    rig.at(1000.0)
    assert rig.engine.due == NEVER
    assert rig.engine.inflight.tombstones == 0


@pytest.mark.req("L7")
def test_a_late_answer_while_closing_reaches_nobody() -> None:
    rig = ready()
    _, wire_id = rig.request()
    rig.close()
    assert rig.answer(wire_id) == []


@pytest.mark.req("L7")
def test_a_link_that_is_lost_while_closing_is_closed() -> None:
    rig = closing()
    assert rig.lose() == [Moved("closing", "closed", None)]


@pytest.mark.req("L7", "L5")
def test_a_close_after_a_loss_that_was_mended_has_no_reason() -> None:
    rig = ready()
    rig.lose()
    reconnect(rig)
    rig.close()
    assert rig.drained() == [Moved("closing", "closed", None)]


# The recovery matrix, row by row


@pytest.mark.req("E4")
def test_matrix_transport_a_lost_link_leads_to_backoff_and_a_reconnect() -> None:
    rig = ready()
    ticket, _ = rig.request()
    rig.lose()
    assert isinstance(rig.error(ticket), TransportError)
    assert rig.error(ticket).kind == "transport"
    assert rig.state == "backoff"
    reconnect(rig)
    assert rig.state == "ready"


@pytest.mark.req("E4", "R10")
def test_matrix_protocol_invalid_json_is_dropped_and_the_connection_goes_on() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    assert one(rig.deliver(b"{oops"), Violated).reason == "not JSON"
    assert rig.open_tickets() == {ticket}
    rig.answer(wire_id)
    assert rig.result(ticket) == {}


@pytest.mark.req("E4", "E1")
def test_matrix_protocol_junk_that_is_tied_to_a_request_fails_that_request() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    other = rig.call()
    rig.deliver({"id": wire_id})
    assert rig.error(ticket).kind == "protocol"
    assert rig.open_tickets() == {other}


@pytest.mark.req("E4", "E3")
def test_matrix_jsonrpc_a_servers_error_reaches_its_caller() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.answer(wire_id, refusal(-32000, "busy", {"retry": 1}))
    error = rig.error(ticket)
    assert isinstance(error, RpcError)
    assert (error.kind, error.code, error.data) == ("jsonrpc", -32000, {"retry": 1})
    assert rig.state == "ready"


@pytest.mark.req("E4", "R5")
def test_matrix_state_an_unknown_answer_is_warned_of_and_a_tombstoned_one_is_not() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.cancel(ticket)
    assert rig.answer(wire_id) == []
    assert one(rig.answer(999), Violated).reason == "answer to an unknown request"
    assert rig.state == "ready"


@pytest.mark.req("E4", "L6")
def test_matrix_timeout_a_slow_handshake_leads_to_backoff_and_calls_fail_at_once() -> None:
    rig = initializing()
    rig.at(10.0)
    assert rig.state == "backoff"
    with pytest.raises(StateError) as failure:
        rig.call()
    assert failure.value.kind == "state"
    assert "did not answer the handshake within 10 s" in failure.value.message
    rig.at(11.0)
    rig.at(21.0)
    assert rig.engine.due == 23.0, "the next pause is twice as long"


@pytest.mark.req("E4", "R7")
def test_matrix_busy_until_the_deadline_then_backpressure() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=1.0)
    rig.busy(wire_id)
    rig.now = 1.0
    rig.tick()
    assert rig.error(ticket).kind == "backpressure"
    assert rig.state == "ready"


@pytest.mark.req("R9", "E4")
def test_an_oversized_frame_fails_what_is_under_way_buries_it_and_leads_to_backoff() -> None:
    rig = ready()
    asked = [rig.request() for _ in range(3)]
    effects = rig.lose(TransportError("the server sent more than 16777216 bytes"))
    assert one(effects, Close).generation == Generation(1)
    for ticket, _ in asked:
        assert "more than 16777216 bytes" in rig.error(ticket).message
    assert rig.engine.inflight.tombstones == 3
    assert rig.state == "backoff"
    reconnect(rig)
    for _, wire_id in asked:
        assert rig.answer(wire_id) == []
    assert rig.violations() == []


# Every kind of error that ends a call


def time_out(rig: Rig, wire_id: WireId) -> None:
    rig.at(30.0)


def shut(rig: Rig, wire_id: WireId) -> None:
    rig.close()


def lose(rig: Rig, wire_id: WireId) -> None:
    rig.lose()


def answer_badly(rig: Rig, wire_id: WireId) -> None:
    rig.answer(wire_id, {"result": []})


def refuse(rig: Rig, wire_id: WireId) -> None:
    rig.answer(wire_id, refusal(-32603))


@pytest.mark.req("E1", "V2")
@rows(
    ("end", "kind"),
    [
        (time_out, "timeout"),
        (shut, "shutdown"),
        (lose, "transport"),
        (answer_badly, "protocol"),
        (refuse, "jsonrpc"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_way_to_fail_has_its_kind_and_names_server_and_call(
    end: Callable[[Rig, WireId], None], kind: str
) -> None:
    rig = ready()
    ticket, wire_id = rig.request(about="add")
    end(rig, wire_id)
    error = rig.error(ticket)
    assert isinstance(error, HoldfastError)
    assert error.kind == kind
    assert error.message.startswith("server: tools/call 'add': ")


@pytest.mark.req("E1")
def test_callers_of_one_loss_get_errors_of_their_own() -> None:
    rig = ready()
    tickets = [rig.call(about=name) for name in "abc"]
    rig.lose()
    errors = [rig.error(ticket) for ticket in tickets]
    assert len(set(map(id, errors))) == 3
    assert all(error.__cause__ is CRASH for error in errors)
    assert CRASH.message == "the server exited with code 1"


@pytest.mark.req("L1")
def test_what_is_delivered_before_the_link_is_open_is_not_heard() -> None:
    rig = starting()
    assert rig.deliver({"id": 1, **DISCOVERED}, {"id": 7, "method": "ping"}) == []


def test_outcomes_and_commands_are_the_only_effects() -> None:
    rig = ready()
    _, wire_id = rig.request()
    assert [type(effect) for effect in rig.answer(wire_id)] == [Completed]
    ticket = rig.call()
    assert Failed in {type(effect) for effect in rig.cancel(ticket)}
    assert State(rig.state) is State.READY


@pytest.mark.req("X2")
@pytest.mark.parametrize("streams", [True, False])
def test_arguments_are_repeated_in_headers_only_where_there_are_headers(streams: bool) -> None:
    rig = Rig()
    assert not rig.engine.param_headers
    rig.open()
    (sent,) = only(rig.report(Opened(rig.engine.link.generation, streams)), Send)
    assert sent.wire_id is not None
    reply = {"jsonrpc": "2.0", "id": sent.wire_id, **DISCOVERED}
    stream = sent.wire_id if streams else None
    rig.report(Delivered(rig.engine.link.generation, line(reply), stream))
    assert rig.state == "ready"
    assert rig.engine.param_headers is streams


@pytest.mark.req("P5")
def test_the_log_level_is_remembered() -> None:
    rig = ready()
    assert rig.engine.log_level is None
    rig.engine.log_level = "debug"
    assert rig.engine.log_level == "debug"


# Servers that take their time


def at_work(rig: Rig, elapsed: float, *, busy: bool = True) -> list[Effect]:
    return rig.report(Starting(rig.engine.link.generation, elapsed, again=1.0, busy=busy))


@pytest.mark.req("N1", "L6")
@pytest.mark.parametrize(
    ("handshake", "until"), [(10.0, 30.0), (2.0, 6.0), (20.0, 30.0), (60.0, 60.0)]
)
def test_a_server_that_is_only_alive_gets_three_times_as_long_up_to_half_a_minute(
    handshake: float, until: float
) -> None:
    rig = Rig(policy=Policy(timeouts=Timeouts(handshake=handshake)))
    rig.open()
    rig.opened()
    for second in range(int(until)):
        rig.at(float(second))
        at_work(rig, second, busy=False)
    rig.at(until - 0.1)
    assert rig.state == "initializing"
    rig.at(until + 0.1)
    assert rig.state == "backoff"


@pytest.mark.req("N1", "R3")
def test_a_call_does_not_wait_longer_for_a_server_that_is_only_alive() -> None:
    rig = Rig()
    ticket = rig.call(idle=2.0, total=30.0)
    rig.opened()
    for second in range(2):
        rig.at(float(second))
        at_work(rig, second, busy=False)
    rig.at(2.5)
    assert not rig.error(ticket).outcome_unknown


@pytest.mark.req("N1", "L6")
def test_the_handshake_counts_from_the_last_sign_of_a_launcher_at_work() -> None:
    rig = Rig(policy=Policy(timeouts=Timeouts(handshake=5)))
    rig.open()
    rig.opened()
    for second in range(60):
        rig.at(float(second))
        assert one(at_work(rig, second), Starting).elapsed == second
    rig.at(64.9)
    assert rig.state == "initializing"
    rig.at(65.1)
    assert rig.state == "backoff"
    with pytest.raises(StateError, match="did not answer the handshake within 65 s"):
        rig.call()
    rig.at(80.0)
    with pytest.raises(StateError, match="could not be reached within 5 s"):
        rig.call()


@pytest.mark.req("N1", "R3")
def test_a_call_waits_for_a_launcher_up_to_its_total_timeout() -> None:
    rig = Rig()
    ticket = rig.call(idle=2.0, total=30.0)
    rig.opened()
    for second in range(29):
        rig.at(float(second))
        at_work(rig, second)
    assert rig.open_tickets() == {ticket}
    rig.at(30.5)
    assert not rig.error(ticket).outcome_unknown


@pytest.mark.req("N1")
def test_a_report_of_starting_changes_nothing_for_a_server_that_is_ready() -> None:
    rig = ready()
    assert at_work(rig, 1.0) == []


class FinalError(TransportError):
    """Only a person can help."""

    final = True


@pytest.mark.req("L5")
def test_an_error_that_only_a_person_can_help_with_waits_without_a_timer_until_retry_now() -> None:
    rig = ready(policy=Policy(when_down="wait", replay="safe"))
    ticket, _ = rig.request(repeatable=True)
    rig.lose(FinalError("log in first"))
    assert "log in first" in rig.error(ticket).message
    assert rig.engine.due > 1e12 or rig.engine.inflight.tombstones
    with pytest.raises(TransportError, match="log in first"):
        rig.engine.call(Call("tools/call"), rig.now)
    assert len(only(rig.engine.retry_now(rig.now), Open)) == 1
    assert rig.engine.retry_now(rig.now) == []


def goodbye(rig: Rig) -> tuple[Ticket, WireId]:
    """Begin to close with a last request; return its ticket and wire id."""
    call = Call("shutdown", idle=2.0, total=2.0)
    ticket, effects = rig.engine.say_goodbye(call, rig.now)
    rig.outcomes[ticket] = []
    rig._take(effects)
    wire_id = one(effects, Send).wire_id
    assert wire_id is not None
    return ticket, wire_id


@pytest.mark.req("L7")
def test_a_last_request_ends_every_other_and_refuses_those_that_follow() -> None:
    rig = ready()
    ticket, _ = rig.request()
    last, wire_id = goodbye(rig)
    assert rig.error(ticket).kind == "shutdown"
    assert rig.state == "closing"
    with pytest.raises(ShutdownError, match="the client is closing"):
        rig.engine.call(Call("tools/call"), rig.now)
    assert rig.engine.notify("notifications/x") == []
    rig.answer(wire_id)
    assert rig.result(last) == {}
    assert rig.state == "closing"
    (closing,) = rig.close()
    assert isinstance(closing, Close)
    rig.drained()
    assert rig.state == "closed"


@pytest.mark.req("L7")
def test_a_last_request_that_is_not_answered_ends_in_time() -> None:
    rig = ready()
    last, _ = goodbye(rig)
    rig.wait(2.0)
    assert rig.error(last).kind == "timeout"
    assert one(rig.close(), Close).generation == rig.engine.link.generation


@pytest.mark.req("L7")
def test_a_server_that_ends_at_the_last_request_is_not_started_again() -> None:
    rig = ready()
    last, _ = goodbye(rig)
    effects = rig.lose()
    assert only(effects, Open) == []
    assert rig.error(last).kind == "shutdown"
    assert rig.state == "closed"
    assert len(only(rig.close(), Close)) == 1, "its link is torn down all the same"
    assert only(rig.close(), Close) == []


@pytest.mark.req("L7")
def test_a_close_ends_a_last_request_that_is_under_way() -> None:
    rig = ready()
    last, _ = goodbye(rig)
    effects = rig.close()
    assert rig.error(last).kind == "shutdown"
    assert len(only(effects, Close)) == 1


@pytest.mark.req("L7", "P6")
def test_a_server_that_asks_before_it_answers_the_last_request_is_answered() -> None:
    rig = ready()
    goodbye(rig)
    request = one(rig.deliver({"id": "x", "method": "roots/list"}), Asked)
    assert len(only(rig.engine.answer(request, {"roots": []}), Send)) == 1
    rig.close()
    assert rig.engine.answer(request, {"roots": []}) == []
    assert rig.engine.refuse(request, -1, "no") == []


@pytest.mark.req("R7")
def test_a_notification_that_a_full_link_does_not_take_is_offered_again() -> None:
    rig = ready()
    (command,) = rig.engine.notify("notifications/x")
    assert isinstance(command, Send)
    assert rig.report(Busy(rig.engine.link.generation, command)) == []
    assert only(rig.at(rig.engine.due), Send) == [command]


@pytest.mark.req("L3", "R2")
def test_a_server_that_has_each_opening_replaced_by_the_other_is_given_a_pause() -> None:
    rig = Rig()
    rig.open()
    for _ in range(MOST_RESTARTS):
        rig.engine._restart(StartAgain("discover"), rig.now, [])
        assert rig.state == "starting"
    rig.engine._restart(StartAgain("initialize"), rig.now, [])
    assert rig.state == "backoff"
    assert "each time asking for the other" in str(rig.engine.reason)


@pytest.mark.req("L3")
@pytest.mark.parametrize("stranger", [{"id": 999}, {"id": "abc"}, {"id": 2.5}])
def test_an_answer_to_nobodys_question_does_not_disturb_the_handshake(
    stranger: dict[str, object],
) -> None:
    rig = Rig(opening="initialize")
    rig.open()
    (asked,) = frames(rig.opened())
    rig.deliver({"jsonrpc": "2.0", **stranger, "result": {}})
    assert rig.state == "initializing"
    assert rig.violations() == ["answer to an unknown request"]
    rig.answer(asked["id"], INITIALIZED)
    assert rig.state == "ready"
