"""The answers of the handshake era."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from holdfast._core.boundary import WireId
from holdfast._core.eras.base import COMPLETE, OutgoingRequest
from holdfast._core.eras.handshake import Handshake
from holdfast._core.eras.revisions import HANDSHAKE

ERA = Handshake("2025-11-25")


def test_the_era_is_greeted_with_initialized() -> None:
    (frame,) = ERA.greet()
    assert json.loads(frame) == {"jsonrpc": "2.0", "method": "notifications/initialized"}


def test_the_server_may_ask_and_changes_come_by_themselves() -> None:
    assert ERA.may_ask
    assert not ERA.listens


@pytest.mark.parametrize("version", HANDSHAKE)
def test_batches_belong_to_one_revision_only(version: str) -> None:
    assert Handshake(version).batches is (version == "2025-03-26")


def test_a_request_carries_nothing_of_ours() -> None:
    params = {"name": "add"}
    assert ERA.stamp(params, None) is params
    assert ERA.stamp(None, None) is None


def test_the_callers_meta_goes_along_and_nothing_is_changed_in_place() -> None:
    params = {"name": "add"}
    assert ERA.stamp(params, {"progressToken": 3}) == {"name": "add", "_meta": {"progressToken": 3}}
    assert ERA.stamp(None, {"progressToken": 3}) == {"_meta": {"progressToken": 3}}
    assert params == {"name": "add"}


@pytest.mark.req("P5")
def test_progress_is_asked_for_by_a_token() -> None:
    token = WireId(7)
    assert ERA.stamp(None, None, token) == {"_meta": {"progressToken": 7}}
    meta = {"trace": 1, "progressToken": "theirs"}
    stamped = ERA.stamp({"name": "add"}, meta, token)
    assert stamped == {"name": "add", "_meta": {"trace": 1, "progressToken": 7}}
    assert meta == {"trace": 1, "progressToken": "theirs"}


def test_every_result_is_complete() -> None:
    assert ERA.read("tools/call", Raw(b'{"resultType":"input_required"}')) is COMPLETE


@pytest.mark.req("R4")
def test_a_request_is_cancelled_by_a_notification() -> None:
    told = json.loads(ERA.cancel(WireId(7), "timeout") or b"")
    assert told["method"] == "notifications/cancelled"
    assert told["params"] == {"requestId": 7, "reason": "timeout"}
    assert "id" not in told


@pytest.mark.req("P2", "P5")
def test_what_is_asked_of_the_server() -> None:
    assert ERA.ping() == OutgoingRequest("ping")
    assert ERA.log_level("debug") == OutgoingRequest("logging/setLevel", {"level": "debug"})
    assert ERA.watch("file:///a") == OutgoingRequest("resources/subscribe", {"uri": "file:///a"})
    assert ERA.unwatch("file:///a") == OutgoingRequest(
        "resources/unsubscribe", {"uri": "file:///a"}
    )


def test_there_are_no_streams_to_open() -> None:
    assert ERA.subscription(Raw(b'{"_meta":{}}')) is None
    with pytest.raises(AssertionError):
        ERA.listen([], [])
