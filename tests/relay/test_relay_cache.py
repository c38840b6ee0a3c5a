"""Lists and resources that are not asked for twice."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast import Cache
from holdfast.policies import Identity
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import Peer
from tests.relay.rig import Pair, RelayServer
from tests.relay.test_wire import PAIRS

pytestmark = pytest.mark.req("Y3")


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(*request.param)


def offering(pair: Pair) -> Peer:
    peer = pair.peer()
    peer.tool("say")(lambda: "hello")
    peer.resource("x://a", "text")
    if pair.is_server_stateless:
        # Its own word counts, and each result has one.
        hints = {"ttlMs": 60_000, "cacheScope": "private"}
        peer.hints.update({"tools/list": hints, "resources/read": hints})
    return peer


def count(peer: Peer, method: str) -> int:
    return sum(request.method == method for request in peer.received)


async def ask(host: holdfast.Client, method: str, **params: Any) -> Any:
    return await host.request(method, params)


async def test_a_list_and_a_resource_are_asked_for_once(pair: Pair) -> None:
    peer = offering(pair)
    async with holdfast.connect(peer, cache=Cache(ttl=60)) as client:
        shared = SharedRelay(client, is_cached=True)
        for _ in range(2):
            server: Any = RelayServer(shared.join())
            async with holdfast.connect(server, protocol=pair.host) as host:
                for _ in range(2):
                    listed = await ask(host, "tools/list")
                    assert [tool["name"] for tool in listed["tools"]] == ["say"]
                    read = await ask(host, "resources/read", uri="x://a")
                    assert read["contents"][0]["text"] == "text"
    assert (count(peer, "tools/list"), count(peer, "resources/read")) == (1, 1)


async def test_what_has_changed_is_asked_for_again(pair: Pair) -> None:
    peer = offering(pair)
    async with holdfast.connect(peer, cache=Cache(ttl=60)) as client:
        server: Any = RelayServer(SharedRelay(client, is_cached=True).join())
        async with holdfast.connect(server, protocol=pair.host) as host:
            await ask(host, "tools/list")
            await ask(host, "resources/read", uri="x://a")
            peer.notify("notifications/tools/list_changed")
            peer.notify("notifications/resources/updated", {"uri": "x://a"})
            await host.call_tool("say")  # read after the notifications
            await ask(host, "tools/list")
            await ask(host, "resources/read", uri="x://a")
            await ask(host, "resources/read", uri="x://a", other=1)
    assert (count(peer, "tools/list"), count(peer, "resources/read")) == (2, 3)


async def test_nothing_is_kept_unless_asked_for(pair: Pair) -> None:
    peer = offering(pair)
    async with pair.connect(peer, upstream={"cache": Cache(ttl=60)}) as host:
        for _ in range(2):
            await ask(host, "tools/list")
    assert count(peer, "tools/list") == 2


async def test_what_a_server_says_holds_and_its_time_runs_on() -> None:
    pair = Pair("stateless", "stateless")
    peer = offering(pair)
    peer.hints["resources/read"] = {"ttlMs": 0, "cacheScope": "private"}
    times = [1000.0]
    async with holdfast.connect(peer, cache=Cache(ttl=60)) as client:
        client._cached.cache.clock = lambda: times[-1]
        server: Any = RelayServer(SharedRelay(client, is_cached=True).join())
        async with holdfast.connect(server, protocol=pair.host) as host:
            lives = [(await ask(host, "tools/list"))["ttlMs"]]
            for now in (1020.0, 1059.0, 1061.0):
                times.append(now)
                lives.append((await ask(host, "tools/list"))["ttlMs"])
            for _ in range(2):
                await ask(host, "resources/read", uri="x://a")
    assert lives == [60_000, 40_000, 1_000, 60_000]
    assert (count(peer, "tools/list"), count(peer, "resources/read")) == (2, 2)


async def test_questions_are_not_kept() -> None:
    pair = Pair("stateless", "stateless")
    peer = offering(pair)
    question = {"method": "roots/list", "params": {}}
    rounds = {"inputRequests": {"q": question}, "requestState": "s"}
    peer.on("resources/read", {"resultType": "input_required", **rounds})
    async with holdfast.connect(peer, cache=Cache(ttl=60)) as client:
        server: Any = RelayServer(SharedRelay(client, is_cached=True).join())
        handlers = holdfast.Handlers(roots=["file:///a"])
        async with holdfast.connect(server, protocol=pair.host, handlers=handlers) as host:
            with pytest.raises(holdfast.ProtocolError, match="still asking"):
                await ask(host, "resources/read", uri="x://a")
    assert count(peer, "resources/read") > 2


async def test_hosts_that_can_do_different_things_share_nothing() -> None:
    """A stateless server is told what each host can do, and may show each something else."""
    pair = Pair("stateless", "stateless")
    peer = offering(pair)
    async with holdfast.connect(peer, cache=Cache(ttl=60)) as client:
        shared = SharedRelay(client, is_cached=True)
        for name in ("a", "b", "a"):
            server: Any = RelayServer(shared.join())
            identity = Identity(capabilities={"extensions": {f"vendor/{name}": {}}})
            async with holdfast.connect(server, protocol=pair.host, identity=identity) as host:
                await ask(host, "tools/list")
    assert count(peer, "tools/list") == 2
