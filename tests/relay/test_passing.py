"""What must pass through a relay, in the four pairs of eras."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import holdfast
from holdfast import Handlers, ToolPolicy, types
from holdfast._core.boundary import Call
from holdfast._core.eras.revisions import STATELESS, VERSIONS
from holdfast.errors import DriftError, ResourceNotFoundError, RpcError
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.relay.rig import Pair, RelayServer, input_required

pytestmark = pytest.mark.req("X2")


@pytest.fixture(params=["handshake", "stateless"])
def host_era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["handshake", "stateless"])
def server_era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pair(host_era: str, server_era: str) -> Pair:
    return Pair(host_era, server_era)


def calls(peer: Peer) -> list[ServerRequest]:
    return [request for request in peer.received if request.method == "tools/call"]


def answering(pair: Pair, result: Any = None, **options: Any) -> Peer:
    peer = pair.peer(**options)

    @peer.tool(meta={"vendor/x": 1}, title="Adds")
    def add(a: int = 0) -> str:
        return str(a)

    if result is not None:
        peer.on("tools/call", result)
    return peer


async def test_all_pages_of_a_list_pass(pair: Pair) -> None:
    peer = pair.peer()
    for number in range(7):
        peer.tool(f"tool-{number}")(lambda: "")
    peer.catalog.page_size = 2
    async with pair.connect(peer) as host:
        assert [tool.name for tool in await host.list_tools()] == [f"tool-{n}" for n in range(7)]


async def test_the_metadata_of_a_tool_passes(pair: Pair) -> None:
    async with pair.connect(answering(pair)) as host:
        (tool,) = await host.list_tools()
    assert (tool.title, tool.meta) == ("Adds", {"vendor/x": 1})


async def test_the_server_is_who_it_is(pair: Pair) -> None:
    peer = answering(pair, instructions="Add.", capabilities={"tools": {}, "vendor": {"a": 1}})
    async with pair.connect(peer) as host:
        await host.open()
        assert host.server_info is not None
        assert host.server_info.name == "real"
        assert host.instructions == "Add."
        assert host._facts is not None
        assert msgspec.json.decode(host._facts.capabilities) == {"tools": {}, "vendor": {"a": 1}}


async def test_arguments_and_meta_pass(pair: Pair) -> None:
    peer = answering(pair)
    async with pair.connect(peer) as host:
        meta = {"traceparent": "00-1"}
        params = {"name": "add", "arguments": {"a": 5, "z": "é"}, "later": [1]}
        peer.on("tools/call", {"content": []})
        call = Call("tools/call", params, meta, progress=True)
        await host._requester.forward(call, on_progress=lambda step: None)
    (request,) = calls(peer)
    sent = dict(request.params)
    sent_meta = sent.pop("_meta")
    assert sent == {"name": "add", "arguments": {"a": 5, "z": "é"}, "later": [1]}
    assert sent_meta["traceparent"] == "00-1"
    assert "progressToken" in sent_meta
    hop = [key for key in sent_meta if key.startswith("io.modelcontextprotocol/")]
    assert bool(hop) == pair.is_server_stateless
    if hop:
        assert sent_meta["io.modelcontextprotocol/clientInfo"]["name"] == "holdfast"


async def test_progress_passes(pair: Pair) -> None:
    def call(request: ServerRequest) -> Any:
        request.progress(1, total=2, message="half")
        return {"content": []}

    steps: list[types.Progress] = []
    async with pair.connect(answering(pair, call)) as host:
        await host.call_tool("add", on_progress=steps.append)
    assert [(step.progress, step.total, step.message) for step in steps] == [(1, 2, "half")]


async def test_a_cancellation_passes(pair: Pair) -> None:
    peer = answering(pair)
    peer.on("tools/call", SILENCE)
    async with pair.connect(peer) as host:
        call = asyncio.ensure_future(host.call_tool("add"))
        await peer.expect("tools/call")
        call.cancel()
        await peer.expect("notifications/cancelled")
        peer.on("tools/call", {"content": []})
        await host.call_tool("add")


ASKED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "elicitation/create": (
        {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
        {"elicitation": lambda question: {"action": "accept", "content": {"n": question.message}}},
        {"action": "accept", "content": {"n": "Who?"}},
    ),
    "sampling/createMessage": (
        {"messages": [], "maxTokens": 5},
        {"sampling": lambda question: "said"},
        {
            "role": "assistant",
            "content": {"type": "text", "text": "said"},
            "model": "unknown",
        },
    ),
    "roots/list": ({}, {"roots": ["file:///a"]}, {"roots": [{"uri": "file:///a"}]}),
}


@pytest.mark.parametrize("method", ASKED)
async def test_a_question_reaches_the_host_and_the_call_runs_once(pair: Pair, method: str) -> None:
    params, handlers, expected = ASKED[method]
    runs, answers = list[str](), list[Any]()

    async def call(request: ServerRequest) -> Any:
        if pair.is_server_stateless and "inputResponses" not in request.params:
            runs.append("run")
            return input_required(method, params)
        if not pair.is_server_stateless:
            runs.append("run")
        answers.append(await pair.ask(request, method, params))
        return {"content": [{"type": "text", "text": "done"}]}

    async with pair.connect(answering(pair, call), handlers=Handlers(**handlers)) as host:
        result = await host.call_tool("add")
    assert result.text == "done"
    assert runs == ["run"]
    assert answers == [expected]


async def test_several_rounds_of_questions_are_of_one_call(host_era: str) -> None:
    pair = Pair(host_era, "handshake")
    runs: list[str] = []

    async def call(request: ServerRequest) -> Any:
        runs.append("run")
        for _ in range(3):
            await request.session.ask("roots/list", {})
        request.progress(1)
        return {"content": []}

    steps: list[types.Progress] = []
    handlers = Handlers(roots=["file:///a"])
    async with pair.connect(answering(pair, call), handlers=handlers) as host:
        await host.call_tool("add", on_progress=steps.append)
    assert (runs, len(steps)) == (["run"], 1)


@pytest.mark.parametrize("code", [-32050, -32603])
async def test_an_error_passes_as_it_is(pair: Pair, code: int) -> None:
    def refuse(request: ServerRequest) -> Any:
        raise RequestError(code, "the database sleeps", {"until": 7})

    async with pair.connect(answering(pair, refuse)) as host:
        with pytest.raises(RpcError) as caught:
            await host.call_tool("add")
    assert (caught.value.code, caught.value.data) == (code, {"until": 7})
    assert caught.value.server_message == "the database sleeps"


async def test_unknown_content_passes(pair: Pair) -> None:
    result = {"content": [{"type": "hologram", "x": 1}], "later": {"y": 2}, "_meta": {"v/z": 3}}
    async with pair.connect(answering(pair, result)) as host:
        passed = await host.request("tools/call", {"name": "add", "arguments": {}})
    assert passed["content"] == result["content"]
    assert passed["later"] == {"y": 2}
    assert passed["_meta"]["v/z"] == 3


async def test_log_messages_pass_from_the_level_that_the_host_sets(pair: Pair) -> None:
    def call(request: ServerRequest) -> Any:
        request.log("info", "quiet")
        request.log("error", {"loud": 1}, "db")
        return {"content": []}

    messages: asyncio.Queue[types.LogMessage] = asyncio.Queue()
    async with pair.connect(answering(pair, call)) as host:
        host.on_log(messages.put_nowait)
        await host.set_log_level("warning")
        await host.call_tool("add")
        message = await messages.get()
        assert (message.level, message.data, message.logger) == ("error", {"loud": 1}, "db")
        await host.set_log_level("info")
        await host.call_tool("add")
        assert (await messages.get()).data == "quiet"


@pytest.mark.parametrize("what", ["tools", "prompts", "resources"])
async def test_list_changes_pass(pair: Pair, what: str) -> None:
    changes: asyncio.Queue[holdfast.calls.Notification] = asyncio.Queue()
    peer = answering(pair, capabilities={what: {"listChanged": True}})
    method = f"notifications/{what}/list_changed"
    async with pair.connect(peer) as host:
        host.on_notification(changes.put_nowait, method)
        await host.open()
        await settled(pair, peer, host)
        peer._server.announce(method)
        assert (await changes.get()).method == method


async def settled(pair: Pair, peer: Peer, host: holdfast.Client) -> None:
    """Wait until streams of changes are open on both sides."""
    if pair.is_server_stateless:
        await peer.expect("subscriptions/listen")
    if pair.is_host_stateless:
        stream = host._unsolicited.subscriptions
        while not stream._request:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await host.ping()


async def test_updates_of_a_subscribed_resource_pass_and_end(pair: Pair) -> None:
    updates: asyncio.Queue[str] = asyncio.Queue()
    peer = answering(pair)
    peer.resource("x://a", "1")
    peer.resource("x://b", "1")
    updated = "notifications/resources/updated"
    async with pair.connect(peer) as host:
        host.on_notification(lambda update: updates.put_nowait(update.params["uri"]), updated)
        await host.subscribe_resource("x://a")
        peer._server.announce(updated, {"uri": "x://b"})
        peer._server.announce(updated, {"uri": "x://a"})
        assert await updates.get() == "x://a"
        await host.unsubscribe_resource("x://a")
        if pair.is_server_stateless:
            await peer.expect("subscriptions/listen", 3)
        else:
            await peer.expect("resources/unsubscribe")


async def test_resources_pass_and_missing_ones_are_not_found(pair: Pair) -> None:
    peer = answering(pair)
    peer.resource("x://a", b"\x00\xff")
    async with pair.connect(peer) as host:
        (content,) = (await host.read_resource("x://a")).contents
        assert content.raw["blob"] == "AP8="
        assert [item.uri for item in await host.list_resources()] == ["x://a"]
        if pair.is_host_stateless == pair.is_server_stateless:
            with pytest.raises(ResourceNotFoundError):
                await host.read_resource("x://none")
        with pytest.raises(RpcError, match="not found") as caught:
            await host.read_resource("x://none")
    assert caught.value.code == (-32602 if pair.is_server_stateless else -32002)


async def test_prompts_and_completions_pass(pair: Pair) -> None:
    peer = answering(pair)

    @peer.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}"

    peer.on("completion/complete", {"completion": {"values": ["Ada"], "total": 1}})
    async with pair.connect(peer) as host:
        assert [prompt.name for prompt in await host.list_prompts()] == ["greet"]
        message = (await host.get_prompt("greet", {"name": "Ada"})).messages[0]
        assert getattr(message.content, "text", "") == "Greet Ada"
        reference = types.PromptReference(name="greet")
        assert (await host.complete(reference, "name", "A")).values == ["Ada"]


async def test_methods_and_notifications_that_nobody_knows_pass(pair: Pair) -> None:
    peer = answering(pair)
    peer.on("vendor/do", lambda request: {"echo": request.params["x"]})
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with pair.connect(peer) as host:
        assert (await host.request("vendor/do", {"x": [1]}))["echo"] == [1]
        with pytest.raises(RpcError) as caught:
            await host.request("vendor/none")
        assert caught.value.code == -32601
        host.on_notification(heard.put_nowait, "notifications/vendor")
        peer.notify("notifications/vendor", {"n": 1})
        assert (await heard.get()).params == {"n": 1}
        host._requester.driver.notify("notifications/vendor/up", Raw(b'{"n":2}'))
        assert (await peer.expect("notifications/vendor/up")).params == {"n": 2}


async def test_the_host_s_capabilities_are_declared(pair: Pair) -> None:
    peer = answering(pair)
    declared = {"elicitation": {"url": {}}, "experimental": {"v": {"x": 1}}}
    identity = holdfast.policies.Identity(capabilities=declared)
    async with pair.connect(peer, identity=identity) as host:
        await host.call_tool("add")
    (request,) = calls(peer)
    era = request.era
    assert era.capabilities == declared


async def test_a_host_that_offers_nothing_is_not_asked(host_era: str) -> None:
    pair = Pair(host_era, "handshake")

    async def call(request: ServerRequest) -> Any:
        with pytest.raises(RequestError) as caught:
            await request.session.ask("roots/list", {})
        return {"content": [{"type": "text", "text": str(caught.value.code)}]}

    async with pair.connect(answering(pair, call)) as host:
        assert (await host.call_tool("add")).text == "-32601"


async def test_two_calls_are_made_on_one_connection(pair: Pair) -> None:
    peer = answering(pair)
    async with pair.connect(peer) as host:
        await asyncio.gather(host.call_tool("add"), host.call_tool("add"))
        await host.call_tool("add")
    assert {request.connection for request in calls(peer)} == {peer.connections}


async def test_a_death_is_told_once_and_the_next_call_works(pair: Pair) -> None:
    peer = answering(pair)
    peer.on("tools/call", SILENCE)
    async with pair.connect(peer, upstream={"when_down": "wait"}) as host:
        call = asyncio.ensure_future(host.call_tool("add"))
        await peer.expect("tools/call")
        peer.hang_up()
        with pytest.raises(RpcError) as caught:
            await call
        assert caught.value.code == -32000
        assert caught.value.data == {"kind": "transport", "outcomeUnknown": True}
        assert len(calls(peer)) == 1
        del peer._server.overrides["tools/call"]
        assert (await host.call_tool("add", {"a": 3})).text == "3"


async def test_a_timeout_of_the_relay_names_its_kind(pair: Pair) -> None:
    peer = answering(pair)
    peer.on("tools/call", SILENCE)
    short = {"timeouts": holdfast.Timeouts(total=0.05)}
    async with pair.connect(peer, upstream=short) as host:
        with pytest.raises(RpcError) as caught:
            await host.call_tool("add")
    assert caught.value.code == -32001
    assert caught.value.data == {"kind": "timeout", "outcomeUnknown": True}


async def test_denied_tools_are_neither_listed_nor_called(pair: Pair) -> None:
    peer = answering(pair)
    peer.tool("drop")(lambda: "dropped")
    async with pair.connect(peer, upstream={"tools": ToolPolicy(deny=["drop"])}) as host:
        assert [tool.name for tool in await host.list_tools()] == ["add"]
        with pytest.raises(RpcError, match="disabled") as caught:
            await host.request("tools/call", {"name": "drop"})
        assert caught.value.data == {"kind": "validation", "outcomeUnknown": False}
    assert not calls(peer)


@pytest.mark.parametrize("name", [["add"], 5, None])
async def test_a_rule_holds_for_what_is_no_name(pair: Pair, name: Any) -> None:
    peer = pair.peer()
    peer.on("tools/call", {"content": []})
    async with pair.connect(peer, upstream={"tools": ToolPolicy(deny=["add"])}) as host:
        with pytest.raises(RpcError, match="name must be a string"):
            await host.request("tools/call", {"name": name})
    assert not calls(peer)


async def test_a_guard_of_the_client_holds_for_the_host(pair: Pair) -> None:
    peer = answering(pair)

    def check(tools: Any, instructions: str | None) -> None:
        raise DriftError("not these tools")

    async with holdfast.connect(peer) as client:
        client.guard_tools(check)
        server: Any = RelayServer(SharedRelay(client).join())
        async with holdfast.connect(server, protocol=pair.host) as host:
            for method in ("tools/list", "tools/call"):
                with pytest.raises(RpcError, match="not these tools") as caught:
                    await host.request(method, {"name": "add"})
                assert caught.value.data["kind"] == "drift"
    assert not calls(peer)


@pytest.mark.parametrize("server", VERSIONS)
@pytest.mark.parametrize("host", VERSIONS)
async def test_every_revision_reaches_every_other(host: str, server: str) -> None:
    pair = Pair("handshake", "stateless" if server in STATELESS else "handshake")
    pair.host, pair.versions = host, (server,)

    async def call(request: ServerRequest) -> Any:
        if pair.is_server_stateless and "inputResponses" not in request.params:
            return input_required("roots/list", {})
        return {"content": [], "structuredContent": await pair.ask(request, "roots/list", {})}

    handlers = Handlers(roots=["file:///a"])
    async with pair.connect(answering(pair, call), handlers=handlers) as client:
        await client.call_tool("add")
        assert client.protocol_version == host
