"""The answers of the stateless era."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast._core.boundary import WireId
from holdfast._core.eras.base import COMPLETE, Invalid, NeedsInput, OutgoingRequest
from holdfast._core.eras.stateless import Stateless
from holdfast._core.wire import jsonrpc

PREFIX = "io.modelcontextprotocol/"
INFO = {"name": "me", "version": "1"}
ABILITIES: dict[str, Any] = {"sampling": {}}
META = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientInfo": INFO,
    PREFIX + "clientCapabilities": ABILITIES,
}


@pytest.fixture
def era() -> Stateless:
    return Stateless("2026-07-28", INFO, ABILITIES)


def test_what_is_declared_is_what_each_request_carries(era: Stateless) -> None:
    assert era.declared == ABILITIES


def on_the_wire(stamped: Any) -> Any:
    return json.loads(jsonrpc.encode(stamped))


def test_nothing_is_said_before_the_first_request(era: Stateless) -> None:
    assert era.greet() == []


def test_the_server_may_not_ask_and_changes_are_listened_for(era: Stateless) -> None:
    assert not era.may_ask
    assert not era.batches
    assert era.listens


def test_every_request_says_version_identity_and_abilities(era: Stateless) -> None:
    assert on_the_wire(era.stamp(None, None)) == {"_meta": META}
    assert on_the_wire(era.stamp({"name": "add"}, None)) == {"name": "add", "_meta": META}


def test_the_callers_meta_goes_along_but_not_over_ours(era: Stateless) -> None:
    meta = {"progressToken": 3, PREFIX + "protocolVersion": "1999-01-01"}
    params = {"name": "add"}
    stamped = on_the_wire(era.stamp(params, meta))
    assert stamped == {"name": "add", "_meta": {"progressToken": 3, **META}}
    assert params == {"name": "add"}
    assert meta == {"progressToken": 3, PREFIX + "protocolVersion": "1999-01-01"}


@pytest.mark.req("P5")
def test_progress_is_asked_for_by_a_token(era: Stateless) -> None:
    token = WireId(7)
    assert on_the_wire(era.stamp(None, None, token)) == {"_meta": {**META, "progressToken": 7}}
    era.log_level("debug")
    level = {PREFIX + "logLevel": "debug"}
    stamped = on_the_wire(era.stamp({"name": "add"}, None, token))
    assert stamped == {"name": "add", "_meta": {**META, **level, "progressToken": 7}}
    stamped = on_the_wire(era.stamp(None, {"x": 1, "progressToken": "theirs"}, token))
    assert stamped == {"_meta": {"x": 1, **META, **level, "progressToken": 7}}


@pytest.mark.req("P5")
def test_the_log_level_goes_along_with_every_later_request(era: Stateless) -> None:
    assert era.log_level("debug") is None
    level = {PREFIX + "logLevel": "debug"}
    assert on_the_wire(era.stamp(None, None)) == {"_meta": {**META, **level}}
    assert on_the_wire(era.stamp(None, {"x": 1})) == {"_meta": {"x": 1, **META, **level}}


@pytest.mark.parametrize("raw", ["{}", '{"resultType":"complete"}', '{"resultType":null}'])
def test_a_result_is_complete_unless_it_says_otherwise(era: Stateless, raw: str) -> None:
    assert era.read("tools/list", Raw(raw.encode())) is COMPLETE


@pytest.mark.parametrize(
    "raw",
    [
        '{"tools":[],"resultType" :\n "complete"}',
        '{"structuredContent":{"resultType":"complete"}}',
        '{"structuredContent":{"resultType":"input_required"}}',
        '{"content":[{"type":"text","text":"\\"resultType\\":\\"input_required\\""}]}',
        '{"structuredContent":["resultType","complete"]}',
        '{"resultType":"input_required","resultType":"complete"}',
        '{"result\\u0054ype":"complete"}',
    ],
)
def test_a_result_that_only_looks_like_a_question_is_complete(era: Stateless, raw: str) -> None:
    assert era.read("tools/call", Raw(raw.encode())) is COMPLETE


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    "raw",
    [
        '{"structuredContent":{"resultType":"complete"},"result\\u0054ype":"input_required"}',
        '{"structuredContent":{"resultType":"complete"},"resultType":"input_required"}',
        '{"resultType":"complete","resultType":"input_required"}',
        '{"_meta":{"x":"resultType"},"resultType":\t"input_required"}',
    ],
)
def test_a_question_is_found_however_it_is_written(era: Stateless, raw: str) -> None:
    asks = raw.removesuffix("}") + ',"requestState":"s"}'
    assert isinstance(era.read("tools/call", Raw(asks.encode())), NeedsInput)


@pytest.mark.req("P4")
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_input_may_be_required_with_questions_and_state_kept_byte_for_byte(
    era: Stateless, method: str
) -> None:
    raw = b'{"resultType":"input_required","inputRequests":{"a":{"x":1}},"requestState":"a\\u0041"}'
    reading = era.read(method, Raw(raw))
    assert isinstance(reading, NeedsInput)
    assert {name: bytes(asked) for name, asked in reading.requests.items()} == {"a": b'{"x":1}'}
    assert reading.state is not None
    assert bytes(reading.state) == b'"a\\u0041"'


@pytest.mark.req("P4")
def test_either_of_questions_and_state_is_enough(era: Stateless) -> None:
    asks = Raw(b'{"resultType":"input_required","inputRequests":{}}')
    assert era.read("tools/call", asks) == NeedsInput({}, None)
    waits = era.read("tools/call", Raw(b'{"resultType":"input_required","requestState":"s"}'))
    assert isinstance(waits, NeedsInput)
    assert waits.requests == {}


@pytest.mark.parametrize(
    ("method", "raw", "why"),
    [
        ("tools/call", '{"resultType":"input_required"}', "neither"),
        ("tools/list", '{"resultType":"input_required","requestState":"s"}', "must not"),
        ("tools/call", '{"resultType":"surprise"}', "'surprise'"),
        ("tools/call", '{"resultType":7}', "resultType"),
        ("tools/call", '{"resultType":"completed"}', "'completed'"),
        ("tools/call", '["resultType"]', "object"),
        ("tools/call", '{"resultType":"input_required","inputRequests":[]}', "inputRequests"),
    ],
)
def test_a_result_that_the_era_does_not_allow(
    era: Stateless, method: str, raw: str, why: str
) -> None:
    reading = era.read(method, Raw(raw.encode()))
    assert isinstance(reading, Invalid)
    assert why in reading.reason


@pytest.mark.req("R10")
def test_bad_utf8_inside_a_result_is_an_invalid_result(era: Stateless) -> None:
    assert isinstance(era.read("tools/call", Raw(b'{"resultType":"\xff"}')), Invalid)


@pytest.mark.req("R10")
def test_bad_utf8_inside_a_subscription_names_no_subscription(era: Stateless) -> None:
    raw = b'{"_meta":{"io.modelcontextprotocol/subscriptionId":"\xff"}}'
    assert era.subscription(Raw(raw)) is None


@pytest.mark.req("R4")
def test_a_request_is_cancelled_by_a_notification(era: Stateless) -> None:
    told = json.loads(era.cancel(WireId(7), "timeout") or b"")
    assert told["method"] == "notifications/cancelled"
    assert told["params"] == {"requestId": 7, "reason": "timeout"}


def test_a_ping_is_a_discovery(era: Stateless) -> None:
    assert era.ping() == OutgoingRequest("server/discover")


@pytest.mark.req("P2")
def test_updates_are_asked_for_as_one_stream(era: Stateless) -> None:
    request = era.listen({"file:///b", "file:///a"}, ["toolsListChanged"])
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a", "file:///b"]}
    assert request == OutgoingRequest("subscriptions/listen", {"notifications": wanted})
    assert era.listen([], []) == OutgoingRequest("subscriptions/listen", {"notifications": {}})
    for single in (era.watch, era.unwatch):
        with pytest.raises(AssertionError):
            single("file:///a")


@pytest.mark.req("P2")
@pytest.mark.parametrize(
    ("raw", "wire_id"),
    [
        ('{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}', 7),
        ('{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}', "s"),
        ('{"_meta":{}}', None),
        ("{}", None),
        ('{"_meta":[]}', None),
        ("null", None),
    ],
)
def test_a_notification_names_the_stream_that_it_belongs_to(
    era: Stateless, raw: str, wire_id: object
) -> None:
    assert era.subscription(Raw(raw.encode())) == wire_id


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 9)))
def test_a_stamp_never_changes_the_parameters(params: dict[str, Any]) -> None:
    stamped = Stateless("2026-07-28", INFO, ABILITIES).stamp(params, None)
    assert {**stamped, "_meta": 0} == {**params, "_meta": 0}
