"""A guard sees every new list of tools before anything of it is used."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest

import holdfast
from holdfast import Backoff, DriftError, Tool
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, VERSIONS
from holdfast.events import Transition
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from holdfast.types.tools import ToolAnnotations

AT_ONCE = Backoff(first=0.001, max=0.001, jitter=0)


def make_peer(versions: tuple[str, ...] = VERSIONS) -> Peer:
    peer = Peer(instructions="be kind", versions=versions)

    @peer.tool()
    def greet(name: str = "you") -> str:
        return f"hello {name}"

    return peer


@pytest.mark.req("H8")
async def test_a_guard_that_could_not_refuse_is_refused() -> None:
    async def check(*_: object) -> None:
        raise AssertionError

    async with holdfast.connect(make_peer()) as client:
        for guard in (client.guard_tools, client.guard_skills):
            with pytest.raises(holdfast.ValidationError, match="give a plain function"):
                guard(check)  # type: ignore[arg-type]


class Watch:
    """A guard that writes down what it saw, and refuses when told to."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[str], str | None]] = []
        self.refuses = False

    def __call__(self, tools: Sequence[Tool], instructions: str | None) -> None:
        self.seen.append(([tool.name for tool in tools], instructions))
        if self.refuses:
            raise DriftError("not what it was")


@pytest.mark.req("H4", "H8")
async def test_a_guard_sees_the_list_before_the_first_call() -> None:
    watch = Watch()
    async with holdfast.connect(make_peer()) as client:
        client.guard_tools(watch)
        assert (await client.call_tool("greet")).text == "hello you"
        await client.call_tool("greet")
    assert watch.seen == [(["greet"], "be kind")]


@pytest.mark.req("H4", "H8")
async def test_a_refused_list_is_not_used_and_its_tools_are_not_called() -> None:
    peer, watch = make_peer(), Watch()
    watch.refuses = True
    async with holdfast.connect(peer) as client:
        client.guard_tools(watch)
        for _ in range(2):
            with pytest.raises(DriftError):
                await client.call_tool("greet")
        with pytest.raises(DriftError):
            await client.list_tools()
        assert not client.tools
        assert "tools/call" not in [one.method for one in peer.received]
        watch.refuses = False
        assert (await client.call_tool("greet")).text == "hello you"


@pytest.mark.req("H4", "H8")
@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE], ids=["stateless", "handshake"])
async def test_a_guard_looks_again_when_the_list_changed(versions: tuple[str, ...]) -> None:
    peer, watch = make_peer(versions), Watch()
    async with holdfast.connect(peer) as client:
        client.guard_tools(watch)
        await client.call_tool("greet")
        if versions is STATELESS:
            await peer.expect("subscriptions/listen")

        @peer.tool()
        async def more() -> str:
            return "more"

        peer.notify("notifications/tools/list_changed")
        await client.ping()
        await client.call_tool("greet")
    assert [names for names, _ in watch.seen] == [["greet"], ["greet", "more"]]


@pytest.mark.req("H4", "H8")
async def test_a_guard_looks_again_after_a_reconnect() -> None:
    peer, watch = make_peer(), Watch()
    async with holdfast.connect(peer, backoff=AT_ONCE, when_down="wait") as client:
        client.guard_tools(watch)
        await client.call_tool("greet")
        down = asyncio.Event()
        client.events.subscribe(lambda event: down.set(), Transition.name)
        peer.hang_up()
        await down.wait()
        await client.call_tool("greet")
    assert len(watch.seen) == 2


async def test_a_guard_that_comes_late_sees_the_list_that_is_known() -> None:
    watch = Watch()
    async with holdfast.connect(make_peer()) as client:
        await client.list_tools()
        client.guard_tools(watch)
        await client.call_tool("greet")
    assert len(watch.seen) == 1


async def test_a_guard_that_is_removed_sees_nothing() -> None:
    watch = Watch()
    async with holdfast.connect(make_peer()) as client:
        remove = client.guard_tools(watch)
        remove()
        remove()
        await client.call_tool("greet")
    assert not watch.seen


async def test_a_server_that_lists_nothing_is_seen_as_one_without_tools() -> None:
    def no_list(_: object) -> None:
        raise RequestError(-32601, "Method not found")

    peer, watch = make_peer(), Watch()
    peer.on("tools/list", no_list)
    watch.refuses = True
    async with holdfast.connect(peer) as client:
        client.guard_tools(watch)
        with pytest.raises(DriftError):
            await client.call_tool("greet")
    assert watch.seen == [([], "be kind")]


@pytest.mark.req("H4", "H8")
async def test_a_list_that_changes_while_it_is_read_is_read_again() -> None:
    peer, watch = make_peer(HANDSHAKE), Watch()
    descriptions = iter(["first", "second"])

    def listed(incoming: ServerRequest) -> dict[str, Any]:
        peer.notify("notifications/tools/list_changed")
        said = next(descriptions, "third")
        schema = {"type": "object"}
        return {"tools": [{"name": "greet", "description": said, "inputSchema": schema}]}

    peer.on("tools/list", listed)
    async with holdfast.connect(peer) as client:
        client.guard_tools(watch)
        await client.call_tool("greet")
        # A server that announces a change each time is believed when it says the same twice.
        assert client.tools["greet"].description == "third"
    methods = [one.method for one in peer.received if one.method.startswith("tools/")]
    assert methods == ["tools/list"] * 4 + ["tools/call"]
    assert len(watch.seen) == 1


@pytest.mark.req("H4", "R2")
@pytest.mark.parametrize("versions", [HANDSHAKE, STATELESS], ids=["handshake", "stateless"])
async def test_a_list_that_never_stays_the_same_is_refused_in_the_end(versions: Any) -> None:
    peer, watch = make_peer(versions), Watch()
    numbers = itertools.count()

    def listed(incoming: ServerRequest) -> dict[str, Any]:
        peer.notify("notifications/tools/list_changed")
        return {"tools": [{"name": f"tool{next(numbers)}", "inputSchema": {"type": "object"}}]}

    peer.on("tools/list", listed)
    async with holdfast.connect(peer) as client:
        client.guard_tools(watch)
        with pytest.raises(holdfast.ProtocolError, match="changed 10 times") as caught:
            await client.call_tool("greet")
        assert not caught.value.outcome_unknown
    assert not watch.seen
    assert not [one for one in peer.received if one.method == "tools/call"]


@pytest.mark.req("H4", "R2", "R3")
async def test_a_server_that_dies_after_each_list_is_given_up_in_time_and_never_called() -> None:
    peer, watch = make_peer(), Watch()

    def listed(incoming: ServerRequest) -> Any:
        peer.respond(incoming, {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]})
        peer.hang_up()
        return SILENCE

    peer.on("tools/list", listed)
    times, quick = holdfast.Timeouts(request=0.1, total=0.2), holdfast.Backoff(first=0.001)
    async with holdfast.connect(peer, timeouts=times, backoff=quick, when_down="wait") as client:
        client.guard_tools(watch)
        with pytest.raises(TimeoutError) as caught:
            await client.call_tool("greet")
        assert isinstance(caught.value, holdfast.HoldfastError)
        assert not caught.value.outcome_unknown
    assert not [one for one in peer.received if one.method == "tools/call"]


@pytest.mark.req("H4")
async def test_a_guard_looks_again_when_the_stream_of_changes_ended() -> None:
    """Over HTTP there is no link to lose: a server may be replaced between two requests."""
    peer, watch = make_peer(STATELESS), Watch()
    async with holdfast.connect(peer) as client:
        client.guard_tools(watch)
        await client.call_tool("greet")
        await client.subscribe_resource("mem://any")
        stream = [one for one in peer.received if one.method == "subscriptions/listen"][-1]
        peer.notify("notifications/cancelled", {"requestId": stream.id})
        await client.ping()
        await client.ping()  # the stream's own task has had its turn
        await client.call_tool("greet")
    assert len(watch.seen) == 2


@pytest.mark.req("R8", "H4")
async def test_a_guarded_call_is_repeated_once_and_never_a_second_time() -> None:
    peer, watch = Peer(), Watch()

    @peer.tool(annotations=ToolAnnotations(read_only_hint=True))
    def greet() -> Any:
        peer.hang_up()
        return SILENCE

    quick = Backoff(first=0.001)
    async with holdfast.connect(peer, replay="safe", when_down="wait", backoff=quick) as client:
        client.guard_tools(watch)
        with pytest.raises(holdfast.TransportError) as caught:
            await client.call_tool("greet")
    assert caught.value.outcome_unknown
    assert len([one for one in peer.received if one.method == "tools/call"]) == 2


@pytest.mark.req("H4")
async def test_a_guard_is_shown_what_the_server_says_now_and_not_a_cached_list() -> None:
    peer, watch = make_peer(HANDSHAKE), Watch()
    async with holdfast.connect(peer, cache=holdfast.Cache(ttl=1000)) as client:
        await client.list_tools()
        names = ("greet", "late")
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        peer.on("tools/list", {"tools": tools})
        client.guard_tools(watch)
        await client.call_tool("greet")
    assert "late" in str(watch.seen)
