"""Handles against a real process that keeps sessions by name."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Backoff, DriftError, StateError, Tool, ToolError
from holdfast.calls import State
from holdfast.errors import ShutdownError
from holdfast.handles import Handle, ParameterSession, Registry
from tests.handles import szkrabok
from tests.handles.rig import Tools, next_state

SERVER = [sys.executable, str(Path(szkrabok.__file__))]
SESSION = ParameterSession(key="sessionName", open_tool="session.open", close_tool="session.close")
REGISTRY = Registry.of(
    [Tool.make(tool["name"], input_schema=tool["inputSchema"]) for tool in szkrabok.TOOLS],
    "holdfast codegen -o mcp_tools.py -- szkrabok",
)


class Journal:
    """The calls as the server got them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.jsonl"

    def connect(self, *options: str, **settings: Any) -> Tools:
        command = [*SERVER, "--journal", str(self.path), *options]
        settings = {"session": "p4n-test", "adapter": SESSION, "registry": REGISTRY, **settings}
        return Tools(command, **settings)

    @property
    def calls(self) -> list[dict[str, Any]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def names(self) -> list[str]:
        return [call["name"] for call in self.calls]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


@pytest.mark.req("H5", "H6")
async def test_a_session_from_its_opening_to_its_end(journal: Journal) -> None:
    launch = {"launchOptions": {"headless": True, "locale": "pl-PL", "viewport": {"width": 9}}}
    async with journal.connect("--page-size", "3", open_arguments=launch) as mcp:
        await mcp.nav.goto(url="https://park4night.com/en")
        assert (await mcp.browser.run_test()) == {"passed": 1, "failed": 0}
        await mcp.browser["run.file"](path="a.js")
        snapshot = await mcp.call("browser.snapshot")
        assert len(snapshot.text) > 3_000
        assert (await mcp._root.health()).structured["ok"] is True
    session = {"sessionName": "p4n-test"}
    assert journal.calls == [
        {"name": "session.open", "arguments": {**session, **launch}},
        {"name": "nav.goto", "arguments": {**session, "url": "https://park4night.com/en"}},
        {"name": "browser.run_test", "arguments": session},
        {"name": "browser.run.file", "arguments": {**session, "path": "a.js"}},
        {"name": "browser.snapshot", "arguments": session},
        {"name": "health", "arguments": {}},
        {"name": "session.close", "arguments": session},
    ]


@pytest.mark.req("H5")
async def test_launch_options_are_kept_with_the_session(journal: Journal) -> None:
    launch = {"launchOptions": {"stealth": True}, "url": "https://park4night.com"}
    async with journal.connect(open_arguments=launch) as mcp:
        kept = json.loads((await mcp.call("session.list")).text)
    assert kept == {"p4n-test": launch}


@pytest.mark.req("H6")
async def test_a_failing_tool_does_not_stop_the_next(journal: Journal) -> None:
    async with journal.connect() as mcp:
        work = [mcp.nav.goto(url=url) for url in ("http://no.invalid", "http://a", "http://b")]
        failure, *others = await asyncio.gather(*work, return_exceptions=True)
        assert isinstance(failure, ToolError)
        assert str(failure) == "net::ERR_NAME_NOT_RESOLVED"
        assert not any(isinstance(one, BaseException) for one in others)
    urls = [call["arguments"].get("url") for call in journal.calls]
    assert urls == [None, "http://no.invalid", "http://a", "http://b", None]


@pytest.mark.req("H6")
async def test_a_browser_that_does_not_start_leaves_no_server_behind(journal: Journal) -> None:
    mcp = journal.connect(open_arguments={"launchOptions": {"preset": "broken"}})
    with pytest.raises(ToolError, match="the browser did not start"):
        async with mcp:
            pytest.fail("opened")
    assert mcp.client.state is State.CLOSED
    assert journal.names == ["session.open"]


@pytest.mark.req("H6")
async def test_a_session_that_cannot_be_closed_leaves_no_server_behind(journal: Journal) -> None:
    mcp = await journal.connect().open()
    pid = (await mcp._root.health()).structured["pid"]
    await mcp.nav.goto(url="http://a/crashed")
    with pytest.raises(ToolError, match="the browser has crashed already"):
        await mcp.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.req("H6")
async def test_a_call_that_never_ends_does_not_keep_the_handle_open(journal: Journal) -> None:
    mcp = await journal.connect("--stuck", "nav.goto").open()
    stuck = asyncio.create_task(mcp.nav.goto(url="http://a"))
    queued = asyncio.create_task(mcp.nav.goto(url="http://b"))
    await asyncio.sleep(0)
    assert (await mcp.call("health", parallel=True)).structured["ok"]
    await mcp.close(wait=0)
    ends = await asyncio.gather(stuck, queued, return_exceptions=True)
    assert [type(one) for one in ends] == [ShutdownError, StateError]
    assert journal.names == ["session.open", "nav.goto", "health", "session.close"]


@pytest.mark.req("H5")
async def test_a_killed_server_comes_back_and_the_session_with_it(journal: Journal) -> None:
    async with journal.connect(backoff=Backoff(first=0.01), when_down="wait") as mcp:
        await mcp.nav.goto(url="http://a")
        down = next_state(mcp, State.BACKOFF)
        os.kill((await mcp._root.health()).structured["pid"], signal.SIGKILL)
        await down
        assert (await mcp.nav.goto(url="http://b")).text == '{"url": "http://b"}'
    assert journal.names == [
        "session.open",
        "nav.goto",
        "health",
        "session.open",
        "nav.goto",
        "session.close",
    ]


@pytest.mark.req("H4")
async def test_other_tools_are_told_before_anything_is_called(journal: Journal) -> None:
    mcp = journal.connect("--drop", "nav.back", "--add", "nav.forward", "--page-size", "4")
    with pytest.raises(DriftError) as caught:
        await mcp.open()
    text = str(caught.value)
    assert "nav.back" in text
    assert "nav.forward" in text
    assert text.endswith("Run: holdfast codegen -o mcp_tools.py -- szkrabok")
    assert journal.calls == []


@pytest.mark.req("H4")
async def test_pages_do_not_matter_to_the_comparison(journal: Journal) -> None:
    async with journal.connect("--page-size", "1") as mcp:
        assert len(mcp.client.tools) == len(szkrabok.TOOLS)


@pytest.mark.req("G4", "H5")
async def test_a_stored_sequence_runs_in_the_handle_s_session(
    journal: Journal, tmp_path: Path
) -> None:
    from holdfast.calllog.replay import run_sequence

    stored: list[dict[str, Any]] = [
        {"name": "nav.goto", "arguments": {"url": "https://park4night.com/en"}},
        {"name": "browser.snapshot", "arguments": {}},
        {"name": "interact.click", "arguments": {"selector": ".cc-btn.cc-btn-reject"}},
        {"name": "health", "arguments": {}},
    ]
    path = tmp_path / "p4n-cookie-banner.jsonl"
    path.write_text("".join(json.dumps(call) + "\n" for call in stored))
    async with journal.connect() as mcp:
        await run_sequence(mcp, path)
    session = {"sessionName": "p4n-test"}
    assert journal.calls[1:-1] == [
        {**call, "arguments": {**session, **call["arguments"]}} for call in stored[:-1]
    ] + [stored[-1]]


@pytest.mark.req("G1", "H5")
async def test_the_call_log_has_the_session_and_its_lifecycle(journal: Journal) -> None:
    lines: list[str] = []
    async with journal.connect(log=lines.append) as mcp:
        await mcp.nav.goto(url="http://a")
    before = [json.loads(line) for line in lines if '"_phase":"before"' in line]
    assert [{"name": one["name"], "arguments": one["arguments"]} for one in before] == journal.calls


@pytest.mark.req("G3", "H5")
async def test_a_log_is_replayed_in_the_handle_s_own_session(journal: Journal) -> None:
    from holdfast.calllog.replay import replay

    lines: list[str] = []
    async with journal.connect(log=lines.append) as mcp:
        await mcp.nav.goto(url="http://a")
    recorded = journal.calls
    async with journal.connect() as mcp:
        report = await replay(mcp, lines)
    assert (len(report), report.ok) == (1, True)
    assert journal.calls == recorded * 2


async def test_a_handle_needs_no_generated_code(journal: Journal) -> None:
    async with Handle(SERVER, session="s", adapter=SESSION) as mcp:
        assert (await mcp.call("nav.goto", {"url": "http://a"})).text == '{"url": "http://a"}'
