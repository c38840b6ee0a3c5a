"""Hosts of others in front of ``holdfast serve``: official clients, and FastMCP's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.running import installed
from tests.interop.install import PROJECT, NotHere
from tests.relay import stdio_server

SCRIPTS = PROJECT / "tests" / "frameworks" / "scripts"


@pytest.mark.req("X2")
@pytest.mark.hang(600)
@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("fastmcp", "relay_host.py"),
        ("langchain", "relay_host.py"),
        ("fastmcp", "relay_fastmcp.py"),
    ],
    ids=["mcp-2", "mcp-1", "fastmcp"],
)
def test_a_client_of_others_outlives_its_server(name: str, script: str, tmp_path: Path) -> None:
    try:
        python = installed(name) / "bin" / "python"
    except NotHere as reason:
        pytest.skip(str(reason))
    runs = tmp_path / "runs"
    serve = [sys.executable, "-m", "holdfast", "serve", "--env", f"RUNS={runs}"]
    done = subprocess.run(
        [python, SCRIPTS / script, *serve, "--", sys.executable, stdio_server.__file__],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "tools": list(stdio_server.TOOLS),
        "asked": "file:///a",
        "error": {"kind": "transport", "outcomeUnknown": True},
        "lives": True,
    }
    assert runs.read_text() == "run\n"


@pytest.mark.req("Y2")
@pytest.mark.hang(600)
@pytest.mark.parametrize(
    ("name", "hosts"),
    [("fastmcp", ("session", "again", "client", "fastmcp")), ("langchain", ("session", "again"))],
    ids=["mcp-2", "mcp-1"],
)
def test_sessions_of_others_run_on_streams_of_a_client(
    name: str, hosts: tuple[str, ...], tmp_path: Path
) -> None:
    try:
        python = installed(name) / "bin" / "python"
    except NotHere as reason:
        pytest.skip(str(reason))
    runs = tmp_path / "runs"
    path = os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])
    done = subprocess.run(
        [python, SCRIPTS / "relay_streams.py", sys.executable, stdio_server.__file__],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path, "RUNS": str(runs)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = {
        "tools": list(stdio_server.TOOLS),
        "asked": "file:///a",
        "error": {"kind": "transport", "outcomeUnknown": True},
        "lives": True,
    }
    assert json.loads(done.stdout) == dict.fromkeys(hosts, report)
    assert runs.read_text() == "run\n" * len(hosts)


@pytest.mark.req("Y2")
@pytest.mark.hang(600)
@pytest.mark.parametrize("name", ["fastmcp", "langchain"], ids=["mcp-2", "mcp-1"])
def test_what_a_session_cannot_hold_is_refused_and_nothing_of_it_stays(name: str) -> None:
    try:
        python = installed(name) / "bin" / "python"
    except NotHere as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [python, SCRIPTS / "streams_faults.py"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(PROJECT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    unread = {"kind": "protocol", "outcomeUnknown": True}
    assert json.loads(done.stdout) == {
        "odd_answers": {
            "digits": unread,
            "deep": unread,
            "notice": "fine",
            "asks": "refused",
            "fine": "fine",
        },
        "odd_arguments": [{"kind": "validation", "outcomeUnknown": False}, "fine"],
        "cancelled": [],
        "entered_twice": [
            "these streams are in use: each session needs streams(client) anew",
            "fine",
        ],
        "kept": 0,
    }
