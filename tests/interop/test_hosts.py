"""Hosts of others over a file that ``holdfast install`` has changed: the Inspector and mcporter."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.install import PROJECT, NotHere, install
from tests.relay import stdio_server

pytestmark = [pytest.mark.req("Y6"), pytest.mark.hang(600)]

PINS = ("@modelcontextprotocol/inspector@2.12.0", "mcporter@0.12.3")


@pytest.fixture(scope="module")
def programs() -> Path:
    try:
        return install("npm", "hosts", PINS) / "node_modules" / ".bin"
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Cursor's file, with Holdfast put before its server."""
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    entry = {"command": sys.executable, "args": [stdio_server.__file__]}
    entries = {"real": {**entry, "env": {"PYTHONPATH": str(PROJECT)}}}
    path.write_text(json.dumps({"mcpServers": entries}))
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "install", "cursor", "--yes"],
        env={**os.environ, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["mcpServers"]["real"]["args"][-1] == stdio_server.__file__
    return path


NOTE = """\
import os, sys
note = open(sys.argv[1], "ab", 0)
while data := os.read(0, 65536):
    note.write(data)  # first: whoever has read the rest may look for it
    os.write(1, data)
"""


def overheard(file: Path, wire: Path) -> None:
    """Have what a host receives written to a file: the Inspector shows no data of errors."""
    entries = json.loads(file.read_text())
    entry = entries["mcpServers"]["real"]
    script = shlex.join([sys.executable, "-c", NOTE, str(wire)])
    words = ["-c", f'"$@" | {script}', "sh", entry["command"], *entry["args"]]
    entry |= {"command": "/bin/sh", "args": words}
    file.write_text(json.dumps(entries))


def run(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"}
    return subprocess.run(
        words, env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_inspector_s_command_line(programs: Path, file: Path, tmp_path: Path) -> None:
    wire = tmp_path / "wire.jsonl"
    overheard(file, wire)
    start = (programs / "mcp-inspector", "--cli", "--config", file, "--server", "real")
    tools = run(tmp_path, *start, "--method", "tools/list")
    names = [tool["name"] for tool in json.loads(tools.stdout)["tools"]]
    assert names == list(stdio_server.TOOLS)
    call = (*start, "--method", "tools/call", "--tool-name")
    dead = run(tmp_path, *call, "die")
    assert dead.returncode != 0
    assert "it may have run" in dead.stdout + dead.stderr
    received = [json.loads(line) for line in wire.read_text().splitlines()]
    deaths = [line["error"] for line in received if line.get("error", {}).get("code") == -32000]
    assert [death["data"] for death in deaths] == [{"kind": "transport", "outcomeUnknown": True}]
    assert json.loads(run(tmp_path, *call, "pid").stdout)["content"][0]["text"].isdigit()


def test_mcporter(programs: Path, file: Path, tmp_path: Path) -> None:
    start = (programs / "mcporter", "--config", file)
    assert "4 tools" in run(tmp_path, *start, "list", "real").stdout
    dead = run(tmp_path, *start, "call", "real.die")
    assert "it may have run" in dead.stdout + dead.stderr
    assert "outcomeUnknown: true" in dead.stdout + dead.stderr
    assert run(tmp_path, *start, "call", "real.pid").stdout.strip().isdigit()
