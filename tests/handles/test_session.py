"""One session over many connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import holdfast
from holdfast import Client, RequestTimeout, Tool, ToolError
from holdfast.handles.sessions import HandleSession, Phase
from holdfast.testing import Peer


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
    assert session.phase is Phase.DOUBT
    await session.close()
    assert adapter.story == ["open", "close"]


async def test_one_that_was_open_is_missed_if_it_cannot_be_closed() -> None:
    session = make(Adapter(close=ToolError("no")))
    await session.open()
    with pytest.raises(ToolError):
        await session.close()
    assert session.phase is Phase.ABSENT


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
