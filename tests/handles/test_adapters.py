"""How sessions are opened, closed and named."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast import Tool, ToolError
from holdfast.handles import ParameterSession, SessionAdapter
from tests.handles.rig import TEXT, Desk, schema


def tool(input_schema: Any) -> Tool:
    return Tool.make("nav.goto", input_schema=input_schema)


@pytest.mark.req("H5")
@pytest.mark.parametrize(
    ("input_schema", "has"),
    [
        (schema(sessionName=TEXT), True),
        (schema("sessionName", sessionName=True), True),
        (schema(url=TEXT), False),
        (schema(session_name=TEXT), False),
        ({"type": "object"}, False),
        ({"type": "object", "properties": None}, False),
        ({"type": "object", "properties": ["sessionName"]}, False),
        ({"type": "object", "required": ["sessionName"]}, False),
        ([], False),
    ],
)
def test_a_tool_has_a_session_if_it_has_the_parameter(input_schema: Any, has: bool) -> None:
    assert ParameterSession().has_session(tool(input_schema)) is has


@pytest.mark.req("H5")
def test_the_key_is_the_adapter_s_to_choose() -> None:
    adapter: SessionAdapter = ParameterSession(key="id")
    assert adapter.has_session(tool(schema(id=TEXT)))
    assert not adapter.has_session(tool(schema(sessionName=TEXT)))
    assert adapter.inject_session({"url": "there"}, "s") == {"id": "s", "url": "there"}


@pytest.mark.req("H5")
def test_the_session_comes_first_and_the_caller_s_own_wins() -> None:
    arguments = {"url": "there"}
    found = ParameterSession().inject_session(arguments, "s")
    assert list(found.items()) == [("sessionName", "s"), ("url", "there")]
    assert arguments == {"url": "there"}
    assert ParameterSession().inject_session({"sessionName": "mine"}, "s") == {
        "sessionName": "mine"
    }


@pytest.mark.req("H5")
def test_the_lifecycle_is_what_opens_and_closes_and_what_is_said_to_be() -> None:
    assert ParameterSession().lifecycle == {"session.open", "session.close"}
    hidden = ParameterSession("id", "start", None, hide=["session.list"])
    assert hidden.lifecycle == {"start", "session.list"}
    assert repr(hidden) == "ParameterSession('id', 'start', None)"


@pytest.mark.req("H5")
async def test_the_arguments_for_opening_are_its_own_and_then_the_caller_s() -> None:
    desk = Desk()
    adapter = ParameterSession(open_arguments={"url": " from the adapter"})
    async with holdfast.connect(desk.peer) as client:
        await adapter.open(client, "one", {})
        await adapter.open(client, "two", {"url": " from the caller"})
        await adapter.close(client, "one")
    assert desk.story == ["open one from the adapter", "open two from the caller", "close one"]


@pytest.mark.req("H5")
async def test_tools_that_fail_are_named_with_the_session() -> None:
    desk = Desk()
    adapter = ParameterSession()
    async with holdfast.connect(desk.peer) as client:
        with pytest.raises(ToolError, match=r"session 'refused': session\.open: .*cannot be"):
            await adapter.open(client, "refused", {})
        with pytest.raises(ToolError, match=r"session 'crashed': session\.close: .*is gone"):
            await adapter.close(client, "crashed")


async def test_a_server_without_tools_for_it_is_told_nothing() -> None:
    desk = Desk()
    adapter = ParameterSession(open_tool=None, close_tool=None)
    client = holdfast.connect(desk.peer)
    await adapter.open(client, "s", {})
    await adapter.close(client, "s")
    await client.close()
    assert desk.peer.connections == 0
