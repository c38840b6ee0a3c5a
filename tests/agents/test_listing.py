"""Tools of many servers in one list."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest

import holdfast
from holdfast import Backoff, Timeouts, Tool, TransportError
from holdfast.agents.listing import Partial, ServerTool, ToolSource, convert_each, wire_definition
from holdfast.servers.member import Failure
from holdfast.testing import SILENCE, Peer
from tests.rows import rows


def test_a_tool_knows_how_it_is_called() -> None:
    one = ServerTool("git", Tool.make("log.all", description="Shows."), "git__log_all_1")
    assert (one.dotted, one.description) == ("git.log.all", "Shows.")
    assert repr(one) == "<ServerTool git.log.all>"
    assert ServerTool("", Tool.make("search_tools"), "search_tools").dotted == "search_tools"


def test_a_list_tells_whether_it_is_all() -> None:
    assert Partial([1, 2]) == [1, 2]
    assert Partial([1]).complete
    failure = Failure(server="a", error=TransportError("x"), time=datetime.now(UTC))
    assert not Partial([1], [failure]).complete


# A server that is down

QUICK = Backoff(first=0.01, jitter=0)
SLOW = Backoff(first=60, jitter=0)


def echo() -> Peer:
    peer = Peer()

    @peer.tool()
    def echo(text: str) -> str:
        return text

    return peer


async def down(client: holdfast.Client, peer: Peer) -> None:
    """End the connection; return when the client knows."""
    peer.hang_up("gone")
    driver = client._requester.driver
    while client.state != "backoff":
        await driver.change()


@pytest.mark.req("Y5", "L11")
@pytest.mark.parametrize("listed", [True, False])
async def test_a_model_s_call_waits_for_a_server_that_is_down(listed: bool) -> None:
    peer = echo()
    async with holdfast.connect(peer, backoff=QUICK) as client:
        (tool,) = await client.model_tools()
        source = ToolSource(client)
        if listed:
            await source.tools()
        await down(client, peer)
        outcomes = [await source.call("echo", {"text": str(number)}) for number in range(3)]
        assert [outcome.text for outcome in outcomes] == ["0", "1", "2"]
        await down(client, peer)
        assert (await tool.call({"text": "x"})).text == "x"


@pytest.mark.req("Y5", "L11")
@pytest.mark.parametrize("shape", ["openai", "anthropic"])
async def test_a_toolset_waits_for_a_server_that_is_down(shape: Any) -> None:
    peer = echo()
    async with holdfast.connect(peer, backoff=QUICK) as client:
        tools = await client.toolset(shape)
        await down(client, peer)
        call = {"id": "1", "function": {"name": "echo", "arguments": '{"text": "x"}'}}
        assert (await tools.perform(call)).outcome.success


@pytest.mark.req("Y5", "L11")
@pytest.mark.parametrize("option", ["timeout", "total_timeout", "policy", "tool"])
async def test_it_waits_as_long_as_the_call_may_take_and_says_why(option: str) -> None:
    peer = echo()
    times = Timeouts(request=0.05 if option == "policy" else 60)
    async with holdfast.connect(peer, backoff=SLOW, timeouts=times) as client:
        (tool,) = await client.model_tools()
        if option == "tool":
            tool.tool.timeout = 0.05
        await down(client, peer)
        options: Any = {option: 0.05} if "timeout" in option else {}
        outcome = await tool.call({"text": "x"}, **options)
    assert not outcome.success
    assert not outcome.outcome_unknown
    assert "gone" in outcome.text


@pytest.mark.req("Y5")
async def test_what_may_have_run_is_not_waited_for() -> None:
    peer = Peer()
    peer.tool()(lambda: SILENCE)
    peer.on("tools/call", lambda _: SILENCE)
    async with holdfast.connect(peer, backoff=SLOW) as client:
        tools = await client.model_tools()
        call = asyncio.create_task(tools[0].call({}))
        await peer.expect("tools/call")
        peer.hang_up("gone")
        outcome = await call
    assert outcome.outcome_unknown
    assert len([request for request in peer.received if request.method == "tools/call"]) == 1


@pytest.mark.req("Y5")
async def test_an_outage_is_one_warning_however_many_turns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = echo()
    async with holdfast.connect(peer, backoff=SLOW) as client:
        source = ToolSource(client)
        await source.tools()
        for outage in (1, 2):
            await down(client, peer)
            for _ in range(5):
                assert list(await source.tools()) == ["echo"]
            about = [text for text in caplog.messages if "listed last" in text]
            assert len(about) == outage
            client._requester.driver.retry_now()
            await client.wait_ready(10)
            await source.tools()


@pytest.mark.req("Y5")
async def test_one_of_many_servers_that_is_down_is_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with holdfast.Servers({"good": echo(), "bad": ["no-such-program-here"]}) as servers:
        source = ToolSource(servers)
        for _ in range(3):
            assert list(await source.tools()) == ["good__echo"]
    assert len([text for text in caplog.messages if "bad" in text]) == 1


# One tool must not cost the others


ODD: list[dict[str, Any]] = [
    {"title": 5},
    {"icons": "x"},
    {"icons": [5, {"src": 7}, {"src": "data:,"}]},
    {"outputSchema": []},
    {"outputSchema": {"type": "any"}},
    {"outputSchema": {"$ref": "#/nowhere"}},
    {"outputSchema": None},
    {"annotations": "readonly"},
    {"annotations": {"readOnlyHint": "perhaps", "title": 5}},
    {"annotations": []},
    {"description": 5},
    {"description": None, "title": None},
    {"_meta": 5},
    {"_meta": {"ui": 7}},
    {"execution": 7},
    {"execution": {"taskSupport": 5}},
    {"inputSchema": None},
    {"inputSchema": [5]},
    {"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}},
    {"unknown": {"a": [1]}},
]


TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
OBJECT = {"type": "object"}
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
ICON = {
    "properties": {"src": TEXT, "mimeType": TEXT, "theme": TEXT, "sizes": {"items": TEXT}},
    "required": ["src"],
    "additionalProperties": False,
}
DEFINITION = {
    "properties": {
        **dict.fromkeys(("name", "title", "description"), TEXT),
        **dict.fromkeys(("inputSchema", "outputSchema", "_meta"), OBJECT),
        "annotations": {
            "type": "object",
            "properties": {"title": TEXT, **dict.fromkeys(HINTS, FLAG)},
        },
        "icons": {"type": "array", "items": ICON},
    },
    "required": ["name", "inputSchema"],
    "additionalProperties": False,
}
"""A tool, as the specification defines it."""


@pytest.mark.req("Y5", "T8")
@rows("odd", ODD, ids=repr)
async def test_a_definition_has_nothing_in_it_of_a_wrong_type(odd: dict[str, Any]) -> None:
    peer = Peer()
    peer.capabilities = {"tools": {}}
    peer.on("tools/list", {"tools": [{"name": "odd", "inputSchema": {"type": "object"}, **odd}]})
    async with holdfast.connect(peer) as client:
        (tool,) = await client.model_tools()
    definition = wire_definition(tool)
    validator = jsonschema_rs.validator_for(DEFINITION, validate_formats=False)
    assert [error.message for error in validator.iter_errors(definition)] == []
    jsonschema_rs.validator_for(definition["inputSchema"])
    if "outputSchema" in definition:
        jsonschema_rs.validator_for(definition["outputSchema"])


def test_a_tool_that_a_framework_refuses_is_left_out_with_a_warning() -> None:
    tools = [ServerTool("s", Tool.make(name), name) for name in ("a", "bad", "c")]
    warnings: list[str] = []

    def build(tool: ServerTool) -> str:
        if tool.name == "bad":
            raise TypeError("not like that")
        return tool.name

    assert convert_each(tools, build, lambda _, text: warnings.append(text)) == ["a", "c"]
    assert warnings == ["left out the tool 's.bad': not like that"]
