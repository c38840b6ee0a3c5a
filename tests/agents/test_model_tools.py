"""Tools for language models, whatever library talks to the model."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast import Servers
from holdfast.agents import ModelTool, Partial
from holdfast.testing import Peer
from holdfast.types.tools import ToolAnnotations

DEPTH = {"type": "object", "properties": {"depth": {"type": "integer"}}, "required": ["depth"]}


def anchors() -> Peer:
    peer = Peer("anchors")

    @peer.tool(
        description="Drops it.",
        input_schema=DEPTH,
        annotations=ToolAnnotations(destructive_hint=True),
    )
    def drop(depth: int) -> dict[str, int]:
        return {"depth": depth}

    @peer.tool("log.all", title="The log")
    def log() -> str:
        raise ValueError("no log")

    @peer.tool(meta={"ui": {"visibility": ["app"]}})
    def redraw() -> str:
        return "done"

    return peer


def named(tools: Partial[ModelTool]) -> dict[str, ModelTool]:
    return {tool.name: tool for tool in tools}


@pytest.mark.req("Y5")
@pytest.mark.parametrize("many", [False, True])
async def test_a_tool_describes_itself_and_is_called(many: bool) -> None:
    async with Servers({"sea": anchors()}) as servers:
        tools = named(await (servers if many else servers["sea"]).model_tools())
        tool = tools["sea__drop" if many else "drop"]
        assert tool.description == "Drops it."
        assert tool.input_schema["required"] == ["depth"]
        assert tool.annotations is not None
        assert tool.annotations.destructive_hint
        outcome = await tool.call({"depth": 3})
        assert (outcome.text, outcome.structured) == ('{"depth":3}', {"depth": 3})
        assert (outcome.success, outcome.kind, outcome.error) == (True, None, None)


@pytest.mark.req("Y5")
async def test_names_and_descriptions_are_such_as_models_take() -> None:
    async with holdfast.connect(anchors()) as client:
        found = [tool for tool in await client.model_tools() if tool.tool.name == "log.all"]
        assert found[0].name.startswith("anchors__log_all_")
        assert found[0].description == "The log"


@pytest.mark.req("Y5")
async def test_tools_for_applications_alone_are_left_out() -> None:
    async with Servers({"sea": anchors()}) as servers:
        assert not [one for one in await servers.model_tools() if one.tool.name == "redraw"]
        assert "redraw" not in str((await servers["sea"].toolset("openai")).definitions)


@pytest.mark.req("Y5")
async def test_a_tool_that_fails_is_an_outcome() -> None:
    async with Servers({"sea": anchors()}) as servers:
        (tool,) = [one for one in await servers.model_tools() if one.tool.name == "log.all"]
        outcome = await tool.call()
        assert (outcome.kind, outcome.success) == ("tool", False)
        assert "no log" in outcome.text
        assert not outcome.outcome_unknown


@pytest.mark.req("Y5")
async def test_a_developer_reads_more_of_a_failure_than_a_model() -> None:
    peer = anchors()
    async with holdfast.connect(peer, backoff=holdfast.Backoff(first=60, jitter=0)) as client:
        tool = (await client.model_tools())[0]
        peer.on("tools/call", lambda request: peer.hang_up())
        lost = await tool.call({"depth": 1})
        assert (lost.kind, lost.outcome_unknown, lost.retry_in) == ("transport", True, None)
        assert "may have run" in lost.text
        down = await tool.call({"depth": 1}, timeout=0.05)
        assert (down.kind, down.outcome_unknown) == ("state", False)
        assert down.retry_in is not None
        assert "when_down" in str(down.error)
        assert "when_down" not in down.text
        assert "the server is down" in down.text


@pytest.mark.req("Y5")
def test_without_a_loop_a_call_is_not_awaited() -> None:
    with holdfast.sync.connect(anchors()) as client:
        tool = client.model_tools()[0]
        assert (tool.name, tool.server, tool.dotted) == ("drop", "anchors", "anchors.drop")
        assert tool.call({"depth": 2}).structured == {"depth": 2}
        assert "do not fit its schema" in tool.call({"depth": "deep"}).text
        toolset = client.toolset("anthropic")
        call = {"id": "1", "name": "drop", "input": {"depth": 4}}
        answer = client.perform(toolset, call)
        assert answer.message["content"] == [{"type": "text", "text": '{"depth":4}'}]
        assert answer.outcome.structured == {"depth": 4}


@pytest.mark.req("Y5")
async def test_cancelling_a_call_cancels_it_on_the_server() -> None:
    peer, begun = Peer(), asyncio.Event()
    stopped = asyncio.Event()

    @peer.tool()
    async def wait() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with holdfast.connect(peer) as client:
        (tool,) = await client.model_tools()
        task = asyncio.ensure_future(tool.call())
        await begun.wait()
        task.cancel()
        await asyncio.wait_for(stopped.wait(), 10)
        assert task.cancelled() or await asyncio.wait([task])
