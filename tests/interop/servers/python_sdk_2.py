"""A server built with version 2 of the Python SDK (PyPI ``mcp``), which speaks both eras.

On stdio; or over HTTP, by the name that the library has for it, at ``$PORT``.
"""

# mypy: ignore-errors
# Its libraries are in its own virtual environment, not in ours.

from __future__ import annotations

import os
import sys
from typing import Annotated

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import (
    Elicit,
    ListRoots,
    Resolve,
    Sample,
)
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

server = MCPServer("workshop")
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


def who() -> Elicit[Name]:
    return Elicit("Who is there?", Name)


@server.tool()
def ask(answer: Annotated[Name, Resolve(who)]) -> str:
    return f"hello {answer.name}"


def capital() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="capital?"))
    return Sample([question], max_tokens=10)


@server.tool()
def sample(answer: Annotated[CreateMessageResult, Resolve(capital)]) -> str:
    return str(answer.content.text)


def places() -> ListRoots:
    return ListRoots()


@server.tool()
def roots(found: Annotated[ListRootsResult, Resolve(places)]) -> str:
    return " ".join(str(root.uri) for root in found.roots)


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Tell those who listen that a resource has changed."""
    await ctx.notify_resource_updated(uri)
    return "touched"


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
    options = {"port": int(os.environ["PORT"])} if sys.argv[1:] else {}
    server.run(*sys.argv[1:], **options)
