"""Many servers behind one: names, routing, and one that fails."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

import holdfast
from holdfast import Handlers, types
from holdfast._core.eras.revisions import TASKS
from holdfast.errors import RpcError
from holdfast.policies import Identity
from holdfast.relay.finding import Finder
from holdfast.relay.merging import MergedRelay, full_name, split_name
from holdfast.relay.serving import ServedRelays
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.relay.rig import Pair, RelayServer, input_required
from tests.relay.worker import DONE, Worker

pytestmark = pytest.mark.req("Y1", "Y3")


@pytest.fixture(params=["handshake", "stateless"])
def host_era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["handshake", "stateless"])
def server_era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pair(host_era: str, server_era: str) -> Pair:
    return Pair(host_era, server_era)


def offering(pair: Pair, word: str) -> Peer:
    peer = pair.peer(
        instructions=f"Use {word}.",
        capabilities={
            "tools": {"listChanged": True},
            "prompts": {},
            "resources": {"subscribe": True},
            "completions": {},
            "logging": {},
        },
    )
    peer.tool("say", meta={"vendor/x": word})(lambda: word)
    peer.prompt("greet")(lambda: f"Greet {word}")
    peer.resource(f"x://{word}", word)
    peer.catalog.templates.append({"uriTemplate": f"{word}://{{id}}", "name": word})
    return peer


@asynccontextmanager
async def merged(
    pair: Pair,
    peers: dict[str, Any],
    *,
    patience: float = 10,
    finder: bool = False,
    upstream: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[holdfast.Client]:
    """Yield a host in front of many servers."""
    async with AsyncExitStack() as stack:
        shared = {}
        for name, peer in peers.items():
            client = holdfast.connect(peer, name=name, when_down="wait", **upstream or {})
            shared[name] = SharedRelay(await stack.enter_async_context(client))
        relay = MergedRelay(shared, patience=patience)
        if finder:
            Finder(relay.server)
        server: Any = RelayServer(relay)
        host = holdfast.connect(server, protocol=pair.host, **options)
        yield await stack.enter_async_context(host)
        await relay.leave()


async def test_tools_and_prompts_have_the_names_of_their_servers(pair: Pair) -> None:
    peers = {"a": offering(pair, "one"), "a.b": offering(pair, "two")}
    async with merged(pair, peers) as host:
        tools = await host.list_tools()
        assert [(tool.name, tool.meta) for tool in tools] == [
            ("a.say", {"vendor/x": "one"}),
            ("a.b.say", {"vendor/x": "two"}),
        ]
        assert (await host.call_tool("a.say")).text == "one"
        assert (await host.call_tool("a.b.say")).text == "two"
        assert [prompt.name for prompt in await host.list_prompts()] == ["a.greet", "a.b.greet"]
        message = (await host.get_prompt("a.b.greet")).messages[0]
        assert getattr(message.content, "text", "") == "Greet two"
        assert host.instructions == "a: Use one.\n\na.b: Use two."
        with pytest.raises(RpcError, match=r"begins with no server.*a, a\.b"):
            await host.request("tools/call", {"name": "say"})


async def test_a_tool_whose_name_leads_to_another_server_has_a_dot_more(pair: Pair) -> None:
    """Hosts refuse two tools of one name: each has its own, and is called by it."""
    peers = {"a": offering(pair, "one"), "a.b": offering(pair, "two")}
    peers["a"].tool("b.say")(lambda: "the first one's")
    peers["a"].tool("b.more")(lambda: "more")
    peers["a"].tool(".b.say")(lambda: "dotted")
    async with merged(pair, peers) as host:
        names = {tool.name for tool in await host.list_tools()}
        assert names == {"a.say", "a..b.say", "a..b.more", "a...b.say", "a.b.say"}
        assert (await host.call_tool("a.b.say")).text == "two"
        assert (await host.call_tool("a..b.say")).text == "the first one's"
        assert (await host.call_tool("a..b.more")).text == "more"
        assert (await host.call_tool("a...b.say")).text == "dotted"


def test_no_two_names_are_the_same() -> None:
    pieces = ["".join(text) for n in range(4) for text in itertools.product("ab.", repeat=n)]
    for servers in [("a",), ("a", "a.b"), ("a", "b", "a.b"), ("a", "a..b"), (".", "a", "a.b.c")]:
        whole = {full_name(server, name, servers) for server in servers for name in pieces}
        assert len(whole) == len(servers) * len(pieces)
        for server, name in itertools.product(servers, pieces):
            assert split_name(full_name(server, name, servers), servers) == (server, name)


async def test_resources_are_read_where_they_are(pair: Pair) -> None:
    peers = {name: offering(pair, name) for name in ("a", "b")}
    async with merged(pair, peers) as host:
        # Before anything is listed.
        assert (await host.read_resource("x://b")).contents[0].raw["text"] == "b"
        assert [item.uri for item in await host.list_resources()] == ["x://a", "x://b"]
        templates = await host.list_resource_templates()
        assert [item.uri_template for item in templates] == ["a://{id}", "b://{id}"]
        with pytest.raises(RpcError, match="not found"):
            await host.read_resource("x://none")
        with pytest.raises(RpcError, match="not found"):
            await host.read_resource("b://5")
    reads = [r.params["uri"] for r in peers["a"].received if r.method == "resources/read"]
    assert reads == ["x://none"]


async def test_updates_and_completions_find_their_server(pair: Pair) -> None:
    peers = {name: offering(pair, name) for name in ("a", "b")}
    peers["b"].on("completion/complete", {"completion": {"values": ["Ada"]}})
    updates: asyncio.Queue[str] = asyncio.Queue()
    updated = "notifications/resources/updated"
    async with merged(pair, peers) as host:
        host.on_notification(lambda update: updates.put_nowait(update.params["uri"]), updated)
        await host.subscribe_resource("x://b")
        peers["b"]._server.announce(updated, {"uri": "x://b"})
        assert await updates.get() == "x://b"
        await host.unsubscribe_resource("x://b")
        reference = types.PromptReference(name="b.greet")
        assert (await host.complete(reference, "name", "A")).values == ["Ada"]
        await host.list_resource_templates()
        template = types.ResourceReference(uri="b://{id}")
        assert (await host.complete(template, "id", "A")).values == ["Ada"]


async def test_a_question_of_one_server_reaches_the_host(pair: Pair) -> None:
    peer = offering(pair, "a")

    async def call(request: ServerRequest) -> Any:
        if pair.is_server_stateless and "inputResponses" not in request.params:
            return input_required("roots/list", {})
        answer = await pair.ask(request, "roots/list", {})
        return {"content": [{"type": "text", "text": answer["roots"][0]["uri"]}]}

    peer.on("tools/call", call)
    handlers = Handlers(roots=["file:///a"])
    async with merged(pair, {"a": peer, "b": offering(pair, "b")}, handlers=handlers) as host:
        assert (await host.call_tool("a.say")).text == "file:///a"


async def test_log_messages_of_all_servers_pass(pair: Pair) -> None:
    def call(request: ServerRequest) -> Any:
        request.log("debug", "low")
        request.log("error", "high")
        return {"content": []}

    peers = {name: offering(pair, name) for name in ("a", "b")}
    peers["b"].on("tools/call", call)
    messages: asyncio.Queue[Any] = asyncio.Queue()
    async with merged(pair, peers) as host:
        host.on_log(messages.put_nowait)
        await host.set_log_level("warning")
        await host.call_tool("b.say")
        assert (await messages.get()).data == "high"


async def test_a_server_that_fails_costs_only_its_own(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    peers: dict[str, Any] = {"bad": ["false"], "good": offering(pair, "good")}
    async with merged(pair, peers, patience=60) as host:
        assert [tool.name for tool in await host.list_tools()] == ["good.say"]
        assert (await host.call_tool("good.say")).text == "good"


async def test_servers_that_all_fail_are_an_error(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    with pytest.raises(holdfast.HoldfastError, match="bad"):
        async with merged(pair, {"bad": ["false"], "worse": ["false"]}, patience=60) as host:
            await host.open()


async def test_the_host_is_told_when_a_late_server_is_there(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    late = offering(pair, "late")
    begin = asyncio.Event()

    async def initialize(request: ServerRequest) -> Any:
        await begin.wait()
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "late", "version": "1"},
        }

    late.on("initialize", initialize)
    changes: asyncio.Queue[Any] = asyncio.Queue()
    peers = {"good": offering(pair, "good"), "late": late}
    async with merged(pair, peers, patience=0.2) as host:
        host.on_notification(changes.put_nowait, "notifications/tools/list_changed")
        assert [tool.name for tool in await host.list_tools()] == ["good.say"]
        if pair.is_host_stateless:
            while not host._unsolicited.subscriptions._request:  # noqa: ASYNC110
                await asyncio.sleep(0)
        begin.set()
        await changes.get()
        names = [tool.name for tool in await host.list_tools(cache="bypass")]
        assert names == ["good.say", "late.say"]


async def test_a_list_that_a_server_refuses_has_not_changed(server_era: str) -> None:
    pair = Pair("handshake", server_era)
    bare = offering(pair, "bare")

    def refuse(request: ServerRequest) -> None:
        raise RequestError(-32601, "method not found")

    bare.on("resources/templates/list", refuse)
    changes: list[Any] = []
    async with merged(pair, {"bare": bare, "good": offering(pair, "good")}) as host:
        host.on_notification(changes.append)
        for _ in range(3):
            assert [template.name for template in await host.list_resource_templates()] == ["good"]
            await host.call_tool("good.say")
        assert changes == []


async def test_a_time_limit_of_one_s_own_is_the_one_that_is_named(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    peer = offering(pair, "one")
    peer.on("tools/list", SILENCE)
    short = holdfast.Timeouts(total=0.05)
    async with merged(pair, {"a": peer}, upstream={"timeouts": short}) as host:
        with pytest.raises(RpcError, match="no answer within 50 ms"):
            await host.request("tools/list")


async def test_a_list_without_an_end_is_refused(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    endless = offering(pair, "endless")
    endless.on("tools/list", {"tools": [], "nextCursor": "again"})
    async with merged(pair, {"a": endless, "b": offering(pair, "b")}) as host:
        assert [tool.name for tool in await host.list_tools()] == ["b.say"]


@pytest.mark.parametrize("item", [5, {"description": "no name"}, {"name": 5}, {"uri": None}])
async def test_an_item_that_cannot_be_read_costs_no_other(pair: Pair, item: Any) -> None:
    peers = {"a": offering(pair, "a"), "b": offering(pair, "b")}
    peers["a"].on("tools/list", {"tools": [item]})
    peers["a"].on("resources/list", {"resources": [item]})
    async with merged(pair, peers) as host:
        assert [tool.name for tool in await host.list_tools()] == ["b.say"]
        assert [resource.uri for resource in await host.list_resources()] == ["x://b"]
    async with merged(pair, peers, finder=True) as host:
        hits = await host.call_tool("search_tools", {"query": "say"})
        assert "b.say" in hits.text


async def test_a_method_that_names_no_server_is_refused(pair: Pair) -> None:
    peers = {name: offering(pair, name) for name in ("a", "b")}
    async with merged(pair, peers) as host:
        with pytest.raises(RpcError, match="names none of several servers") as caught:
            await host.request("vendor/do")
    assert caught.value.code == -32601


async def test_the_finder_stands_for_all_tools(pair: Pair) -> None:
    peers = {name: offering(pair, name) for name in ("a", "b")}
    peers["b"].tool("subtract", description="Subtracts numbers.")(lambda: "minus")
    async with merged(pair, peers, finder=True) as host:
        names = [tool.name for tool in await host.list_tools()]
        assert names == ["search_tools", "describe_tool", "call_tool"]
        found = json.loads((await host.call_tool("search_tools", {"query": "subtract"})).text)
        assert [tool["name"] for tool in found["tools"]] == ["b.subtract"]
        described = await host.call_tool("describe_tool", {"name": "b.subtract"})
        assert json.loads(described.text)["description"] == "Subtracts numbers."
        assert (await host.call_tool("call_tool", {"name": "b.subtract"})).text == "minus"
        assert (await host.call_tool("describe_tool", {"name": "none"})).is_error
        with pytest.raises(RpcError, match="begins with no server"):
            await host.call_tool("call_tool", {"name": "none"})


async def test_a_question_passes_through_the_finder(pair: Pair) -> None:
    peer, runs = offering(pair, "a"), list[str]()

    async def call(request: ServerRequest) -> Any:
        if pair.is_server_stateless and "inputResponses" not in request.params:
            return input_required("roots/list", {})
        runs.append("run")
        answer = await pair.ask(request, "roots/list", {})
        return {"content": [{"type": "text", "text": answer["roots"][0]["uri"]}]}

    peer.on("tools/call", call)
    handlers = Handlers(roots=["file:///a"])
    async with merged(pair, {"a": peer}, finder=True, handlers=handlers) as host:
        result = await host.call_tool("call_tool", {"name": "a.say", "arguments": {}})
    assert (result.text, runs) == ("file:///a", ["run"])


async def test_one_server_alone_has_its_own_names() -> None:
    pair = Pair("handshake", "handshake")
    async with holdfast.connect(offering(pair, "one")) as client:
        served = ServedRelays({"one": SharedRelay(client)})
        server: Any = RelayServer(served.join())
        async with holdfast.connect(server) as host:
            assert [tool.name for tool in await host.list_tools()] == ["say"]
        await served.close()


async def test_a_refused_read_is_not_tried_elsewhere() -> None:
    """Only a resource that is not there may be another server's."""
    pair = Pair("handshake", "handshake")

    def refuse(request: ServerRequest) -> Any:
        raise RequestError(-32050, "not for you")

    peers = {name: offering(pair, name) for name in ("a", "b")}
    peers["a"].on("resources/read", refuse)
    async with merged(pair, peers) as host:
        with pytest.raises(RpcError, match="not for you"):
            await host.read_resource("y://secret")
    assert not [r for r in peers["b"].received if r.method == "resources/read"]


@pytest.mark.parametrize("support", ["required", "optional"])
async def test_calls_to_many_servers_are_answered_with_results_not_with_tasks(
    pair: Pair, support: str
) -> None:
    """The id of a task names no server; nothing is promised, and nothing is left to poll."""
    worker = Worker(pair, support=support)
    declared: Any = {"extensions": {TASKS: {}}} if pair.is_host_stateless else {}
    identity = Identity(capabilities=declared)
    async with merged(pair, {"a": worker.peer, "b": pair.peer()}, identity=identity) as host:
        wishes: tuple[Any, ...] = ({}, {"task": {}})
        for wish in wishes:
            answer = await host.request("tools/call", {"name": "a.work", **wish})
            assert answer["content"] == DONE["content"]
        with pytest.raises(RpcError, match="it names none of several servers"):
            await host.request("tasks/get", {"taskId": "task-1"})
    assert worker.runs == 2
