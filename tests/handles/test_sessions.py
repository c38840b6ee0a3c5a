"""How sessions are opened, closed and named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import holdfast
from holdfast import Client, RequestTimeout, Tool, ToolError
from holdfast.handles import ParameterSession, SessionAdapter
from holdfast.handles.sessions import HandleSession
from holdfast.testing import Peer
from tests.handles.rig import TEXT, Desk, schema
from tests.rows import rows


def tool(input_schema: Any) -> Tool:
    return Tool.make("nav.goto", input_schema=input_schema)


@pytest.mark.req("H5")
@rows(
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
def test_the_lifecycle_is_what_opens_and_closes() -> None:
    assert ParameterSession().lifecycle == {"session.open", "session.close"}
    other = ParameterSession("id", "start", None)
    assert other.lifecycle == {"start"}
    assert repr(other) == "ParameterSession('id', 'start', None)"


@pytest.mark.req("H5")
async def test_a_session_is_opened_with_the_caller_s_arguments() -> None:
    desk = Desk()
    adapter = ParameterSession()
    async with holdfast.connect(desk.peer) as client:
        await adapter.open(client, "one", {"url": " from the caller"})
        await adapter.close(client, "one")
    assert desk.story == ["open one from the caller", "close one"]


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


class Adapter:
    """Says what was asked of it, and fails as it is told to."""

    def __init__(self, **failures: Exception) -> None:
        self.story: list[str] = []
        self.failures = failures

    def _do(self, what: str) -> None:
        self.story.append(what)
        if what in self.failures:
            raise self.failures[what]

    async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
        self._do("open")

    async def close(self, client: Client, session: str) -> None:
        self._do("close")

    def inject_session(self, arguments: Mapping[str, Any], session: str) -> dict[str, Any]:
        return {"at": session, **arguments}

    def has_session(self, tool: Tool) -> bool:
        return tool.name == "inside"


def make(adapter: Any) -> HandleSession:
    return HandleSession(holdfast.connect(Peer()), adapter, "s", {})


async def test_it_is_opened_once_and_closed_once() -> None:
    adapter = Adapter()
    session = make(adapter)
    for _ in range(2):
        await session.open()
    assert repr(session) == "<Session 's' open>"
    for _ in range(2):
        await session.close()
    assert adapter.story == ["open", "close"]


async def test_one_that_was_refused_is_not_closed() -> None:
    adapter = Adapter(open=ToolError("no"))
    session = make(adapter)
    with pytest.raises(ToolError):
        await session.open()
    await session.close()
    assert adapter.story == ["open"]


async def test_one_in_doubt_is_closed_as_far_as_that_goes() -> None:
    adapter = Adapter(open=RequestTimeout("?", outcome_unknown=True), close=ToolError("no such"))
    session = make(adapter)
    with pytest.raises(RequestTimeout):
        await session.open()
    assert repr(session) == "<Session 's' in doubt>"
    await session.close()
    assert adapter.story == ["open", "close"]


async def test_one_that_was_open_is_missed_if_it_cannot_be_closed() -> None:
    session = make(Adapter(close=ToolError("no")))
    await session.open()
    with pytest.raises(ToolError):
        await session.close()
    assert repr(session) == "<Session 's' absent>"


async def test_one_lost_with_its_connection_needs_no_closing() -> None:
    adapter = Adapter()
    session = make(adapter)
    await session.open()
    session.lost()
    await session.close()
    assert adapter.story == ["open"]


async def test_one_lost_while_it_is_opened_is_not_taken_for_open() -> None:
    class Slippery(Adapter):
        async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
            await super().open(client, session, arguments)
            found.lost()

    adapter = Slippery()
    found = make(adapter)
    await found.open()
    assert not found.is_open


async def test_an_adapter_may_say_that_sessions_outlive_connections() -> None:
    class Lasting(Adapter):
        reopen = False

    session = make(Lasting())
    await session.open()
    session.lost()
    assert session.is_open


def test_the_session_is_put_into_the_arguments_of_known_tools_that_want_it() -> None:
    session = make(Adapter())
    assert session.place(Tool.make("inside"), {"a": 1}) == {"at": "s", "a": 1}
    assert session.place(Tool.make("outside"), {"a": 1}) == {"a": 1}
    assert session.place(None, {"a": 1}) == {"a": 1}
