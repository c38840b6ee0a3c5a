"""A server built with FastMCP (PyPI ``fastmcp``), of version 2 as well as of later ones.

On stdio; or over HTTP, by the name that the library has for it, at ``$PORT``.
"""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
from fastmcp import Context, FastMCP

server = FastMCP("workshop")
begun: list[anyio.Event] = [anyio.Event()]
ended: list[anyio.Event] = [anyio.Event()]


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
def fail() -> str:
    raise ValueError("out of order")


@server.tool
async def count(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    return "counted"


@server.tool
async def hold() -> str:
    """Never answers; `held` waits for it to begin, `released` for it to be cancelled."""
    begun[0].set()
    try:
        await anyio.sleep_forever()
    finally:
        ended[0].set()
    return "never"


@server.tool
async def held() -> str:
    await begun[0].wait()
    begun[0] = anyio.Event()
    return "held"


@server.tool
async def released() -> str:
    await ended[0].wait()
    ended[0] = anyio.Event()
    return "released"


@server.tool
async def say(text: str, ctx: Context) -> str:
    await ctx.info(text)
    return "said"


FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@server.tool
async def ask(ctx: Context) -> Any:
    """In the stateless era a tool asks by what it returns, and is called again."""
    if not getattr(ctx, "_is_modern_protocol", bool)():
        answer = await ctx.elicit("Who is there?", str)
        return f"hello {answer.data}"
    import mcp_types as types

    if ctx.input_responses:
        return f"hello {ctx.input_responses['who'].content['name']}"
    form = types.ElicitRequestFormParams(message="Who is there?", requested_schema=FORM)
    return types.InputRequiredResult(input_requests={"who": types.ElicitRequest(params=form)})


@server.tool
async def roots(ctx: Context) -> str:
    found = await ctx.list_roots()
    return " ".join(str(root.uri) for root in found)


@server.tool
async def sample(ctx: Context) -> str:
    answer = await ctx.sample("capital?", max_tokens=10)
    return str(answer.text)


@server.resource("note://memo")
def memo() -> str:
    return "remember"


@server.resource("note://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    return b"\x00\xff"


@server.resource("note://about/{topic}")
def about(topic: str) -> str:
    return f"about {topic}"


@server.prompt
def greet(name: str) -> str:
    return f"Greet {name}."


if __name__ == "__main__":
    options = {"port": int(os.environ["PORT"])} if sys.argv[1:] else {}
    server.run(*sys.argv[1:], **options)
