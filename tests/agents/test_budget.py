"""Results that are too long for a model."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import Servers, ToolPolicy, ToolResult, ValidationError
from holdfast.agents.results import shorten
from holdfast.testing import Peer
from holdfast.types.content import TextContent

LINES = "\n".join(f"line {number} of many" for number in range(2000))


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
        assert gone.is_error
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


@given(st.text(min_size=50, max_size=400), st.integers(1, 49))
def test_nothing_is_lost_or_doubled(text: str, budget: int) -> None:
    whole = ToolResult(content=[TextContent(text=text)])
    cut = shorten(whole, budget, lambda at: f"at {at}")
    assert cut.full is whole
    shown = cut.text
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
