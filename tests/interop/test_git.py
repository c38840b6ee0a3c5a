"""The reference server for git."""

from __future__ import annotations

import asyncio

import pytest

from tests.interop.catalogue import GIT
from tests.interop.home import Home, Settle, ask

pytestmark = pytest.mark.slow_interop


@pytest.fixture
def home(settle: Settle) -> Home:
    return settle(GIT)


@pytest.mark.req("V3", "T2")
@pytest.mark.parametrize("pin", [None, "2025-06-18"])
async def test_a_change_is_seen_staged_and_committed(home: Home, pin: str | None) -> None:
    (home.work / "file.txt").write_text("changed\n", encoding="utf-8")
    repository = {"repo_path": str(home.work)}
    async with home.visit(protocol=pin) as client:
        assert "+changed" in (await client.call_tool("git_diff_unstaged", repository)).text
        staged = await client.call_tool("git_add", {**repository, "files": ["file.txt"]})
        assert not staged.is_error
        message = {**repository, "message": "a change of ours"}
        assert not (await client.call_tool("git_commit", message)).is_error
        log = await client.call_tool("git_log", {**repository, "max_count": 1})
        assert "a change of ours" in log.text


@pytest.mark.req("V3", "T2")
async def test_a_folder_that_is_no_repository_is_an_error_of_the_tool(home: Home) -> None:
    async with home.visit() as client:
        result = await client.call_tool("git_status", {"repo_path": "/proc"})
        assert result.is_error


@pytest.mark.req("V3", "L8")
async def test_the_processes_that_it_gathers_end_with_it(home: Home) -> None:
    """How many there are is up to its garbage collector."""
    async with home.visit() as client:
        await asyncio.gather(*(ask(client, home.question(number)) for number in range(100)))
        await home.crash(client)
        await ask(client, home.question(1))
