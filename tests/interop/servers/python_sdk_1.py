"""A server built with version 1 of the Python SDK (PyPI ``mcp``), for others to try.

On stdio; or over HTTP, by the name that the library has for it, at ``$PORT``.
"""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import os
import sys

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

server = FastMCP("workshop", port=int(os.environ.get("PORT", "0")))
begun: list[anyio.Event] = [anyio.Event()]
ended: list[anyio.Event] = [anyio.Event()]


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def fail() -> str:
    raise ValueError("out of order")


@server.tool()
async def count(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    return "counted"


@server.tool()
async def hold() -> str:
    """Never answers; `held` waits for it to begin, `released` for it to be cancelled."""
    begun[0].set()
    try:
        await anyio.sleep_forever()
    finally:
        ended[0].set()
    return "never"


@server.tool()
async def held() -> str:
    await begun[0].wait()
    begun[0] = anyio.Event()
    return "held"


@server.tool()
async def released() -> str:
    await ended[0].wait()
    ended[0] = anyio.Event()
    return "released"


@server.tool()
async def say(text: str, ctx: Context) -> str:
    await ctx.info(text)
    return "said"


class Name(BaseModel):
    name: str


@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who is there?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else str(answer.action)


@server.tool()
async def sample(ctx: Context) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="capital?"))
    answer = await ctx.session.create_message([message], max_tokens=10)
    return str(answer.content.text)


@server.tool()
async def roots(ctx: Context) -> str:
    found = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in found.roots)


@server.resource("note://memo")
def memo() -> str:
    return "remember"


@server.resource("note://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    return b"\x00\xff"


@server.resource("note://about/{topic}")
def about(topic: str) -> str:
    return f"about {topic}"


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    names = [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]
    return Completion(values=names)


if __name__ == "__main__":
    server.run(*sys.argv[1:])
