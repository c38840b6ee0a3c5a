"""What the methods of a generated handle return, and the drift that they tolerate."""

from __future__ import annotations

import copy
import logging
import pickle
from types import ModuleType
from typing import Any

import pytest

from holdfast import DriftError
from holdfast.codegen import generate
from holdfast.codegen.names import HANDLE_OWN
from holdfast.handles import UNSET, Handle, HandleResult
from holdfast.handles.results import given
from holdfast.testing import Peer
from holdfast.types.tools import Tool

OBJECT: dict[str, Any] = {"type": "object", "properties": {"passed": {"type": "integer"}}}
WRAPPED: dict[str, Any] = {
    "type": "object",
    "properties": {"result": {"type": "array", "items": {"type": "string"}}},
    "required": ["result"],
    "x-fastmcp-wrap-result": True,
}
PICTURE: dict[str, Any] = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def peer() -> Peer:
    server = Peer("shop")

    @server.tool()
    def report() -> dict[str, Any]:
        return {"content": [text('{"passed": 3, "text": "own"}')]}

    @server.tool()
    def words() -> dict[str, Any]:
        return {"content": [text("{not json")]}

    @server.tool(output_schema=OBJECT)
    def shot() -> dict[str, Any]:
        return {"content": [PICTURE], "structuredContent": {"passed": 1}}

    @server.tool(output_schema=WRAPPED)
    def names() -> dict[str, Any]:
        return {"content": [], "structuredContent": {"result": ["a", "b"]}}

    @server.tool()
    def close() -> str:
        return "the tool"

    return server


async def module(server: Peer, **options: Any) -> ModuleType:
    import holdfast

    async with holdfast.connect(server) as client:
        tools = await client.list_tools()
    made = ModuleType("made")
    exec(compile(generate(tools, **options).source, "made.py", "exec"), made.__dict__)
    return made


@pytest.mark.req("H2")
async def test_a_tool_without_a_dot_is_a_method_of_the_handle() -> None:
    server = peer()
    async with (await module(server)).connect(target=server) as mcp:
        assert (await mcp.report()).passed == (await mcp._root.report()).passed == 3
        assert (await mcp._root.close()).text == "the tool"
        assert mcp.close.__func__ is Handle.close


def test_the_members_of_a_handle_are_those_that_generation_knows() -> None:
    own = {name for name in dir(Handle) if not name.startswith("_")}
    assert own | {"adapter", "client", "registry", "session"} == HANDLE_OWN


@pytest.mark.req("H3")
async def test_json_in_the_text_is_parsed() -> None:
    server = peer()
    async with (await module(server)).connect(target=server) as mcp:
        result = await mcp.report()
        assert isinstance(result, HandleResult)
        assert result.data == {"passed": 3, "text": "own"}
        assert (result.passed, result["passed"]) == (3, 3)
        assert result.text.startswith("{"), "what a result has itself goes before"
        with pytest.raises(AttributeError, match="failed"):
            _ = result.failed
        assert (await mcp.words()).data == "{not json"


@pytest.mark.req("H3")
async def test_pictures_beside_a_structured_result_are_there() -> None:
    server = peer()
    async with (await module(server)).connect(target=server) as mcp:
        shot = await mcp.shot()
        assert (shot["passed"], shot.passed) == (1, 1)
        assert [one.type for one in shot.content] == ["image"]


@pytest.mark.req("H3")
@pytest.mark.parametrize("value", ["made", 7, 1.5])
async def test_pictures_beside_a_wrapped_value_are_there(value: object) -> None:
    result = {"type": ["string", "number"]}
    wrapped = {"type": "object", "properties": {"result": result}, "required": ["result"]}
    server = Peer("shop")
    answer = {"content": [PICTURE], "structuredContent": {"result": value}}
    server.tool(name="shot", output_schema=wrapped)(lambda: answer)
    async with (await module(server)).connect(target=server) as mcp:
        found = await mcp.shot()
        assert found == value
        assert [one.type for one in found.content] == ["image"]
        answer["content"] = [text("made")]
        assert type(await mcp.shot()) is type(value)


@pytest.mark.req("H3")
async def test_a_wrapped_result_is_unwrapped() -> None:
    server = peer()
    made = await module(server)
    async with made.connect(target=server) as mcp:
        assert await mcp.names() == ["a", "b"]
    assert made.RootTools.names.__annotations__["return"] == "list[str]"


@pytest.mark.req("H4")
async def test_additions_pass_when_only_breaking_drift_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = peer()
    made = await module(server)
    server.tool(name="more")(lambda: "new")
    caplog.set_level(logging.INFO)
    async with made.connect(target=server, drift="breaking") as mcp:
        assert (await mcp.report()).passed == 3
    assert "more" in caplog.text
    with pytest.raises(DriftError):
        async with made.connect(target=server):
            pass


@pytest.mark.req("H4")
async def test_breaking_drift_is_refused() -> None:
    server = peer()
    made = await module(server)
    needed = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    server.tool(name="report", input_schema=needed)(lambda: "new")
    with pytest.raises(DriftError, match="a: new required parameter"):
        async with made.connect(target=server, drift="breaking"):
            pass


@pytest.mark.req("H4")
def test_the_whole_schemas_are_compared_and_not_their_digits() -> None:
    from holdfast.handles.drift import Registry

    tool = Tool.make("a", input_schema=OBJECT, output_schema=OBJECT)
    known = Registry.of([tool], "again")
    other = Tool.make("a", input_schema={**OBJECT, "title": "x"}, output_schema=OBJECT)
    same_digits = Registry(
        hash=Registry.of([other], "").hash,
        command="",
        schemas=known.schemas,
        returns=known.returns,
    )
    assert known.matches([tool])
    assert not same_digits.matches([other])
    assert not known.matches([Tool.make("a", input_schema=OBJECT, output_schema=WRAPPED)])


@pytest.mark.req("H3")
def test_what_is_left_out_is_not_sent_and_none_is() -> None:
    assert given({"a": UNSET, "b": None, "c": 0, "d": ""}) == {"b": None, "c": 0, "d": ""}


def test_unset_is_false_and_one_of_a_kind() -> None:
    assert not UNSET
    assert repr(UNSET) == "UNSET"
    assert copy.deepcopy(UNSET) is pickle.loads(pickle.dumps(UNSET)) is UNSET
