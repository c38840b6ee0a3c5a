"""Stable events, told to whoever listens, and made for nobody else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

import holdfast
from holdfast import Backoff, Timeouts
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.observers.observer import Observers
from holdfast.errors import ValidationError
from holdfast.events import KINDS, Events, Transition
from holdfast.testing import SILENCE, Peer, ServerRequest

SOON = Timeouts(request=5)
AUTHORIZATION = (
    "client",
    "server",
    "account",
    "issuer",
    "resource",
    "scopes",
    "expires_at",
    "reason",
)


@pytest.fixture(params=[STATELESS, HANDSHAKE], ids=["stateless", "handshake"])
def peer(request: pytest.FixtureRequest) -> Peer:
    peer = Peer(versions=request.param)

    @peer.tool()
    def greet() -> str:
        return "hello"

    @peer.tool()
    def silent() -> Any:
        return SILENCE

    return peer


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[holdfast.Client]:
    async with holdfast.connect(peer, timeouts=SOON, name="shop") as client:
        yield client


@pytest.mark.req("M1")
def test_the_names_of_the_events_are_stable() -> None:
    assert {kind.name: kind.__struct_fields__ for kind in KINDS} == {
        "request.start": ("client", "method", "about", "id", "correlation_id", "time"),
        "request.stop": ("client", "method", "about", "id", "correlation_id", "duration"),
        "request.exception": (
            "client",
            "method",
            "about",
            "id",
            "correlation_id",
            "duration",
            "reason",
            "error",
        ),
        "request.waiting": ("client", "method", "about", "reason", "limit", "seconds"),
        "limits.unshared": ("client", "error"),
        "store.down": ("client", "store", "reason"),
        "connection.transition": ("client", "old", "new", "reason"),
        "server.starting": ("client", "elapsed"),
        "notification.received": ("client", "method"),
        "protocol.violation": ("client", "reason", "detail", "count", "frame_size"),
        "question.refused": ("client", "method", "reason"),
        **{
            f"auth.{name}": AUTHORIZATION
            for name in ("required", "login", "granted", "refreshed", "failed")
        },
    }


@pytest.mark.req("M1")
async def test_a_request_starts_and_stops(client: holdfast.Client) -> None:
    await client.list_tools()
    events: list[Any] = []
    client.events.subscribe(events.append)
    await client.call_tool("greet")
    await client.call_tool("greet")
    start, stop, second, _ = events
    assert (start.name, stop.name) == ("request.start", "request.stop")
    assert (start.client, start.method, start.about) == ("shop", "tools/call", "greet")
    assert start.time > 1_700_000_000
    assert stop.duration > 0
    assert (start.id, start.correlation_id) == (stop.id, stop.correlation_id)
    assert second.id > start.id
    assert second.correlation_id != start.correlation_id


@pytest.mark.req("M1")
async def test_a_request_that_fails_says_why(client: holdfast.Client, peer: Peer) -> None:
    events: list[Any] = []
    await client.list_tools()
    client.events.subscribe(events.append, "request.exception")
    with pytest.raises(holdfast.RequestTimeout) as caught:
        await client.call_tool("silent", timeout=0.01)
    with pytest.raises(holdfast.RpcError):
        await client.request("no/such/method")
    task = asyncio.create_task(client.call_tool("silent"))
    await peer.expect("tools/call", 2)
    task.cancel()
    await asyncio.wait([task])
    assert [event.reason for event in events] == ["timeout", "jsonrpc", "cancelled"]
    assert events[0].error is caught.value
    assert events[0].correlation_id
    assert events[0].duration > 0


@pytest.mark.req("M1")
async def test_every_transition_is_told_with_its_reason(peer: Peer) -> None:
    events: list[Transition] = []
    backoff = Backoff(first=60, max=60)
    async with holdfast.connect(peer, timeouts=SOON, backoff=backoff) as client:
        client.events.subscribe(events.append, "connection.transition")
        await client.open()
        assert [event.new for event in events][-1] == "ready"
        peer.hang_up("pulled the plug")
        with pytest.raises(holdfast.HoldfastError):
            await client.call_tool("greet")
    steps = [(event.old, event.new) for event in events]
    assert steps[:3] == [
        ("new", "starting"),
        ("starting", "initializing"),
        ("initializing", "ready"),
    ]
    assert steps[3:] == [("ready", "backoff"), ("backoff", "closed")]
    assert "pulled the plug" in str(events[3].reason)


@pytest.mark.req("M1")
async def test_notifications_and_violations_are_told(client: holdfast.Client, peer: Peer) -> None:
    events: list[Any] = []
    client.events.subscribe(events.append, "notification.received", "protocol.violation")
    await client.open()
    peer.notify("notifications/message", {"level": "info", "data": "x"})
    peer.write(b"junk\n")
    peer.write(b"more junk\n")
    await client.ping()
    notification, first, second = events
    assert notification.method == "notifications/message"
    assert (first.reason, first.count, second.count) == (second.reason, 1, 2)
    assert "junk" in first.detail


@pytest.mark.req("M1")
async def test_an_async_subscriber_hears_in_order(client: holdfast.Client) -> None:
    names: list[str] = []
    done = asyncio.Event()

    async def hear(event: Any) -> None:
        await asyncio.sleep(0)
        names.append(event.name)
        if len(names) == 2:
            done.set()

    await client.list_tools()
    client.events.subscribe(hear)
    await client.call_tool("greet")
    await done.wait()
    assert names == ["request.start", "request.stop"]


@pytest.mark.req("M1")
async def test_a_subscriber_that_fails_hurts_nobody(client: holdfast.Client) -> None:
    heard: list[Any] = []

    def bad(_: Any) -> None:
        raise RuntimeError("no")

    client.events.subscribe(bad)
    client.events.subscribe(heard.append)
    assert (await client.call_tool("greet")).text == "hello"
    assert heard


@pytest.mark.req("M1")
async def test_who_has_unsubscribed_hears_nothing(client: holdfast.Client) -> None:
    events: list[Any] = []
    stop = client.events.subscribe(events.append)
    assert client.events.active
    stop()
    stop()
    assert not client.events.active
    await client.call_tool("greet")
    assert events == []


@pytest.mark.req("M1")
async def test_every_notification_is_received_those_for_a_request_too() -> None:
    """Progress, cancellations and acknowledgements go their own way; subscribers hear of them."""
    peer = Peer(versions=HANDSHAKE)
    seen: list[str] = []
    released = asyncio.Event()

    def call(incoming: ServerRequest) -> Any:
        peer.progress(incoming, 1)
        peer.progress(incoming, 2)
        for params in ({"requestId": "nobody's"}, {"requestId": incoming.id}, {}):
            peer.notify("notifications/cancelled", params)
        peer.notify("notifications/progress", {"progressToken": 999, "progress": 1})
        peer.notify("notifications/message", {"level": "info", "data": "x"})
        return {"content": []}

    peer.on("tools/call", call)
    async with holdfast.connect(peer) as client:
        client.events.subscribe(lambda event: seen.append(event.method), "notification.received")
        await client.call_tool("x", on_progress=lambda _: released.set())
        assert released.is_set()
    assert seen.count("notifications/progress") == 3
    assert seen.count("notifications/cancelled") == 3
    assert seen.count("notifications/message") == 1


@pytest.mark.req("M1")
async def test_an_acknowledged_subscription_is_a_notification_that_was_received() -> None:
    peer = Peer(versions=STATELESS)
    peer.resource("mem://x", "text")
    seen: list[str] = []
    async with holdfast.connect(peer) as client:
        client.events.subscribe(lambda event: seen.append(event.method), "notification.received")
        await client.subscribe_resource("mem://x")
    assert "notifications/subscriptions/acknowledged" in seen


@pytest.mark.req("M1")
def test_the_name_of_an_event_is_checked() -> None:
    with pytest.raises(ValidationError, match=r"no such event: 'request\.begin'"):
        Events().subscribe(print, "request.begin")


@pytest.mark.req("M1")
async def test_nothing_is_made_while_nobody_listens(
    client: holdfast.Client, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an event, not a correlation id, not another frame on the stack."""

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was made for nobody")

    await client.list_tools()
    monkeypatch.setattr(Observers, "begin", fail)
    monkeypatch.setattr(Observers, "moved", fail)
    monkeypatch.setattr(Events, "emit", fail)
    assert (await client.call_tool("greet")).text == "hello"
    peer.notify("notifications/message", {"level": "info", "data": "x"})
    peer.write(b"junk\n")
    await client.ping()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_correlation_ids_of_its_own() -> None:
    def made() -> str:
        return Observers("peer").begin("ping", "", None).correlation_id

    first = made()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, made().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert len({first, made(), os.read(reading, 64).decode()}) == 3
    os.close(reading)
    os.close(writing)
