"""The client's verbs, against a scripted peer in both eras."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

import holdfast
from holdfast import Handlers, Progress, Timeouts
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, SUBSCRIPTION, VERSIONS
from holdfast.calls import Notification, State
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from holdfast.types import PromptReference, Root, SamplingResult, TextContent
from tests.rows import rows

ERAS = [pytest.param(STATELESS, id="stateless"), pytest.param(HANDSHAKE, id="handshake")]
SOON = Timeouts(request=5)


def make_peer(versions: Any = VERSIONS) -> Peer:
    peer = Peer(versions=versions, instructions="be kind")

    @peer.tool(annotations=holdfast.types.ToolAnnotations(read_only_hint=True))
    def greet(name: str) -> str:
        return f"hello {name}"

    @peer.tool()
    def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    @peer.tool()
    def fail() -> str:
        raise ValueError("no luck")

    peer.resource("mem://text", "some text", mime_type="text/plain")
    peer.resource("mem://blob", b"\x00\x01")

    @peer.prompt(description="say hello")
    def hello(name: str) -> str:
        return f"please greet {name}"

    return peer


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest) -> Peer:
    return make_peer(request.param)


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[holdfast.Client]:
    async with holdfast.connect(peer, timeouts=SOON) as client:
        yield client


# Tools


@pytest.mark.req("T1", "L2", "F1")
async def test_tools_are_listed_with_their_schemas(client: holdfast.Client) -> None:
    tools = await client.list_tools()
    assert [tool.name for tool in tools] == ["greet", "add", "fail"]
    assert tools[0].input_schema == {"type": "object"}
    assert tools[0].annotations is not None
    assert tools[0].annotations.read_only_hint


@pytest.mark.req("T2")
async def test_a_tool_gives_its_content(client: holdfast.Client) -> None:
    result = await client.call_tool("greet", {"name": "Ann"})
    assert (result.text, result.is_error) == ("hello Ann", False)
    assert isinstance(result.content[0], TextContent)
    assert result.raw["content"] == [{"type": "text", "text": "hello Ann"}]


@pytest.mark.req("T2")
async def test_a_tool_gives_structured_content(client: holdfast.Client) -> None:
    assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}


@pytest.mark.req("T2")
async def test_a_tool_that_fails_says_so_in_its_result(client: holdfast.Client) -> None:
    result = await client.call_tool("fail")
    assert result.is_error
    assert "no luck" in result.text
    with pytest.raises(holdfast.ToolError, match="no luck"):
        result.raise_for_error()


@pytest.mark.req("E3")
async def test_an_unknown_tool_can_be_the_servers_error(peer: Peer) -> None:
    unlisted = holdfast.ToolPolicy(validate="known")
    async with holdfast.connect(peer, tools=unlisted) as client:
        with pytest.raises(holdfast.RpcError) as caught:
            await client.call_tool("nope")
    assert caught.value.code == -32602
    assert "tools/call 'nope'" in str(caught.value)


@pytest.mark.req("T7")
async def test_available_tools_says_whether_there_are_any(client: holdfast.Client) -> None:
    assert await client.available_tools() is True
    async with holdfast.connect(Peer()) as empty:
        assert await empty.available_tools() is False


@pytest.mark.req("T1")
async def test_every_page_is_followed(peer: Peer, client: holdfast.Client) -> None:
    def page(incoming: ServerRequest) -> dict[str, Any]:
        number = int(incoming.params.get("cursor") or 0)
        found: dict[str, Any] = {"tools": [{"name": f"t{number}", "inputSchema": {}}]}
        return found if number == 4 else {**found, "nextCursor": str(number + 1)}

    peer.on("tools/list", page)
    assert [tool.name for tool in await client.list_tools()] == ["t0", "t1", "t2", "t3", "t4"]


@pytest.mark.req("T1")
async def test_an_empty_cursor_is_a_cursor(peer: Peer, client: holdfast.Client) -> None:
    def page(incoming: ServerRequest) -> dict[str, Any]:
        last = incoming.params.get("cursor") == ""
        return {"tools": []} if last else {"tools": [], "nextCursor": ""}

    peer.on("tools/list", page)
    assert await client.list_tools() == []
    assert len([one for one in peer.received if one.method == "tools/list"]) == 2


@pytest.mark.req("T1")
async def test_a_repeated_cursor_ends_in_an_error(peer: Peer, client: holdfast.Client) -> None:
    peer.on("tools/list", {"tools": [], "nextCursor": "again"})
    with pytest.raises(holdfast.ProtocolError, match="came twice"):
        await client.list_tools()


@pytest.mark.req("T1")
async def test_too_many_pages_end_in_an_error(peer: Peer) -> None:
    count = iter(range(1000))
    peer.on("tools/list", lambda _: {"tools": [], "nextCursor": str(next(count))})
    limits = holdfast.Limits(pages=7)
    async with holdfast.connect(peer, limits=limits) as client:
        with pytest.raises(holdfast.ProtocolError, match="more than 7 pages"):
            await client.list_tools()


@pytest.mark.req("T1")
async def test_a_malformed_tool_does_not_hide_the_others(
    peer: Peer, client: holdfast.Client, caplog: pytest.LogCaptureFixture
) -> None:
    peer.on("tools/list", {"tools": [{"name": 5}, {"name": "good"}]})
    assert [tool.name for tool in await client.list_tools()] == ["good"]
    assert "left out" in caplog.text


# Resources and prompts


@pytest.mark.req("P1")
async def test_resources_are_listed_and_read(client: holdfast.Client) -> None:
    assert [one.uri for one in await client.list_resources()] == ["mem://text", "mem://blob"]
    assert (await client.read_resource("mem://text")).text == "some text"
    blob = (await client.read_resource("mem://blob")).contents[0]
    assert isinstance(blob, holdfast.types.BlobResourceContents)
    assert blob.bytes == b"\x00\x01"
    assert await client.list_resource_templates() == []


@pytest.mark.req("E3")
async def test_a_missing_resource_is_not_found_in_either_era(client: holdfast.Client) -> None:
    with pytest.raises(holdfast.errors.ResourceNotFoundError) as caught:
        await client.read_resource("mem://nope")
    assert caught.value.code in (-32002, -32602)
    assert caught.value.data == {"uri": "mem://nope"}


@pytest.mark.req("P3")
async def test_prompts_are_listed_and_got(client: holdfast.Client) -> None:
    assert [prompt.name for prompt in await client.list_prompts()] == ["hello"]
    result = await client.get_prompt("hello", {"name": "Bo"})
    content = result.messages[0].content
    assert isinstance(content, TextContent)
    assert content.text == "please greet Bo"


@pytest.mark.req("P3")
async def test_completion_sends_what_was_typed(peer: Peer, client: holdfast.Client) -> None:
    peer.on("completion/complete", {"completion": {"values": ["Bo", "Bob"], "hasMore": True}})
    found = await client.complete(PromptReference(name="hello"), "name", "B", {"other": "x"})
    assert (found.values, found.has_more) == (["Bo", "Bob"], True)
    sent = peer.received[-1].params
    assert sent["ref"] == {"type": "ref/prompt", "name": "hello"}
    assert sent["argument"] == {"name": "name", "value": "B"}
    assert sent["context"] == {"arguments": {"other": "x"}}


@pytest.mark.req("P2")
async def test_a_subscription_brings_updates(peer: Peer, client: holdfast.Client) -> None:
    heard: asyncio.Queue[Notification] = asyncio.Queue()
    client.on_notification(heard.put_nowait, "notifications/resources/updated")
    await client.subscribe_resource("mem://text")
    peer.notify("notifications/resources/updated", {"uri": "mem://text"})
    assert (await heard.get()).params == {"uri": "mem://text"}
    await client.unsubscribe_resource("mem://text")


@pytest.mark.req("P2")
async def test_a_subscription_is_made_again_after_a_reconnect(peer: Peer) -> None:
    method = "subscriptions/listen" if peer.versions == STATELESS else "resources/subscribe"
    quick = holdfast.Backoff(first=0.01)
    async with holdfast.connect(peer, backoff=quick) as client:
        await client.subscribe_resource("mem://text")
        peer.hang_up()
        again = await peer.expect(method, 2)
        assert again.connection == 2


@pytest.mark.req("P2")
async def test_an_unacknowledged_subscription_times_out() -> None:
    peer = make_peer(STATELESS)
    peer.on("subscriptions/listen", SILENCE)
    async with holdfast.connect(peer, timeouts=Timeouts(request=0.1)) as client:
        with pytest.raises(TimeoutError, match="not acknowledged"):
            await client.subscribe_resource("mem://text")


@pytest.mark.req("P2", "L7")
@rows("turns", range(10))
async def test_a_close_ends_a_subscription_that_is_not_acknowledged(turns: int) -> None:
    peer = make_peer(STATELESS)
    peer.on("subscriptions/listen", SILENCE)
    client = holdfast.connect(peer)
    subscribing = asyncio.create_task(client.subscribe_resource("mem://text"))
    for _ in range(turns):
        await asyncio.sleep(0)
    await client.close()
    with pytest.raises(holdfast.errors.ShutdownError):
        await asyncio.wait_for(subscribing, 5)


@pytest.mark.req("P2", "R2")
async def test_subscriptions_made_at_once_are_all_made_however_the_server_confirms_them() -> None:
    peer = make_peer(STATELESS)
    uris = [f"mem://{number}" for number in range(20)]
    asked: list[ServerRequest] = []

    def listen(incoming: ServerRequest) -> Any:
        asked.append(incoming)
        return SILENCE

    peer.on("subscriptions/listen", listen)

    async def confirm_the_latest_first() -> None:
        while True:
            for _ in range(20):
                await asyncio.sleep(0)
            if asked:
                latest = asked.pop()
                params = {**latest.params, "_meta": {SUBSCRIPTION: latest.id}}
                peer.notify("notifications/subscriptions/acknowledged", params)

    async with holdfast.connect(peer, timeouts=Timeouts(request=5)) as client:
        confirming = asyncio.create_task(confirm_the_latest_first())
        await asyncio.gather(*(client.subscribe_resource(uri) for uri in uris))
        confirming.cancel()
    streams = [one for one in peer.received if one.method == "subscriptions/listen"]
    assert sorted(streams[-1].params["notifications"]["resourceSubscriptions"]) == sorted(uris)
    assert len(streams) < len(uris)


@pytest.mark.req("P2")
async def test_a_subscription_that_is_refused_after_a_reconnect_costs_no_other() -> None:
    peer = make_peer(HANDSHAKE)
    uris = ["mem://a", "mem://b", "mem://c"]
    async with holdfast.connect(peer, backoff=holdfast.Backoff(first=0.01)) as client:
        for uri in uris:
            await client.subscribe_resource(uri)
        peer.on("resources/subscribe", _refuse_the_first)
        peer.hang_up()
        await peer.expect("resources/subscribe", 6)
    asked = [one.params["uri"] for one in peer.received if one.method == "resources/subscribe"]
    assert asked == uris * 2


def _refuse_the_first(incoming: ServerRequest) -> Any:
    if incoming.params["uri"] == "mem://a":
        raise RequestError(-32002, "gone")
    return {}


@pytest.mark.req("P2")
async def test_what_is_unsubscribed_during_a_reconnect_is_not_asked_for_again() -> None:
    peer = make_peer(HANDSHAKE)
    async with holdfast.connect(peer, backoff=holdfast.Backoff(first=0.01)) as client:
        for uri in ("mem://a", "mem://b", "mem://c"):
            await client.subscribe_resource(uri)
        peer.on("resources/subscribe", SILENCE)
        peer.hang_up()
        first = await peer.expect("resources/subscribe", 4)
        await client.unsubscribe_resource("mem://b")
        peer.respond(first, {})
        last = await peer.expect("resources/subscribe", 5)
        assert last.params["uri"] == "mem://c"


@pytest.mark.req("P2")
async def test_a_resource_that_the_server_does_not_watch_is_refused() -> None:
    peer = make_peer(STATELESS)

    def listen(incoming: ServerRequest) -> Any:
        meta = {SUBSCRIPTION: incoming.id}
        params = {"_meta": meta, "notifications": {}}
        peer.notify("notifications/subscriptions/acknowledged", params)
        return SILENCE

    peer.on("subscriptions/listen", listen)
    async with holdfast.connect(peer) as client:
        with pytest.raises(holdfast.ProtocolError, match="mem://text"):
            await client.subscribe_resource("mem://text")


# Questions of the server


async def sample(request: Any) -> SamplingResult:
    await asyncio.sleep(0)
    text = TextContent(text=f"sampled {request.messages[0].content.text}")
    return SamplingResult(role="assistant", content=text, model="test")


def elicit(request: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Cy"}}


ANSWERS = Handlers(sampling=sample, elicitation=elicit, roots=["file:///work"])
MESSAGE = {"role": "user", "content": {"type": "text", "text": "this"}}
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "s": {"method": "sampling/createMessage", "params": {"messages": [MESSAGE], "maxTokens": 5}},
    "e": {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": FORM}},
    "r": {"method": "roots/list"},
}


def check_answers(answers: dict[str, Any]) -> None:
    assert answers["s"]["content"] == {"type": "text", "text": "sampled this"}
    assert answers["e"] == {"action": "accept", "content": {"name": "Cy", "size": 3}}
    assert answers["r"] == {"roots": [{"uri": "file:///work"}]}


@pytest.mark.req("P4")
async def test_questions_are_answered_as_requests_in_the_handshake_era() -> None:
    peer = make_peer(HANDSHAKE)
    async with holdfast.connect(peer, handlers=ANSWERS) as client:
        await client.open()
        answers = {
            key: await peer.ask(question["method"], question.get("params"))
            for key, question in QUESTIONS.items()
        }
    check_answers(answers)


@pytest.mark.req("P4")
async def test_questions_are_answered_in_rounds_in_the_stateless_era() -> None:
    peer = make_peer(STATELESS)
    state = 'odd "state" \\ \u2028 ü'

    def call(incoming: ServerRequest) -> dict[str, Any]:
        if "inputResponses" not in incoming.params:
            return {
                "resultType": "input_required",
                "inputRequests": QUESTIONS,
                "requestState": state,
            }
        return {"content": [], "structuredContent": incoming.params}

    peer.on("tools/call", call)
    async with holdfast.connect(peer, handlers=ANSWERS) as client:
        result = await client.call_tool("greet", {"name": "x"})
    assert result.structured["requestState"] == state
    assert result.structured["arguments"] == {"name": "x"}
    check_answers(result.structured["inputResponses"])
    ids = [one.id for one in peer.received if one.method == "tools/call"]
    assert len(set(ids)) == 2


@pytest.mark.req("P4")
async def test_endless_rounds_end_in_an_error() -> None:
    peer = make_peer(STATELESS)
    peer.on("tools/call", {"resultType": "input_required", "requestState": "x"})
    async with holdfast.connect(peer, limits=holdfast.Limits(rounds=4)) as client:
        with pytest.raises(holdfast.ProtocolError, match="4 rounds"):
            await client.call_tool("fail")
        peer.on("prompts/get", {"resultType": "input_required", "requestState": "x"})
        with pytest.raises(holdfast.ProtocolError, match="4 rounds") as caught:
            await client.get_prompt("hello", {"name": "x"})
        assert caught.value.outcome_unknown


@pytest.mark.req("P4")
async def test_only_what_has_a_handler_is_declared(peer: Peer) -> None:
    async with holdfast.connect(peer, handlers=Handlers(roots=["file:///x"])) as client:
        await client.open()
    first = peer.received[0]
    if first.stateless:
        key = "io.modelcontextprotocol/clientCapabilities"
        assert first.meta[key] == {"roots": {}}
    elif first.method == "initialize":
        assert first.params["capabilities"] == {"roots": {"listChanged": True}}


@pytest.mark.req("P4", "P7")
async def test_a_question_without_a_handler_is_refused() -> None:
    peer = make_peer(HANDSHAKE)
    async with holdfast.connect(peer) as client:
        await client.open()
        for method in ("sampling/createMessage", "elicitation/create", "no/such/method"):
            with pytest.raises(RequestError, match=method) as caught:
                await peer.ask(method)
            assert caught.value.code == -32601
        assert await peer.ask("ping") == {}


@pytest.mark.req("P4")
async def test_an_undeclared_question_ends_the_call_in_a_protocol_error() -> None:
    peer = make_peer(STATELESS)
    question = {"q": {"method": "roots/list"}}
    peer.on("tools/call", {"resultType": "input_required", "inputRequests": question})
    async with holdfast.connect(peer) as client:
        with pytest.raises(holdfast.ProtocolError, match="roots/list"):
            await client.call_tool("fail")


@pytest.mark.req("P4")
async def test_the_handlers_can_be_run_locally() -> None:
    async with holdfast.connect(Peer(), handlers=ANSWERS) as client:
        message = await client.create_message({"messages": [MESSAGE], "maxTokens": 1})
        assert message.text == "sampled this"
        assert await client.list_roots() == [Root(uri="file:///work")]
        assert client.state is State.NEW


@pytest.mark.req("R12")
async def test_a_handler_may_call_the_client_back() -> None:
    peer = make_peer(HANDSHAKE)
    clients: list[holdfast.Client] = []

    async def elicit(request: Any) -> dict[str, Any]:
        text = (await clients[0].call_tool("greet", {"name": "me"})).text
        return {"action": "accept", "content": {"text": text}}

    async with holdfast.connect(peer, handlers=Handlers(elicitation=elicit)) as client:
        clients.append(client)
        await client.open()
        asked = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        answer = await peer.ask("elicitation/create", asked)
    assert answer["content"] == {"text": "hello me"}


@pytest.mark.req("R12")
async def test_a_handler_that_raises_hurts_only_itself() -> None:
    peer = make_peer(HANDSHAKE)

    def boom() -> list[str]:
        raise RuntimeError("boom")

    async with holdfast.connect(peer, handlers=Handlers(roots=boom)) as client:
        await client.open()
        with pytest.raises(RequestError, match="boom"):
            await peer.ask("roots/list")
        await client.ping()


@pytest.mark.req("R12")
async def test_a_blocked_handler_does_not_hold_up_answers() -> None:
    peer = make_peer(HANDSHAKE)
    release = asyncio.Event()

    async def stuck(_: Any) -> None:
        await release.wait()

    async with holdfast.connect(peer, handlers=Handlers(notification=stuck)) as client:
        await client.open()
        for _ in range(5000):
            peer.notify("notifications/message", {"level": "info", "data": "x"})
        assert (await client.call_tool("greet", {"name": "x"})).text == "hello x"
        release.set()


@pytest.mark.req("R12", "P7")
async def test_a_server_may_take_its_question_back() -> None:
    peer = make_peer(HANDSHAKE)
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> dict[str, Any]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with holdfast.connect(peer, handlers=Handlers(elicitation=slow)) as client:
        await client.open()
        asked = {"message": "?", "requestedSchema": {}}
        asking = asyncio.ensure_future(peer.ask("elicitation/create", asked))
        await begun.wait()
        peer.notify("notifications/cancelled", {"requestId": "server-1"})
        await ended.wait()
        asking.cancel()


# Progress, logging, notifications


@pytest.mark.req("P5")
async def test_progress_reaches_the_caller(peer: Peer, client: holdfast.Client) -> None:
    def call(incoming: ServerRequest) -> dict[str, Any]:
        for number in (1, 2, 3):
            peer.progress(incoming, number, total=3, message=f"step {number}")
        return {"content": []}

    peer.on("tools/call", call)
    seen: list[Progress] = []
    await client.call_tool("fail", on_progress=seen.append)
    assert [(one.progress, one.total, one.message) for one in seen] == [
        (1, 3, "step 1"),
        (2, 3, "step 2"),
        (3, 3, "step 3"),
    ]


@pytest.mark.req("P5")
async def test_progress_can_be_heard_for_every_call(peer: Peer, client: holdfast.Client) -> None:
    def call(incoming: ServerRequest) -> dict[str, Any]:
        peer.progress(incoming, 1)
        return {"content": []}

    peer.on("tools/call", call)
    heard: asyncio.Queue[float] = asyncio.Queue()

    async def hear(progress: Progress) -> None:
        await heard.put(progress.progress)

    stop = client.on_progress(hear)
    await client.call_tool("fail")
    assert await heard.get() == 1
    stop()
    await client.call_tool("fail")
    await client.ping()
    assert heard.empty()


@pytest.mark.req("P5", "R3")
async def test_tools_are_always_asked_for_progress_and_reads_only_if_heard(
    peer: Peer, client: holdfast.Client
) -> None:
    """Progress keeps a slow tool alive, whether or not anybody listens to it."""
    await client.call_tool("greet", {"name": "x"})
    assert peer.received[-1].meta["progressToken"] == peer.received[-1].id
    await client.call_tool("greet", {"name": "x"}, meta={"own": 1})
    assert peer.received[-1].meta["progressToken"] == peer.received[-1].id
    assert peer.received[-1].meta["own"] == 1
    await client.list_resources()
    assert "progressToken" not in peer.received[-1].meta


@pytest.mark.req("P5")
async def test_a_function_that_returns_an_awaitable_is_awaited(
    peer: Peer, client: holdfast.Client
) -> None:
    def call(incoming: ServerRequest) -> dict[str, Any]:
        peer.progress(incoming, 1)
        return {"content": []}

    peer.on("tools/call", call)
    heard: asyncio.Queue[Progress] = asyncio.Queue()
    await client.call_tool("fail", on_progress=lambda progress: heard.put(progress))  # noqa: PLW0108  (a plain function that gives an awaitable)
    assert (await heard.get()).progress == 1


@pytest.mark.req("P5", "P6")
async def test_a_crashing_progress_handler_is_logged(
    peer: Peer, client: holdfast.Client, caplog: pytest.LogCaptureFixture
) -> None:
    def call(incoming: ServerRequest) -> dict[str, Any]:
        peer.progress(incoming, 1)
        return {"content": []}

    def boom(_: Progress) -> None:
        raise RuntimeError("boom")

    peer.on("tools/call", call)
    await client.call_tool("fail", on_progress=boom)
    assert "boom" in caplog.text


@pytest.mark.req("P5")
async def test_the_log_level_holds_over_a_reconnect(peer: Peer) -> None:
    async with holdfast.connect(peer, backoff=holdfast.Backoff(first=0.01)) as client:
        await client.set_log_level("warning")
        peer.hang_up()
        await peer.expect("server/discover" if peer.versions == STATELESS else "initialize", 2)
        await client.wait_ready(5)
        await client.call_tool("greet", {"name": "x"})
        if peer.versions == STATELESS:
            assert peer.received[-1].meta["io.modelcontextprotocol/logLevel"] == "warning"
        else:
            again = await peer.expect("logging/setLevel", 2)
            assert again.params == {"level": "warning"}


@pytest.mark.req("P5")
async def test_an_unknown_log_level_is_refused_by_name(client: holdfast.Client) -> None:
    with pytest.raises(holdfast.ValidationError, match=r"'loud'.*warning"):
        await client.set_log_level("loud")


@pytest.mark.req("P5")
async def test_ping_uses_what_the_era_has(peer: Peer, client: holdfast.Client) -> None:
    await client.ping()
    expected = "server/discover" if peer.versions == STATELESS else "ping"
    assert peer.received[-1].method == expected


@pytest.mark.req("P6")
async def test_notifications_arrive_in_order_and_a_crash_is_passed_over(
    peer: Peer, client: holdfast.Client, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []
    done = asyncio.Event()

    async def handler(notification: Notification) -> None:
        number = notification.params["data"]
        await asyncio.sleep(0)
        heard.append(number)
        if number == 3:
            raise RuntimeError("three")
        if number == 9:
            done.set()

    client.on_notification(handler, "notifications/message")
    await client.open()
    for number in range(10):
        peer.notify("notifications/message", {"level": "info", "data": number})
    await done.wait()
    assert heard == list(range(10))
    assert "three" in caplog.text


@pytest.mark.req("P6", "R8")
async def test_what_the_mailbox_cannot_hold_is_dropped_oldest_first(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    release, heard = asyncio.Event(), list[int]()
    last = asyncio.Event()

    async def slow(notification: Notification) -> None:
        await release.wait()
        heard.append(notification.params["data"])
        if heard[-1] == 99:
            last.set()

    limits = holdfast.Limits(mailbox=10)
    async with holdfast.connect(peer, limits=limits) as client:
        client.on_notification(slow, "notifications/message")
        await client.open()
        for number in range(100):
            peer.notify("notifications/message", {"level": "info", "data": number})
        await client.ping()
        release.set()
        await last.wait()
    assert heard[-10:] == list(range(90, 100))
    assert len(heard) <= 11
    assert "dropped" in caplog.text


@pytest.mark.req("P6")
async def test_a_handler_of_one_method_hears_no_other(peer: Peer, client: holdfast.Client) -> None:
    one: list[str] = []
    every: list[str] = []
    client.on_notification(lambda heard: one.append(heard.method), "notifications/message")
    client.on_notification(lambda heard: every.append(heard.method))
    await client.open()
    for method in ("tools/list_changed", "message", "prompts/list_changed"):
        peer.notify(f"notifications/{method}", {"level": "info", "data": 1})
    while len(every) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert one == ["notifications/message"]


@pytest.mark.req("P6")
async def test_a_removed_handler_hears_nothing_more(peer: Peer, client: holdfast.Client) -> None:
    heard: list[Any] = []
    remove = client.on_notification(heard.append)
    await client.open()
    remove()
    remove()
    peer.notify("notifications/message", {"level": "info", "data": 1})
    await client.ping()
    assert heard == []


@pytest.mark.req("P2")
async def test_list_changes_are_asked_for_where_they_must_be() -> None:
    peer = make_peer(STATELESS)
    heard: asyncio.Queue[Notification] = asyncio.Queue()
    async with holdfast.connect(peer) as client:
        await client.open()
        client.on_notification(heard.put_nowait, "notifications/tools/list_changed")
        listen = await peer.expect("subscriptions/listen")
        assert listen.params["notifications"] == {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
        }
        peer.notify("notifications/tools/list_changed")
        assert (await heard.get()).method == "notifications/tools/list_changed"


# What is known


@pytest.mark.req("L10")
async def test_the_server_introduces_itself(peer: Peer, client: holdfast.Client) -> None:
    assert client.server_info is None
    assert client.server_capabilities is None
    assert client.protocol_version is None
    assert not client.is_connected
    await client.wait_ready(5)
    assert client.is_connected
    assert client.server_info is not None
    assert (client.server_info.name, client.server_info.version) == ("peer", "1.0.0")
    assert client.server_capabilities is not None
    assert client.server_capabilities.tools is not None
    assert client.protocol_version == peer.versions[0]
    assert client.instructions == "be kind"


@pytest.mark.req("L3")
@rows("version", VERSIONS)
async def test_a_pin_is_obeyed(version: str) -> None:
    async with holdfast.connect(make_peer(), protocol=version) as client:
        assert (await client.call_tool("greet", {"name": "x"})).text == "hello x"
        assert client.protocol_version == version


@pytest.mark.req("R4", "R2")
@pytest.mark.parametrize("pin", [None, STATELESS[0], HANDSHAKE[0]])
async def test_a_handshake_whose_answer_cannot_be_read_fails_at_once(pin: str | None) -> None:
    peer = make_peer()

    def unreadable(incoming: ServerRequest) -> Any:
        peer.write(b"""{"jsonrpc":"2.0","id":%d,"result":{"odd":NaN}}\n""" % int(incoming.id or 0))
        return SILENCE

    peer.on("initialize", unreadable)
    peer.on("server/discover", unreadable)
    async with holdfast.connect(peer, protocol=pin, timeouts=Timeouts(handshake=60)) as client:
        with pytest.raises(holdfast.HoldfastError, match="the answer cannot be read: not JSON"):
            await client.open()


@pytest.mark.req("L3")
async def test_an_unknown_pin_is_refused_at_once() -> None:
    with pytest.raises(holdfast.ValidationError, match="1999-01-01"):
        holdfast.connect(Peer(), protocol="1999-01-01")


@pytest.mark.req("L3")
async def test_a_reconnect_does_not_probe_again() -> None:
    peer = make_peer(HANDSHAKE)
    async with holdfast.connect(peer, backoff=holdfast.Backoff(first=0.01)) as client:
        await client.open()
        peer.hang_up()
        await peer.expect("initialize", 2)
    probes = [one for one in peer.received if one.method == "server/discover"]
    assert len(probes) == 1


async def test_any_request_can_be_sent(peer: Peer, client: holdfast.Client) -> None:
    peer.on("x/custom", lambda incoming: {"got": incoming.params["a"]})
    found = await client.request("x/custom", {"a": 1})
    assert found["got"] == 1


async def test_meta_is_passed_on(peer: Peer, client: holdfast.Client) -> None:
    await client.call_tool("greet", {"name": "x"}, meta={"example.com/trace": "7"})
    assert peer.received[-1].meta["example.com/trace"] == "7"


@pytest.mark.req("R3")
async def test_a_deadline_that_makes_no_sense_is_refused(client: holdfast.Client) -> None:
    for bad in (0, -1, float("nan"), "5", True):
        with pytest.raises(holdfast.ValidationError, match="timeout="):
            await client.call_tool("greet", timeout=bad)  # type: ignore[arg-type]


@pytest.mark.req("T5")
async def test_arguments_that_are_not_json_are_refused_unsent(
    peer: Peer, client: holdfast.Client
) -> None:
    await client.list_tools()
    before = len(peer.received)
    with pytest.raises(holdfast.ValidationError, match="JSON"):
        await client.call_tool("greet", {"name": object()})
    assert len(peer.received) == before


# Arguments of the wrong type


@pytest.mark.req("T5")
@rows(
    ("verb", "arguments"),
    [
        (verb, arguments)
        for wrong in (7, b"bytes", [], {"a": 1}, object())
        for verb, arguments in [
            ("call_tool", {"name": wrong}),
            ("invoke_tool", {"name": wrong}),
            ("start_tool", {"name": wrong}),
            ("get_prompt", {"name": wrong}),
            ("read_resource", {"uri": wrong}),
            ("subscribe_resource", {"uri": wrong}),
            ("unsubscribe_resource", {"uri": wrong}),
            ("request", {"method": wrong}),
            ("resume", {"pending": wrong, "answers": {}}),
            ("read_skill", {"skill": wrong}),
            ("perform", {"toolset": wrong, "call": {}}),
            ("toolset", {"shape": wrong}),
            ("on_notification", {"handler": wrong}),
            ("on_log", {"handler": wrong}),
            ("on_progress", {"handler": wrong}),
            ("guard_tools", {"check": wrong}),
            ("guard_skills", {"check": wrong}),
        ]
    ]
    + [("request", {"method": "ping", "params": wrong}) for wrong in (7, b"x", "text", ["a"])]
    + [("get_prompt", {"name": "hello", "arguments": wrong}) for wrong in (7, "text", ["a"])]
    + [
        (verb, {"name": "greet", option: 7})
        for verb in ("call_tool", "invoke_tool", "start_tool")
        for option in ("meta", "on_progress", "on_task", "task")
    ]
    + [("read_skill", {"skill": "skill://one"}), ("on_log", {"handler": None})],
)
async def test_an_argument_of_the_wrong_type_is_refused_by_name(
    verb: str, arguments: dict[str, Any]
) -> None:
    async with holdfast.connect(make_peer()) as client:
        name = list(arguments)[0 if "pending" in arguments or "toolset" in arguments else -1]
        with pytest.raises(holdfast.ValidationError, match=f"{name}.* must be "):
            made = getattr(client, verb)(**arguments)
            done = await made if inspect.isawaitable(made) else made
            if isinstance(done, holdfast.calls.Invocation) and done.exception is not None:
                raise done.exception
        assert await client.available_tools()
