"""Print the functions that one operation runs, in order, with file and line.

``make walk`` prints all walks; ``make walk ARGS="stdio http"`` some of them, and
``ARGS=--summary`` the figures alone. ``ARGS=--write`` renews the page docs/design/walk.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import holdfast

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "holdfast"
PAGE = ROOT / "docs" / "design" / "walk.md"
SERVER = [sys.executable, "-m", "holdfast.demo.server"]
MARK = "<!-- the walk: make walk ARGS=--write -->"
ARGUMENTS = {"a": 1, "b": 2}


@dataclass
class Walk:
    """The functions of the package that ran, in the order of their first call."""

    title: str
    steps: list[tuple[str, str, int]] = field(default_factory=list)
    """Function, file and line."""
    _seen: set[CodeType] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        self._seen.add(code)
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if is_function and code.co_filename.startswith(f"{SRC}{os.sep}"):
            file = Path(code.co_filename).relative_to(SRC).as_posix()
            self.steps.append((code.co_qualname, file, code.co_firstlineno))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(file for _, file, _ in self.steps))

    def summary(self) -> str:
        return f"{self.title}: {len(self.steps)} functions in {len(self.files)} files"

    def __str__(self) -> str:
        width = max((len(name) for name, _, _ in self.steps), default=0)
        lines = [f"  {name:<{width}}  {file}:{line}" for name, file, line in self.steps]
        return "\n".join([self.summary(), *lines])


async def _one_call(client: holdfast.Client, walk: Walk) -> None:
    await client.list_tools()
    for _ in range(3):
        await client.call_tool("add", ARGUMENTS)
    with walk.watching():
        await client.call_tool("add", ARGUMENTS)


async def stdio() -> Walk:
    """One warm call over stdio."""
    walk = Walk("a stdio call")
    async with holdfast.connect(SERVER, name="demo") as client:
        await _one_call(client, walk)
    return walk


async def http() -> Walk:
    """One warm call over Streamable HTTP."""
    walk = Walk("an HTTP call")
    async with _http_server() as url, holdfast.connect(url) as client:
        await _one_call(client, walk)
    return walk


async def reconnect() -> Walk:
    """From the death of a server to the next answer."""
    walk = Walk("a reconnect")
    backoff = holdfast.Backoff(first=0.01)
    async with holdfast.connect(SERVER, backoff=backoff, when_down="wait") as client:
        await client.call_tool("add", ARGUMENTS)
        with walk.watching():
            with contextlib.suppress(holdfast.HoldfastError):
                await client.call_tool("crash", {})
            await client.call_tool("add", ARGUMENTS)
    return walk


def command() -> Walk:
    """``holdfast call NAME.TOOL``, from the words to the printed result, with all loaded."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mcp.json"
        entry = {"command": SERVER[0], "args": SERVER[1:]}
        config.write_text(json.dumps({"mcpServers": {"demo": entry}}), encoding="utf-8")
        words = ["call", "demo.add", "a=1", "b=2", "--config", str(config)]
        _command("", words)
        return _command("a command-line call", words)


def codegen() -> Walk:
    """``holdfast codegen``, from the words to the module."""
    with tempfile.TemporaryDirectory() as folder:
        module = str(Path(folder) / "tools.py")
        return _command("codegen", ["codegen", "-o", module, "--", *SERVER])


def _command(title: str, words: list[str]) -> Walk:
    from holdfast.cli.main import main

    walk = Walk(title)
    with _quiet(), walk.watching():
        main(words)
    return walk


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send what is printed to a file: the command line asks its output for a descriptor."""
    with tempfile.TemporaryFile("w+") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


@contextlib.asynccontextmanager
async def _http_server() -> Any:
    """A stateless server of one tool that has no code in common with the package."""
    from aiohttp import web

    tool = {"name": "add", "inputSchema": {"type": "object"}}
    answers: dict[str, dict[str, Any]] = {
        "server/discover": {
            "supportedVersions": list(_versions()),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "walk", "version": "1"},
        },
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "3"}]},
    }

    async def answer(request: web.Request) -> web.Response:
        message = await request.json()
        result = {"resultType": "complete", **answers[message["method"]]}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    app = web.Application()
    app.router.add_post("/mcp", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        await runner.cleanup()


def _versions() -> tuple[str, ...]:
    from holdfast._core.eras.revisions import STATELESS

    return STATELESS


WALKS: dict[str, Callable[[], Awaitable[Walk] | Walk]] = {
    "stdio": stdio,
    "http": http,
    "reconnect": reconnect,
    "command": command,
    "codegen": codegen,
}


def walk(name: str) -> Walk:
    found = WALKS[name]()
    return found if isinstance(found, Walk) else asyncio.run(_awaited(found))


async def _awaited(work: Awaitable[Walk]) -> Walk:
    return await work


def steadiest(name: str, times: int = 3) -> Walk:
    """Return the shortest of some walks: a timer that fires by chance is not part of the way."""
    return min((walk(name) for _ in range(times)), key=lambda found: len(found.steps))


def page(found: Walk) -> str:
    """Return the page with the walk of one call in its place."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    _, _, after = rest.partition(MARK)
    rows = [f"| `{name}` | `{file}` |" for name, file, _ in found.steps]
    table = "\n".join([f"{found.summary()}.", "", "| function | file |", "|---|---|", *rows])
    return f"{before}{MARK}\n\n{table}\n\n{MARK}{after}"


def main(words: list[str]) -> int:
    options = {word for word in words if word.startswith("--")}
    names = [word for word in words if word not in options] or list(WALKS)
    if "--write" in options:
        PAGE.write_text(page(steadiest("stdio")), encoding="utf-8")
        return 0
    for name in names:
        found = walk(name)
        print(found.summary() if "--summary" in options else f"{found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
