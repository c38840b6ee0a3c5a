"""The tap: messages, reports and states of a client, whatever its transport."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import Backoff
from holdfast._core import boundary as b
from holdfast._core.boundary import Call, Generation, Send, Ticket, WireId
from holdfast._core.tap import TraceEvent, reported, watcher
from holdfast.errors import TransportError
from holdfast.testing import SILENCE, Peer
from tests.http.harness import connect
from tests.http.rogue import Modern
from tests.rows import rows
from tests.test_driver_faults import Fragile, ready

LINK = Generation(3)


def tapped(client: holdfast.Client) -> list[TraceEvent]:
    events: list[TraceEvent] = []
    client._attach_tap(watcher(events.append))
    return events


def messages(events: list[TraceEvent], direction: str) -> list[dict[str, Any]]:
    return [
        json.loads(event.frame)
        for event in events
        if event.frame is not None and event.direction == direction
    ]


@pytest.fixture
def peer() -> Peer:
    peer = Peer()
    peer.tool("say")(lambda words: words)
    peer.tool("stuck")(lambda: SILENCE)
    return peer


def test_each_message_of_a_read_is_one_event_with_the_call_it_belongs_to() -> None:
    lines = b'{"id":7,"result":{}}\n\n{"method":"x"}\n[\n'
    tickets: dict[object, Ticket] = {7: Ticket(1)}
    events = [*reported(b.Delivered(LINK, lines), 2.5, tickets.get)]
    assert [(event.frame, event.wire_id, event.ticket) for event in events] == [
        (b'{"id":7,"result":{}}', 7, 1),
        (b'{"method":"x"}', None, None),
        (b"[", None, None),
    ]
    assert {(event.at, event.kind, event.generation, event.direction) for event in events} == {
        (2.5, "message", LINK, "←")
    }


def test_a_message_without_an_id_belongs_to_the_request_of_its_stream() -> None:
    body = b'{"method":"notifications/progress",\n"params":{}}'
    (event,) = reported(b.Delivered(LINK, body, WireId(5), whole=True), 0.0, {5: Ticket(2)}.get)
    assert (event.frame, event.wire_id, event.ticket) == (body, 5, 2)


@rows(
    ("report", "kind", "wire_id"),
    [
        (b.Opened(LINK), "opened", None),
        (b.Lost(LINK, TransportError("gone")), "lost", None),
        (b.Held(LINK, WireId(4)), "held", 4),
        (b.Busy(LINK, Send(b"{}", WireId(4))), "busy", 4),
        (
            b.Refused(TransportError("no"), b.RefusalReason.BUSY).of(LINK, WireId(4)),
            "refused",
            4,
        ),
    ],
)
def test_every_other_report_is_one_event(report: Any, kind: str, wire_id: int | None) -> None:
    (event,) = reported(report, 1.0, lambda _: None)
    assert (event.kind, event.wire_id, event.generation) == (kind, wire_id, LINK)
    assert (event.direction, event.frame) == (None, None)
    assert event.error is getattr(report, "error", None)


async def say_hello(client: holdfast.Client) -> list[TraceEvent]:
    """Call a tool once; return what the tap saw from the first use to the end."""
    events = tapped(client)
    async with client:
        await client.call_tool("say", {"words": "hi"})
    return events


def check(events: list[TraceEvent]) -> None:
    """Check that the call, its answer and the states are there, each in its place."""
    (call,) = [sent for sent in messages(events, "→") if sent["method"] == "tools/call"]
    sent = next(event for event in events if event.frame and b"tools/call" in event.frame)
    (answer,) = [
        event for event in events if event.direction == "←" and event.wire_id == call["id"]
    ]
    assert sent.wire_id == call["id"]
    assert sent.ticket is not None
    assert answer.ticket == sent.ticket
    assert answer.generation == sent.generation == 1
    states = [event.new for event in events if event.kind == "state"]
    assert states == ["starting", "initializing", "ready", "closing", "closed"]
    times = [event.at for event in events]
    assert times == sorted(times)


@pytest.mark.req("F3")
async def test_a_tap_sees_both_directions_and_the_states_in_memory(peer: Peer) -> None:
    check(await say_hello(holdfast.connect(peer)))


@pytest.mark.req("F3")
@pytest.mark.parametrize("events", [False, True])
async def test_a_tap_sees_both_directions_and_the_states_over_http(events: bool) -> None:
    async with Modern() as server:
        server.events = events
        check(await say_hello(connect(server)))


@pytest.mark.req("F3")
async def test_a_tap_sees_both_directions_and_the_states_over_pipes() -> None:
    client = holdfast.connect([sys.executable, "-m", "holdfast.demo.server"])
    events = tapped(client)
    async with client:
        await client.call_tool("echo", {"text": "hi"})
    check(events)


async def test_a_tap_sees_a_lost_link_and_the_next_generation(peer: Peer) -> None:
    client = holdfast.connect(peer, backoff=Backoff(first=0.001, max=0.001))
    events = tapped(client)
    async with client:
        await client.open()
        peer.hang_up("the cable was pulled")
        await client.wait_ready(20)
        while [event.new for event in events if event.kind == "state"].count("ready") < 2:
            await client._requester.driver.change()
    (lost,) = [event for event in events if event.kind == "lost"]
    assert "cable" in str(lost.error)
    assert lost.generation == 1
    (down,) = [event for event in events if event.new == "backoff"]
    assert "cable" in str(down.error)
    assert max(event.generation for event in events) > 1


async def test_a_tap_that_fails_is_taken_off_and_disturbs_nothing(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: TraceEvent) -> None:
        raise RuntimeError("boom")

    client = holdfast.connect(peer)
    client._attach_tap(watcher(fail))
    async with client:
        assert (await client.call_tool("say", {"words": "hi"})).text == "hi"
        assert client._requester.driver.tap is None
    assert caplog.text.count("the tap failed") == 1


async def test_a_request_that_is_taken_back_before_it_left_is_shown_as_withdrawn() -> None:
    events: list[TraceEvent] = []
    driver = await ready(Fragile())
    driver.tap = watcher(events.append)
    request = driver.request(Call("tools/call", {"name": "stuck"}))
    request.send(None)
    with pytest.raises(asyncio.CancelledError):
        request.throw(asyncio.CancelledError())
    sent, withdrawn, failed = events
    assert (failed.kind, failed.ticket) == ("failed", sent.ticket)
    assert (sent.kind, withdrawn.kind) == ("message", "withdrawn")
    assert (withdrawn.wire_id, withdrawn.ticket) == (sent.wire_id, sent.ticket)
    await driver.close()


@given(st.binary(max_size=40) | st.just(b"[" * 4000))
def test_whatever_comes_is_one_event_at_most(frame: bytes) -> None:
    assert len([*reported(b.Delivered(LINK, frame, whole=True), 0.0, lambda _: None)]) <= 1
