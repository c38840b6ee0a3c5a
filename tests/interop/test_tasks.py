"""Tasks of real servers: FastMCP's extension over HTTP, and the core form of ``everything``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Handlers, RpcError
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.errors import CancelledCallError
from holdfast.types import Task
from tests.cli.shop import Shop
from tests.interop.catalogue import EVERYTHING, Door, Server, addition, script
from tests.interop.home import Settle
from tests.interop.hosting import Hosted
from tests.interop.install import NotHere, install

pytestmark = [pytest.mark.slow_interop, pytest.mark.req("K1")]

BUILD = script("fastmcp_tasks_server.py")
FASTMCP_TASKS = Server(
    name="fastmcp-tasks",
    package="fastmcp-tasks",
    version="4.1.2",
    built_with="FastMCP 4",
    source="pypi",
    pins=("fastmcp==4.1.2", "fastmcp-tasks==4.1.2", "mcp==2.3.0", "pydantic==2.14.3"),
    command=BUILD,
    question=addition,
    offers=("tools",),
    doors={"http": Door(BUILD, "/mcp")},
)
REQUESTER = Path(__file__).with_name("servers") / "ext_tasks_client.mjs"
RESEARCH = "simulate-research-query"
CALLER = """
import asyncio, sys, holdfast

async def main():
    client = holdfast.connect(sys.argv[1])
    note = lambda task: print(task.task_id, flush=True)
    await client.call_tool("build", {"target": "all"}, task=True, on_task=note)

asyncio.run(main())
"""


def elicit(request: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada", "interpretation": "technical"}}


@pytest.fixture
def fastmcp(settle: Settle) -> Hosted:
    home = settle(FASTMCP_TASKS, "http")
    assert isinstance(home, Hosted)
    return home


async def test_a_task_of_fastmcp_outlives_a_killed_caller(fastmcp: Hosted) -> None:
    async with fastmcp.up():
        caller = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CALLER, fastmcp.url, stdout=asyncio.subprocess.PIPE
        )
        assert caller.stdout is not None
        task_id = (await caller.stdout.readline()).decode().strip()
        caller.kill()
        await caller.communicate()
        async with fastmcp.connect() as client:
            assert (await client.get_task(task_id)).status == "working"
            await client.call_tool("release")
            assert (await client.resume_task(task_id)).text == "built all in run 1"
            assert (await client.resume_task(task_id)).text == "built all in run 1"


async def test_tasks_of_fastmcp_ask_fail_and_are_required(fastmcp: Hosted) -> None:
    async with fastmcp.up(), fastmcp.connect(handlers=Handlers(elicitation=elicit)) as client:
        assert (await client.call_tool("greet", task=True)).text == "hello Ada"
        assert (await client.call_tool("fail", task=True)).is_error
        seen: list[Task] = []
        assert (await client.call_tool("insist", on_task=seen.append)).text == "as a task"
        assert seen[-1].status == "completed"
        with pytest.raises(RpcError) as caught:
            await client.resume_task("no-such-task")
        assert (caught.value.code, caught.value.outcome_unknown) == (-32602, True)
        assert client.violations == {}


async def test_a_task_of_fastmcp_is_cancelled(fastmcp: Hosted) -> None:
    async with fastmcp.up(), fastmcp.connect() as client:
        running = client.start_tool("build", {"target": "all"}, task=True)
        task = await running.wait_task()
        assert task is not None
        running.cancel()
        with pytest.raises(CancelledCallError):
            await running
        with pytest.raises(CancelledCallError, match="was cancelled"):
            await client.resume_task(task.task_id)


async def test_a_restarted_fastmcp_has_forgotten_its_tasks(fastmcp: Hosted) -> None:
    async with fastmcp.up(), fastmcp.connect() as client:
        running = client.start_tool("build", {"target": "all"}, task=True)
        await running.wait_task()
        await fastmcp.stop()
        await fastmcp.start()
        with pytest.raises(RpcError, match="no longer knows it") as caught:
            await running
        assert caught.value.outcome_unknown


@pytest.mark.parametrize("version", [STATELESS[0], HANDSHAKE[0]])
async def test_the_reference_requester_drives_tasks_of_our_server_side(version: str) -> None:
    """Which says that what the client is tried against elsewhere is what others take for tasks."""
    pins = ("@modelcontextprotocol/ext-tasks@0.2.2", "@modelcontextprotocol/client@2.4.0")
    try:
        folder = install("npm", "ext-tasks", pins)
    except NotHere as reason:
        pytest.skip(str(reason))
    script = folder / REQUESTER.name
    script.write_text(REQUESTER.read_text(encoding="utf-8"), encoding="utf-8")
    with Shop((version,)) as shop:
        caller = await asyncio.create_subprocess_exec(
            "node", str(script), shop.url, version, stdout=asyncio.subprocess.PIPE
        )
        while not [one for one in shop.peer.received if one.method == "tasks/get"]:
            assert caller.returncode is None
            await asyncio.sleep(0.01)
        shop.release.set()
        out, _ = await caller.communicate()
    found = json.loads(out)
    assert (found["kind"], found["result"]["content"][0]["text"]) == ("task", "built all")


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_the_required_task_of_everything_asks_on_its_way(settle: Settle, way: Any) -> None:
    home = settle(EVERYTHING, way)
    seen: list[str] = []
    async with home.visit(handlers=Handlers(elicitation=elicit)) as client:
        result = await client.call_tool(
            RESEARCH,
            {"topic": "python", "ambiguous": True},
            on_task=lambda task: seen.append(task.status),
        )
        assert "python (technical)" in result.text
        assert "input_required" in seen
        assert client.violations == {}
