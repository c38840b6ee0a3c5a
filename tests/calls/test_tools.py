"""Tool records, refusals, checks of arguments and results, per tool timeouts."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

import holdfast
from holdfast import Timeouts, ToolPolicy, ValidationError
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from holdfast.types import ToolAnnotations

ERAS = [pytest.param(STATELESS, id="stateless"), pytest.param(HANDSHAKE, id="handshake")]
SOON = Timeouts(request=5)
SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 10}},
    "required": ["query"],
    "additionalProperties": False,
}
COUNT = {
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
}


class Shop(Peer):
    """Tools with schemas; what ``count`` returns is up to the test."""

    def __init__(self, versions: Any = STATELESS) -> None:
        super().__init__(versions=versions)
        self.counted: Any = {"count": 1}

        @self.tool(input_schema=SEARCH, description="look")
        def search(query: str, limit: int = 5) -> str:
            return f"{query} {limit}"

        @self.tool(output_schema=COUNT, annotations=ToolAnnotations(read_only_hint=True))
        def count() -> Any:
            return self.counted

        @self.tool()
        def remove(**_: Any) -> str:
            return "removed"

    def asked(self, method: str) -> int:
        return sum(one.method == method for one in self.received)

    @property
    def calls(self) -> int:
        return self.asked("tools/call")


@pytest.fixture(params=ERAS)
def shop(request: pytest.FixtureRequest) -> Shop:
    return Shop(request.param)


def connect(shop: Shop, **policies: Any) -> holdfast.Client:
    return holdfast.connect(shop, timeouts=SOON, tools=ToolPolicy(**policies))


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[holdfast.Client]:
    async with connect(shop) as client:
        yield client


# Records


@pytest.mark.req("T4")
async def test_each_tool_has_a_record(client: holdfast.Client) -> None:
    assert client.tools == {}
    await client.list_tools()
    assert list(client.tools) == ["search", "count", "remove"]
    search, count = client.tools["search"], client.tools["count"]
    assert (search.name, search.mcp_name, search.description) == ("search", "search", "look")
    assert search.input_schema == SEARCH
    assert (search.timeout, search.enabled) == (None, True)
    assert count.output_schema == COUNT
    assert count.annotations is not None
    assert count.annotations.read_only_hint


@pytest.mark.req("T4")
async def test_records_are_the_clients_to_read_and_not_to_replace(client: holdfast.Client) -> None:
    await client.list_tools()
    with pytest.raises(TypeError):
        client.tools["search"] = None  # type: ignore[index]


@pytest.mark.req("T4", "R3")
async def test_timeouts_and_enabling_are_set_by_name_or_pattern(shop: Shop) -> None:
    policy = {
        "timeouts": {"*": 9, "s*": 5, "search": 2},
        "deny": ["re*"],
        "allow": ["*e*", "count"],
    }
    async with connect(shop, **policy) as client:
        await client.list_tools()
        found = {tool.name: (tool.timeout, tool.enabled) for tool in client.tools.values()}
    assert found == {"search": (2, True), "count": (9, True), "remove": (9, False)}


@pytest.mark.req("T4")
async def test_what_was_set_on_a_record_outlives_the_next_list(client: holdfast.Client) -> None:
    await client.list_tools()
    client.tools["search"].timeout = 7
    client.tools["remove"].enabled = False
    await client.list_tools()
    assert client.tools["search"].timeout == 7
    assert not client.tools["remove"].enabled


# Refusals


@pytest.mark.req("T4", "E1")
async def test_an_unknown_tool_is_refused_with_near_names(
    client: holdfast.Client, shop: Shop
) -> None:
    await client.list_tools()
    with pytest.raises(ValidationError, match=r"no such tool.*Did you mean 'search'") as caught:
        await client.call_tool("serach", {})
    assert caught.value.kind == "validation"
    assert caught.value.data == {"tool": "serach", "near": ["search"]}
    assert shop.calls == 0


@pytest.mark.req("T4")
async def test_before_the_first_list_the_server_decides_if_that_is_asked_for(shop: Shop) -> None:
    async with connect(shop, validate="known") as client:
        with pytest.raises(holdfast.RpcError, match="unknown tool"):
            await client.call_tool("serach", {})
    assert (shop.calls, shop.asked("tools/list")) == (1, 0)


@pytest.mark.req("T4")
@pytest.mark.parametrize("listed", [True, False])
async def test_a_disabled_tool_is_refused_before_anything_is_sent(shop: Shop, listed: bool) -> None:
    async with connect(shop, deny=["remove"]) as client:
        if listed:
            await client.list_tools()
        with pytest.raises(ValidationError, match=r"'remove'.*disabled.*nothing was sent"):
            await client.call_tool("remove")
        assert (await client.call_tool("search", {"query": "x"})).text == "x 5"
    assert shop.calls == 1


@pytest.mark.req("T4")
async def test_a_record_can_be_disabled_later(client: holdfast.Client, shop: Shop) -> None:
    await client.list_tools()
    await client.call_tool("remove")
    client.tools["remove"].enabled = False
    with pytest.raises(ValidationError, match="disabled"):
        await client.call_tool("remove")
    shop.notify("notifications/tools/list_changed")
    await client.ping()
    with pytest.raises(ValidationError, match="disabled"):
        await client.call_tool("remove")


@pytest.mark.req("T7", "T4")
async def test_tools_that_are_all_disabled_are_not_available(shop: Shop) -> None:
    async with connect(shop, allow=["nothing"]) as client:
        assert not await client.available_tools()
    async with connect(shop) as client:
        assert await client.available_tools()


@pytest.mark.req("T4")
async def test_a_tool_that_came_later_is_not_refused(client: holdfast.Client, shop: Shop) -> None:
    await client.list_tools()

    @shop.tool()
    def added() -> str:
        return "new"

    with pytest.raises(ValidationError):
        await client.call_tool("added")
    shop.notify("notifications/tools/list_changed")
    await client.ping()
    assert (await client.call_tool("added")).text == "new"


# Arguments


@pytest.mark.req("T5")
async def test_arguments_that_do_not_fit_are_not_sent(client: holdfast.Client, shop: Shop) -> None:
    await client.list_tools()
    with pytest.raises(ValidationError) as caught:
        await client.call_tool("search", {"limit": 11, "qeury": "x"})
    message = str(caught.value)
    assert "peer: tools/call 'search'" in message
    assert "nothing was sent" in message
    assert "/limit" in message
    assert "'query' is required" in message
    assert "did you mean 'query'" in message
    assert {fault.path for fault in caught.value.data} == {"", "/limit"}
    assert not caught.value.outcome_unknown
    assert shop.calls == 0


@pytest.mark.req("T5")
async def test_arguments_that_fit_are_sent(client: holdfast.Client) -> None:
    await client.list_tools()
    assert (await client.call_tool("search", {"query": "x", "limit": 3})).text == "x 3"


@pytest.mark.req("T5")
@pytest.mark.parametrize("validate", ["known", "off"])
async def test_a_call_can_make_exactly_one_request(shop: Shop, validate: str) -> None:
    async with connect(shop, validate=validate) as client:
        await client.call_tool("search", {"query": "x"})
        await client.call_tool("search", {"query": "x"})
    assert (shop.calls, shop.asked("tools/list")) == (2, 0)


@pytest.mark.req("T5")
async def test_always_lists_the_tools_once_if_it_has_to(shop: Shop) -> None:
    async with connect(shop, validate="always") as client:
        with pytest.raises(ValidationError):
            await client.call_tool("search", {})
        with pytest.raises(ValidationError, match="no such tool"):
            await client.call_tool("serach", {})
        await client.call_tool("search", {"query": "x"})
    assert (shop.calls, shop.asked("tools/list")) == (1, 1)


@pytest.mark.req("T5")
async def test_always_lists_again_after_a_change(shop: Shop) -> None:
    async with connect(shop, validate="always") as client:
        await client.call_tool("search", {"query": "x"})
        shop.notify("notifications/tools/list_changed")
        await client.ping()
        await client.call_tool("search", {"query": "x"})
        await client.call_tool("search", {"query": "x"})
    assert shop.asked("tools/list") == 2


@pytest.mark.req("T5")
async def test_a_server_without_a_list_is_called_all_the_same(shop: Shop) -> None:
    def no_list(_: ServerRequest) -> Any:
        raise RequestError(-32601, "method not found")

    shop.on("tools/list", no_list)
    async with connect(shop, validate="always") as client:
        assert (await client.call_tool("search", {"query": "x"})).text == "x 5"


@pytest.mark.req("T5")
async def test_checks_can_be_off(shop: Shop) -> None:
    async with connect(shop, validate="off") as client:
        await client.list_tools()
        assert (await client.call_tool("search", {"limit": 11})).is_error
    assert shop.calls == 1


@pytest.mark.req("T5")
async def test_a_schema_that_is_out_of_date_refuses_nothing(shop: Shop) -> None:
    async with connect(shop, validate="known") as client:
        await client.list_tools()
        shop.notify("notifications/tools/list_changed")
        await client.ping()
        await client.call_tool("search", {"query": "x", "limit": 11})
    assert shop.calls == 1


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$schema": "urn:mine", "type": "object", "x": 1}, "urn:mine.*not supported"),
        ({"type": "object", "$ref": "http://127.0.0.1:9/x"}, "ever fetched"),
        ({"type": "object", "required": "everything"}, "not a valid schema"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_left_to_the_server_with_a_warning(
    shop: Shop, schema: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    @shop.tool(input_schema=schema)
    def strange(a: int = 0) -> str:
        return "ran"

    async with connect(shop) as client:
        assert "strange" in {tool.name for tool in await client.list_tools()}
        assert (await client.call_tool("strange", {"a": 1})).text == "ran"
        assert (await client.call_tool("search", {"query": "x"})).text == "x 5"
    (warning,) = caplog.messages
    assert re.search(why, warning)
    async with connect(shop, validate="off") as client:
        await client.list_tools()
        assert (await client.call_tool("strange")).text == "ran"
    assert len(caplog.messages) == 1, "what is not to be checked needs no warning"


@pytest.mark.req("T5")
async def test_a_broken_definition_does_not_hide_the_good_ones(
    client: holdfast.Client, shop: Shop
) -> None:
    good = {"name": "search", "inputSchema": SEARCH}
    shop.on("tools/list", {"tools": [{"name": 5}, good, {"inputSchema": {}}, "nonsense"]})
    assert [tool.name for tool in await client.list_tools()] == ["search"]
    with pytest.raises(ValidationError):
        await client.call_tool("search", {})


# Results


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.WARNING, logger="holdfast")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.req("T6")
async def test_a_result_that_fits_is_delivered_quietly(
    client: holdfast.Client, warnings: Any
) -> None:
    await client.list_tools()
    result = await client.call_tool("count")
    assert (result.structured, result.faults) == ({"count": 1}, ())
    assert warnings() == []


@pytest.mark.req("T6")
async def test_a_result_that_does_not_fit_is_delivered_with_a_warning(
    client: holdfast.Client, shop: Shop, warnings: Any
) -> None:
    await client.list_tools()
    shop.counted = {"count": "many"}
    result = await client.call_tool("count")
    assert result.structured == {"count": "many"}
    assert [fault.path for fault in result.faults] == ["/count"]
    (warning,) = warnings()
    assert "'count'" in warning
    assert "/count: must be integer" in warning


@pytest.mark.req("T6")
async def test_a_result_that_does_not_fit_can_raise_and_is_not_lost(shop: Shop) -> None:
    shop.counted = {"count": "many"}
    async with connect(shop, results="raise") as client:
        await client.list_tools()
        with pytest.raises(ValidationError, match="/count") as caught:
            await client.call_tool("count")
    result = caught.value.data
    assert result.structured == {"count": "many"}
    assert result.raw["structuredContent"] == {"count": "many"}
    assert result.faults


@pytest.mark.req("T6")
async def test_results_can_be_left_unchecked(shop: Shop, warnings: Any) -> None:
    shop.counted = {"count": "many"}
    async with connect(shop, results="off") as client:
        await client.list_tools()
        assert (await client.call_tool("count")).faults == ()
    assert warnings() == []


@pytest.mark.req("T6")
async def test_a_promised_result_that_is_missing_is_a_fault(
    client: holdfast.Client, shop: Shop
) -> None:
    await client.list_tools()
    shop.counted = "just text"
    (fault,) = (await client.call_tool("count")).faults
    assert "no structured result" in fault.message


@pytest.mark.req("T6")
async def test_an_error_is_never_checked(shop: Shop, warnings: Any) -> None:
    text = {"type": "text", "text": "no"}
    shop.counted = {"content": [text], "structuredContent": {"code": 5}, "isError": True}
    async with connect(shop, results="raise") as client:
        await client.list_tools()
        result = await client.call_tool("count")
    assert (result.is_error, result.structured, result.faults) == (True, {"code": 5}, ())
    assert warnings() == []


@pytest.mark.req("T6")
@pytest.mark.parametrize("structured", [[1, 2], 5, None, "text", False])
async def test_a_result_may_be_any_json_value(shop: Shop, structured: Any) -> None:
    @shop.tool(output_schema={"not": {"type": "object"}})
    def anything() -> Any:
        return {"content": [], "structuredContent": structured}

    async with connect(shop, results="raise") as client:
        await client.list_tools()
        result = await client.call_tool("anything")
    assert (result.structured, result.has_structured) == (structured, True)


@pytest.mark.req("T6")
async def test_a_schema_of_results_that_cannot_be_used_costs_a_warning(
    shop: Shop, warnings: Any
) -> None:
    @shop.tool(output_schema={"$ref": "http://127.0.0.1:9/x"})
    def strange() -> Any:
        return {"a": 1}

    async with connect(shop) as client:
        await client.list_tools()
        assert (await client.call_tool("strange")).structured == {"a": 1}
    (warning,) = warnings()
    assert "the result is not checked" in warning


# Timeouts


@pytest.mark.req("R3")
@pytest.mark.parametrize("listed", [True, False])
async def test_a_tools_own_timeout_rules(shop: Shop, listed: bool) -> None:
    shop.on("tools/call", lambda _: SILENCE)
    times = Timeouts(request=60, tools=60)
    policy = ToolPolicy(timeouts={"remove": 0.01})
    async with holdfast.connect(shop, timeouts=times, tools=policy) as client:
        if listed:
            await client.list_tools()
        with pytest.raises(holdfast.RequestTimeout, match="10 ms"):
            await client.call_tool("remove")


@pytest.mark.req("R3")
async def test_a_calls_own_timeout_comes_first(shop: Shop) -> None:
    shop.on("tools/call", lambda _: SILENCE)
    async with connect(shop, timeouts={"remove": 60}) as client:
        with pytest.raises(holdfast.RequestTimeout, match="20 ms"):
            await client.call_tool("remove", timeout=0.02)


@pytest.mark.req("R3")
async def test_the_timeout_of_tools_is_for_tools_alone(shop: Shop) -> None:
    shop.on("tools/call", lambda _: SILENCE)
    times = Timeouts(request=60, tools=0.03)
    async with holdfast.connect(shop, timeouts=times) as client:
        with pytest.raises(holdfast.RequestTimeout, match="30 ms"):
            await client.call_tool("remove")


@pytest.mark.req("R3")
async def test_a_timeout_set_on_a_record_rules_the_next_call(
    client: holdfast.Client, shop: Shop
) -> None:
    await client.list_tools()
    shop.on("tools/call", lambda _: SILENCE)
    client.tools["remove"].timeout = 0.04
    with pytest.raises(holdfast.RequestTimeout, match="40 ms"):
        await client.call_tool("remove")


# What may be repeated


@pytest.mark.req("R11")
async def test_only_tools_that_say_so_may_run_twice(client: holdfast.Client) -> None:
    await client.list_tools()
    for name, repeatable in (("count", True), ("remove", False), ("search", False)):
        ready = await client._tools.find(name, client._requester.deadline("tools/call"))
        assert ready.repeatable is repeatable


# A real process


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize("protocol", [STATELESS[0], HANDSHAKE[0]])
async def test_a_real_server_s_schemas_are_kept_on_both_sides(protocol: str) -> None:
    policy = ToolPolicy(validate="always", results="raise")
    command = [sys.executable, "-m", "holdfast.demo.server"]
    async with holdfast.connect(command, protocol=protocol, tools=policy) as client:
        result = await client.call_tool("word_count", {"text": "hold fast"})
        assert result.structured == {"lines": 1, "words": 2, "characters": 9}
        assert client.tools["word_count"].output_schema is not None
        with pytest.raises(ValidationError, match="/text: must be string"):
            await client.call_tool("word_count", {"text": 5})
        with pytest.raises(ValidationError, match="/name: must match the pattern"):
            await client.call_tool("note", {"name": "a b", "text": "x"})


@pytest.mark.req("T5")
async def test_arguments_that_cannot_be_checked_in_time_are_left_to_the_server(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    schema: Any = {"type": "object"}
    for _ in range(24):
        schema = {"anyOf": [schema], "unevaluatedProperties": False}

    @shop.tool(input_schema={"type": "object", **schema})
    def frozen(a: int = 0) -> str:
        return "ran"

    async with connect(shop) as client:
        await client.list_tools()
        for _ in range(2):
            assert (await client.call_tool("frozen", {"a": 1})).text == "ran"
    said = [one for one in caplog.messages if "not checked" in one]
    assert len(said) == 1
    assert "'frozen'" in said[0]


async def calls_of_functions(tools: int, calls: int) -> int:
    """Return how many functions run while a number of first calls waits for a list of tools."""
    peer = Peer()
    for number in range(tools):
        peer.tool(f"tool{number}", input_schema=SEARCH)(lambda query: query)
    count = 0

    def note(*_: Any) -> None:
        nonlocal count
        count += 1

    async with holdfast.connect(peer) as client:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            one = {"query": "anchor"}
            await asyncio.gather(*[client.call_tool("tool0", one) for _ in range(calls)])
        finally:
            sys.setprofile(before)
    assert sum(one.method == "tools/list" for one in peer.received) == 1
    return count


async def test_first_calls_at_once_read_the_list_of_tools_once() -> None:
    """The list may be long and the calls many: together they cost the sum, not the product."""
    await calls_of_functions(1, 1)
    one = await calls_of_functions(300, 1) - await calls_of_functions(1, 1)
    many = await calls_of_functions(300, 20) - await calls_of_functions(1, 20)
    assert many < 2 * one
