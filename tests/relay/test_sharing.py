"""Several hosts over one client: nobody notices the others."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

import holdfast
from holdfast import Handlers, types
from holdfast.errors import RpcError
from holdfast.events import QuestionRefused
from holdfast.policies import Backoff, Identity
from holdfast.relay import sharing
from holdfast.relay.sharing import SharedRelay, common_capabilities
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.relay.rig import FORM, Pair, RelayServer, input_required

pytestmark = pytest.mark.req("Y1", "Y4")

UPDATED = "notifications/resources/updated"


@pytest.fixture(params=["handshake", "stateless"])
def host_era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["handshake", "stateless"])
def server_era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pair(host_era: str, server_era: str) -> Pair:
    return Pair(host_era, server_era)


async def refused_events(shared: SharedRelay) -> list[QuestionRefused]:
    events: list[QuestionRefused] = []
    shared.client.events.subscribe(events.append, "question.refused")
    return events


def echoing(pair: Pair) -> Peer:
    peer = pair.peer(capabilities={"tools": {}, "resources": {"subscribe": True}, "logging": {}})

    @peer.tool()
    def echo(word: str = "") -> str:
        return word

    return peer


async def test_hosts_share_one_connection_and_each_gets_its_own_results(pair: Pair) -> None:
    peer = echoing(pair)
    async with pair.share(peer, {}, {}, {}) as (_, hosts):
        words = [f"word-{number}" for number in range(30)]
        calls = [
            hosts[number % 3].call_tool("echo", {"word": word}) for number, word in enumerate(words)
        ]
        assert [result.text for result in await asyncio.gather(*calls)] == words
    assert len({request.connection for request in peer.received if request.id is not None}) == 1


async def test_progress_and_cancellation_are_of_one_host(pair: Pair) -> None:
    peer = echoing(pair)
    started: asyncio.Queue[ServerRequest] = asyncio.Queue()

    async def call(request: ServerRequest) -> Any:
        started.put_nowait(request)
        await asyncio.Event().wait()

    peer.on("tools/call", call)
    steps: list[list[Any]] = [[], []]
    async with pair.share(peer, {}, {}) as (_, hosts):
        tasks = [
            asyncio.ensure_future(host.call_tool("echo", on_progress=step.append))
            for host, step in zip(hosts, steps, strict=True)
        ]
        first, _ = await started.get(), await started.get()
        first.progress(1, message="the first")
        while not any(steps):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert sorted(len(step) for step in steps) == [0, 1]
        tasks[0].cancel()
        await peer.expect("notifications/cancelled")
        assert not tasks[1].done()
        tasks[1].cancel()


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_host_that_leaves_does_not_wait_for_the_server(
    is_down: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "LONGEST_LEAVE", 0.01)
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)
    peer.on("resources/unsubscribe", lambda request: SILENCE)
    backoff = Backoff(first=1000, max=1000)
    async with pair.share(peer, {}, {}, when_down="wait", backoff=backoff) as (shared, hosts):
        for host in hosts:
            await host.subscribe_resource("x://a")
        if is_down:
            peer.hang_up()
        await asyncio.wait_for(shared.hosts[0].leave(), 5)
        await asyncio.wait_for(shared.hosts[0].leave(), 5)
        await asyncio.wait_for(shared.close(), 5)
        assert not shared.hosts


async def test_a_resource_is_unsubscribed_with_the_last_host(server_era: str) -> None:
    pair = Pair("handshake", server_era)
    peer = echoing(pair)
    peer.resource("x://a", "1")
    asked = "subscriptions/listen" if pair.is_server_stateless else "resources/subscribe"

    def count(method: str) -> int:
        return sum(request.method == method for request in peer.received)

    updates: list[list[str]] = [[], []]
    news: asyncio.Queue[None] = asyncio.Queue()
    async with pair.share(peer, {}, {}) as (shared, hosts):
        for host, seen in zip(hosts, updates, strict=True):

            def note(update: Any, seen: list[str] = seen) -> None:
                seen.append(update.params["uri"])
                news.put_nowait(None)

            host.on_notification(note, UPDATED)
        await hosts[0].subscribe_resource("x://a")
        before = count(asked)
        await hosts[1].subscribe_resource("x://a")
        assert count(asked) == before
        peer._server.announce(UPDATED, {"uri": "x://a"})
        await news.get()
        await news.get()
        await hosts[0].unsubscribe_resource("x://a")
        peer._server.announce(UPDATED, {"uri": "x://a"})
        await news.get()
        assert [len(seen) for seen in updates] == [1, 2]
        assert count("resources/unsubscribe") == 0
        await shared.hosts[1].leave()
        assert not shared._watchers
        if not pair.is_server_stateless:
            assert count("resources/unsubscribe") == 1
        await hosts[0].subscribe_resource("x://a")
        assert count(asked) > before
        peer._server.announce(UPDATED, {"uri": "x://a"})
        await news.get()
        assert len(updates[0]) == 2


async def test_a_refused_subscription_counts_for_nobody() -> None:
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)

    def refuse(request: ServerRequest) -> Any:
        raise RequestError(-32002, "resource not found")

    peer.on("resources/subscribe", refuse)
    async with pair.share(peer, {}) as (shared, (host,)):
        with pytest.raises(RpcError, match="not found"):
            await host.subscribe_resource("x://none")
        assert not shared._watchers
        assert not shared.hosts[0].watched


def note_data(log: list[Any], message: types.LogMessage) -> None:
    log.append(message.data)


async def test_each_host_gets_the_log_level_that_it_asked_for(pair: Pair) -> None:
    peer = echoing(pair)

    def call(request: ServerRequest) -> Any:
        for level in ("debug", "info", "error"):
            request.log(level, level)
        return {"content": []}

    peer.on("tools/call", call)
    logs: list[list[Any]] = [[], [], []]
    async with pair.share(peer, {}, {}, {}) as (_, hosts):
        for host, log in zip(hosts, logs, strict=True):
            host.on_log(partial(note_data, log))
        await hosts[0].set_log_level("debug")
        await hosts[1].set_log_level("error")
        await hosts[1].call_tool("echo")
        await hosts[0].call_tool("echo")
        while len(logs[0]) < 3 or not logs[1]:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await hosts[2].call_tool("echo")
        await asyncio.gather(*(host.ping() for host in hosts))
    assert "debug" in logs[0]
    assert set(logs[1]) == {"error"}
    assert "debug" not in logs[2]


async def test_the_level_falls_back_when_the_verbose_host_leaves() -> None:
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)
    async with pair.share(peer, {}, {}) as (shared, hosts):
        await hosts[1].set_log_level("error")
        await hosts[0].set_log_level("debug")
        await shared.hosts[0].leave()
    levels = [r.params["level"] for r in peer.received if r.method == "logging/setLevel"]
    assert levels == ["error", "debug", "error"]


async def test_the_host_with_a_call_open_is_asked(pair: Pair) -> None:
    peer = echoing(pair)

    async def call(request: ServerRequest) -> Any:
        if pair.is_server_stateless and "inputResponses" not in request.params:
            return input_required("roots/list", {})
        answer = await pair.ask(request, "roots/list", {})
        return {"content": [{"type": "text", "text": answer["roots"][0]["uri"]}]}

    peer.on("tools/call", call)
    hosts = [{"handlers": Handlers(roots=[f"file:///{n}"])} for n in "ab"]
    async with pair.share(peer, *hosts) as (_, (first, second)):
        assert (await first.call_tool("echo")).text == "file:///a"
        assert (await second.call_tool("echo")).text == "file:///b"


async def test_calls_of_two_hosts_are_asked_apart_where_the_question_names_its_call() -> None:
    pair = Pair("handshake", "stateless")
    peer = echoing(pair)
    both = asyncio.Barrier(2)

    async def call(request: ServerRequest) -> Any:
        if "inputResponses" not in request.params:
            await both.wait()
            return input_required("roots/list", {})
        answer = await pair.ask(request, "roots/list", {})
        return {"content": [{"type": "text", "text": answer["roots"][0]["uri"]}]}

    peer.on("tools/call", call)
    hosts = [{"handlers": Handlers(roots=[f"file:///{n}"])} for n in "ab"]
    async with pair.share(peer, *hosts) as (_, (first, second)):
        results = await asyncio.gather(first.call_tool("echo"), second.call_tool("echo"))
    assert [result.text for result in results] == ["file:///a", "file:///b"]


async def test_a_question_that_could_be_either_host_s_is_refused(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    peer = echoing(pair)
    both = asyncio.Barrier(2)

    async def call(request: ServerRequest) -> Any:
        await both.wait()
        with pytest.raises(RequestError, match="2 hosts share this server") as caught:
            await request.session.ask("roots/list", {})
        return {"content": [{"type": "text", "text": str(caught.value.code)}]}

    peer.on("tools/call", call)
    options = {"handlers": Handlers(roots=["file:///a"])}
    async with pair.share(peer, options, options) as (shared, (first, second)):
        events = await refused_events(shared)
        results = await asyncio.gather(first.call_tool("echo"), second.call_tool("echo"))
    assert {result.text for result in results} == {"-32601"}
    assert [event.method for event in events] == ["roots/list"] * 2


async def test_declared_is_what_all_hosts_have_when_the_connection_is_made() -> None:
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)
    more = {"identity": Identity(capabilities={"roots": {"listChanged": True}, "sampling": {}})}
    fewer = {"identity": Identity(capabilities={"roots": {}})}

    def declared() -> list[Any]:
        return [r.params["capabilities"] for r in peer.received if r.method == "initialize"]

    async def call(request: ServerRequest) -> Any:
        with pytest.raises(RequestError, match="does not offer"):
            await request.session.ask("sampling/createMessage", {"messages": []})
        return {"content": []}

    peer.on("tools/call", call)
    async with pair.share(peer, more, fewer, when_down="wait") as (shared, hosts):
        await hosts[0].open()
        await hosts[1].open()
        assert declared() == [{"roots": {"listChanged": True}, "sampling": {}}]
        # The open connection stays; what the host cannot answer is refused when it comes.
        await hosts[1].call_tool("echo")
        peer.hang_up()
        await peer.expect("initialize", 2)
        assert declared()[-1] == {"roots": {}}
        await shared.hosts[1].leave()
        peer.hang_up()
        await peer.expect("initialize", 3)
        assert declared()[-1] == {"roots": {"listChanged": True}, "sampling": {}}


async def test_a_stateless_server_is_told_the_capabilities_of_each_host(host_era: str) -> None:
    pair = Pair(host_era, "stateless")
    peer = echoing(pair)
    declared: list[dict[str, Any]] = [{"roots": {}}, {"sampling": {}}]
    hosts = [{"identity": Identity(capabilities=capabilities)} for capabilities in declared]
    async with pair.share(peer, *hosts) as (_, clients):
        for client in clients:
            await client.call_tool("echo")
    calls = [request for request in peer.received if request.method == "tools/call"]
    assert [request.era.capabilities for request in calls] == declared


@pytest.mark.parametrize(
    ("declared", "common"),
    [
        ([], {}),
        ([{"elicitation": {}}], {"elicitation": {}}),
        (
            [{"elicitation": {}}, {"elicitation": {"form": {}, "url": {}}}],
            {"elicitation": {"form": {}}},
        ),
        ([{"elicitation": {}}, {"elicitation": {"url": {}}}], {}),
        ([{"sampling": {"tools": {}}}, {"sampling": {"context": {}}}], {"sampling": {}}),
        ([{"roots": {"listChanged": True}}, {"roots": {"listChanged": False}}], {"roots": {}}),
        ([{"roots": {}}, {"roots": "odd"}], {}),
        ([{"roots": {}}, {}], {}),
    ],
)
def test_common_capabilities(declared: list[Any], common: Any) -> None:
    assert common_capabilities(declared) == common
    assert common_capabilities(declared[::-1]) == common


async def test_a_host_that_leaves_leaves_nothing_behind(pair: Pair) -> None:
    peer = echoing(pair)
    peer.on("tools/call", SILENCE)
    peer.resource("x://a", "1")
    async with pair.share(peer, {}, {}) as (shared, hosts):
        await hosts[1].open()
        await hosts[0].subscribe_resource("x://a")
        call = asyncio.ensure_future(hosts[0].call_tool("echo"))
        await peer.expect("tools/call")
        leaving = shared.hosts[0]
        await leaving.leave()
        await peer.expect("notifications/cancelled")
        assert leaving not in shared.hosts
        assert (leaving.open_calls, leaving.watched, leaving._sessions) == (0, set(), {})
        assert not shared._watchers
        call.cancel()
        del peer._server.overrides["tools/call"]
        assert (await hosts[1].call_tool("echo", {"word": "on"})).text == "on"


async def test_what_a_host_that_leaves_was_asked_is_refused(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    peer = echoing(pair)
    outcome: asyncio.Queue[str] = asyncio.Queue()

    async def call(request: ServerRequest) -> Any:
        task = asyncio.ensure_future(request.session.ask("elicitation/create", FORM))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            pass
        with pytest.raises(RequestError, match="gone"):
            await task
        outcome.put_nowait("refused")

    asked = asyncio.Event()

    async def never(question: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    peer.on("tools/call", call)
    async with pair.share(peer, {"handlers": Handlers(elicitation=never)}) as (shared, (host,)):
        running = asyncio.ensure_future(host.call_tool("echo"))
        await asked.wait()
        await shared.hosts[0].leave()
        assert await outcome.get() == "refused"
        running.cancel()


async def test_a_question_at_the_start_waits_until_the_host_is_initialized() -> None:
    """Servers ask for the roots as soon as they are initialized, before the host is answered."""
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)
    answers: asyncio.Queue[Any] = asyncio.Queue()

    async def initialized(request: ServerRequest) -> None:
        answers.put_nowait(await request.session.ask("roots/list", {}))

    peer.on("notifications/initialized", initialized)
    async with pair.connect(peer, handlers=Handlers(roots=["file:///a"])) as host:
        await host.open()
        assert (await answers.get())["roots"][0]["uri"] == "file:///a"


async def test_hosts_of_two_eras_share_a_server(server_era: str) -> None:
    old, new = Pair("handshake", server_era), Pair("stateless", server_era)
    peer = echoing(old)
    async with holdfast.connect(peer) as client:
        shared = SharedRelay(client)
        servers: list[Any] = [RelayServer(shared.join()) for _ in range(2)]
        async with (
            holdfast.connect(servers[0], protocol=old.host) as first,
            holdfast.connect(servers[1], protocol=new.host) as second,
        ):
            assert (await first.call_tool("echo", {"word": "a"})).text == "a"
            assert (await second.call_tool("echo", {"word": "b"})).text == "b"
        await shared.close()
        assert not shared.hosts


async def test_a_host_leaves_quietly_while_the_server_is_down() -> None:
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)
    async with pair.share(peer, {}, {}) as (shared, hosts):
        await hosts[1].set_log_level("error")
        await hosts[0].set_log_level("debug")
        connections = peer.connections
        peer.hang_up()
        while shared.client.is_connected:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await shared.hosts[0].leave()
        assert len(shared.hosts) == 1
        assert peer.connections == connections


async def test_the_meta_of_a_change_reaches_every_host() -> None:
    pair = Pair("handshake", "handshake")
    peer = echoing(pair)
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with pair.share(peer, {}, {}) as (_, hosts):
        for host in hosts:
            host.on_notification(heard.put_nowait, "notifications/tools/list_changed")
            await host.open()
        peer.notify("notifications/tools/list_changed", {"_meta": {"vendor/x": 1}})
        changes = [await heard.get() for _ in hosts]
    assert [change.params for change in changes] == [{"_meta": {"vendor/x": 1}}] * 2
