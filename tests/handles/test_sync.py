"""Handles without ``await``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast import (
    DriftError,
    ProtocolError,
    StateError,
    ToolError,
    ToolResult,
    ValidationError,
    sync,
)
from holdfast.calls import State
from holdfast.handles import SyncHandle, SyncNamespace
from tests.handles.rig import OPTIONS, SESSION, TEXT, Count, Desk, schema

SZKRABOK = Path(__file__).parent / "szkrabok.py"


class Nav(SyncNamespace):
    _NAME: ClassVar[str] = "nav"
    _METHODS: ClassVar[Mapping[str, str]] = {"goto": "goto"}

    def goto(self, *, url: str, parallel: bool = False) -> ToolResult:
        return self._call("nav.goto", {"url": url}, parallel=parallel)


class Browser(SyncNamespace):
    _NAME: ClassVar[str] = "browser"
    _METHODS: ClassVar[Mapping[str, str]] = {"run_test": "run_test"}

    def run_test(self) -> Count:
        return self._structured("browser.run_test", {})


class Tools(SyncHandle):
    _NAMESPACES: ClassVar[Mapping[str, type[SyncNamespace]]] = {"browser": Browser, "nav": Nav}

    browser: Browser
    nav: Nav


def handle(desk: Desk, session: str | None = "p4n-test", **settings: Any) -> Tools:
    settings = {"adapter": SESSION, "registry": desk.registry(), **OPTIONS, **settings}
    return Tools(desk.peer, session=session, **settings)


@pytest.mark.req("H1", "H5", "H6")
def test_a_session_from_its_opening_to_its_end() -> None:
    desk = Desk()
    with handle(desk) as mcp:
        assert mcp.nav.goto(url="there").text == "there"
        assert mcp["nav"]["goto"](url="again").text == "again"
        assert mcp.browser.run_test() == {"passed": 1}
        assert mcp.call("health").text == "well"
        assert repr(mcp) == "<Tools szkrabok open <Session 'p4n-test' open>>"
    assert desk.story == [
        "open p4n-test",
        "goto p4n-test there",
        "goto p4n-test again",
        "health {}",
        "close p4n-test",
    ]
    assert mcp.client.state is State.CLOSED
    assert not mcp.close()
    with pytest.raises(StateError, match=r"nav\.goto: the handle is closed"):
        mcp.nav.goto(url="late")


@pytest.mark.req("H6")
def test_threads_share_a_handle_and_go_one_after_the_other() -> None:
    desk = Desk()
    pages = [str(number) for number in range(20)]
    with handle(desk) as mcp, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda page: mcp.nav.goto(url=page, parallel=page < "1"), pages))
    assert [one.text for one in found] == pages
    assert desk.story.count("open p4n-test") == 1


@pytest.mark.req("H6")
def test_failures_are_raised_here_and_poison_nothing() -> None:
    with handle(Desk()) as mcp:
        with pytest.raises(ToolError, match="no such page"):
            mcp.nav.goto(url="bad")
        assert mcp.call_tool("nav.goto", {"url": "bad"}).is_error
        assert mcp.nav.goto(url="good").text == "good"


@pytest.mark.req("H6")
def test_what_cannot_be_opened_is_closed() -> None:
    desk = Desk()
    mcp = handle(desk, "refused")
    with pytest.raises(ToolError, match="cannot be opened"), mcp:
        pytest.fail("opened")
    assert mcp.closed
    assert mcp.client.state is State.CLOSED


@pytest.mark.req("H4")
def test_drift_is_raised_at_the_first_call_too() -> None:
    desk = Desk()
    mcp = handle(desk)
    desk.offer("new", a=TEXT)(desk.health)
    with pytest.raises(DriftError, match="new"):
        mcp.nav.goto(url="there")
    assert desk.story == []


def test_a_promised_result_that_is_not_there_is_told() -> None:
    desk = Desk()
    text = {"content": [{"type": "text", "text": "fine"}]}
    tool = desk.peer.tool("browser.run_test", input_schema=schema(), output_schema={})
    tool(lambda: text)
    with handle(desk, drift="off") as mcp, pytest.raises(ProtocolError, match="promises"):
        mcp.browser.run_test()


def test_a_handle_can_be_put_on_a_client_that_is_there() -> None:
    desk = Desk()
    client = sync.connect(desk.peer)
    mcp = Tools(client, session="s", adapter=SESSION, registry=desk.registry())
    assert (mcp.session, mcp.adapter, mcp.client) == ("s", SESSION, client)
    assert mcp.registry == desk.registry()
    mcp.open()
    assert mcp.close()
    assert desk.story == ["open s", "close s"]
    with pytest.raises(ValidationError, match="name: not for a client"):
        Tools(client, name="other")


FORGETS = """
import sys
from holdfast.handles import ParameterSession, SyncHandle
mcp = SyncHandle(sys.argv[1:], session="forgotten", adapter=ParameterSession())
mcp.call("nav.back")
"""


@pytest.mark.req("H6", "F2")
def test_a_program_that_forgets_to_close_closes_its_session(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    server = [sys.executable, str(SZKRABOK), "--journal", str(journal)]
    subprocess.run([sys.executable, "-c", FORGETS, *server], check=True, timeout=200)
    calls = [json.loads(line)["name"] for line in journal.read_text().splitlines()]
    assert calls == ["session.open", "nav.back", "session.close"]
