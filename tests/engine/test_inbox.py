"""What the server sends: every caller hears of its own request, junk hurts nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.boundary import (
    Asked,
    Completed,
    Delivered,
    Dismissed,
    Effect,
    Failed,
    Lost,
    Noticed,
    Progressed,
    RefusalReason,
    Refused,
    Related,
    Unhandled,
    Violated,
)
from holdfast.errors import ProtocolError, RpcError, TransportError
from tests.engine.rig import Rig, frames, one, only, ready, reconnect
from tests.rows import rows

# Answers


@pytest.mark.req("R2")
def test_an_answer_completes_its_request_with_the_raw_result() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    effects = rig.deliver(f'{{"jsonrpc":"2.0","id":{wire_id},"result": {{"n": 1.10 }} }}')
    completed = one(effects, Completed)
    assert completed.ticket == ticket
    assert bytes(completed.result) == b'{"n": 1.10 }'


@pytest.mark.req("Y1")
def test_an_error_keeps_what_no_revision_knows() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.answer(wire_id, {"error": {"code": 5, "message": "no", "data": None, "retry": [1]}})
    error = rig.error(ticket)
    assert isinstance(error, RpcError)
    unusual = {name: json.loads(bytes(value)) for name, value in error.unusual.items()}
    assert unusual == {"data": None, "retry": [1]}


@pytest.mark.req("R1")
@pytest.mark.parametrize("name", ["odd", "\\ud800", "data"])
@pytest.mark.parametrize(
    "value", ["9" * 400, "1e999999", "-0.1e-999999", "[" * 300 + "]" * 300, r'"\ud800"']
)
def test_whatever_an_error_has_its_request_ends(name: str, value: str) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    fault = f'{{"code":5,"message":"no","{name}":{value}}}'
    rig.deliver(f'{{"jsonrpc":"2.0","id":{wire_id},"error":{fault}}}')
    assert "no" in str(rig.error(ticket)) or "malformed" in str(rig.error(ticket))


@pytest.mark.req("R2")
@rows(
    ("data", "is_plain"),
    [
        (b'{"jsonrpc":"2.0","id":ID,"result":{"n":1}}\n', True),
        (b' {"result": {"id": 9, "error": 1}, "id":ID }  \n', True),
        (b'{"id":"x","id":ID,"result":{}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{}}', False),
        (b'{"jsonrpc":"2.0",\n"id":ID,"result":{}}\n', False),
        (b'\n{"jsonrpc":"2.0","id":ID,"result":{}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{}}\n\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{}}{"jsonrpc":"2.0","id":8,"result":{}}\n', False),
        (b'{"jsonrpc":"2.0","id":"ID","result":{}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID.0,"result":{}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":[]}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":null}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{},"error":null,"method":null}\n', True),
        (b'{"jsonrpc":"2.0","id":ID,"result":{},"error":{}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{},"method":"tools/call"}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no"}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"t":"\xc3\xa9"}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"t":"\xe9"}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID,"result":{"t":"' + 5000 * b"x" + b'"}}\n', False),
        (b'{"jsonrpc":"2.0","id":ID0,"result":{}}\n', False),
        (b"[]\n", False),
        (b"junk\n", False),
    ],
)
def test_a_result_that_comes_alone_is_taken_the_short_way(data: bytes, is_plain: bool) -> None:
    """What is not plainly a result is left as it was, for the long way."""
    short, long = ready(), ready()
    ticket, wire_id = short.request()
    assert long.request() == (ticket, wire_id)
    data = data.replace(b"ID", str(wire_id).encode())
    report = Delivered(short.engine.link.generation, data)
    completed = short.engine._inbox.settle(report)
    assert (completed is not None) is is_plain
    if completed is None:
        assert (short.engine.inflight.find(ticket) is not None, short.violations()) == (True, [])
    else:
        out: list[Effect] = []
        long.engine._inbox.take(report, long.now, out)
        assert [completed] == out
        assert short.engine.inflight.find(ticket) is None


@pytest.mark.req("R2")
def test_answers_may_come_in_any_order_and_several_in_one_read() -> None:
    rig = ready()
    asked = [rig.request() for _ in range(4)]
    answers = [{"id": wire_id, "result": {"of": wire_id}} for _, wire_id in reversed(asked)]
    rig.deliver(*answers)
    for ticket, wire_id in asked:
        assert rig.result(ticket) == {"of": wire_id}


@pytest.mark.req("R2")
def test_a_duplicate_answer_is_counted_and_dropped() -> None:
    rig = ready()
    _, wire_id = rig.request()
    rig.answer(wire_id)
    rig.answer(wire_id)
    assert rig.violations() == ["answer to an unknown request"]


@pytest.mark.req("R5")
@rows("odd", [999, "two", -1, 1.5, ""])
def test_an_answer_to_an_unknown_request_is_counted_and_warned_of(odd: Any) -> None:
    rig = ready()
    ticket = rig.call()
    (violated,) = rig.deliver({"id": odd, "result": {}})
    assert violated == Violated("answer to an unknown request", f"id {odd!r}", 1)
    assert rig.open_tickets() == {ticket}


def test_an_id_written_as_a_float_is_the_same_id() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.deliver(f'{{"id":{wire_id}.0,"result":{{}}}}')
    assert rig.result(ticket) == {}


@pytest.mark.req("E3", "E1")
@rows("code", [-32700, -32600, -32601, -32602, -32603, -32000, -32002, -32022, 0, 42])
def test_every_code_reaches_the_caller_with_its_data(code: int) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    data = {"uri": "file:///x", "deep": [1, {"two": None}]}
    rig.answer(wire_id, {"error": {"code": code, "message": "no", "data": data}})
    error = rig.error(ticket)
    assert isinstance(error, RpcError)
    assert (error.code, error.data) == (code, data)
    assert "no" in error.message
    assert not error.outcome_unknown


@rows(
    ("answer", "why"),
    [
        ({}, "neither result nor error"),
        ({"error": None}, "neither result nor error"),
        ({"result": None}, "not an object: null"),
        ({"result": []}, "not an object: []"),
        ({"result": "text"}, 'not an object: "text"'),
        ({"result": {}, "error": {"code": 1}}, "both a result and an error"),
        ({"error": "text"}, 'malformed: "text"'),
        ({"error": {"message": 7}}, "malformed"),
    ],
    ids=repr,
)
@pytest.mark.req("R2")
def test_an_answer_of_no_good_shape_fails_its_request_as_the_servers_fault(
    answer: dict[str, Any], why: str
) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.deliver({"id": wire_id, **answer})
    error = rig.error(ticket)
    assert isinstance(error, ProtocolError)
    assert why in error.message
    assert error.outcome_unknown
    assert rig.state == "ready"


@pytest.mark.parametrize(
    ("answer", "good"),
    [({"result": {}, "error": None}, True), ({"result": None, "error": {"code": 1}}, False)],
    ids=repr,
)
def test_a_field_of_null_counts_as_absent(answer: dict[str, Any], good: bool) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    rig.deliver({"id": wire_id, **answer})
    assert isinstance(rig.outcome(ticket), Completed if good else Failed)
    if not good:
        assert isinstance(rig.error(ticket), RpcError)


# Junk

JUNK: dict[str, tuple[bytes, str]] = {
    "blank": (b"", "blank line"),
    "a print": (b"Listening on stdio...", "not JSON"),
    "half": (b'{"jsonrpc":', "not JSON"),
    "bad UTF-8": (b"\xff\xfe", "not UTF-8"),
    "a number": (b"42", "not a JSON-RPC message"),
    "no fields": (b"{}", "not a JSON-RPC message"),
    "a batch": (b'[{"id":99,"result":{}}]', "batch"),
    "deep": (b"[" * 10 + b'{"x":' * 5000, "batch"),
    "error without an id": (b'{"error":{"code":1}}', "error without an id"),
    "error with id null": (b'{"id":null,"error":{"code":1}}', "error without an id"),
    "result with id null": (b'{"id":null,"result":{}}', "not a JSON-RPC message"),
    "progress of nothing": (b'{"method":"notifications/progress"}', "malformed progress"),
    "progress of junk": (b'{"method":"notifications/progress","params":[]}', "malformed progress"),
    "cancelled nothing": (b'{"method":"notifications/cancelled"}', "malformed cancellation"),
    "request with id null": (b'{"id":null,"method":"roots/list"}', "request without a usable id"),
    "request with id 1.5": (b'{"id":1.5,"method":"roots/list"}', "request without a usable id"),
    "acknowledged nothing": (
        b'{"method":"notifications/subscriptions/acknowledged"}',
        "acknowledgement of an unknown subscription",
    ),
}


@pytest.mark.req("R10", "E4")
@rows(("line", "reason"), JUNK.values(), ids=JUNK)
def test_junk_is_counted_by_kind_and_dropped_and_the_connection_goes_on(
    line: bytes, reason: str
) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    (first,) = only(rig.deliver(line), Violated)
    (second,) = only(rig.deliver(line, {"id": wire_id, "result": {}}), Violated)
    assert (first.reason, first.count) == (reason, 1)
    assert (second.reason, second.count) == (reason, 2)
    assert rig.result(ticket) == {}
    assert rig.state == "ready"
    assert rig.engine.violations == {reason: 2}


@pytest.mark.req("R10")
@pytest.mark.parametrize(
    "line",
    [
        b'{"method":"notifications/progress","params":{"progressToken":"\xff","progress":1}}',
        b'{"method":"notifications/progress","params":{"progressToken":2,"progress":1,'
        b'"message":"\xff"}}',
        b'{"method":"notifications/cancelled","params":{"requestId":"\xff"}}',
    ],
)
def test_bad_utf8_deep_inside_a_notification_is_junk_like_any_other(line: bytes) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    effects = rig.deliver(line, {"id": wire_id, "result": {}})
    assert len(only(effects, Violated)) == 1
    assert rig.result(ticket) == {}


@pytest.mark.req("R10")
@pytest.mark.parametrize("opening", ["discover", "initialize"])
def test_bad_utf8_deep_inside_an_answer_of_the_handshake_is_the_servers_fault(opening: Any) -> None:
    rig = Rig(opening=opening)
    rig.open()
    (asked,) = frames(rig.opened())
    fields = b'"supportedVersions":["\xff"],"protocolVersion":"2025-11-25","instructions":"\xff"'
    rig.deliver(b'{"id":%d,"result":{%s}}' % (asked["id"], fields))
    assert rig.state in ("initializing", "backoff")


@pytest.mark.req("R10")
def test_an_answer_of_the_handshake_nested_almost_too_deeply_is_survived() -> None:
    """Shallow enough for the first look, too deep for the second, from further down the stack."""
    for depth in range(850, 1000):
        rig = Rig()
        rig.open()
        rig.opened()
        versions = b"[" * depth + b"]" * depth
        rig.deliver(b'{"id":1,"result":{"supportedVersions":%s}}' % versions)
        assert rig.state in ("initializing", "backoff", "closed")


pieces = st.sampled_from(
    [
        b'{"jsonrpc":"2.0",',
        b'"id":2',
        b'"id":null',
        b'"id":1e300',
        b'"id":99999999999999999999999',
        b'"id":"\xff"',
        b'"method":"ping"',
        b'"method":"notifications/progress"',
        b'"method":"notifications/cancelled"',
        b'"method":"notifications/subscriptions/acknowledged"',
        b'"params":{"progressToken":2,"progress":1e400}',
        b'"params":{"requestId":2}',
        b'"params":null',
        b'"result":{}',
        b'"result":"\xff"',
        b'"error":{"code":1e300}',
        b'"error":null',
        b",",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\n",
        b"\xff",
        b" ",
    ]
)


@pytest.mark.req("R10", "R2", "V1")
@given(
    st.lists(pieces | st.binary(max_size=5), max_size=40),
    st.sampled_from(["initializing", "handshake", "stateless"]),
)
def test_whatever_bytes_come_nothing_is_raised(parts: list[bytes], stage: Any) -> None:
    rig = Rig() if stage == "initializing" else ready(stage)
    if stage == "initializing":
        rig.open()
        rig.opened()
    rig.call()
    rig.deliver(b"".join(parts))


objects: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.sampled_from([1, 2, 3, "2", None, 2.0, 1e300, -1, True]),
        "method": st.sampled_from(
            [
                "ping",
                "x",
                "notifications/progress",
                "notifications/cancelled",
                "notifications/subscriptions/acknowledged",
                "server/discover",
            ]
        ),
        "params": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "progressToken": st.sampled_from([2, "2", None]),
                "progress": st.sampled_from([1, 0.5, "x"]),
                "requestId": st.sampled_from([2, "2", None, 2.5]),
                "_meta": st.sampled_from([{}, {"io.modelcontextprotocol/subscriptionId": 2}]),
            },
        ),
        "result": st.sampled_from([{}, None, [], {"supportedVersions": ["2026-07-28"]}]),
        "error": st.sampled_from([None, {}, {"code": 1, "message": "m"}, "x", {"code": 1e300}]),
    },
)


@pytest.mark.req("R2", "V1")
@given(st.lists(objects, max_size=8), st.sampled_from(["handshake", "stateless"]))
def test_whatever_messages_come_every_request_has_at_most_one_outcome(
    messages: list[dict[str, Any]], era: Any
) -> None:
    rig = ready(era)
    lasting = rig.call("subscriptions/listen", lasting=True)
    ticket = rig.call()
    rig.deliver(*messages)
    rig.close()
    assert len(rig.outcomes[ticket]) == len(rig.outcomes[lasting]) == 1


# Notifications


@pytest.mark.req("P6")
def test_notifications_are_passed_on_in_order() -> None:
    rig = ready()
    effects = rig.deliver(
        {"method": "notifications/message", "params": {"level": "info"}},
        {"method": "notifications/tools/list_changed"},
        {"method": "notifications/of/our/own", "params": None},
    )
    first, second, third = only(effects, Noticed)
    assert first.method == "notifications/message"
    assert first.params is not None
    assert json.loads(bytes(first.params)) == {"level": "info"}
    assert (second.method, second.params) == ("notifications/tools/list_changed", None)
    assert third.method == "notifications/of/our/own"


@pytest.mark.req("P6")
def test_notifications_before_the_agreement_are_passed_on_too() -> None:
    rig = Rig()
    rig.open()
    rig.opened()
    assert one(rig.deliver({"method": "notifications/message"}), Noticed).params is None


@pytest.mark.req("P5")
def test_progress_belongs_to_its_request() -> None:
    rig = ready()
    ticket, wire_id = rig.request(progress=True)
    params = {"progressToken": wire_id, "progress": 3, "total": 9, "message": "half way"}
    progressed = one(
        rig.deliver({"method": "notifications/progress", "params": params}), Progressed
    )
    assert progressed.ticket == ticket
    (told,) = progressed.progress
    assert (told.progress, told.total, told.message) == (3, 9, "half way")


@pytest.mark.req("P5")
def test_progress_of_one_read_is_handed_on_in_order_and_together() -> None:
    rig = ready()
    first, one_id = rig.request(progress=True)
    second, other_id = rig.request(progress=True)
    effects = rig.deliver(
        *(
            {"method": "notifications/progress", "params": {"progressToken": token, "progress": at}}
            for at, token in enumerate((one_id, one_id, other_id, one_id))
        )
    )
    told = [effect for effect in effects if isinstance(effect, Progressed)]
    assert [(each.ticket, [step.progress for step in each.progress]) for each in told] == [
        (first, [0, 1]),
        (second, [2]),
        (first, [3]),
    ]


@pytest.mark.req("P5")
def test_progress_of_a_request_that_is_over_is_no_violation() -> None:
    """The request may have become a task, whose progress it is."""
    rig = ready()
    ticket, wire_id = rig.request(progress=True)
    rig.cancel(ticket)
    for token in (wire_id, 999, "x"):
        params = {"progressToken": token, "progress": 1}
        effects = rig.deliver({"method": "notifications/progress", "params": params})
        assert [type(effect) for effect in effects] == [Noticed]


@pytest.mark.req("P2")
def test_an_acknowledgement_belongs_to_its_subscription() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request("subscriptions/listen", lasting=True)
    params = {
        "_meta": {"io.modelcontextprotocol/subscriptionId": wire_id},
        "notifications": {"toolsListChanged": True},
    }
    method = "notifications/subscriptions/acknowledged"
    related = one(rig.deliver({"method": method, "params": params}), Related)
    assert (related.ticket, related.method) == (ticket, method)
    assert json.loads(bytes(related.params)) == params
    assert rig.open_tickets() == {ticket}


@pytest.mark.req("P2")
def test_an_acknowledgement_of_something_else_is_a_violation() -> None:
    rig = ready("stateless")
    for params in ({}, {"_meta": {"io.modelcontextprotocol/subscriptionId": 99}}):
        method = "notifications/subscriptions/acknowledged"
        one(rig.deliver({"method": method, "params": params}), Violated)


@pytest.mark.req("P2")
def test_a_subscription_that_the_server_cancels_is_complete() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request("subscriptions/listen", lasting=True)
    params = {"requestId": wire_id}
    rig.deliver({"method": "notifications/cancelled", "params": params})
    assert rig.result(ticket) == {}


def test_a_server_cannot_cancel_an_ordinary_request_of_ours() -> None:
    rig = ready("stateless")
    ticket, wire_id = rig.request()
    params = {"requestId": wire_id}
    effects = rig.deliver({"method": "notifications/cancelled", "params": params})
    assert effects == [Dismissed(rig.engine.link.generation, None)]
    assert rig.open_tickets() == {ticket}


def test_a_server_may_take_back_its_own_request() -> None:
    rig = ready()
    params = {"requestId": "q1"}
    effects = rig.deliver({"method": "notifications/cancelled", "params": params})
    assert effects == [Dismissed(rig.engine.link.generation, "q1")]
    effects = rig.deliver({"method": "notifications/cancelled", "params": {}})
    assert effects == [Dismissed(rig.engine.link.generation, None)], "received, and about nothing"


@pytest.mark.parametrize(("reason", "words"), [("too late", "too late"), (5, None)])
def test_the_reason_of_a_server_s_cancellation_is_known(reason: Any, words: str | None) -> None:
    rig = ready()
    params = {"requestId": "q1", "reason": reason}
    effects = rig.deliver({"method": "notifications/cancelled", "params": params})
    assert effects == [Dismissed(rig.engine.link.generation, "q1", words)]


# Requests of the server


@pytest.mark.req("P7")
@pytest.mark.parametrize("wire_id", [7, "q1", 0, ""])
def test_a_ping_is_answered(wire_id: Any) -> None:
    rig = ready()
    (answer,) = frames(rig.deliver({"id": wire_id, "method": "ping"}))
    assert answer == {"jsonrpc": "2.0", "id": wire_id, "result": {}}


@pytest.mark.req("P7")
def test_a_ping_during_the_handshake_is_answered() -> None:
    rig = Rig()
    rig.open()
    rig.opened()
    assert frames(rig.deliver({"id": 7, "method": "ping"}))[0]["result"] == {}


@pytest.mark.req("P7")
def test_an_id_written_as_a_float_is_answered_as_the_integer() -> None:
    rig = ready()
    assert frames(rig.deliver(b'{"id":7.0,"method":"ping"}'))[0]["id"] == 7


@pytest.mark.req("P7", "P4")
def test_other_requests_are_asked_of_the_layer_above_and_its_answer_goes_back() -> None:
    rig = ready()
    effects = rig.deliver({"id": "q1", "method": "sampling/createMessage", "params": {"x": 1}})
    asked = one(effects, Asked)
    assert (asked.id, asked.method) == ("q1", "sampling/createMessage")
    assert asked.params is not None
    assert bytes(asked.params) == b'{"x": 1}'
    assert frames(rig.engine.answer(asked, {"ok": True})) == [
        {"jsonrpc": "2.0", "id": "q1", "result": {"ok": True}}
    ]


def test_a_refusal_of_the_layer_above_goes_back() -> None:
    rig = ready()
    asked = one(rig.deliver({"id": 7, "method": "no/such"}), Asked)
    assert asked.params is None
    (refusal,) = frames(rig.engine.refuse(asked, -32050, "not now"))
    assert refusal == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32050, "message": "not now"}}


@pytest.mark.req("P7")
def test_an_answer_that_json_cannot_hold_becomes_an_error() -> None:
    rig = ready()
    asked = one(rig.deliver({"id": 7, "method": "roots/list"}), Asked)
    (refusal,) = frames(rig.engine.answer(asked, object()))
    assert refusal["id"] == 7
    assert refusal["error"]["code"] == -32603


@pytest.mark.req("P7", "L9")
def test_an_answer_for_an_older_link_is_not_sent() -> None:
    rig = ready()
    asked = one(rig.deliver({"id": 7, "method": "roots/list"}), Asked)
    rig.lose()
    assert rig.engine.answer(asked, {}) == []
    reconnect(rig)
    assert rig.engine.answer(asked, {}) == []
    assert rig.engine.refuse(asked, -32603, "x") == []


@pytest.mark.req("P7", "L7")
def test_an_answer_after_the_close_is_not_sent() -> None:
    rig = ready()
    asked = one(rig.deliver({"id": 7, "method": "roots/list"}), Asked)
    rig.close()
    assert rig.engine.answer(asked, {}) == []
    assert rig.engine.refuse(asked, -32603, "x") == []


@pytest.mark.req("P7")
@pytest.mark.parametrize("method", ["ping", "roots/list", "sampling/createMessage"])
def test_the_stateless_era_refuses_requests_of_the_server_silently(method: str) -> None:
    rig = ready("stateless")
    (effect,) = rig.deliver({"id": 7, "method": method})
    assert effect == Violated("request of the server's own", method, 1)


# Batches


def test_a_batch_is_read_where_the_revision_has_batches() -> None:
    rig = Rig(pin="2025-03-26")
    rig.open()
    (asked,) = frames(rig.opened())
    rig.answer(asked["id"], {"result": {"protocolVersion": "2025-03-26"}})
    one_, two = rig.request(), rig.request()
    rig.deliver([{"id": wire_id, "result": {}} for _, wire_id in (one_, two)])
    assert rig.open_tickets() == set()


def test_what_follows_the_end_of_the_link_in_the_same_read_is_not_heard() -> None:
    rig = Rig(opening="initialize")
    rig.open()
    (asked,) = frames(rig.opened())
    refusal = {"id": asked["id"], "error": {"code": -32603, "message": "no"}}
    effects = rig.deliver(refusal, {"method": "notifications/message"}, b"junk")
    assert rig.state == "backoff"
    assert only(effects, Noticed) == []
    assert rig.violations() == []


# Messages that cannot be read


def feed(rig: Rig, data: bytes) -> list[Any]:
    return rig.report(Delivered(rig.engine.link.generation, data))


@pytest.mark.req("R2", "R10")
def test_an_answer_that_cannot_be_read_fails_its_call_at_once_and_says_why() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    other, _ = rig.request()
    feed(rig, b'{"jsonrpc":"2.0","id":%d,"result":{"n":NaN}}\n' % wire_id)
    error = rig.error(ticket)
    assert isinstance(error, ProtocolError)
    assert "not JSON" in error.message
    assert "NaN" in error.message
    assert rig.open_tickets() == {other}
    assert [violated.frame_size for violated in only(rig.effects, Violated)] == [43]


LONG = b"x" * 100_000
UNREADABLE = {
    "behind a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":@,"result":{"n":NaN}}',
    "behind a print": b'[info] {"jsonrpc":"2.0","id":@,"result":{"n":NaN}}',
    "in an array": b'[{"jsonrpc":"2.0","id":@,"result":{}}]',
    "among others in an array": b'[{"id":98,"result":{}},{"id":@,"result":{}},{"id":99}]',
    "behind a notification": b'[{"method":"a"},7,{"id":@,"result":{}}]',
    "with a null method and bad UTF-8": b'{"id":@,"method":null,"result":{"n":"\xff"}}',
    "with the method of its request": b'{"id":@,"method":"tools/call","result":{"n":NaN}}',
    "with its method last": b'{"id":@,"error":null,"result":NaN,"method":"tools/call"}',
    "in a broken array": b'[{"jsonrpc":"2.0","id":@,"result":{"n":NaN}}]',
    "with a fraction": b'{"jsonrpc":"2.0","id":@.0,"result":{"n":NaN}}',
    "with an exponent": b'{"jsonrpc":"2.0","id":@e0,"result":{"n":NaN}}',
    "as a string": b'{"jsonrpc":"2.0","id":"@","result":{"n":NaN}}',
    "the second of two ids": b'{"jsonrpc":"2.0","id":98,"id":@,"result":{"n":NaN}}',
    "behind a long result": b'{"result":{"t":"' + LONG + b'","n":NaN},"id":@,"error":null}',
    "in UTF-16": '{"jsonrpc":"2.0","id":@,"result":{}}'.encode("utf-16-le"),
    "beside another message": b'{"jsonrpc":"2.0","id":@,"result":NaN}{"jsonrpc":"2.0","id":9}',
}


@pytest.mark.req("R2", "R10")
@rows("line", UNREADABLE.values(), ids=UNREADABLE)
def test_wherever_the_id_of_an_unreadable_answer_is_found_its_call_fails_at_once(
    line: bytes,
) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    other, _ = rig.request()
    feed(rig, line.replace(b"@\0", b"%d\0" % wire_id).replace(b"@", b"%d" % wire_id) + b"\n")
    assert isinstance(rig.error(ticket), ProtocolError)
    assert rig.open_tickets() == {other}


READABLE = {
    "a byte order mark": b'\xef\xbb\xbf{"id":@,"jsonrpc":"2.0","result":{}}',
    "a method of null": b'{"jsonrpc":"2.0","id":@,"method":null,"params":null,"result":{}}',
    "its request's method": b'{"jsonrpc":"2.0","id":@,"method":"tools/call","result":{}}',
    "a string for its id": b'{"jsonrpc":"2.0","id":"@","result":{}}',
    "a print before it": b'[info] {"jsonrpc":"2.0","id":@,"result":{}}',
    "another message behind it": b'{"jsonrpc":"2.0","id":@,"result":{}} {"jsonrpc":"2.0","id":9}',
    "another message before it": b'{"jsonrpc":"2.0","id":9}{"jsonrpc":"2.0","id":@,"result":{}}',
}


@pytest.mark.req("R2", "R10")
@pytest.mark.parametrize("line", READABLE.values(), ids=READABLE)
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_an_answer_that_can_be_read_is_given_to_its_call_whatever_is_odd_about_it(
    line: bytes, era: Any
) -> None:
    rig = ready(era)
    ticket, wire_id = rig.request()
    feed(rig, line.replace(b"@", b"%d" % wire_id) + b"\n")
    assert rig.result(ticket) == {}


@pytest.mark.req("R10")
def test_an_id_that_came_as_a_string_is_counted() -> None:
    rig = ready()
    _, wire_id = rig.request()
    rig.deliver({"id": str(wire_id), "result": {}})
    assert rig.violations() == ["answer with an id of another type"]
    rig.deliver({"id": "1" * 5000, "result": {}})  # more digits than int() takes
    assert rig.violations()[1:] == ["answer to an unknown request"]


@pytest.mark.req("R10")
def test_a_request_of_the_server_that_cannot_be_read_is_answered_with_an_error() -> None:
    rig = ready()
    effects = feed(rig, b'{"jsonrpc":"2.0","id":7,"method":"roots/list","params":NaN}\n')
    (refusal,) = frames(effects)
    assert (refusal["id"], refusal["error"]["code"]) == (7, -32600)


@pytest.mark.req("R10")
def test_an_unreadable_answer_to_nobody_is_counted_only() -> None:
    rig = ready()
    effects = feed(rig, b'{"jsonrpc":"2.0","id":999,"result":NaN}\n')
    assert [type(effect) for effect in effects] == [Violated]


@pytest.mark.req("R10")
@pytest.mark.parametrize("end", [b"}", b""], ids=["whole", "cut off"])
def test_an_unreadable_notification_is_counted_only(end: bytes) -> None:
    rig = ready()
    rig.request()
    effects = feed(rig, b'{"jsonrpc":"2.0","method":"notifications/message","params":NaN%b\n' % end)
    assert [type(effect) for effect in effects] == [Violated]


@pytest.mark.req("R10", "L5")
def test_an_answer_that_is_cut_off_by_the_end_of_the_stream_leaves_its_call_to_the_loss() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    half = b'{"jsonrpc":"2.0","id":%d,"resu\n' % wire_id
    rig.report(Delivered(rig.engine.link.generation, half, ended=True))
    assert rig.open_tickets() == {ticket}
    rig.lose()
    assert rig.error(ticket).kind == "transport"


@pytest.mark.req("M1", "R9")
@pytest.mark.parametrize("how", ["lost", "refused"])
def test_a_message_above_the_limit_is_a_violation_with_its_size(how: str) -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    error = TransportError("more than 10 bytes")
    if how == "lost":
        rig.report(Lost(rig.engine.link.generation, error, frame_size=11))
    else:
        refused = Refused(error, RefusalReason.UNREADABLE, frame_size=11)
        rig.report(refused.of(rig.engine.link.generation, wire_id))
    (violated,) = only(rig.effects, Violated)
    assert (violated.reason, violated.frame_size) == ("message too large", 11)
    assert rig.error(ticket).kind == "transport"


@pytest.mark.req("R2")
def test_a_defect_in_one_message_costs_no_other_its_answer() -> None:
    """Nothing is known to raise here: an era that does stands in for what is not known."""
    rig = ready()
    ticket, wire_id = rig.request()

    class Broken(type(rig.engine.link.era)):  # type: ignore[misc]
        def subscription(self, params: object) -> None:
            raise KeyError("unexpected")

    rig.engine.link.era.__class__ = Broken
    notice = {"method": "notifications/subscriptions/acknowledged", "params": {}}
    effects = rig.deliver(notice, {"id": wire_id, "result": {}})
    assert isinstance(effects[0], Unhandled)
    assert rig.result(ticket) == {}
