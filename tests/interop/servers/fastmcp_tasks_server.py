"""A FastMCP server whose tools become tasks (PyPI ``fastmcp-tasks``), over HTTP at ``$PORT``."""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

QUICK = TaskConfig(poll_interval=timedelta(milliseconds=50))

server = FastMCP("tasks")
server.add_extension(TasksExtension())
runs: list[str] = []
released = asyncio.Event()


@server.tool(task=QUICK)
async def build(target: str) -> str:
    """End when `release` is called."""
    runs.append(target)
    await released.wait()
    return f"built {target} in run {len(runs)}"


@server.tool(task=QUICK)
async def greet(ctx: Context) -> str | InputRequiredResult:
    """Ask who is there, while the task runs."""
    if not ctx.input_responses:
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = ElicitRequestFormParams(message="Who is there?", requested_schema=form)
        return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)})
    return f"hello {ctx.input_responses['who'].content['name']}"


@server.tool(task=TaskConfig(mode="required", poll_interval=timedelta(milliseconds=50)))
async def insist() -> str:
    return "as a task"


@server.tool(task=QUICK)
async def fail() -> str:
    raise ValueError("out of order")


@server.tool
async def release() -> str:
    released.set()
    return "released"


server.run("http", host="127.0.0.1", port=int(os.environ["PORT"]), path="/mcp", show_banner=False)
