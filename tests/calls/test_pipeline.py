"""One tool call: what is checked before it, its one deadline, and its one outcome."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from msgspec import Raw

import holdfast
from holdfast import Backoff, Cache, Handlers, Limits, Observability, Timeouts, ToolPolicy
from holdfast._core.boundary import Traits
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.transports.memory import Memory
from holdfast._core.wire import jsonrpc
from holdfast.client import Client
from holdfast.policies import Policy
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from holdfast.types import PromptReference
from tests.rows import rows
from tests.skipping import ends_within, skip

LONG = Timeouts(request=30, handshake=30)
NUMBER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
CHANGED = "notifications/tools/list_changed"

CHECKED = ToolPolicy(validate="always")
REQUIRED = ToolPolicy(validate="required")

eras = pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE], ids=["stateless", "handshake"])


def shop(versions: tuple[str, ...] = STATELESS) -> Peer:
    peer = Peer(versions=versions)

    @peer.tool(input_schema=NUMBER)
    def double(a: int) -> str:
        return str(2 * a)

    @peer.tool()
    def silent() -> Any:
        return SILENCE

    peer.resource("mem://a", "text")

    @peer.prompt()
    def poem() -> str:
        return "roses"

    return peer


def asked(peer: Peer, method: str) -> int:
    return sum(one.method == method for one in peer.received)


def question(number: int) -> bytes:
    """A request of the server's own, as bytes."""
    params = {"message": "?", "requestedSchema": {"type": "object"}}
    return jsonrpc.request(number, "elicitation/create", params)


# The same refusal, whatever ran before


async def nothing(client: holdfast.Client, peer: Peer) -> None: ...


async def listed(client: holdfast.Client, peer: Peer) -> None:
    await client.list_tools()


async def changed(client: holdfast.Client, peer: Peer) -> None:
    await client.list_tools()
    peer.notify(CHANGED)
    await client.ping()


async def reconnected(client: holdfast.Client, peer: Peer) -> None:
    await client.list_tools()
    lost = asyncio.Event()
    client.events.subscribe(lambda _: lost.set(), "connection.transition")
    peer.hang_up()
    await lost.wait()
    await client.wait_ready(5)


@eras
@pytest.mark.req("T4", "T5")
@pytest.mark.parametrize("before", [nothing, listed, changed, reconnected])
async def test_a_mistake_has_one_outcome_whatever_ran_before(
    versions: tuple[str, ...], before: Callable[..., Any]
) -> None:
    peer = shop(versions)
    async with holdfast.connect(
        peer, timeouts=LONG, backoff=Backoff(first=0.01), tools=CHECKED
    ) as client:
        await before(client, peer)
        with pytest.raises(holdfast.ValidationError, match="Did you mean 'double'"):
            await client.call_tool("duoble", {"a": 1})
        with pytest.raises(holdfast.ValidationError, match="'a' is required"):
            await client.call_tool("double", {})
        assert (await client.call_tool("double", {"a": 2})).text == "4"
    assert asked(peer, "tools/call") == 1


@eras
@pytest.mark.req("T4")
async def test_the_list_is_fetched_once_for_many_first_calls(versions: tuple[str, ...]) -> None:
    peer = shop(versions)
    async with holdfast.connect(peer, timeouts=LONG, tools=CHECKED) as client:
        await asyncio.gather(*(client.call_tool("double", {"a": a}) for a in range(20)))
        await client.call_tool("double", {"a": 1})
    assert asked(peer, "tools/list") == 1


@eras
@pytest.mark.req("T4")
async def test_fetching_the_list_can_be_switched_off(versions: tuple[str, ...]) -> None:
    peer = shop(versions)
    policy = ToolPolicy(validate="known")
    async with holdfast.connect(peer, timeouts=LONG, tools=policy) as client:
        with pytest.raises(holdfast.RpcError):
            await client.call_tool("duoble", {"a": 1})
    assert asked(peer, "tools/list") == 0


@eras
@pytest.mark.req("T4")
async def test_a_tool_that_is_announced_is_called_and_one_that_went_is_refused(
    versions: tuple[str, ...],
) -> None:
    peer = shop(versions)
    async with holdfast.connect(peer, timeouts=LONG) as client:
        await client.call_tool("double", {"a": 1})

        @peer.tool()
        def added() -> str:
            return "new"

        peer.notify(CHANGED)
        await client.ping()
        assert (await client.call_tool("added")).text == "new"


async def test_an_option_that_does_not_exist_is_refused_by_name() -> None:
    async with holdfast.connect(shop()) as client:
        with pytest.raises(TypeError, match=r"no option 'timout'.*did you mean 'timeout'"):
            await client.call_tool("double", {"a": 1}, timout=3)  # type: ignore[call-arg]


# One deadline

VERBS: dict[str, Callable[[holdfast.Client], Any]] = {
    "ping": lambda client: client.ping(timeout=0.05),
    "call_tool": lambda client: client.call_tool("silent", timeout=0.05),
    "list_tools": lambda client: client.list_tools(timeout=0.05),
    "model_tools": lambda client: client.model_tools(timeout=0.05),
    "toolset": lambda client: client.toolset("openai", timeout=0.05),
    "available_tools": lambda client: client.available_tools(timeout=0.05),
    "list_resources": lambda client: client.list_resources(timeout=0.05),
    "list_resource_templates": lambda client: client.list_resource_templates(timeout=0.05),
    "read_resource": lambda client: client.read_resource("mem://a", timeout=0.05),
    "subscribe_resource": lambda client: client.subscribe_resource("mem://a", timeout=0.05),
    "unsubscribe_resource": lambda client: client.unsubscribe_resource("mem://a", timeout=0.05),
    "list_prompts": lambda client: client.list_prompts(timeout=0.05),
    "get_prompt": lambda client: client.get_prompt("poem", timeout=0.05),
    "complete": lambda client: client.complete(PromptReference(name="poem"), "a", timeout=0.05),
    "set_log_level": lambda client: client.set_log_level("info", timeout=0.05),
    "request": lambda client: client.request("any/thing", timeout=0.05),
}


@pytest.mark.req("R3")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("when_down", ["fail", "wait"])
async def test_a_timeout_covers_connecting(verb: str, when_down: Any) -> None:
    """The server never answers the handshake, which may take 30 s."""
    peer = Peer()
    for method in ("server/discover", "initialize"):
        peer.on(method, SILENCE)
    async with holdfast.connect(peer, timeouts=LONG, when_down=when_down) as client:
        with ends_within(0.06), pytest.raises(TimeoutError):
            await VERBS[verb](client)


@pytest.mark.req("R3")
async def test_opening_ends_with_its_timeout() -> None:
    peer = Peer()
    for method in ("server/discover", "initialize"):
        peer.on(method, SILENCE)
    async with holdfast.connect(peer, timeouts=LONG) as client:
        with ends_within(0.06), pytest.raises(holdfast.RequestTimeout):
            await client.open(timeout=0.05)


@pytest.mark.req("R3")
@rows("timeout", [0, -1, math.nan, "5", True])
async def test_a_time_that_is_none_is_refused_before_anything_is_asked(timeout: Any) -> None:
    async with holdfast.connect(shop()) as client:
        for work in (
            client.open(timeout=timeout),
            client.wait_ready(timeout),
            client.ping(timeout=timeout),
            client.call_tool("double", {"a": 1}, timeout=timeout),
            client.call_tool("double", {"a": 1}, total_timeout=timeout),
            client.subscribe_resource("mem://a", timeout=timeout),
        ):
            with pytest.raises(holdfast.ValidationError, match="timeout="):
                await work
        assert client.state == "new"


@pytest.mark.req("R3")
@pytest.mark.parametrize("timeout", [math.inf, 1e308, 10**400], ids=["inf", "1e308", "400 digits"])
async def test_a_time_without_an_end_is_one(timeout: float) -> None:
    async with holdfast.connect(shop()) as client:
        await client.open(timeout=timeout)
        await client.wait_ready(timeout)
        await client.list_tools(timeout=timeout)
        await client.call_tool("double", {"a": 1}, timeout=timeout, total_timeout=timeout)
        await client.subscribe_resource("mem://a", timeout=timeout)


@eras
@pytest.mark.req("R3")
@pytest.mark.parametrize("verb", VERBS)
async def test_a_timeout_ends_a_request_that_is_not_answered(
    versions: tuple[str, ...], verb: str
) -> None:
    peer = shop(versions)
    silent = ["tools/call", "tools/list", "resources/list", "resources/templates/list"]
    silent += ["resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list"]
    silent += ["prompts/get", "completion/complete", "logging/setLevel", "ping", "any/thing"]
    async with holdfast.connect(peer, timeouts=LONG) as client:
        await client.open()
        for method in [*silent, "subscriptions/listen", "server/discover"]:
            peer.on(method, SILENCE)
        sends_nothing = verb in {"unsubscribe_resource", "set_log_level"}
        if versions == STATELESS and sends_nothing:
            await VERBS[verb](client)
            return
        with ends_within(0.06), pytest.raises(TimeoutError):
            await VERBS[verb](client)


@pytest.mark.req("E1")
async def test_a_raw_result_that_cannot_be_read_is_the_servers_fault() -> None:
    peer = shop()

    def answer(incoming: ServerRequest) -> Any:
        peer.write(f'{{"jsonrpc":"2.0","id":{incoming.id},"result":{{"n":1e400}}}}\n'.encode())
        return SILENCE

    peer.on("any/thing", answer)
    async with holdfast.connect(peer) as client:
        with pytest.raises(holdfast.ProtocolError):
            await client.request("any/thing")


@pytest.mark.req("R3")
async def test_listing_the_tools_first_counts_against_the_timeout() -> None:
    peer = shop()
    peer.on("tools/list", SILENCE)
    async with holdfast.connect(peer, timeouts=LONG, tools=REQUIRED) as client:
        with ends_within(0.06), pytest.raises(TimeoutError):
            await client.call_tool("double", {"a": 1}, timeout=0.05)


@pytest.mark.req("T4", "R3")
@pytest.mark.parametrize("how", ["silent", "error", "malformed", "lost", "endless"])
@pytest.mark.parametrize("options", [{}, {"timeout": 20}, {"total_timeout": 20}, {"task": True}])
@eras
async def test_a_call_whose_list_cannot_be_had_goes_unchecked_with_a_warning(
    versions: tuple[str, ...], how: str, options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    peer, lists = shop(versions), 0

    def listed(incoming: ServerRequest) -> Any:
        nonlocal lists
        lists += 1
        if how == "lost" and lists == 1:
            peer.hang_up()
        elif how == "error":
            raise RequestError(-32603, "out of order")
        elif how == "endless":
            return {"tools": [], "nextCursor": str(lists)}
        return {"tools": 7} if how == "malformed" else SILENCE

    peer.on("tools/list", listed)
    policy: dict[str, Any] = {"when_down": "wait", "backoff": Backoff(first=0.01)}
    limits = Limits(pages=3)
    async with holdfast.connect(peer, timeouts=LONG, limits=limits, **policy) as client:
        with ends_within(21):
            assert (await client.call_tool("double", {"a": 2}, **options)).text == "4"
        assert caplog.text.count("tools cannot be listed") == 1
        lists = 0
        assert (await client.call_tool("double", {"a": 2}, **options)).text == "4"
        assert lists <= (how == "lost"), "not every call waits for a list"


@pytest.mark.req("T4")
async def test_a_list_that_could_not_be_had_is_tried_again_after_a_while() -> None:
    peer = shop()
    peer.on("tools/list", SILENCE)
    async with holdfast.connect(peer, timeouts=LONG) as client:
        assert (await client.call_tool("double", {"a": 2})).text == "4"
        del peer._server.handlers["tools/list"]
        peer.on("tools/list", {"tools": [{"name": "double", "inputSchema": NUMBER}]})
        assert (await client.call_tool("double", {"a": 2})).text == "4"
        skip(100)
        with pytest.raises(holdfast.ValidationError, match="'a' is required"):
            await client.call_tool("double", {})


@pytest.mark.req("T4")
@pytest.mark.parametrize("name", ["double", "newer"])
async def test_what_does_not_fit_an_old_list_goes_to_a_server_that_cannot_list_now(
    name: str,
) -> None:
    peer = shop()
    async with holdfast.connect(peer, timeouts=LONG) as client:
        await client.list_tools()
        skip(1000)
        peer.on("tools/list", SILENCE)
        peer.on("tools/call", {"content": [{"type": "text", "text": "ran"}]})
        assert (await client.call_tool(name, {"b": 1})).text == "ran"


@pytest.mark.req("T4")
async def test_a_required_check_sends_nothing_if_the_list_cannot_be_had() -> None:
    peer = shop()
    peer.on("tools/list", SILENCE)
    async with holdfast.connect(peer, timeouts=LONG, tools=REQUIRED) as client:
        for _ in range(2):
            with pytest.raises(holdfast.RequestTimeout, match="'double' was not sent") as caught:
                await client.call_tool("double", {"a": 2})
            assert not caught.value.outcome_unknown
    assert asked(peer, "tools/call") == 0


@pytest.mark.req("R11")
@pytest.mark.parametrize("how", ["silent", "lost", "malformed", "refreshed"])
async def test_a_call_that_fails_while_its_tool_is_looked_up_has_not_run(how: str) -> None:
    peer = shop()

    def listed(incoming: ServerRequest) -> Any:
        if how == "lost":
            peer.hang_up()
        return {"tools": 7} if how == "malformed" else SILENCE

    async with holdfast.connect(peer, timeouts=LONG, tools=REQUIRED) as client:
        if how == "refreshed":
            await client.list_tools()
            client._tools._listed_at = -1000.0
        else:
            await client.open()
            client.guard_tools(lambda tools, instructions: None)
        peer.on("tools/list", listed)
        with pytest.raises(holdfast.HoldfastError) as caught:
            await client.call_tool("double", {"a": "no number"}, timeout=0.05)
        assert not caught.value.outcome_unknown
    assert asked(peer, "tools/call") == 0


@pytest.mark.req("R3")
@pytest.mark.parametrize(
    ("options", "total"),
    [
        ({"timeout": 100}, 300),
        ({"timeout": 100, "total_timeout": 150}, 150),
        ({"meta": {}}, 250),
        ({}, 250),
    ],
    ids=["timeout", "total_timeout", "policy", "no options"],
)
async def test_progress_keeps_a_call_alive_up_to_its_total(options: Any, total: float) -> None:
    peer, heard = shop(), asyncio.Event()
    peer.on("tools/call", SILENCE)
    async with holdfast.connect(peer, timeouts=Timeouts(request=100, total=250)) as client:
        await client.list_tools()
        client.on_progress(lambda _: heard.set())
        call = asyncio.create_task(client.call_tool("double", {"a": 1}, **options))
        incoming = await peer.expect("tools/call")
        passed = 0
        while passed + 90 < total:
            passed += 90
            skip(90)
            heard.clear()
            peer.progress(incoming, passed)
            await heard.wait()
        skip(90)
        with pytest.raises(holdfast.RequestTimeout, match=f"{total} s in all"):
            await call
    assert passed > 100 or total < 180, "longer than without progress"


@pytest.mark.req("R3")
async def test_a_request_may_be_silent_for_longer_than_the_usual_total() -> None:
    peer = shop()
    peer.on("prompts/get", SILENCE)
    async with holdfast.connect(peer, timeouts=Timeouts(prompts=400, total=300)) as client:
        await client.open()
        call = asyncio.create_task(client.get_prompt("p"))
        await peer.expect("prompts/get")
        skip(350)
        await client.ping()
        assert not call.done()
        skip(60)
        with pytest.raises(holdfast.RequestTimeout):
            await call


@pytest.mark.req("R3", "P4")
async def test_all_rounds_of_a_request_share_its_time() -> None:
    peer, rounds = shop(), []

    def ask(incoming: ServerRequest) -> Any:
        rounds.append(incoming)
        if rounds[1:]:
            return SILENCE
        skip(60)
        return {"resultType": "input_required", "requestState": "x"}

    peer.on("prompts/get", ask)
    async with holdfast.connect(peer) as client:
        await client.open()
        with ends_within(110), pytest.raises(holdfast.RequestTimeout):
            await client.get_prompt("p", timeout=100)
        assert len(rounds) == 2


@pytest.mark.req("R3")
async def test_what_the_caller_said_bounds_the_whole_and_progress_a_few_times_that() -> None:
    async with holdfast.connect(shop(), timeouts=Timeouts(request=5, total=60)) as client:
        deadline = client._requester.deadline
        assert (deadline("tools/call").idle, deadline("tools/call").total) == (5, 60)
        assert (deadline("tools/call", 2).idle, deadline("tools/call", 2).total) == (2, 6)
        assert deadline("tools/call", 2, 3).total == 3
        assert deadline("ping", 2).total == 2
        assert deadline("ping", 90).total == 90


@pytest.mark.req("R3")
@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ({"timeouts": Timeouts(total=1)}, {}),
        ({"timeouts": Timeouts(total=1, tools=60)}, {"meta": {"a": 1}}),
        ({"timeouts": Timeouts(total=1), "tools": ToolPolicy(timeouts={"silent": 60})}, {}),
        ({"timeouts": Timeouts(total=1), "when_down": "wait"}, {}),
        ({}, {"total_timeout": 1}),
        ({}, {"timeout": 60, "total_timeout": 1}),
        ({"tools": ToolPolicy(timeouts={"silent": 60})}, {"total_timeout": 1}),
    ],
)
async def test_a_total_below_the_silence_allowed_ends_a_tool_call(
    policy: dict[str, Any], options: Any
) -> None:
    async with holdfast.connect(shop(), **policy) as client:
        await client.open()
        with ends_within(2), pytest.raises(holdfast.RequestTimeout, match="1 s in all") as caught:
            await client.call_tool("silent", **options)
        assert caught.value.outcome_unknown


@pytest.mark.req("R3")
@pytest.mark.parametrize(
    "verb",
    [
        lambda client: client.request("any/thing"),
        lambda client: client.read_resource("mem://a"),
        lambda client: client.list_prompts(),
        lambda client: client.get_prompt("poem"),
    ],
)
async def test_a_total_below_the_silence_allowed_ends_every_request(
    verb: Callable[[Client], Any],
) -> None:
    peer = shop()
    for method in ("any/thing", "resources/read", "prompts/list", "prompts/get"):
        peer.on(method, SILENCE)
    async with holdfast.connect(peer, timeouts=Timeouts(total=1)) as client:
        await client.open()
        with ends_within(2), pytest.raises(holdfast.RequestTimeout, match="1 s in all"):
            await verb(client)


@pytest.mark.req("R3")
@pytest.mark.parametrize("options", [{}, {"meta": {"a": 1}}, {"total_timeout": 200}])
async def test_the_time_of_a_tool_holds_whatever_other_options_a_call_has(options: Any) -> None:
    tools = ToolPolicy(timeouts={"silent": 2})
    async with holdfast.connect(shop(), tools=tools) as client:
        await client.open()
        with ends_within(3), pytest.raises(holdfast.RequestTimeout, match="within 2 s"):
            await client.call_tool("silent", **options)


@pytest.mark.req("R3")
@pytest.mark.parametrize("quiet", [Timeouts(request=400), Timeouts(tools=400)])
async def test_without_a_total_a_call_may_take_as_long_as_it_may_be_silent(quiet: Timeouts) -> None:
    async with holdfast.connect(shop(), timeouts=quiet) as client:
        await client.open()
        with ends_within(401), pytest.raises(holdfast.RequestTimeout, match="within 400 s"):
            await client.call_tool("silent")


@pytest.mark.req("L11")
@rows(
    ("method", "verb"),
    [
        ("tools/call 'double'", lambda client: client.call_tool("double", {"a": 1})),
        ("tools/list", lambda client: client.available_tools()),
        ("resources/subscribe", lambda client: client.subscribe_resource("mem://a")),
        ("resources/unsubscribe", lambda client: client.unsubscribe_resource("mem://a")),
        ("ping", lambda client: client.ping()),
        ("logging/setLevel", lambda client: client.set_log_level("info")),
        ("skills/list", lambda client: client.list_skills()),
        ("tasks/get", lambda client: client.get_task("t")),
        ("tasks/get", lambda client: client.resume_task("t")),
        ("prompts/get 'poem'", lambda client: client.get_prompt("poem")),
        ("resources/read 'mem://a'", lambda client: client.read_resource("mem://a")),
        ("open", lambda client: client.open()),
    ],
)
async def test_a_call_after_the_close_is_reported_by_its_own_name(
    method: str, verb: Callable[[Client], Any]
) -> None:
    async with holdfast.connect(shop()) as client:
        await client.open()
        client.guard_tools(lambda tools, instructions: None)
    with pytest.raises(holdfast.errors.ShutdownError) as caught:
        await verb(client)
    assert str(caught.value).startswith(f"peer: {method}: the client is closed")


@pytest.mark.req("R3")
async def test_all_pages_of_a_list_share_its_time() -> None:
    peer = shop()

    def listed(incoming: ServerRequest) -> Any:
        if "cursor" in incoming.params:
            return SILENCE
        skip(60)
        return {"tools": [], "nextCursor": "more"}

    peer.on("tools/list", listed)
    async with holdfast.connect(peer) as client:
        await client.open()
        with ends_within(101), pytest.raises(holdfast.RequestTimeout):
            await client.list_tools(timeout=100)


@pytest.mark.req("R3")
async def test_any_request_ends_at_its_total() -> None:
    peer, heard = shop(), asyncio.Event()
    peer.on("any/thing", SILENCE)
    async with holdfast.connect(peer) as client:
        client.on_progress(lambda _: heard.set())
        call = asyncio.create_task(client.request("any/thing", timeout=100, total_timeout=150))
        incoming = await peer.expect("any/thing")
        skip(90)
        peer.progress(incoming, 1)
        await heard.wait()
        skip(90)
        with pytest.raises(holdfast.RequestTimeout, match="150 s in all"):
            await call


@pytest.mark.req("T4")
async def test_arguments_that_do_not_fit_an_old_list_are_checked_against_a_new_one() -> None:
    peer = shop(HANDSHAKE)
    peer.capabilities = {"tools": {}}
    tool = {"name": "double", "inputSchema": NUMBER}
    peer.on("tools/list", {"tools": [tool]})
    async with holdfast.connect(peer) as client:
        await client.list_tools()
        peer.on("tools/list", {"tools": [{**tool, "inputSchema": {"type": "object"}}]})
        with pytest.raises(holdfast.ValidationError):
            await client.call_tool("double", {"a": "x"})
        skip(60)
        assert (await client.call_tool("double", {"a": "x"})).text == "xx"


# Whether it may have run


@pytest.mark.req("R6")
async def test_a_call_that_is_cancelled_before_it_is_sent_has_not_run() -> None:
    peer = shop()
    async with holdfast.connect(peer, timeouts=LONG, tools=REQUIRED) as client:
        at_once = client.start_tool("silent")
        assert at_once.cancel()
        with pytest.raises(holdfast.errors.CancelledCallError, match="nothing was sent") as caught:
            await at_once
        assert not caught.value.outcome_unknown
        peer.on("tools/list", SILENCE)
        listing = client.start_tool("silent")
        await peer.expect("tools/list")
        listing.cancel()
        with pytest.raises(holdfast.errors.CancelledCallError, match="nothing was sent") as caught:
            await listing
        assert not caught.value.outcome_unknown
        gone = client.start_tool("silent")
        await peer.expect("tools/list", 2)
        peer.hang_up()
        with pytest.raises(holdfast.TransportError, match="'silent' was not sent") as lost:
            await gone
        assert not lost.value.outcome_unknown
    assert asked(peer, "tools/call") == 0


@pytest.mark.req("R6")
async def test_a_call_that_is_cancelled_after_it_was_sent_may_have_run() -> None:
    peer = shop()
    async with holdfast.connect(peer, timeouts=LONG) as client:
        running = client.start_tool("silent")
        await peer.expect("tools/call")
        assert running.cancel()
        assert not running.cancel()
        for _ in range(2):
            with pytest.raises(holdfast.errors.CancelledCallError) as caught:
                await running
            assert caught.value.outcome_unknown


@pytest.mark.req("R6", "R11")
async def test_a_repeated_call_that_is_cancelled_while_listing_may_have_run() -> None:
    peer = shop()
    peer.tool("look", annotations={"readOnlyHint": True})(lambda: SILENCE)
    quick = Backoff(first=0.001, max=0.001)
    async with holdfast.connect(peer, replay="safe", backoff=quick, timeouts=LONG) as client:
        client.guard_tools(lambda tools, instructions: None)
        running = client.start_tool("look")
        await peer.expect("tools/call")
        peer.on("tools/list", SILENCE)
        peer.hang_up()
        await peer.expect("tools/list", 2)
        assert running.cancel()
        with pytest.raises(holdfast.errors.CancelledCallError, match="tools/call 'look'") as caught:
            await running
        assert caught.value.outcome_unknown


# A guarded client calls no server that was not checked


class Swapped(Peer):
    """Serves good tools on its first connection, others on every later one."""

    def __init__(self, versions: tuple[str, ...] = STATELESS) -> None:
        super().__init__(versions=versions)
        self.ran: list[int] = []

        @self.tool()
        def pay() -> str:
            self.ran.append(len(self.ran))
            return "paid"


@eras
@pytest.mark.req("H8")
@pytest.mark.parametrize("replay", ["never", "safe"])
@pytest.mark.parametrize("when_down", ["fail", "wait"])
async def test_a_server_that_is_replaced_after_its_list_is_checked_again(
    versions: tuple[str, ...], replay: Any, when_down: Any
) -> None:
    """The link dies between the list that a guard saw and the call."""
    peer = Swapped(versions)
    checked: list[int] = []
    connections: list[int] = []

    def answer(incoming: ServerRequest) -> Any:
        connections.append(incoming.connection)
        tools = [{"name": "pay", "inputSchema": {"type": "object"}}]
        if incoming.connection == 1:
            asyncio.get_running_loop().call_soon(peer.hang_up)
        return {"tools": tools, "resultType": "complete", "ttlMs": 60_000}

    def guard(tools: Any, instructions: str | None) -> None:
        checked.append(connections[-1])
        if connections[-1] > 1:
            raise holdfast.DriftError("not the server that was checked")

    peer.on("tools/list", answer)
    options: Any = {"replay": replay, "when_down": when_down, "backoff": Backoff(first=0.01)}
    async with holdfast.connect(peer, timeouts=LONG, **options) as client:
        client.guard_tools(guard)
        with pytest.raises(holdfast.HoldfastError):
            await client.call_tool("pay")
        await client.wait_ready(5)
        with pytest.raises(holdfast.DriftError):
            await client.call_tool("pay")
    assert peer.ran == []
    assert set(checked) <= {1, 2}


@pytest.mark.req("H8")
async def test_a_cached_list_does_not_satisfy_a_guard() -> None:
    peer = shop()
    seen: list[int] = []
    async with holdfast.connect(peer, timeouts=LONG, cache=Cache(ttl=60)) as client:
        await client.list_tools()
        client.guard_tools(lambda tools, _: seen.append(len(tools)))
        await client.call_tool("double", {"a": 1})
        await client.call_tool("double", {"a": 1})
    assert asked(peer, "tools/list") == 2
    assert seen == [2]


# Questions


def asking(peer: Peer, questions: dict[str, Any]) -> None:
    def call(incoming: ServerRequest) -> Any:
        if "inputResponses" not in incoming.params:
            return {"resultType": "input_required", "inputRequests": questions}
        return {"content": [], "structuredContent": incoming.params["inputResponses"]}

    peer.on("tools/call", call)


def form(schema: Any) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}}


@pytest.mark.req("R3", "P4")
async def test_a_question_that_is_never_answered_ends_with_the_time_of_its_call() -> None:
    peer = shop(STATELESS)
    asking(peer, {"q": form({"type": "object"})})

    async def ponder(request: Any) -> Any:
        await asyncio.Event().wait()

    handlers = holdfast.Handlers(elicitation=ponder)
    async with holdfast.connect(peer, timeouts=LONG, handlers=handlers) as client:
        await client.list_tools()
        with ends_within(5.1), pytest.raises(TimeoutError, match="question was not answered"):
            await client.call_tool("double", {"a": 1}, total_timeout=5)


SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "maxTokens": 5,
    },
}


@pytest.mark.req("P1")
@pytest.mark.parametrize("kind", [7, {}, "surprise"])
async def test_a_result_of_a_type_that_nobody_knows_is_refused_where_types_exist(kind: Any) -> None:
    peer = shop()
    peer.on("tools/call", lambda _: {"resultType": kind, "content": []})
    async with holdfast.connect(peer, timeouts=LONG) as client:
        with pytest.raises(holdfast.ProtocolError, match=r"result ?[tT]ype"):
            await client.call_tool("double", {"a": 1})
    older = shop(HANDSHAKE)
    older.on("tools/call", lambda _: {"resultType": kind, "content": []})
    async with holdfast.connect(older, timeouts=LONG) as client:
        assert not (await client.call_tool("double", {"a": 1})).is_error


@pytest.mark.req("P4", "R11")
@rows("how", ["time", "handler", "lost", "malformed", "rounds", "refused"])
async def test_a_call_that_fails_while_it_is_asked_something_may_have_run(how: str) -> None:
    peer = shop()
    question: Any = 7 if how == "malformed" else form({"type": "object"})
    asking(peer, {"q": question})
    if how == "rounds":
        peer.on("tools/call", {"resultType": "input_required", "inputRequests": {"q": question}})

    async def answer(_: object) -> Any:
        if how == "time":
            await asyncio.Event().wait()
        if how == "handler":
            raise RuntimeError("no")
        if how == "lost":
            peer.hang_up()
            await asyncio.sleep(0)
        if how == "refused":
            peer.on("tools/call", _refuse)
        return {"action": "accept"}

    handlers, never = Handlers(elicitation=answer), Backoff(first=60, max=60)
    async with holdfast.connect(peer, handlers=handlers, backoff=never) as client:
        await client.list_tools()
        with pytest.raises(holdfast.HoldfastError) as caught:
            await client.call_tool("double", {"a": 1}, total_timeout=0.05 if how == "time" else 30)
        assert caught.value.outcome_unknown is (how != "refused")


def _refuse(_: object) -> Any:
    raise RequestError(-32000, "no")


@pytest.mark.req("P4")
async def test_more_questions_than_allowed_do_not_reach_the_application() -> None:
    peer = shop()
    asking(peer, {str(number): form({"type": "object"}) for number in range(5000)})
    heard: list[Any] = []

    def elicit(question: Any) -> dict[str, Any]:
        heard.append(question)
        return {"action": "decline"}

    handlers = Handlers(elicitation=elicit)
    async with holdfast.connect(peer, handlers=handlers, limits=Limits(asks=8)) as client:
        with pytest.raises(holdfast.ProtocolError, match=r"5000 questions.*8"):
            await client.call_tool("double", {"a": 1})
    assert heard == []


@pytest.mark.req("P4")
async def test_no_more_questions_are_handled_at_once_than_allowed() -> None:
    peer = shop()
    asking(peer, {str(number): form({"type": "object"}) for number in range(4)})
    at_once = most = 0

    async def elicit(_: Any) -> dict[str, Any]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return {"action": "decline"}

    handlers = Handlers(elicitation=elicit)
    async with holdfast.connect(peer, handlers=handlers, limits=Limits(asks=4)) as client:
        await asyncio.gather(*(client.call_tool("double", {"a": 1}) for _ in range(5)))
    assert most == 4


@pytest.mark.req("P4")
async def test_questions_of_one_id_are_bounded_like_those_of_many() -> None:
    peer, heard = shop(HANDSHAKE), 0

    async def elicit(_: Any) -> dict[str, Any]:
        nonlocal heard
        heard += 1
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    handlers = Handlers(elicitation=elicit)
    async with holdfast.connect(peer, handlers=handlers, limits=Limits(asks=8)) as client:
        await client.open()
        before = len(asyncio.all_tasks())
        peer.write(question(5) * 500)
        await client.ping()
        assert len(asyncio.all_tasks()) - before == 8
        # Withdrawn, all of them end, and others are heard.
        peer.notify("notifications/cancelled", {"requestId": 5})
        while len(asyncio.all_tasks()) > before:
            await client.ping()
        peer.write(question(6))
        while len(asyncio.all_tasks()) == before:
            await client.ping()
        await client.ping()
        assert heard == 9


@pytest.mark.req("P4", "R12")
async def test_threads_of_withdrawn_questions_are_bounded() -> None:
    peer, release = shop(HANDSHAKE), threading.Event()

    def elicit(_: Any) -> dict[str, Any]:
        release.wait()
        return {"action": "decline"}

    def workers() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name == "holdfast-handler"]

    handlers = Handlers(elicitation=elicit)
    async with holdfast.connect(peer, handlers=handlers, limits=Limits(asks=4)) as client:
        await client.open()
        for number in range(20):
            peer.write(question(number))
            await client.ping()
            peer.notify("notifications/cancelled", {"requestId": number})
        await client.ping()
        assert len(workers()) == 4
        params = {"message": "?", "requestedSchema": {"type": "object"}}
        with pytest.raises(RequestError, match="4 handlers of earlier questions"):
            await peer.ask("elicitation/create", params)
        release.set()
        for worker in workers():
            worker.join()
        assert await peer.ask("elicitation/create", params) == {"action": "decline"}


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    "params",
    [
        b'[1,"io.modelcontextprotocol/related-task"]',
        b'{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":1e400}}}',
    ],
)
async def test_a_question_with_an_odd_mark_of_a_task_is_answered(params: bytes) -> None:
    peer = shop(HANDSHAKE)
    async with holdfast.connect(peer, handlers=Handlers(roots=["file:///"])) as client:
        await client.open()
        async with asyncio.timeout(10):
            with suppress(RequestError):
                await peer.ask("roots/list", Raw(params))  # type: ignore[arg-type]


ODD_SCHEMAS = [
    {"properties": []},
    {"properties": None},
    {"properties": 7},
    {"properties": {"a": 5, "b": None, "c": {"default": 1}}},
    {"properties": {"a": {"default": {"x": [1]}}}, "required": 9},
    {},
]


@eras
@pytest.mark.req("P4")
@pytest.mark.parametrize("schema", ODD_SCHEMAS)
async def test_a_question_with_an_odd_schema_is_answered(
    versions: tuple[str, ...], schema: Any
) -> None:
    peer = shop(versions)
    handlers = Handlers(elicitation=lambda _: {"action": "accept", "content": {}})
    question = form(schema)
    asking(peer, {"q": question})
    async with holdfast.connect(peer, handlers=handlers) as client:
        if versions == STATELESS:
            answer = (await client.call_tool("double", {"a": 1})).structured["q"]
        else:
            await client.open()
            answer = await peer.ask(question["method"], question["params"])
    assert answer["action"] == "accept"


@pytest.mark.req("P4")
async def test_an_accepted_form_has_the_defaults_of_what_was_left_out() -> None:
    """Whatever they are but null, which is no value of a form's field."""
    peer = shop(HANDSHAKE)
    defaults = {"no": False, "zero": 0, "empty": "", "own": 1, "null": None}
    question = form({"properties": {name: {"default": one} for name, one in defaults.items()}})
    handlers = Handlers(elicitation=lambda _: {"action": "accept", "content": {"own": 2}})
    async with holdfast.connect(peer, handlers=handlers) as client:
        await client.open()
        answer = await peer.ask(question["method"], question["params"])
    assert answer["content"] == {"no": False, "zero": 0, "empty": "", "own": 2}


@eras
@pytest.mark.req("P4")
@pytest.mark.parametrize("schema", [[], None, 7, "x"])
async def test_a_question_whose_schema_is_no_object_is_answered(
    versions: tuple[str, ...], schema: Any
) -> None:
    peer = shop(versions)
    handlers = Handlers(elicitation=lambda _: {"action": "accept", "content": {}})
    question = form(schema)
    asking(peer, {"q": question})
    async with holdfast.connect(peer, handlers=handlers) as client:
        if versions == STATELESS:
            with pytest.raises(holdfast.HoldfastError):
                await client.call_tool("double", {"a": 1})
        else:
            await client.open()
            with pytest.raises(RequestError):
                await peer.ask(question["method"], question["params"])


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def fails_with(error: BaseException) -> Callable[[Any], Any]:
    def handler(_: Any) -> Any:
        raise error

    return handler


async def cancels(_: Any) -> Any:
    raise asyncio.CancelledError


async def closes(_: Any) -> Any:
    raise GeneratorExit


async def exits(_: Any) -> Any:
    raise SystemExit(3)


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE

FAILING: dict[str, Callable[[Any], Any]] = {
    "error": fails_with(AttributeError("no")),
    "unspeakable": fails_with(UnspeakableError()),
    "surrogate": fails_with(ValueError("half \ud83d")),
    "exit": fails_with(SystemExit(3)),
    "stop": fails_with(StopIteration(5)),
    "closed": fails_with(GeneratorExit()),
    "async-exit": exits,
    "async-closed": closes,
    "async-cancelled": cancels,
    "none": lambda _: None,
    "number": lambda _: 5,
    "list": lambda _: [1],
    "object": lambda _: object(),
    "set": lambda _: {"action": {1, 2}, "x": object()},
    "cyclic": lambda _: {"action": "accept", "content": CYCLE},
}


@eras
@pytest.mark.req("P4", "R12")
@pytest.mark.parametrize(
    ("kind", "failing"),
    # An elicitation handler that returns None declines.
    [("sampling", one) for one in FAILING]
    + [("elicitation", one) for one in FAILING if one != "none"],
)
async def test_a_handler_that_fails_in_any_way_is_answered_for(
    versions: tuple[str, ...], failing: str, kind: str
) -> None:
    peer = shop(versions)
    question: Any = form({}) if kind == "elicitation" else SAMPLE
    handlers = Handlers(**{kind: FAILING[failing]})  # type: ignore[arg-type]
    asking(peer, {"q": question})
    async with holdfast.connect(peer, handlers=handlers, timeouts=LONG) as client:
        if versions == STATELESS:
            with pytest.raises(holdfast.HoldfastError):
                await client.call_tool("double", {"a": 1})
            peer.on("tools/call", {"content": []})
        else:
            await client.open()
            with pytest.raises(RequestError):
                await peer.ask(question["method"], question["params"])
        await client.call_tool("double", {"a": 1})


@eras
@pytest.mark.req("R12")
@pytest.mark.parametrize("kind", ["elicitation", "sampling", "roots"])
async def test_a_plain_function_that_blocks_does_not_hold_up_other_calls(
    versions: tuple[str, ...], kind: str
) -> None:
    peer = shop(versions)
    started, go_on = threading.Event(), threading.Event()

    def blocks(*_: Any) -> Any:
        started.set()
        assert go_on.wait(120)
        return {"roots": [], "sampling": "words"}.get(kind, {"action": "decline"})

    question = {"elicitation": form({}), "sampling": SAMPLE, "roots": {"method": "roots/list"}}[
        kind
    ]
    handlers = Handlers(**{kind: blocks})
    asking(peer, {"q": question})
    async with holdfast.connect(peer, handlers=handlers, timeouts=LONG) as client:
        await client.open()
        if versions == STATELESS:
            waiting: Any = asyncio.ensure_future(client.call_tool("double", {"a": 1}))
        else:
            waiting = asyncio.ensure_future(peer.ask(question["method"], question.get("params")))
        assert await asyncio.to_thread(started.wait, 30)
        await client.ping()
        go_on.set()
        await waiting


@pytest.mark.req("P4")
@pytest.mark.parametrize("plain", [True, False])
async def test_a_sampling_handler_may_return_text(plain: bool) -> None:
    peer = shop()
    asking(peer, {"q": SAMPLE})

    async def later(_: Any) -> str:
        return "words"

    handlers = Handlers(sampling=(lambda _: "words") if plain else later)
    async with holdfast.connect(peer, handlers=handlers) as client:
        answer = (await client.call_tool("double", {"a": 1})).structured["q"]
        made = await client.create_message(SAMPLE["params"])  # type: ignore[arg-type]
    assert answer["content"] == {"type": "text", "text": "words"}
    assert (answer["role"], made.content.text) == ("assistant", "words")


@pytest.mark.req("P4")
async def test_create_message_wants_a_handler() -> None:
    async with holdfast.connect(shop()) as client:
        with pytest.raises(holdfast.StateError, match="no handler for sampling"):
            await client.create_message({})
        with pytest.raises(holdfast.StateError, match="no handler for roots"):
            await client.list_roots()


# Closing


@eras
@pytest.mark.req("L7", "R12")
@pytest.mark.parametrize("indirectly", [False, True])
async def test_a_handler_that_closes_its_client_comes_to_its_end(
    versions: tuple[str, ...], indirectly: bool
) -> None:
    peer = shop(versions)
    finished = asyncio.Event()

    async def elicit(_: Any) -> Any:
        work = client.close()
        assert await (asyncio.create_task(work) if indirectly else work)
        await asyncio.sleep(0)
        finished.set()
        return {"action": "decline"}

    asking(peer, {"q": form({})})
    client = holdfast.connect(peer, handlers=Handlers(elicitation=elicit), timeouts=LONG)
    await client.open()
    if versions == STATELESS:
        with pytest.raises(holdfast.HoldfastError):
            await client.call_tool("double", {"a": 1})
    else:
        question = form({})
        asked = asyncio.ensure_future(peer.ask(question["method"], question["params"]))
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait_for(finished.wait(), 30)
    assert client.state == "closed"


@pytest.mark.req("L7")
async def test_a_close_ends_a_call_that_waits_for_an_answer_of_the_application() -> None:
    peer, asked = shop(), asyncio.Event()

    async def never(_: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    asking(peer, {"q": form({})})
    client = holdfast.connect(peer, handlers=Handlers(elicitation=never), timeouts=LONG)
    calling = asyncio.ensure_future(client.call_tool("double", {"a": 1}))
    await asked.wait()
    await client.close()
    with pytest.raises(holdfast.errors.ShutdownError) as caught:
        await asyncio.wait_for(calling, 5)
    assert caught.value.outcome_unknown


@pytest.mark.req("L7", "R12")
@pytest.mark.parametrize("kind", ["notification", "progress"])
async def test_a_listener_that_closes_its_client_comes_to_its_end(kind: str) -> None:
    peer = shop()
    finished = asyncio.Event()

    async def hear(_: Any) -> None:
        await client.close()
        finished.set()

    client = holdfast.connect(peer, handlers=Handlers(**{kind: hear}), timeouts=LONG)  # type: ignore[arg-type]
    await client.open()
    if kind == "notification":
        peer.notify("notifications/message", {"level": "info", "data": "x"})
    else:

        def report(incoming: ServerRequest) -> Any:
            peer.progress(incoming, 1)
            return SILENCE

        peer.on("tools/call", report)
        with pytest.raises(holdfast.HoldfastError):
            await client.call_tool("double", {"a": 1})
    await asyncio.wait_for(finished.wait(), 30)


@pytest.mark.req("L7")
async def test_a_cancelled_close_goes_on_and_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    client = holdfast.connect(shop())
    await client.open()
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert await client.close() is False
    assert client.state == "closed"
    assert asyncio.all_tasks() == before


class Polite(Memory):
    """A way to a server that is asked to shut down before the link closes."""

    @property
    def traits(self) -> Traits:
        return Traits(shutdown_request=True, grace=0.2)


@pytest.mark.req("L7", "L8")
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("cancelled", [True, False])
async def test_callers_hear_of_a_close_before_the_server_answers_the_goodbye(
    answered: bool, cancelled: bool
) -> None:
    peer = shop()
    peer.on("shutdown", {} if answered else SILENCE)
    client = Client(Polite(peer), Policy(timeouts=LONG), Handlers())
    waiting = asyncio.ensure_future(client.call_tool("silent"))
    await peer.expect("tools/call")
    closing = [asyncio.create_task(client.close()) for _ in range(3)]
    with pytest.raises(holdfast.errors.ShutdownError):
        await waiting
    assert not any(one.done() for one in closing)
    if cancelled:
        closing[0].cancel()
    await asyncio.wait(closing)
    await client.close()
    assert client.state == "closed"
    assert asked(peer, "shutdown") == 1


# Lists and resources


@pytest.mark.req("T1")
async def test_a_list_is_bounded_in_bytes_over_all_pages() -> None:
    peer = shop()
    pages = 0

    def page(incoming: ServerRequest) -> Any:
        nonlocal pages
        pages += 1
        tool = {"name": f"t{pages}", "description": "x" * 10_000, "inputSchema": {}}
        return {"tools": [tool], "nextCursor": str(pages)}

    peer.on("tools/list", page)
    async with holdfast.connect(peer, limits=Limits(list_bytes=50_000)) as client:
        with pytest.raises(holdfast.ProtocolError, match="50000 bytes"):
            await client.list_tools()
    assert pages == 5


@pytest.mark.req("T1")
@pytest.mark.parametrize("size", [10, 101], ids=["pages", "page"])
async def test_a_list_is_bounded_in_items_over_all_pages(
    size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Small items take many times their bytes in memory, and malformed ones a line of the log."""
    peer = shop()
    items = [7 if size > 100 else {"name": "t", "inputSchema": {}}] * size
    cursors = iter(range(1000))
    peer.on("tools/list", lambda _: {"tools": items, "nextCursor": str(next(cursors))})
    async with holdfast.connect(peer, limits=Limits(list_items=100)) as client:
        with pytest.raises(holdfast.ProtocolError, match="more than 100"):
            await client.list_tools()
    assert next(cursors) == (1 if size > 100 else 11)
    assert "left out" not in caplog.text


@pytest.mark.req("T1", "M1")
async def test_malformed_items_are_logged_up_to_a_few(caplog: pytest.LogCaptureFixture) -> None:
    peer = shop()
    peer.on("tools/list", {"tools": [7] * 1000})
    async with holdfast.connect(peer) as client:
        assert await client.list_tools() == []
    assert len(caplog.records) < 30
    assert "left out 980 more" in caplog.text


@pytest.mark.req("T4", "T5")
@eras
@pytest.mark.parametrize("before", ["nothing", "list", "change"])
async def test_without_checks_an_unknown_tool_is_always_the_servers_to_refuse(
    versions: tuple[str, ...], before: str
) -> None:
    peer = shop(versions)
    async with holdfast.connect(peer, tools=ToolPolicy(validate="off")) as client:
        if before != "nothing":
            await client.list_tools()
        if before == "change":
            peer.notify(CHANGED)
            await client.ping()
        with pytest.raises(holdfast.RpcError, match="unknown tool"):
            await client.call_tool("nope")


@pytest.mark.req("E3")
@rows(
    ("code", "text", "missing"),
    [
        (-32000, "Resource not found", True),
        (-32000, "no such file: a", True),
        (-32000, "Resource mem://a does not exist", True),
        (0, "Unknown resource: mem://a", True),
        (-32001, "Resource not found", True),
        (404, "File not found", True),
        (-32000, "RESOURCE_NOT_FOUND", True),
        (-32000, "ResourceNotFound: mem://a", True),
        (-32000, "mem://a could not be found", True),
        (-32000, "Cannot find mem://a", True),
        (-32000, "Unknown URI", True),
        (-32002, "whatever", True),
        (-32602, "whatever", True),
        (-32000, "Session not found", False),
        (-32000, "the disk is full", False),
        (-32603, "Resource not found", False),
    ],
)
async def test_a_resource_that_is_not_there(code: int, text: str, missing: bool) -> None:
    peer = shop()

    def read(_: ServerRequest) -> Any:
        raise RequestError(code, text, {"x": 1})

    peer.on("resources/read", read)
    async with holdfast.connect(peer) as client:
        with pytest.raises(holdfast.RpcError) as caught:
            await client.read_resource("mem://a")
    assert isinstance(caught.value, holdfast.errors.ResourceNotFoundError) is missing
    assert (caught.value.code, caught.value.data) == (code, {"x": 1})


@pytest.mark.req("P2")
@eras
async def test_no_update_comes_after_unsubscribing(versions: tuple[str, ...]) -> None:
    peer = shop(versions)
    heard: list[Any] = []
    async with holdfast.connect(peer, timeouts=LONG) as client:
        client.on_notification(heard.append, "notifications/resources/updated")
        await client.subscribe_resource("mem://a")
        await client.unsubscribe_resource("mem://a")
        peer.notify("notifications/resources/updated", {"uri": "mem://a"})
        await client.ping()
        await asyncio.sleep(0)
        assert heard == []
        await client.subscribe_resource("mem://a")
        peer.notify("notifications/resources/updated", {"uri": "mem://a"})
        await client.ping()
        await asyncio.sleep(0)
        assert len(heard) == 1


@pytest.mark.req("P2")
async def test_the_server_is_told_before_unsubscribing_returns() -> None:
    peer = shop(STATELESS)
    async with holdfast.connect(peer, timeouts=LONG) as client:
        await client.subscribe_resource("mem://a")
        await client.unsubscribe_resource("mem://a")
        await client.ping()
        methods = [one.method for one in peer.received]
        assert "notifications/cancelled" in methods


# Observers


@pytest.mark.req("T8")
async def test_the_audit_log_is_silent_unless_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with holdfast.connect(shop()) as client:
        await client.call_tool("double", {"a": 1})
    assert not [one for one in caplog.records if one.name == "holdfast.audit"]
    async with holdfast.connect(shop(), observability=Observability(audit=True)) as client:
        await client.call_tool("double", {"a": 1})
    assert len([one for one in caplog.records if one.name == "holdfast.audit"]) == 1


@pytest.mark.req("T8")
@pytest.mark.parametrize("number", ["1e400", "9" * 5000], ids=["1e400", "digits"])
@pytest.mark.parametrize("validate", ["always", "off"])
async def test_a_schema_that_cannot_be_read_costs_its_own_tool_alone(
    number: str, validate: Any
) -> None:
    peer = shop()
    bad = f'{{"type":"object","properties":{{"x":{{"maximum":{number}}}}}}}'
    good = '{"name":"good","inputSchema":{"type":"object"}}'

    def answer(incoming: ServerRequest) -> Any:
        tools = f'[{{"name":"bad","inputSchema":{bad}}},{good}]'
        peer.write(
            f'{{"jsonrpc":"2.0","id":{incoming.id},"result":{{"resultType":"complete",'
            f'"tools":{tools}}}}}\n'.encode()
        )
        return SILENCE

    peer.on("tools/list", answer)
    peer.on("tools/call", {"content": [{"type": "text", "text": "ran"}]})
    records: list[Any] = []
    policy = {"observability": Observability(audit=records.append)}
    tools = ToolPolicy(validate=validate)
    async with holdfast.connect(peer, timeouts=LONG, tools=tools, **policy) as client:  # type: ignore[arg-type]
        await client.list_tools()
        assert (await client.call_tool("good")).text == "ran"
        assert (await client.call_tool("bad", {"x": 1})).text == "ran", "the server has to check it"
    assert [record.tool for record in records] == ["good", "bad"]


@pytest.mark.req("M1")
async def test_an_observer_that_fails_changes_no_outcome(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def begin(self, call: Any) -> Any:
            if call.about == "double":
                return True
            raise RuntimeError("begin")

        def end(self, call: Any, state: Any) -> None:
            raise RuntimeError("end")

        def moved(self, moved: Any) -> None:
            raise RuntimeError("moved")

        def close(self) -> None:
            raise RuntimeError("close")

    async with holdfast.connect(shop()) as client:
        client._observers.all.append(Broken())
        assert (await client.call_tool("double", {"a": 2})).text == "4"
        await client.list_prompts()
    for word in ("begin", "end", "moved", "close"):
        assert f"RuntimeError: {word}" in caplog.text


@pytest.mark.req("P5")
@pytest.mark.parametrize("is_async", [False, True])
async def test_progress_is_heard_in_the_context_of_its_call(is_async: bool) -> None:
    cell: contextvars.ContextVar[str] = contextvars.ContextVar("cell", default="none")
    heard: list[str] = []
    peer = shop()

    def call(incoming: ServerRequest) -> Any:
        peer.progress(incoming, 1)
        return {"content": []}

    async def later(_: Any) -> None:
        await asyncio.sleep(0)
        heard.append(cell.get())

    peer.on("tools/call", call)
    handler: Any = later if is_async else (lambda _: heard.append(cell.get()))
    async with holdfast.connect(peer) as client:
        await client.open()
        cell.set("one")
        await client.call_tool("double", {"a": 1}, on_progress=handler)
        cell.set("two")
        await client.call_tool("double", {"a": 1}, on_progress=handler)
        while len(heard) < 2:
            await client.ping()
    assert heard == ["one", "two"]


@pytest.mark.req("P5")
async def test_log_messages_are_heard_as_such() -> None:
    peer = shop()
    heard: list[Any] = []
    async with holdfast.connect(peer) as client:
        await client.open()
        stop = client.on_log(heard.append)
        peer.notify("notifications/message", {"level": "info", "data": "x", "logger": "db"})
        await client.ping()
        stop()
        peer.notify("notifications/message", {"level": "info", "data": "y"})
        await client.ping()
    assert [(one.level, one.data, one.logger) for one in heard] == [("info", "x", "db")]


async def test_a_client_gives_its_tools_in_the_shape_of_a_provider() -> None:
    async with holdfast.connect(shop()) as client:
        found = await client.toolset("anthropic")
        names = [one["name"] for one in found.definitions]
        call = found.read({"type": "tool_use", "id": "1", "name": names[0], "input": {"a": 2}})
        result = await client.call_tool(call.tool, call.arguments)
    assert sorted(names) == ["double", "silent"]
    assert result.text == "4"


# The cache, through the client


@eras
@pytest.mark.req("C2")
@pytest.mark.parametrize(
    ("verb", "method", "notification"),
    [
        ("list_tools", "tools/list", "notifications/tools/list_changed"),
        ("list_prompts", "prompts/list", "notifications/prompts/list_changed"),
        ("list_resources", "resources/list", "notifications/resources/list_changed"),
    ],
)
async def test_a_notification_of_the_server_discards_what_it_is_about(
    versions: tuple[str, ...], verb: str, method: str, notification: str
) -> None:
    peer = shop(versions)
    peer.hints[method] = {"ttlMs": 600_000, "cacheScope": "private"}
    async with holdfast.connect(peer, timeouts=LONG, cache=Cache(ttl=600)) as client:
        for expected in (1, 1):
            await getattr(client, verb)()
            assert asked(peer, method) == expected
        peer.notify(notification)
        await client.ping()
        await getattr(client, verb)()
        assert asked(peer, method) == 2


class Personal(Memory):
    """A way to a server on which each request has the credentials of its caller."""

    @property
    def traits(self) -> Traits:
        return Traits(credentials=None)


@pytest.mark.req("C4")
@pytest.mark.parametrize(("kind", "requests"), [(Memory, 1), (Personal, 5)])
async def test_callers_whose_credentials_may_differ_share_no_answer(
    kind: type[Memory], requests: int
) -> None:
    peer = shop()
    async with Client(kind(peer), Policy(cache=Cache(ttl=600)), Handlers()) as client:
        await client.open()
        await asyncio.gather(*(client.read_resource("mem://a") for _ in range(5)))
    assert asked(peer, "resources/read") == requests
