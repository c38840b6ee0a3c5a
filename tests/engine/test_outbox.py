"""What is sent besides requests."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from holdfast._core.boundary import Asked, Effect, Generation, OpenStream, Send, Violated
from holdfast._core.engine.inflight import NEVER, Inflight, Stray
from holdfast._core.engine.link_state import LinkState
from holdfast._core.engine.outbox import MOST_REFUSED, Outbox
from holdfast._core.eras.base import Era
from holdfast._core.eras.handshake import Handshake
from holdfast._core.eras.stateless import Stateless

ASKED = Asked(Generation(1), "a", "roots/list", None)


def legacy(session: str | None = "s") -> Handshake:
    era = Handshake("2025-11-25")
    era.session = session
    return era


def modern() -> Stateless:
    return Stateless("2026-07-28", {"name": "x", "version": "1"}, {})


def outbox(era: Era, *, streams: bool = True) -> tuple[Outbox, Inflight]:
    inflight = Inflight(75, 100)
    line = LinkState(generation=Generation(1), streams=streams, era=era)
    return Outbox(line, inflight, itertools.repeat(0.5)), inflight


def frame(effects: list[Effect]) -> Any:
    (send,) = effects
    assert isinstance(send, Send)
    assert send.wire_id is None
    return json.loads(send.frame)


@pytest.mark.req("P4", "X2")
def test_an_answer_wears_the_session() -> None:
    box, _ = outbox(legacy())
    effects = box.answer(ASKED, {"roots": []})
    assert frame(effects) == {"jsonrpc": "2.0", "id": "a", "result": {"roots": []}}
    (send,) = effects
    assert isinstance(send, Send)
    assert send.options is not None
    assert send.options.headers["Mcp-Session-Id"] == "s"


@pytest.mark.req("X1")
def test_on_a_shared_channel_nothing_is_worn() -> None:
    box, _ = outbox(legacy(), streams=False)
    (send,) = box.notify("notifications/roots/list_changed", None)
    assert isinstance(send, Send)
    assert send.options is None


@pytest.mark.req("R12")
def test_a_result_that_cannot_be_written_becomes_an_error() -> None:
    box, _ = outbox(legacy())
    assert frame(box.answer(ASKED, object()))["error"]["code"] == -32603


@pytest.mark.req("P7")
def test_a_refusal_is_an_error_with_its_code() -> None:
    box, _ = outbox(legacy())
    assert frame(box.refuse(ASKED, -32601, "no"))["error"] == {"code": -32601, "message": "no"}


@pytest.mark.req("X2")
def test_a_conversation_opens_with_initialized_before_all_else_and_then_listens() -> None:
    box, _ = outbox(legacy())
    told, listen = box.open_conversation(legacy(), 0)
    assert isinstance(told, Send)
    assert told.options is not None
    assert told.options.first
    assert isinstance(listen, OpenStream)
    assert not listen.options.first


@pytest.mark.req("X2")
def test_a_stateless_conversation_opens_with_nothing() -> None:
    box, _ = outbox(modern())
    assert box.open_conversation(modern(), 0) == []


@pytest.mark.req("X1")
def test_on_a_shared_channel_there_is_no_stream_to_open() -> None:
    box, _ = outbox(legacy(), streams=False)
    (told,) = box.open_conversation(legacy(), 0)
    assert isinstance(told, Send)


@pytest.mark.req("P5", "R5")
def test_the_log_level_is_told_and_its_answer_is_nobodys() -> None:
    box, inflight = outbox(legacy())
    box.log_level = "debug"
    *_, told = box.open_conversation(legacy(), 0)
    assert isinstance(told, Send)
    assert json.loads(told.frame)["params"] == {"level": "debug"}
    assert inflight.stray(told.wire_id, 1) is Stray.LATE


@pytest.mark.req("R7")
def test_a_message_that_nobody_waits_for_is_offered_three_times_and_then_dropped() -> None:
    box, _ = outbox(legacy(), streams=False)
    (command,) = box.notify("notifications/roots/list_changed", None)
    assert isinstance(command, Send)
    for offer in (1, 2):
        out: list[Effect] = []
        box.busy(command, 1.0, out)
        assert out == []
        assert box.retry_at == 1.01, offer
        box.retry(out)
        assert out == [command]
        assert box.retry_at == NEVER
    out = []
    box.busy(command, 1.0, out)
    (dropped,) = out
    assert isinstance(dropped, Violated)
    assert "roots/list_changed" in dropped.detail


@pytest.mark.req("R7", "R9")
def test_a_full_link_keeps_a_bounded_number_of_messages_and_a_lost_one_none() -> None:
    box, _ = outbox(legacy(), streams=False)
    out: list[Effect] = []
    for _ in range(MOST_REFUSED + 5):
        (command,) = box.notify("notifications/x", None)
        assert isinstance(command, Send)
        box.busy(command, 1.0, out)
    # Only the first of a kind is logged as a warning.
    assert [one.count for one in out if isinstance(one, Violated)] == [1, 2, 3, 4, 5]
    box.forget()
    out = []
    box.retry(out)
    assert out == []
