"""Calls as values, and results as types."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

import holdfast
from holdfast import Timeouts, ToolError, ValidationError
from holdfast.calls import Invocation
from holdfast.testing import SILENCE, Peer
from holdfast.types import TextContent, ToolResult
from tests.rows import rows


@pytest.fixture
def peer() -> Peer:
    peer = Peer()

    @peer.tool(input_schema={"type": "object", "required": ["a"], "properties": {"a": {}}})
    def echo(a: Any) -> str:
        return str(a)

    @peer.tool()
    def fail() -> str:
        raise ValueError("no luck")

    @peer.tool()
    def silent() -> Any:
        return SILENCE

    return peer


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[holdfast.Client]:
    async with holdfast.connect(peer, timeouts=Timeouts(request=5)) as client:
        await client.list_tools()
        yield client


@pytest.mark.req("T3")
async def test_a_success_has_the_content(client: holdfast.Client) -> None:
    found = await client.invoke_tool("echo", {"a": 5})
    assert isinstance(found, Invocation)
    assert (found.success, found.error, found.exception) == (True, None, None)
    assert found.content[0].text == "5"
    assert found.duration > 0
    assert found.result is not None


@pytest.mark.req("T3")
async def test_a_tool_that_fails_is_no_success(client: holdfast.Client) -> None:
    found = await client.invoke_tool("fail")
    assert not found.success
    assert found.error is not None
    assert "no luck" in found.error
    assert found.content[0].text == found.error


@pytest.mark.req("T3")
@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("echo", {}, "validation"),
        ("nothing like it", {}, "validation"),
        ("silent", {}, "timeout"),
        ("echo", {"a": object()}, "validation"),
    ],
)
async def test_no_failure_of_the_call_is_raised(
    client: holdfast.Client, name: str, arguments: Any, kind: str
) -> None:
    found = await client.invoke_tool(name, arguments, timeout=0.05)
    assert not found.success
    assert found.content == []
    assert found.exception is not None
    assert found.exception.kind == kind
    assert found.error == str(found.exception)


@pytest.mark.req("T3")
async def test_a_lost_server_is_no_success_either(client: holdfast.Client, peer: Peer) -> None:
    peer.on("tools/call", lambda _: peer.hang_up())
    found = await client.invoke_tool("fail")
    assert found.exception is not None
    assert found.exception.kind == "transport"
    await client.close()
    found = await client.invoke_tool("fail")
    assert found.exception is not None
    assert found.exception.kind == "shutdown"


# One value for a program, for a model and for a developer


@pytest.mark.req("T3", "Y6")
async def test_a_call_of_a_program_and_one_of_a_model_have_the_same_outcome(
    client: holdfast.Client,
) -> None:
    tools = {tool.name: tool for tool in await client.model_tools()}
    calls: list[tuple[str, dict[str, Any]]] = [("echo", {"a": 5}), ("echo", {}), ("fail", {})]
    for name, arguments in calls:
        by_program = await client.invoke_tool(name, arguments)
        by_model = await tools[name].call(arguments)
        assert type(by_model) is type(by_program) is Invocation
        assert by_model.duration > 0
        for field in ("success", "content", "error", "result", "text", "kind", "structured"):
            assert getattr(by_model, field) == getattr(by_program, field)
        assert by_model.facts() == by_program.facts()


@pytest.mark.req("T3", "Y6")
async def test_a_model_reads_an_outcome_without_the_hints(
    client: holdfast.Client, peer: Peer
) -> None:
    peer.on("tools/call", lambda _: peer.hang_up())
    lost = await client.invoke_tool("fail")
    assert (lost.kind, lost.outcome_unknown) == ("transport", True)
    assert lost.exception is not None
    assert lost.text == lost.exception.redacted
    assert lost.facts()["details"] == lost.error == str(lost.exception)


@pytest.mark.req("Y6")
@pytest.mark.parametrize(
    ("error", "text"), [(KeyError("anchor"), "'anchor'"), (RuntimeError(), "RuntimeError")]
)
def test_an_error_of_another_library_is_the_cause(error: Exception, text: str) -> None:
    outcome = Invocation.of_error(error)
    assert (outcome.success, outcome.text, outcome.error) == (False, text, text)
    assert outcome.exception is not None
    assert outcome.exception.__cause__ is error


@pytest.mark.req("T3", "Y6")
async def test_an_outcome_that_is_cut_for_a_model_keeps_duration_and_reason() -> None:
    peer = Peer()

    @peer.tool()
    def fail() -> str:
        raise ValueError("no luck, " * 500)

    policy = holdfast.ToolPolicy(budget=300)
    async with holdfast.connect(peer, tools=policy) as client:
        tools = {tool.name: tool for tool in await client.model_tools()}
        cut = await tools["fail"].call()
    assert cut.duration > 0
    assert not cut.success
    assert cut.result is not None
    assert cut.content == cut.result.content
    assert len(cut.text) < 600 < len(str(cut.error))
    assert cut.result.full.text == cut.error


# Types


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Typed(TypedDict):
    x: int


class Struct(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    x: int


def result(structured: Any = msgspec.UNSET, text: str = "", **fields: Any) -> ToolResult:
    return ToolResult(content=[TextContent(text=text)], structured_content=structured, **fields)


@pytest.mark.req("T2")
@rows(
    ("kind", "expected"),
    [
        (Point, Point(1)),
        (Typed, {"x": 1}),
        (Struct, Struct(1)),
        (Model, Model(x=1)),
        (dict, {"x": 1}),
    ],
)
def test_a_structured_result_can_be_read_as_a_type(kind: type, expected: Any) -> None:
    assert result({"x": 1}).as_type(kind) == expected
    assert result(text='{"x": 1}').as_type(kind) == expected


@pytest.mark.req("T2")
@pytest.mark.parametrize("kind", [Point, Typed, Struct, Model], ids=lambda kind: kind.__name__)
def test_a_result_of_another_shape_says_what_is_wrong(kind: type) -> None:
    wrong = result({"x": "one"})
    with pytest.raises(ValidationError, match=f"as_type\\({kind.__name__}\\)") as caught:
        wrong.as_type(kind)
    assert caught.value.data is wrong


@pytest.mark.req("T2")
def test_a_wrapped_value_is_unwrapped_where_it_has_to_be() -> None:
    wrapped = result({"result": 5})
    assert wrapped.as_type(int) == 5
    assert wrapped.as_type(dict) == {"result": 5}
    assert result({"result": [1, 2]}).as_type(list[int]) == [1, 2]
    with pytest.raises(ValidationError):
        wrapped.as_type(str)


@pytest.mark.req("T2")
def test_a_result_that_is_neither_structured_nor_json_has_no_type() -> None:
    with pytest.raises(ValidationError, match="neither structured nor JSON"):
        result(text="hello").as_type(Point)


@pytest.mark.req("T2", "E1")
def test_an_error_has_no_type_and_says_why() -> None:
    with pytest.raises(ToolError, match="broke") as caught:
        result({"x": 1}, text="it broke", is_error=True).as_type(Point)
    assert caught.value.kind == "tool"
    assert caught.value.data.is_error
