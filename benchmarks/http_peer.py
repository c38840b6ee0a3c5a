"""The official SDK's client beside ours, from an environment of its own: it is no part of this one.

`python` says where it is installed; `Peer` drives it there, through its public names alone.
"""

from __future__ import annotations

import importlib
import subprocess
import venv
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent / ".cache" / "bench" / "mcp"
PACKAGES = ("mcp", "uvloop")


def python() -> Path:
    return HOME / "bin" / "python"


def install() -> str | None:
    """Bring its newest release; why not, if that fails. What is there already is kept."""
    if installed() is None:
        venv.create(HOME, with_pip=True, clear=True)
        order = [str(python()), "-m", "pip", "install", "--quiet", *PACKAGES]
        done = subprocess.run(order, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return None


def installed() -> str | None:
    """Its version, if it is there."""
    if not python().exists():
        return None
    code = "import importlib.metadata as m; print(m.version('mcp'))"
    done = subprocess.run([str(python()), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


class Peer:
    """The verbs that the rows use."""

    def __init__(self, url: str) -> None:
        self.client = importlib.import_module("mcp").Client(url)
        self.stack = AsyncExitStack()

    async def open(self) -> None:
        await self.stack.enter_async_context(self.client)

    async def close(self) -> None:
        await self.stack.aclose()

    async def list_tools(self) -> list[Any]:
        tools: list[Any] = (await self.client.list_tools()).tools
        return tools

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, on_progress: Any = None
    ) -> Any:
        if on_progress is None:
            return await self.client.call_tool(name, arguments)

        async def report(*progress: Any) -> None:
            on_progress(progress)

        return await self.client.call_tool(name, arguments, progress_callback=report)


def client(url: str) -> Peer:
    return Peer(url)


def check_era(session: Peer, legacy: bool) -> None:
    """That the row shows what its name says."""
    found = str(session.client.protocol_version)
    if (found < "2026-07-28") is not legacy:
        raise RuntimeError(f"agreed on {found}, which is of the other era")
