"""Tasks of real servers: FastMCP's extension over HTTP, and the core form of ``everything``."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from holdfast import CancelledCallError, Handlers, RpcError
from holdfast.types import Task
from tests.interop.catalogue import EVERYTHING, Door, Server, addition, script
from tests.interop.home import Settle
from tests.interop.hosting import Hosted

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
