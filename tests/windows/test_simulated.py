"""The package on a Windows that is pretended: it imports, and clients without a child work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

POSIX_ONLY = {
    "holdfast._core.transports.posix_child",
    "holdfast._core.transports.process_group",
    "holdfast.cli.readline_lines",
}
"""Modules that are imported on POSIX alone, and say so by an assertion."""

START = """
import sys
sys.path.insert(0, {folder!r})
import simulated
simulated.pretend_windows(simulated.Kernel({{}}))
"""

IMPORT_ALL = """
import importlib, pkgutil
import holdfast

failed = []
for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if module.name in {posix_only!r} or module.name == "holdfast.__main__":
        continue
    if module.name in {optional!r}:
        continue
    try:
        importlib.import_module(module.name)
    except Exception as error:
        failed.append(f"{{module.name}}: {{error!r}}")
print("\\n".join(failed))
"""

OPTIONAL = {
    *("holdfast.langchain", "holdfast.openai_agents", "holdfast.pydantic_ai"),
    "holdfast.load.locust_user",
}
"""Modules for packages that need not be installed."""

CLIENTS = """
import asyncio
import holdfast
from holdfast._core.serve.http import HttpServer
from holdfast.demo.server import make_server
from holdfast.testing import Peer

async def main():
    peer = Peer()
    peer.tool("echo")(lambda text: text)
    async with holdfast.connect(peer) as client:
        print((await client.call_tool("echo", {{"text": "in memory"}})).text)
    port = await HttpServer(make_server()).start(port=0)
    async with holdfast.connect(f"http://127.0.0.1:{{port}}/mcp") as client:
        print((await client.call_tool("echo", {{"text": "over HTTP"}})).text)

asyncio.run(main())
"""


def run(code: str, **names: object) -> subprocess.CompletedProcess[str]:
    text = (START + code).format(folder=str(FOLDER), **names)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=220, check=False
    )


@pytest.mark.req("S5")
def test_every_module_imports_without_what_only_posix_has() -> None:
    done = run(IMPORT_ALL, posix_only=POSIX_ONLY, optional=OPTIONAL)
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.req("S5")
def test_clients_in_memory_and_over_http_work() -> None:
    done = run(CLIENTS)
    assert done.stdout.splitlines() == ["in memory", "over HTTP"], done.stderr


@pytest.mark.req("S5")
def test_the_pretence_hides_what_it_should() -> None:
    done = run("exec('import termios', {{'__name__': 'holdfast.x'}})")
    assert "holdfast.x imports termios, which win32 does not have" in done.stderr
