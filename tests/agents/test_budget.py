"""Results that are too long for a model."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import Handlers, RpcError, Servers, ToolPolicy, ValidationError
from holdfast.agents.budget import cut
from holdfast.openai_agents import _result
from holdfast.pydantic_ai import _value
from holdfast.testing import Peer, RequestError, ServerRequest

LINES = "\n".join(f"line {number} of many" for number in range(2000))
TEXT = {"type": "text", "text": "ok"}


def talkative() -> Peer:
    peer = Peer("talk")
    peer.tool("long")(lambda: LINES)
    peer.tool("short")(lambda: "short")
    peer.tool("rows")(lambda: {"rows": [{"row": number} for number in range(2000)]})
    return peer


async def test_a_result_within_the_budget_is_untouched() -> None:
    async with holdfast.connect(talkative(), tools=ToolPolicy(budget=100)) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        outcome = await tools["short"].call()
        assert outcome.text == "short"
        assert outcome.result is not None
        assert outcome.result.full is outcome.result


@pytest.mark.req("D1")
async def test_a_long_result_has_head_tail_size_and_a_way_to_the_rest() -> None:
    async with holdfast.connect(talkative(), tools=ToolPolicy(budget=1000)) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        outcome = await tools["long"].call()
        head, note, tail = re.split(r"\n(\[.*\])\n", outcome.text)
        assert head.startswith("line 0 of many\n")
        assert head.endswith(" of many"), "cut at the end of a line"
        assert re.match(r"line \d+ of many\n", tail)
        assert tail.endswith("line 1999 of many")
        assert len(head) + len(tail) <= 1000
        assert f"of {len(LINES)} characters" in note
        assert outcome.result is not None
        assert outcome.result.full.text == LINES
        assert (await client.call_tool("long")).text == LINES, "programs get all of it"


@pytest.mark.req("D1")
@pytest.mark.parametrize("many", [False, True])
async def test_a_model_reads_the_rest_piece_by_piece(many: bool) -> None:
    policy = ToolPolicy(budget=1000)
    async with Servers({"talk": holdfast.connect(talkative(), tools=policy)}) as servers:
        source: Any = servers if many else servers["talk"]
        tools = {tool.tool.name: tool for tool in await source.model_tools()}
        text = (await tools["long"].call()).text
        found = re.search(r"handle='([^']*)', offset=(\d+)", text)
        assert found is not None
        handle, at = found[1], int(found[2])
        whole = text[:at]
        while at < len(LINES):
            asked = {"handle": handle, "offset": at, "length": 9000}
            piece = (await tools["read_more"].call(asked)).text
            whole += piece.partition("\n[")[0] if at + 9000 < len(LINES) else piece
            at += 9000
        assert whole == LINES
        gone = await tools["read_more"].call({"handle": "talk-99", "offset": 0})
        assert not gone.success
        assert "no result 'talk-99'" in gone.text


@pytest.mark.req("D1")
async def test_a_budget_may_be_a_tool_s_own() -> None:
    policy = ToolPolicy(budget={"l*": 500, "short": 2})
    async with holdfast.connect(talkative(), tools=policy) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        assert len((await tools["long"].call()).text) < 700
        assert "characters left out" in (await tools["short"].call()).text
        assert "left out" not in (await tools["rows"].call()).text


@pytest.mark.req("D1")
async def test_providers_get_the_cut_result_and_developers_the_structure() -> None:
    async with holdfast.connect(talkative(), tools=ToolPolicy(budget=500)) as client:
        for shape in ("gemini", "anthropic", "openai"):
            toolset = await client.toolset(shape)
            answer = await client.perform(toolset, {"id": "1", "name": "rows", "args": {}})
            assert len(str(answer.message)) < 1000
            assert len(answer.outcome.structured["rows"]) == 2000


ROWS = {"rows": [f"row {number}" for number in range(2000)]}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
LONG: dict[str, Any] = {
    "structure beside a short text": {"content": [TEXT], "structuredContent": ROWS},
    "structure alone": {"content": [], "structuredContent": ROWS},
    "links": {"content": [LINK] * 500},
    "contents of an unknown kind": {"content": [{"type": "hologram"}] * 500},
    "a tool's failure": {"content": [{"type": "text", "text": LINES}], "isError": True},
    "an error of the server": RequestError(-32000, LINES),
}


@pytest.mark.req("D1")
@pytest.mark.parametrize("kind", LONG)
async def test_whatever_a_model_would_read_is_held_to_the_budget(kind: str) -> None:
    peer = Peer("odd")
    peer.tool("odd")(lambda: "")
    answer(peer, LONG[kind])
    async with holdfast.connect(peer, tools=ToolPolicy(budget=500)) as client:
        for shape in ("openai", "openai-responses", "anthropic", "gemini"):
            toolset = await client.toolset(shape)
            found = await client.perform(toolset, {"id": "1", "name": "odd", "args": {}})
            assert "left out here" in str(found.message)
            assert len(str(found.message)) < 1000
        tools = {tool.name: tool for tool in await client.model_tools()}
        outcome = await tools["odd"].call()
        assert len(outcome.text) < 700
        assert len(str(_result(outcome)["content"])) < 900
        assert len(str(_result(outcome).get("structuredContent"))) < 500
        assert not outcome.success or len(str(_value(outcome))) < 900
        whole = str(outcome.error) if outcome.result is None else str(outcome.result.full.raw)
        assert len(whole) > 10_000


def answer(peer: Peer, found: Any) -> None:
    def call(incoming: ServerRequest) -> Any:
        if isinstance(found, RequestError):
            raise found
        return found

    peer.on("tools/call", call)


@pytest.mark.req("D1")
async def test_a_failure_that_was_cut_can_be_read_on_and_stays_a_failure() -> None:
    peer = talkative()
    answer(peer, RequestError(-32000, LINES))
    async with holdfast.connect(peer, tools=ToolPolicy(budget=500)) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        outcome = await tools["long"].call()
        assert (outcome.kind, type(outcome.exception)) == ("jsonrpc", RpcError)
        more = await tools["read_more"].call({"handle": "talk-1", "offset": 400})
        assert more.text[:100] in str(outcome.error)


@pytest.mark.req("D1")
@pytest.mark.parametrize(
    "structured",
    [{"a": 1, "b": [2, 3]}, {"result": "twice"}, {"result": ["one", "two"]}, {"result": [1, 2]}],
)
async def test_what_a_server_says_twice_counts_once(structured: dict[str, Any]) -> None:
    inner = structured.get("result", structured)
    items = inner if isinstance(inner, list) else [inner]
    texts = [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in items]
    peer = talkative()
    content = [{"type": "text", "text": text} for text in texts]
    answer(peer, {"content": content, "structuredContent": structured})
    budget = len("\n".join(texts))
    async with holdfast.connect(peer, tools=ToolPolicy(budget=budget)) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        assert (await tools["short"].call()).text == "\n".join(texts)
        toolset = await client.toolset("gemini")
        found = await client.perform(toolset, {"id": "1", "name": "short", "args": {}})
        assert found.message["functionResponse"]["response"] == {"output": structured}


@pytest.mark.req("D1")
@pytest.mark.parametrize(
    ("asked", "most"),
    [({}, 1100), ({"length": 10**9}, 10_100), ({"offset": 0.0, "length": 10.0}, 100)],
)
async def test_more_of_a_result_is_bounded_too(asked: dict[str, Any], most: int) -> None:
    async with holdfast.connect(talkative(), tools=ToolPolicy(budget=1000)) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        await tools["long"].call()
        more = await tools["read_more"].call({"handle": "talk-1", "offset": 0, **asked})
        assert more.text.startswith("line 0")
        assert len(more.text) < most


@pytest.mark.req("D1")
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    "asked",
    [
        {"offset": -1},
        {"offset": True},
        {"offset": "5"},
        {"offset": 0.5},
        {"offset": 0, "length": 0},
        {"offset": 0, "handle": []},
        {},
    ],
)
async def test_more_that_cannot_be_read_is_refused(asked: dict[str, Any], many: bool) -> None:
    talk = holdfast.connect(talkative(), tools=ToolPolicy(budget=1000))
    async with Servers({"talk": talk}) as servers:
        source: Any = servers if many else servers["talk"]
        tools = {tool.tool.name: tool for tool in await source.model_tools()}
        await tools["long"].call()
        assert (await tools["read_more"].call({"handle": "talk-1", **asked})).kind == "validation"


async def test_a_finder_without_a_result_to_read_says_so() -> None:
    async with Servers({"talk": talkative()}) as servers:
        asked = {"name": "read_more", "arguments": {"handle": "talk-1", "offset": 0}}
        call = {"id": "1", "name": "call_tool", "input": asked}
        found = await servers.perform(servers.finder("anthropic"), call)
        assert "no result 'talk-1'" in found.message["content"]


@pytest.mark.req("D1")
async def test_a_tool_of_that_name_keeps_its_place() -> None:
    peer = talkative()
    peer.tool("read_more")(lambda: "the server's own")
    async with holdfast.connect(peer, tools=ToolPolicy(budget=1000)) as client:
        tools = {tool.tool.name: tool for tool in await client.model_tools() if tool.server}
        assert tools["read_more"].name != "read_more"
        assert (await tools["read_more"].call()).text == "the server's own"


@pytest.mark.req("D1")
async def test_old_results_are_forgotten_first() -> None:
    async with holdfast.connect(talkative(), tools=ToolPolicy(budget=1000)) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        for _ in range(33):
            await tools["long"].call()
        asked = [{"handle": f"talk-{number}", "offset": 0} for number in (1, 2)]
        assert [(await tools["read_more"].call(one)).success for one in asked] == [False, True]


@pytest.mark.req("D1", "D3")
async def test_a_long_question_stays_one_that_can_be_answered() -> None:
    peer = talkative()
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": LINES, "requestedSchema": form}
    asked = {"method": "elicitation/create", "params": params}
    answer(peer, {"resultType": "input_required", "inputRequests": {"q": asked}})
    handlers, policy = Handlers(elicitation="return"), ToolPolicy(budget=500)
    async with holdfast.connect(peer, handlers=handlers, tools=policy) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        outcome = await tools["long"].call()
        assert len(outcome.text) < 700
        assert outcome.result is not None
        assert list(outcome.result.pending.questions) == ["q"]


@given(st.text(min_size=50, max_size=400), st.integers(1, 49))
def test_nothing_is_lost_or_doubled(text: str, budget: int) -> None:
    shown = cut(text, budget, lambda at: f"at {at}")
    note = r"\[(\d+) of (\d+) characters left out here; the rest: at (\d+)\]"
    left, total, at = map(int, re.findall(note, shown)[-1])
    assert total == len(text)
    assert shown.startswith(text[:at])
    assert 0 < left <= len(text) - at


def test_a_budget_that_cannot_be_is_refused() -> None:
    for wrong in (0, -1, True, {"a": "many"}):
        bad: Any = wrong
        with pytest.raises(ValidationError, match="budget="):
            ToolPolicy(budget=bad)
