"""A generated module, from a live server to its handles at work."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast import DriftError
from holdfast.codegen import SessionTools, generate
from tests.handles import szkrabok

SERVER = [sys.executable, str(Path(szkrabok.__file__))]
COMMAND = "holdfast codegen --session sessionName -o mcp_tools.py -- szkrabok"


@pytest.fixture
async def mcp_tools() -> ModuleType:
    async with holdfast.connect(SERVER) as client:
        tools = await client.list_tools()
    made = generate(tools, command=COMMAND, target=SERVER, sync=True, session=SessionTools())
    module = ModuleType("mcp_tools")
    exec(compile(made.source, "mcp_tools.py", "exec"), module.__dict__)
    return module


def journal(folder: Path) -> list[str]:
    return [*SERVER, "--journal", str(folder / "journal")]


def recorded(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    lines = (folder / "journal").read_text().splitlines()
    return [(call["name"], call["arguments"]) for call in map(json.loads, lines)]


STORY = [
    ("session.open", {"sessionName": "p4n-test", "launchOptions": {"headless": True}}),
    ("nav.goto", {"sessionName": "p4n-test", "url": "http://a"}),
    ("browser.run.file", {"sessionName": "p4n-test", "path": "a.js"}),
    ("browser.run_test", {"sessionName": "p4n-test", "grep": "acceptCookies"}),
    ("health", {}),
    ("session.close", {"sessionName": "p4n-test"}),
]


@pytest.mark.req("H1", "H2", "H5")
async def test_a_generated_handle_at_work(mcp_tools: ModuleType, tmp_path: Path) -> None:
    launch = {"launchOptions": {"headless": True}}
    target = journal(tmp_path)
    async with mcp_tools.connect("p4n-test", target=target, open_arguments=launch) as mcp:
        await mcp.nav.goto(url="http://a")
        await mcp.browser["run.file"](path="a.js")
        assert (await mcp.browser.run_test(grep="acceptCookies"))["passed"] == 1
        assert (await mcp._root.health())["ok"] is True
        assert not hasattr(mcp, "session_")
    assert recorded(tmp_path) == STORY


@pytest.mark.req("H1", "H2", "H5")
def test_its_synchronous_sister_does_the_same(mcp_tools: ModuleType, tmp_path: Path) -> None:
    launch = {"launchOptions": {"headless": True}}
    target = journal(tmp_path)
    with mcp_tools.connect_sync("p4n-test", target=target, open_arguments=launch) as mcp:
        mcp.nav.goto(url="http://a")
        mcp.browser["run.file"](path="a.js")
        assert mcp.browser.run_test(grep="acceptCookies")["passed"] == 1
        assert mcp._root.health()["ok"] is True
    assert recorded(tmp_path) == STORY


@pytest.mark.req("H4")
async def test_it_says_how_to_be_generated_anew(mcp_tools: ModuleType) -> None:
    with pytest.raises(DriftError, match=r"nav\.back: removed") as caught:
        await mcp_tools.connect(target=[*SERVER, "--drop", "nav.back"]).open()
    assert str(caught.value).endswith(f"Run: {COMMAND}")
    assert mcp_tools.REGISTRY_HASH in str(caught.value)
    off = mcp_tools.connect(target=[*SERVER, "--drop", "nav.back"], drift="off")
    async with off:
        assert (await off._root.health())["ok"]
