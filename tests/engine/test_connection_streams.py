"""A connection whose requests each travel on a stream of their own: HTTP, seen by the engine."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.boundary import (
    Asked,
    Call,
    Close,
    Delivered,
    Expired,
    Failed,
    Finish,
    Held,
    LinkChanged,
    Open,
    Opened,
    OpenStream,
    RefusalReason,
    Refused,
    Released,
    Retract,
    Send,
    StreamOptions,
    Throttled,
    Ticket,
    Unhandled,
    WireId,
)
from holdfast._core.engine.outbox import ATTEMPTS
from holdfast._core.engine.requests import POLL
from holdfast._core.wire.jsonrpc import ErrorObject
from holdfast.errors import (
    AuthError,
    HandshakeTimeout,
    HoldfastError,
    LoginRequired,
    ProtocolError,
    RequestTimeout,
    RpcError,
    TransportError,
)
from holdfast.policies import Backoff, Policy
from tests.engine.rig import (
    DISCOVERED,
    INITIALIZED,
    LEGACY,
    MODERN,
    Json,
    Rig,
    frames,
    line,
    methods,
    one,
    only,
    unsupported,
)
from tests.rows import rows

GONE = TransportError("http://host answered with HTTP status 404", code=404)
BROKE = TransportError("the connection to http://host broke")


def deliver(rig: Rig, stream: int, *messages: object, session: str | None = None) -> list[Any]:
    data = b"".join(map(line, messages))
    return rig.report(Delivered(rig.engine.link.generation, data, WireId(stream), session))


def answer(
    rig: Rig, wire_id: int, reply: Json | None = None, *, session: str | None = None
) -> list[Any]:
    message = {"jsonrpc": "2.0", "id": wire_id, **(reply or {"result": {}})}
    return deliver(rig, wire_id, message, session=session)


def refuse(
    rig: Rig,
    wire_id: int,
    reason: RefusalReason = RefusalReason.BROKEN,
    *,
    error: HoldfastError = GONE,
    fault: ErrorObject | None = None,
    processed: bool = False,
    retry_after: float | None = None,
) -> list[Any]:
    report = Refused(error, reason, fault=fault, processed=processed, retry_after=retry_after)
    return rig.report(report.of(rig.engine.link.generation, WireId(wire_id)))


def opened(rig: Rig) -> Json:
    """The link stands: what the client asks first."""
    (asked,) = frames(rig.report(Opened(rig.engine.link.generation, streams=True)))
    return asked


def ready(
    era: str = "handshake", *, session: str | None = "one", policy: Policy | None = None
) -> Rig:
    opening = "discover" if era == "stateless" else "initialize"
    rig = Rig(policy=policy, opening=opening)  # type: ignore[arg-type]
    rig.open()
    asked = opened(rig)
    reply = DISCOVERED if era == "stateless" else INITIALIZED
    answer(rig, asked["id"], reply, session=session)
    assert rig.state == "ready"
    return rig


def renewed(rig: Rig, effects: list[Any], session: str | None = "two") -> list[Any]:
    """Let a new session begin; what follows from that."""
    (asked,) = frames(effects)
    assert asked["method"] == "initialize"
    return answer(rig, asked["id"], INITIALIZED, session=session)


def options(effects: list[Any]) -> dict[str, str]:
    options = one(effects, Send).options
    assert options is not None
    return options.headers


# Headers


@pytest.mark.req("X2", "L3")
def test_the_probe_says_its_version_and_method_in_headers() -> None:
    rig = Rig()
    rig.open()
    effects = rig.report(Opened(rig.engine.link.generation, streams=True))
    assert options(effects) == {"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}


@pytest.mark.req("X2")
def test_initialize_wears_nothing() -> None:
    rig = Rig(opening="initialize")
    rig.open()
    effects = rig.report(Opened(rig.engine.link.generation, streams=True))
    assert options(effects) == {}


@pytest.mark.req("X2")
def test_a_stateless_request_wears_version_method_name_and_mirrored_arguments() -> None:
    rig = ready("stateless")
    mark = len(rig.effects)
    rig.call("tools/call", params={"name": "ü"}, param_headers={"Mcp-Param-Region": "eu"})
    assert options(rig.effects[mark:]) == {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?w7w=?=",
        "Mcp-Param-Region": "eu",
    }


@pytest.mark.req("X2")
def test_a_stateless_server_gives_no_session_whatever_it_says() -> None:
    rig = ready("stateless", session="forged")
    mark = len(rig.effects)
    rig.call()
    assert "Mcp-Session-Id" not in options(rig.effects[mark:])
    assert one(rig.close(), Close).farewell is None


@pytest.mark.req("X2")
def test_a_session_is_worn_by_all_that_follows() -> None:
    rig = ready()
    expected = {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": "one"}
    for send in only(rig.effects, Send)[1:]:
        assert send.options is not None
        assert send.options.headers == expected
    assert one(rig.effects, OpenStream).options.headers == expected
    mark = len(rig.effects)
    rig.call()
    assert options(rig.effects[mark:]) == expected
    farewell = one(rig.close(), Close).farewell
    assert farewell is not None
    assert farewell.headers == expected


@pytest.mark.req("X2")
def test_without_a_session_there_is_no_farewell() -> None:
    rig = ready(session=None)
    assert one(rig.close(), Close).farewell is None


@pytest.mark.req("X2")
def test_what_follows_waits_for_initialized() -> None:
    rig = ready()
    sends = only(rig.effects, Send)
    assert methods(sends) == ["initialize", "notifications/initialized"]
    assert [send.options.first for send in sends if send.options] == [False, True]


@pytest.mark.req("X2")
def test_a_session_is_taken_only_from_a_good_answer_to_initialize() -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    (asked,) = frames(
        deliver(
            rig,
            probe["id"],
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}},
            session="bogus",
        )
    )
    assert asked["method"] == "initialize"
    answer(rig, asked["id"], INITIALIZED)
    assert rig.engine.link.era is not None
    assert rig.engine.link.era.session is None


@pytest.mark.req("X2")
def test_a_stateless_conversation_has_no_stream_of_the_servers_own() -> None:
    assert only(ready("stateless").effects, OpenStream) == []


@pytest.mark.req("P5")
def test_the_log_level_is_told_again_in_a_new_session() -> None:
    rig = ready()
    rig.engine.log_level = "debug"
    effects = renewed(rig, rig.report(Expired(rig.engine.link.generation, "one")))
    assert methods(effects) == ["notifications/initialized", "logging/setLevel"]


@pytest.mark.req("B16")
def test_a_session_is_left_for_a_new_one_where_there_are_sessions() -> None:
    rig = ready()
    renewed(rig, rig.engine.renew_session("another account", rig.now))
    assert rig.engine.link.era is not None
    assert rig.engine.link.era.session == "two"
    assert ready("stateless").engine.renew_session("another account", 0.0) == []


# Answers and their streams


@pytest.mark.req("R2")
def test_an_answer_finishes_its_stream() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    effects = answer(rig, wire_id, {"result": {"n": 1}})
    assert rig.result(ticket) == {"n": 1}
    assert one(effects, Finish).wire_id == wire_id


@pytest.mark.req("R2")
def test_an_answer_on_anothers_stream_is_nobodys_data() -> None:
    rig = ready()
    mine, first = rig.request()
    theirs, second = rig.request()
    effects = deliver(rig, first, {"jsonrpc": "2.0", "id": second, "result": {"secret": 1}})
    assert isinstance(rig.error(mine), ProtocolError)
    assert rig.open_tickets() == {theirs}
    assert rig.violations() == ["answer on another request's stream"]
    assert one(effects, Finish).wire_id == first, "nothing good comes on that stream any more"
    answer(rig, second, {"result": {"own": 2}})
    assert rig.result(theirs) == {"own": 2}


@pytest.mark.req("R2")
def test_swapped_answers_give_two_errors_and_no_data() -> None:
    rig = ready()
    mine, first = rig.request()
    theirs, second = rig.request()
    deliver(rig, first, {"jsonrpc": "2.0", "id": second, "result": {"n": 2}})
    deliver(rig, second, {"jsonrpc": "2.0", "id": first, "result": {"n": 1}})
    for ticket in (mine, theirs):
        error = rig.error(ticket)
        assert isinstance(error, ProtocolError)
        assert error.outcome_unknown


@pytest.mark.req("R2", "R10")
@pytest.mark.parametrize("body", [b"\xff\xfe{\0}\0", b"<html>", b'{"jsonrpc":"2.0","id":', b"[1]"])
def test_a_response_that_cannot_be_read_fails_its_request_and_says_why(body: bytes) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    report = Delivered(rig.engine.link.generation, body, WireId(wire_id), whole=True)
    effects = rig.report(report)
    error = rig.error(ticket)
    assert isinstance(error, ProtocolError)
    assert rig.violations()[0] in error.message
    assert one(effects, Finish).wire_id == wire_id


@pytest.mark.req("R2", "R10")
def test_an_unreadable_answer_on_anothers_stream_fails_nobody() -> None:
    rig = ready()
    (_, first), (theirs, second) = rig.request(), rig.request()
    deliver(rig, first, b'{"jsonrpc":"2.0","id":%d,"result":NaN}' % second)
    deliver(rig, 0, b'{"jsonrpc":"2.0","id":%d,"result":NaN}' % second)
    answer(rig, second, {"result": {"own": 2}})
    assert rig.result(theirs) == {"own": 2}


@pytest.mark.req("R2")
def test_an_answer_on_the_servers_own_stream_is_dropped() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    deliver(rig, 0, {"jsonrpc": "2.0", "id": wire_id, "result": {}})
    assert rig.open_tickets() == {ticket}
    assert rig.violations() == ["answer on another request's stream"]


@pytest.mark.req("R2")
def test_an_error_without_an_id_belongs_to_the_request_of_its_stream() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    deliver(rig, wire_id, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}})
    assert rig.error(ticket).code == -32700


@pytest.mark.req("R2")
def test_an_error_under_a_name_that_is_not_ours_belongs_to_the_request_of_its_stream() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    error = {"code": -32600, "message": "x"}
    deliver(rig, wire_id, {"jsonrpc": "2.0", "id": "server-error", "error": error})
    assert rig.error(ticket).code == -32600


@pytest.mark.req("R10")
def test_an_object_that_is_no_message_is_dropped() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    assert only(deliver(rig, wire_id, {}, {"type": "ping"}), Finish) == []
    assert rig.open_tickets() == {ticket}
    assert rig.violations() == ["not a JSON-RPC message"] * 2


@pytest.mark.req("L3")
def test_an_answer_to_something_else_does_not_end_the_greeting_quietly() -> None:
    """The transport says that nothing came, and the attempt ends at once."""
    rig = Rig()
    rig.open()
    probe = opened(rig)
    assert only(deliver(rig, probe["id"], {"jsonrpc": "2.0", "id": 99, "result": {}}), Finish) == []
    refuse(rig, probe["id"], error=ProtocolError("gave no answer"))
    assert rig.state == "backoff"


@pytest.mark.req("P7")
def test_a_ping_on_any_stream_is_answered_with_the_session() -> None:
    rig = ready()
    for stream in (0, rig.request()[1]):
        effects = deliver(rig, stream, {"jsonrpc": "2.0", "id": "p", "method": "ping"})
        assert frames(effects) == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
        assert options(effects)["Mcp-Session-Id"] == "one"


@pytest.mark.req("P4")
def test_a_request_of_the_server_is_answered_on_a_post_of_its_own() -> None:
    rig = ready()
    message = {"jsonrpc": "2.0", "id": 9, "method": "roots/list"}
    asked = one(deliver(rig, 0, message), Asked)
    effects = rig.engine.answer(asked, {"roots": []})
    assert options(effects)["Mcp-Session-Id"] == "one"
    assert one(effects, Send).wire_id is None


@pytest.mark.req("P4")
def test_a_stateless_server_may_not_ask() -> None:
    rig = ready("stateless")
    _, wire_id = rig.request()
    deliver(rig, wire_id, {"jsonrpc": "2.0", "id": 9, "method": "roots/list"})
    assert only(rig.effects, Asked) == []
    assert rig.violations() == ["request of the server's own"]


# Taking back


@pytest.mark.req("R4", "R6")
def test_ending_the_stream_is_the_cancellation_of_a_stateless_request() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request()
    assert one(rig.cancel(ticket), Retract) == Retract(
        wire_id,
        None,
        StreamOptions({"MCP-Protocol-Version": MODERN, "Mcp-Method": "notifications/cancelled"}),
        ticket,
    )


@pytest.mark.req("R4")
def test_a_stateless_timeout_ends_the_stream_too() -> None:
    rig = ready("stateless")
    _, wire_id = rig.request(idle=1.0)
    retract = one(rig.wait(1.0), Retract)
    assert (retract.wire_id, retract.frame) == (wire_id, None)


@pytest.mark.req("R4", "R6")
def test_in_the_handshake_era_the_server_is_told() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    retract = one(rig.cancel(ticket), Retract)
    assert retract.frame is not None
    assert b"notifications/cancelled" in retract.frame
    assert retract.options is not None
    assert retract.options.headers["Mcp-Session-Id"] == "one"
    assert retract.wire_id == wire_id


@pytest.mark.req("L3")
def test_a_probe_that_nobody_waits_for_any_more_is_taken_back() -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    rig.wait(rig.policy.timeouts.probe)
    (hedge,) = frames(rig.sounded())
    effects = answer(rig, hedge["id"], INITIALIZED)
    assert rig.state == "ready"
    assert one(effects, Retract) == Retract(probe["id"], None)


# Refusals


@pytest.mark.req("E2", "R2")
def test_a_refusal_ends_its_own_request_only() -> None:
    rig = ready()
    mine, first = rig.request()
    theirs, _ = rig.request()
    refuse(
        rig,
        first,
        RefusalReason.CRASHED,
        error=TransportError("HTTP status 500", code=500),
        processed=True,
    )
    error = rig.error(mine)
    assert isinstance(error, TransportError)
    assert error.code == 500
    assert error.outcome_unknown
    assert "it may have run" in error.message
    assert (rig.state, rig.open_tickets()) == ("ready", {theirs})


@pytest.mark.req("E3")
def test_the_error_object_in_a_refusal_is_the_answer() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    fault = ErrorObject(-32602, "bad arguments", {"where": "x"})
    refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD, fault=fault)
    error = rig.error(ticket)
    assert isinstance(error, RpcError)
    assert (error.code, error.data) == (-32602, {"where": "x"})


@pytest.mark.req("R2")
def test_a_refusal_of_nobody_is_not_heard() -> None:
    rig = ready()
    assert refuse(rig, 999, RefusalReason.CRASHED) == []


@pytest.mark.req("E1")
def test_refused_credentials_end_the_request_and_not_the_connection() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, RefusalReason.UNAUTHORIZED, error=AuthError("HTTP status 401"))
    error = rig.error(ticket)
    assert isinstance(error, AuthError)
    assert "it was not run" in error.message
    assert rig.state == "ready"


@pytest.mark.req("H8")
def test_a_checked_call_that_is_refused_for_now_goes_back_to_its_caller() -> None:
    rig = ready()
    for refusals in (0, 1):
        _, wire_id = rig.request(epoch=rig.engine.link.epoch, refusals=refusals)
        refuse(rig, wire_id, RefusalReason.BUSY, retry_after=1.0)
        error = one(rig.wait(1.1), Failed).error
        assert isinstance(error, LinkChanged)
        assert error.refusals == refusals + 1


@pytest.mark.req("R11", "R3")
def test_retry_after_is_waited_for_within_the_deadline() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=10.0)
    (later,) = refuse(rig, wire_id, RefusalReason.BUSY, retry_after=4.0)
    assert isinstance(later, Throttled)
    assert 4.0 <= later.seconds <= 4.4, "not less than was said, and a little more by chance"
    assert only(rig.wait(3.9), Send) == []
    (again,) = only(rig.wait(0.5), Send)
    assert again.wire_id is not None
    assert again.wire_id > wire_id
    answer(rig, again.wire_id)
    assert rig.result(ticket) == {}


@pytest.mark.req("R11", "R3")
def test_retry_after_beyond_the_deadline_is_an_error_at_once() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=3.0)
    refuse(rig, wire_id, RefusalReason.BUSY, retry_after=60.0)
    assert "it was not run" in rig.error(ticket).message


@pytest.mark.req("R2", "R11")
def test_a_server_that_always_says_later_is_not_asked_for_ever() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=100.0)
    asked = 1
    while rig.open_tickets():
        effects = refuse(rig, wire_id, RefusalReason.BUSY, retry_after=0.0) + rig.wait(0.001)
        for send in only(effects, Send):
            asked += 1
            assert send.wire_id is not None
            wire_id = send.wire_id
    assert asked == 1 + ATTEMPTS
    assert isinstance(rig.error(ticket), TransportError)


@pytest.mark.req("R7")
def test_a_refused_request_waits_for_room_like_the_others() -> None:
    rig = ready()
    first, wire_id = rig.request(idle=100.0)
    _, refused = rig.request(idle=100.0)
    rig.busy(wire_id)
    effects = refuse(rig, refused, RefusalReason.BUSY, retry_after=0.0) + rig.wait(POLL / 2)
    assert not only(effects, Send)
    sent = only(rig.wait(POLL), Send)
    assert len(sent) == 2
    assert sent[0].ticket == first


@pytest.mark.req("R11")
def test_what_may_have_run_is_repeated_only_if_that_is_safe_and_wanted() -> None:
    safe = Policy(replay="safe")
    for policy, repeatable, again in ((safe, True, 1), (safe, False, 0), (Policy(), True, 0)):
        rig = ready(policy=policy)
        _, wire_id = rig.request(repeatable=repeatable)
        effects = refuse(rig, wire_id, error=BROKE, processed=True) + rig.wait(0.001)
        assert len(only(effects, Send)) == again


@pytest.mark.req("R11")
def test_what_was_repeated_once_is_not_repeated_again() -> None:
    rig = ready(policy=Policy(replay="safe"))
    ticket, wire_id = rig.request(repeatable=True)
    (again,) = only(refuse(rig, wire_id, error=BROKE, processed=True) + rig.wait(0.001), Send)
    assert again.wire_id is not None
    refuse(rig, again.wire_id, error=BROKE, processed=True)
    assert rig.error(ticket).outcome_unknown


@pytest.mark.req("R11")
def test_what_was_repeated_may_have_run_even_if_the_repetition_cannot() -> None:
    rig = ready(policy=Policy(replay="safe"))
    ticket, wire_id = rig.request(repeatable=True)
    (again,) = only(refuse(rig, wire_id, error=BROKE, processed=True) + rig.wait(0.001), Send)
    assert again.wire_id is not None
    refuse(rig, again.wire_id, error=TransportError("cannot connect: Connection refused"))
    assert rig.error(ticket).outcome_unknown
    assert rig.error(ticket).message.endswith("Connection refused; it may have run")


@pytest.mark.req("L11")
def test_a_call_that_waits_is_tried_again_when_the_server_cannot_be_reached() -> None:
    rig = ready(policy=Policy(when_down="wait", backoff=Backoff(first=1.0, jitter=0)))
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, error=TransportError("cannot connect: Connection refused"))
    assert rig.open_tickets() == {ticket}
    (again,) = only(rig.wait(1.0), Send)
    assert again.wire_id is not None
    answer(rig, again.wire_id)
    assert rig.result(ticket) == {}


@pytest.mark.req("L11", "Y1")
@pytest.mark.parametrize("reason", [RefusalReason.UNAUTHORIZED, RefusalReason.FORBIDDEN])
def test_a_call_that_waits_ends_with_a_server_that_does_not_let_it_in(
    reason: RefusalReason,
) -> None:
    rig = ready(policy=Policy(when_down="wait"))
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, reason)
    assert not rig.error(ticket).outcome_unknown


@pytest.mark.req("L11", "Y1")
def test_a_call_that_waits_ends_with_an_error_that_came_with_a_status() -> None:
    rig = ready("stateless", session=None, policy=Policy(when_down="wait"))
    ticket, wire_id = rig.request()
    fault = ErrorObject(-32020, "no such header")
    refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD, fault=fault)
    assert rig.error(ticket).code == -32020


@pytest.mark.req("L11")
def test_a_call_that_waits_is_tried_again_when_an_error_says_later() -> None:
    rig = ready(policy=Policy(when_down="wait", backoff=Backoff(first=1.0, jitter=0)))
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, RefusalReason.BUSY, fault=ErrorObject(-32000, "later"))
    assert rig.open_tickets() == {ticket}
    assert len(only(rig.wait(1.0), Send)) == 1


@pytest.mark.req("R7", "X2")
def test_a_retry_that_is_due_while_the_session_is_renewed_waits_for_the_new_one() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, RefusalReason.BUSY, retry_after=1.0)
    effects = rig.report(Expired(rig.engine.link.generation, "one"))
    assert only(rig.at(2.0), Send) == []
    assert methods(renewed(rig, effects)) == ["notifications/initialized", "tools/call"]
    assert rig.open_tickets() == {ticket}


# Servers that are replaced


@pytest.mark.req("L3", "X2")
@pytest.mark.parametrize("code", [-32020, -32021, -32022, None])
def test_a_server_replaced_by_a_stateless_one_is_recognised_and_the_call_goes_on(
    code: int | None,
) -> None:
    rig = ready("handshake", session=None)
    ticket, wire_id = rig.request()
    fault = None if code is None else ErrorObject(code, "no")
    (asked,) = frames(refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD, fault=fault))
    assert asked["method"] == "server/discover"
    after = answer(rig, asked["id"], DISCOVERED)
    assert methods(after) == ["tools/call"]
    answer(rig, only(after, Send)[-1].wire_id or 0, {"result": {"n": 1}})
    assert rig.result(ticket) == {"n": 1}
    assert rig.engine.link.era is not None
    assert rig.engine.link.era.listens


@pytest.mark.req("L3", "X2")
def test_an_unknown_session_of_a_server_that_is_stateless_now_leads_to_its_revision() -> None:
    rig = ready("handshake")
    ticket, wire_id = rig.request()
    (asked,) = frames(refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION))
    assert asked["method"] == "initialize"
    fault = ErrorObject(-32602, "missing _meta")
    (asked,) = frames(refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD, fault=fault))
    assert asked["method"] == "server/discover"
    after = answer(rig, asked["id"], DISCOVERED)
    answer(rig, only(after, Send)[-1].wire_id or 0, {"result": {"n": 1}})
    assert rig.result(ticket) == {"n": 1}


@pytest.mark.req("L3", "X2")
@rows(
    "fault",
    [
        None,
        ErrorObject(-32000, "Bad Request: Server not initialized"),
        ErrorObject(-32600, "Bad Request: Missing session ID"),
        ErrorObject(-32602, "Received request before initialization was complete"),
        ErrorObject(-32022, "Unsupported protocol version", {"supported": ["2025-06-18"]}),
    ],
)
def test_a_server_replaced_by_one_with_a_handshake_is_recognised_and_the_call_goes_on(
    fault: ErrorObject | None,
) -> None:
    rig = ready("stateless", session=None)
    ticket, wire_id = rig.request()
    (asked,) = frames(refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD, fault=fault))
    assert asked["method"] == "server/discover"
    (asked,) = frames(refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD))
    assert asked["method"] == "initialize"
    after = answer(rig, asked["id"], INITIALIZED, session="two")
    assert methods(after) == ["notifications/initialized", "tools/call"]
    answer(rig, only(after, Send)[-1].wire_id or 0, {"result": {"n": 1}})
    assert rig.result(ticket) == {"n": 1}


@pytest.mark.req("L3", "P2")
def test_the_stream_of_a_subscription_ends_with_its_revision() -> None:
    rig = ready("stateless", session=None)
    lasting, stream = rig.request("subscriptions/listen", lasting=True)
    ticket, wire_id = rig.request()
    other, _ = rig.request()
    effects = refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD)
    assert [retract.wire_id for retract in only(effects, Retract)] == [stream]
    assert isinstance(rig.error(lasting), TransportError)
    assert rig.open_tickets() == {ticket, other}


@pytest.mark.req("L3", "P2")
def test_a_subscription_that_is_to_be_sent_again_goes_to_the_next_revision() -> None:
    rig = ready("stateless", session=None)
    lasting, stream = rig.request("subscriptions/listen", lasting=True)
    _, wire_id = rig.request()
    refuse(rig, stream, retry_after=5.0)
    assert only(refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD), Retract) == []
    assert lasting in rig.open_tickets()


@pytest.mark.req("R2", "X2")
def test_an_error_of_the_server_is_an_answer_and_nothing_is_sent_again() -> None:
    rig = ready("stateless", session=None, policy=Policy(replay="safe"))
    ticket, wire_id = rig.request(repeatable=True)
    refuse(rig, wire_id, fault=ErrorObject(-32603, "broken inside"), processed=True)
    assert "broken inside" in rig.error(ticket).message


@pytest.mark.req("L3", "X2", "R2")
def test_a_request_that_is_refused_by_both_revisions_fails_with_its_own_error() -> None:
    rig = ready("stateless", session=None)
    ticket, wire_id = rig.request()
    (asked,) = frames(refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD))
    after = answer(rig, asked["id"], DISCOVERED)
    again = only(after, Send)[-1].wire_id or 0
    assert only(refuse(rig, again, RefusalReason.NOT_UNDERSTOOD), Send) == []
    assert "404" in rig.error(ticket).message
    assert rig.state == "ready"


@pytest.mark.req("L3", "X2")
@pytest.mark.parametrize("code", [-32601, -32602, -32603])
def test_a_plain_refusal_of_a_request_does_not_question_the_revision(code: int) -> None:
    rig = ready("stateless", session=None)
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD, fault=ErrorObject(code, "bad arguments"))
    assert rig.error(ticket).code == code


@pytest.mark.req("X2", "R2")
def test_requests_on_a_link_that_a_renewal_has_to_close_hear_of_it() -> None:
    rig = ready("stateless", session=None)
    running, _ = rig.request()
    ticket, wire_id = rig.request()
    (asked,) = frames(refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD))
    (asked,) = frames(refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD))
    assert one(refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD), Open).variant == "sse"
    assert rig.error(running).outcome_unknown
    assert rig.open_tickets() == {ticket}


@pytest.mark.req("X2", "R2")
def test_a_call_bound_to_an_epoch_is_not_sent_in_another() -> None:
    rig = ready("handshake")
    epoch = rig.engine.link.epoch
    ticket, wire_id = rig.request(epoch=epoch)
    renewed(rig, refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION))
    assert isinstance(rig.error(ticket), LinkChanged)
    assert not rig.error(ticket).may_have_run
    assert rig.engine.link.epoch == epoch + 1


@pytest.mark.req("R2", "R10")
def test_an_answer_on_a_stream_that_cannot_be_read_fails_its_call_and_ends_the_stream() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request()
    data = b'{"jsonrpc":"2.0","id":%d,"result":NaN}\n' % wire_id
    effects = rig.report(Delivered(rig.engine.link.generation, data, WireId(wire_id)))
    assert rig.error(ticket).kind == "protocol"
    assert one(effects, Finish) == Finish(WireId(wire_id))


@pytest.mark.req("R2")
def test_a_defect_in_a_report_or_a_tick_is_handed_on_and_the_next_one_is_taken() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request(idle=1.0)
    other, _ = rig.request(idle=1.0)
    strange = Refused(GONE, RefusalReason.CRASHED).of(rig.engine.link.generation, WireId(wire_id))
    del strange.processed
    assert isinstance(one(rig.engine.report(strange, rig.now), Unhandled).error, AttributeError)
    era = rig.engine.link.era

    class Broken(type(era)):  # type: ignore[misc]
        def cancel(self, wire_id: WireId, reason: str, *, streams: bool = False) -> bytes | None:
            raise KeyError("unexpected")

    era.__class__ = Broken
    for expired in (ticket, other):
        effects = rig.engine.tick(1.0)
        assert isinstance(one(effects, Unhandled).error, KeyError)
        assert one(effects, Failed).ticket == expired


# Sessions that end


@pytest.mark.req("X2", "L5")
def test_an_unknown_session_starts_a_new_one_and_the_call_goes_on_it() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    effects = refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION)
    assert options(effects) == {}, "without a session attached"
    after = renewed(rig, effects)
    assert methods(after) == ["notifications/initialized", "tools/call"]
    again = only(after, Send)[-1]
    assert again.options is not None
    assert again.options.headers["Mcp-Session-Id"] == "two"
    assert again.wire_id is not None
    answer(rig, again.wire_id, {"result": {"n": 1}})
    assert rig.result(ticket) == {"n": 1}


@pytest.mark.req("X2")
def test_a_new_session_needs_no_new_link() -> None:
    rig = ready()
    _, wire_id = rig.request()
    mark = len(rig.effects)
    renewed(rig, refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION))
    assert only(rig.effects[mark:], Open) == []
    assert only(rig.effects[mark:], Close) == []
    assert rig.moves()[-3:] == ["ready", "initializing", "ready"]


@pytest.mark.req("X2", "R2")
def test_ten_calls_on_a_dead_session_start_one_new_one_and_all_go_on_it() -> None:
    rig = ready()
    calls = [rig.request() for _ in range(10)]
    effects = [
        effect
        for _, wire_id in calls
        for effect in refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION)
    ]
    after = renewed(rig, effects)
    sends = [send for send in only(after, Send) if send.wire_id is not None]
    assert len(sends) == 10
    for send in sends:
        assert send.wire_id is not None
        answer(rig, send.wire_id)
    assert rig.open_tickets() == set()


@pytest.mark.req("X2", "R2")
def test_news_of_a_session_that_was_replaced_meanwhile_does_not_replace_the_new_one() -> None:
    rig = ready()
    _, first = rig.request()
    late, second = rig.request()
    renewed(rig, refuse(rig, first, RefusalReason.NO_SUCH_SESSION))
    effects = refuse(rig, second, RefusalReason.NO_SUCH_SESSION)
    assert methods(effects) == ["tools/call"]
    assert options(effects)["Mcp-Session-Id"] == "two"
    wire_id = one(effects, Send).wire_id
    assert wire_id is not None
    answer(rig, wire_id)
    assert rig.result(late) == {}
    assert rig.report(Expired(rig.engine.link.generation, "one")) == []


@pytest.mark.req("X2", "R2")
def test_a_server_that_knows_no_session_at_all_gives_an_error_and_no_loop() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    after = renewed(rig, refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION))
    again = only(after, Send)[-1].wire_id
    assert again is not None
    assert only(refuse(rig, again, RefusalReason.NO_SUCH_SESSION), Send) == []
    assert "404" in rig.error(ticket).message
    assert rig.state == "ready"


@pytest.mark.req("X2", "R2")
def test_sessions_are_renewed_only_so_often() -> None:
    rig = ready()
    for _ in range(5):
        wire_id = rig.request(epoch=rig.engine.link.epoch)[1]
        renewed(rig, refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION))
    ticket, wire_id = rig.request()
    assert only(refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION), Send) == []
    assert "404" in rig.error(ticket).message
    rig.wait(10)
    renewed(rig, refuse(rig, rig.request()[1], RefusalReason.NO_SUCH_SESSION))
    assert rig.state == "ready"


@pytest.mark.req("L3", "R3")
def test_a_call_that_runs_out_of_time_while_its_error_is_looked_into_keeps_the_error() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request(idle=1.0, total=1.0)
    answer(rig, wire_id, {"error": {"code": -32602, "message": "Invalid request parameters"}})
    rig.wait(1)
    assert rig.error(ticket).code == -32602


@pytest.mark.req("X2")
def test_the_refusal_of_a_method_is_not_the_end_of_the_session() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    refuse(
        rig, wire_id, RefusalReason.NOT_UNDERSTOOD, fault=ErrorObject(-32601, "Method not found")
    )
    assert rig.error(ticket).code == -32601
    assert rig.state == "ready"


@pytest.mark.req("X2", "R2")
def test_what_is_under_way_in_the_old_session_may_still_end_there() -> None:
    rig = ready()
    ticket, running = rig.request()
    _, wire_id = rig.request()
    effects = refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION)
    answer(rig, running, {"result": {"n": 1}})
    assert rig.result(ticket) == {"n": 1}
    renewed(rig, effects)
    assert rig.state == "ready"


@pytest.mark.req("X2")
def test_a_session_that_ends_between_calls_is_renewed_for_its_stream() -> None:
    rig = ready()
    after = renewed(rig, rig.report(Expired(rig.engine.link.generation, "one")))
    assert one(after, OpenStream).options.headers["Mcp-Session-Id"] == "two"


@pytest.mark.req("X2", "L6")
def test_a_renewal_that_is_not_answered_ends_in_time() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION)
    rig.wait(rig.policy.timeouts.handshake)
    assert rig.state == "backoff"
    assert rig.error(ticket).kind == "timeout"


@pytest.mark.req("X2", "L7")
def test_closing_while_a_session_is_renewed_leaves_nothing_behind() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    refuse(rig, wire_id, RefusalReason.NO_SUCH_SESSION)
    rig.close()
    assert rig.error(ticket).kind == "shutdown"
    assert rig.report(Expired(rig.engine.link.generation, "one")) == []


@pytest.mark.req("L9")
def test_the_end_of_an_older_links_session_is_not_heard() -> None:
    rig = ready()
    before = rig.engine.link.generation
    rig.lose()
    assert rig.report(Expired(before, "one")) == []


# Finding the era


@pytest.mark.req("L3")
def test_the_modern_error_in_a_400_is_recognised_before_any_fallback() -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    fault = ErrorObject(-32022, "Unsupported", {"supported": ["2025-06-18"]})
    (asked,) = frames(refuse(rig, probe["id"], RefusalReason.NOT_UNDERSTOOD, fault=fault))
    assert asked["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.req("L3")
def test_nothing_in_common_in_a_400_ends_it_for_good() -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    supported = unsupported("2099-01-01")["error"]
    refuse(rig, probe["id"], RefusalReason.NOT_UNDERSTOOD, fault=ErrorObject(**supported))
    assert rig.state == "closed"
    assert "2099-01-01" in str(rig.engine.reason)


@pytest.mark.req("L3")
@pytest.mark.parametrize(
    "reason",
    [
        RefusalReason.NOT_UNDERSTOOD,
        RefusalReason.REJECTED,
        RefusalReason.NO_SUCH_SESSION,
        RefusalReason.CRASHED,
    ],
)
def test_any_other_refusal_of_the_probe_leads_to_initialize(reason: RefusalReason) -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    (asked,) = frames(refuse(rig, probe["id"], reason, fault=ErrorObject(-32000, "Bad Request")))
    assert asked["method"] == "initialize"


@pytest.mark.req("L3")
@rows(
    "reason",
    sorted(set(RefusalReason) - {"not understood", "rejected", "no such session", "crashed"}),
)
def test_a_refusal_that_says_nothing_of_the_era_ends_the_attempt(reason: RefusalReason) -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    refuse(rig, probe["id"], reason, error=TransportError("not now"))
    assert rig.state == "backoff"
    assert str(rig.engine.reason) == "not now"


@pytest.mark.req("L3")
def test_a_server_known_to_be_modern_that_breaks_is_broken() -> None:
    rig = Rig(opening="discover")
    rig.open()
    refuse(rig, opened(rig)["id"], RefusalReason.CRASHED, error=TransportError("HTTP status 500"))
    assert rig.state == "backoff"


@pytest.mark.req("X3", "L3")
def test_an_address_that_takes_no_post_is_tried_the_older_way() -> None:
    rig = Rig()
    rig.open()
    (asked,) = frames(refuse(rig, opened(rig)["id"], RefusalReason.NOT_UNDERSTOOD))
    again = one(refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD), Open)
    assert again.variant == "sse"
    (asked,) = frames(rig.report(Opened(rig.engine.link.generation)))
    assert asked["method"] == "initialize"
    rig.answer(asked["id"], INITIALIZED)
    assert rig.state == "ready"
    _, wire_id = rig.request()
    fresh = one(refuse(rig, wire_id, RefusalReason.NOT_UNDERSTOOD), Open)
    assert fresh.variant is None, "its endpoint is gone: the server was replaced"
    (asked,) = frames(refuse(rig, opened(rig)["id"], RefusalReason.NOT_UNDERSTOOD))
    refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD)
    (asked,) = frames(rig.report(Opened(rig.engine.link.generation)))
    assert "tools/call" in methods(rig.answer(asked["id"], INITIALIZED))
    rig.lose()
    reopened = one(rig.wait(5), Open)
    assert reopened.variant == "sse", "the way that worked is remembered"
    assert one(rig.lose(), Open).variant is None, "and found out anew if it does not"


@pytest.mark.req("X3", "L3")
def test_a_slow_address_of_the_older_kind_is_tried_the_older_way_too() -> None:
    rig = Rig()
    rig.open()
    probe = opened(rig)
    rig.wait(rig.policy.timeouts.probe)
    (hedge,) = frames(rig.sounded())
    refuse(rig, probe["id"], RefusalReason.NOT_UNDERSTOOD)
    assert one(refuse(rig, hedge["id"], RefusalReason.NOT_UNDERSTOOD), Open).variant == "sse"


@pytest.mark.req("X3", "L3")
@pytest.mark.parametrize("code", [-32601, -32020, -32021, -32022])
def test_a_modern_error_is_no_sign_of_the_older_kind(code: int) -> None:
    rig = Rig(opening="initialize")
    rig.open()
    effects = refuse(
        rig, opened(rig)["id"], RefusalReason.NOT_UNDERSTOOD, fault=ErrorObject(code, "no")
    )
    assert only(effects, Open) == []
    assert methods(effects) == ["server/discover"]


@pytest.mark.req("L3", "E2")
@pytest.mark.parametrize("code", [-32020, -32021])
def test_a_modern_demand_that_we_do_not_meet_is_told_without_a_fallback(code: int) -> None:
    rig = Rig()
    rig.open()
    effects = refuse(
        rig,
        opened(rig)["id"],
        RefusalReason.NOT_UNDERSTOOD,
        fault=ErrorObject(code, "Header mismatch"),
    )
    assert only(effects, Send) == []
    assert rig.engine.reason is not None
    assert rig.engine.reason.code == code
    assert "Header mismatch" in str(rig.engine.reason)


@pytest.mark.req("X3", "E2")
def test_when_both_ways_fail_the_error_tells_both_stories() -> None:
    rig = Rig()
    rig.open()
    (asked,) = frames(refuse(rig, opened(rig)["id"], RefusalReason.NOT_UNDERSTOOD))
    refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD, error=TransportError("POST gave 404"))
    rig.lose(TransportError("GET gave 405"))
    assert rig.state == "backoff"
    assert "GET gave 405" in str(rig.engine.reason)
    assert "POST gave 404" in str(rig.engine.reason)


@pytest.mark.req("X3", "R2")
def test_a_pending_call_hears_both_stories_too() -> None:
    rig = Rig()
    ticket: Ticket = rig.call()
    (asked,) = frames(refuse(rig, opened(rig)["id"], RefusalReason.NOT_UNDERSTOOD))
    refuse(rig, asked["id"], RefusalReason.NOT_UNDERSTOOD, error=TransportError("POST gave 404"))
    rig.lose(TransportError("GET gave 405"))
    assert "GET gave 405" in rig.error(ticket).message
    assert "POST gave 404" in rig.error(ticket).message


# Credentials


@pytest.mark.req("B14")
def test_the_time_of_a_request_covers_the_wait_for_credentials() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=5, total=60)
    rig.report(Held(rig.engine.link.generation, wire_id))
    rig.wait(3)
    rig.report(Released(rig.engine.link.generation, wire_id))
    rig.wait(1)
    assert ticket in rig.open_tickets()
    rig.wait(2)
    assert isinstance(rig.error(ticket), RequestTimeout)


@pytest.mark.req("B14")
def test_a_request_whose_time_ends_before_it_has_a_token_was_not_sent() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=5, total=60)
    rig.report(Held(rig.engine.link.generation, wire_id))
    failed = one(rig.wait(6), Failed)
    assert failed.ticket == ticket
    assert failed.unsent is not None
    assert "no token came from the authorization server within 5 s" in failed.unsent.message
    assert not failed.unsent.outcome_unknown


@pytest.mark.req("B14")
def test_the_handshake_is_not_timed_while_it_waits_for_credentials() -> None:
    rig = Rig()
    rig.open()
    asked = opened(rig)
    rig.report(Held(rig.engine.link.generation, WireId(asked["id"])))
    rig.wait(60)
    assert rig.state == "initializing"
    rig.report(Released(rig.engine.link.generation, WireId(asked["id"])))
    rig.wait(9)
    assert rig.state == "initializing"
    rig.wait(2)
    assert isinstance(rig.engine.reason, HandshakeTimeout)


@pytest.mark.req("A25")
def test_an_attempt_that_only_a_person_can_help_is_not_repeated() -> None:
    rig = Rig()
    rig.open()
    asked = opened(rig)
    refuse(rig, asked["id"], RefusalReason.UNAUTHORIZED, error=LoginRequired("log in"))
    assert rig.state == "backoff"
    rig.wait(3600)
    assert rig.state == "backoff"
    with pytest.raises(LoginRequired, match="log in"):
        rig.engine.call(Call("tools/list", wait=True), rig.now)
    rig._take(rig.engine.retry_now(rig.now))
    assert rig.state == "starting"


@pytest.mark.req("B14")
def test_credentials_for_a_request_that_has_ended_change_nothing() -> None:
    rig = ready()
    _, wire_id = rig.request(idle=5, total=60)
    rig.wait(6)
    assert rig.report(Held(rig.engine.link.generation, wire_id)) == []
    assert rig.report(Released(rig.engine.link.generation, wire_id)) == []
    assert rig.state == "ready"


@pytest.mark.req("B14")
def test_a_subscription_that_waited_for_credentials_is_still_never_idle() -> None:
    rig = ready()
    ticket, wire_id = rig.request("subscriptions/listen", lasting=True)
    rig.report(Held(rig.engine.link.generation, wire_id))
    rig.report(Released(rig.engine.link.generation, wire_id))
    rig.wait(3600)
    assert ticket in rig.open_tickets()


# What never left did not run, whoever ends the link


def renewing(policy: Policy | None = None) -> tuple[Rig, Json, Ticket, Ticket]:
    """The session is being renewed while one request is on its way and one waits for a place."""
    rig = ready(policy=policy)
    sent, _ = rig.request()
    waiting, wire_id = rig.request()
    rig.unsent = {wire_id}
    (asked,) = frames(rig.report(Expired(rig.engine.link.generation, "one")))
    return rig, asked, sent, waiting


@pytest.mark.req("R11")
@pytest.mark.parametrize("end", ["timeout", "refused", "no agreement", "close"])
def test_a_link_that_the_engine_drops_tells_the_sent_from_the_unsent(end: str) -> None:
    rig, asked, sent, waiting = renewing(Policy(backoff=Backoff(attempts=1)))
    if end == "timeout":
        rig.wait(rig.policy.timeouts.handshake)
    elif end == "refused":
        refuse(rig, asked["id"], RefusalReason.CRASHED)
    elif end == "no agreement":
        answer(rig, asked["id"], {"result": {"protocolVersion": "1999-01-01"}})
    else:
        rig.close()
    assert rig.error(sent).outcome_unknown
    assert not rig.error(waiting).outcome_unknown


@pytest.mark.req("R11")
def test_giving_up_before_a_repeat_has_left_says_that_it_may_have_run() -> None:
    rig = ready(policy=Policy(replay="safe"))
    ticket, wire_id = rig.request(repeatable=True)
    effects = refuse(rig, wire_id, error=BROKE, processed=True) + rig.wait(0.001)
    again = one(effects, Send).wire_id
    assert again is not None
    rig.unsent = {again}
    (asked,) = frames(rig.report(Expired(rig.engine.link.generation, "one")))
    answer(rig, asked["id"], {"result": {"protocolVersion": "1999-01-01"}})
    assert rig.state == "closed"
    assert rig.error(ticket).outcome_unknown


@pytest.mark.req("R11")
def test_a_repeat_that_is_turned_away_may_have_run_the_first_time() -> None:
    rig = ready(policy=Policy(replay="safe"))
    ticket, wire_id = rig.request(repeatable=True)
    effects = refuse(rig, wire_id, error=BROKE, processed=True) + rig.wait(0.001)
    for _ in range(ATTEMPTS):
        again = one(effects, Send).wire_id
        assert again is not None
        effects = refuse(rig, again, RefusalReason.BUSY, retry_after=0.0) + rig.wait(0.001)
    assert rig.error(ticket).outcome_unknown


@pytest.mark.req("R11")
def test_an_unsent_request_waits_for_the_link_after_one_that_the_engine_drops() -> None:
    rig, asked, sent, waiting = renewing(Policy(when_down="wait"))
    refuse(rig, asked["id"], RefusalReason.CRASHED)
    assert rig.error(sent).outcome_unknown
    assert rig.open_tickets() == {waiting}


# An answer that may be that of a server which speaks another revision

NOT_INITIALIZED: Json = {"error": {"code": -32000, "message": "Server not initialized"}}


@pytest.mark.req("L3", "R11")
def test_an_error_in_doubt_is_given_out_if_the_same_revision_is_agreed_on_again() -> None:
    rig = ready("stateless", session=None)
    ticket, wire_id = rig.request()
    (asked,) = frames(answer(rig, wire_id, NOT_INITIALIZED))
    assert rig.open_tickets() == {ticket}
    effects = answer(rig, asked["id"], DISCOVERED)
    assert methods(effects) == []
    assert isinstance(rig.error(ticket), RpcError)


@pytest.mark.req("L3", "R11")
def test_an_error_in_doubt_ends_every_call_that_was_sent_in_the_same_revision() -> None:
    """The first of them has led to a new agreement on it: the second is not sent twice."""
    rig = ready("stateless", session=None)
    _, first = rig.request()
    ticket, second = rig.request()
    (asked,) = frames(answer(rig, first, NOT_INITIALIZED))
    answer(rig, asked["id"], DISCOVERED)
    assert methods(answer(rig, second, NOT_INITIALIZED)) == []
    assert isinstance(rig.error(ticket), RpcError)


@pytest.mark.req("L3", "R11")
def test_a_request_in_doubt_is_sent_again_once_if_another_revision_is_agreed_on() -> None:
    rig = ready("stateless", session=None)
    ticket, wire_id = rig.request()
    (asked,) = frames(answer(rig, wire_id, NOT_INITIALIZED))
    (asked,) = frames(answer(rig, asked["id"], {"error": {"code": -32601, "message": "what?"}}))
    effects = answer(rig, asked["id"], INITIALIZED)
    assert "tools/call" in methods(effects)
    again = only(effects, Send)[-1].wire_id
    assert again is not None
    answer(rig, again, NOT_INITIALIZED)
    assert isinstance(rig.error(ticket), RpcError)


@pytest.mark.req("L3", "R11")
def test_an_error_in_doubt_is_given_out_if_the_link_is_lost() -> None:
    rig = ready("stateless", session=None, policy=Policy(when_down="wait", replay="safe"))
    ticket, wire_id = rig.request(repeatable=True)
    answer(rig, wire_id, NOT_INITIALIZED)
    rig.wait(rig.policy.timeouts.handshake)
    assert isinstance(rig.error(ticket), RpcError)


@pytest.mark.req("L3")
def test_a_server_without_discover_is_not_of_the_stateless_era() -> None:
    rig = ready("stateless", session=None)
    _, wire_id = rig.request("server/discover")
    effects = answer(rig, wire_id, {"error": {"code": -32601, "message": "Method not found"}})
    assert methods(effects) == ["server/discover"]
