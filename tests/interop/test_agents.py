"""Real agents over a file that ``holdfast install`` has changed: Claude Code, Codex, Gemini.

Their own programs, as people install them, with a model that calls what the test says. A server
ends in the middle of a call: the model is told whether that may have run, and goes on with the
next, while the agent alone loses the server, or says nothing of what became of the call.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.install import PROJECT, NotHere, install
from tests.interop.scripted_model import Call, ScriptedModel

pytestmark = [pytest.mark.req("Y6"), pytest.mark.hang(900)]

CALLS: list[Call] = [
    ("add", {"a": 2, "b": 3}),
    ("crash", {}),
    ("add", {"a": 3, "b": 3}),
    ("add", {"a": 4, "b": 3}),
]
SERVER = """\
import sys
sys.path.insert(0, {sources!r})
from holdfast.demo.server import main
main(sys.argv[1:])
"""
SOON = 10.0
"""Seconds in which all processes of an agent have ended behind it."""


@dataclass(frozen=True)
class Agent:
    """A program of others that people use, and what it needs to be run without a person."""

    pin: str
    program: str
    """Where it is, in its folder: a pattern."""
    prefix: str
    """What it puts before the names of tools."""
    file: str
    """Its own file, in the home folder."""
    text: Callable[[list[str], str], str]
    """What is in that file, for the command of a server and the address of a model."""
    words: tuple[str, ...]
    environment: Callable[[str], dict[str, str]]


def claude_file(command: list[str], url: str) -> str:
    entry = {"type": "stdio", "command": command[0], "args": command[1:], "env": {}}
    return json.dumps({"mcpServers": {"demo": entry}}, indent=2)


def codex_file(command: list[str], url: str) -> str:
    return f"""\
model = "gpt-5"
model_provider = "scripted"  # no other is asked

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"

[mcp_servers.demo]
command = {json.dumps(command[0])}
args = {json.dumps(command[1:])}
"""


def gemini_file(command: list[str], url: str) -> str:
    entry = {"command": command[0], "args": command[1:]}
    security = {"auth": {"selectedType": "gemini-api-key"}}
    return json.dumps({"mcpServers": {"demo": entry}, "security": security}, indent=2)


AGENTS = {
    "claude-code": Agent(
        "@anthropic-ai/claude-code@2.1.327",
        "node_modules/@anthropic-ai/claude-code-*/claude",  # of this machine
        "mcp__demo__",
        ".claude.json",
        claude_file,
        ("-p", "go", "--allowedTools", "mcp__demo"),
        lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    ),
    "codex": Agent(
        "@openai/codex@0.169.0",
        "node_modules/.bin/codex",
        "mcp__demo",
        ".codex/config.toml",
        codex_file,
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"),
        lambda url: {"OPENAI_API_KEY": "none"},
    ),
    "gemini": Agent(
        "@google/gemini-cli@0.61.0",
        "node_modules/.bin/gemini",
        "mcp_demo_",
        ".gemini/settings.json",
        gemini_file,
        ("--skip-trust", "--yolo", "--model", "gemini-2.5-flash", "--prompt", "go"),
        lambda url: {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url},
    ),
}


def outcome(told: str) -> str:
    """Return what the model can make of a result."""
    if found := re.search(r"sum\D+(\d+)", told):
        return found[1]
    return "may have run" if "it may have run" in told else "lost"


def running(mark: str) -> list[int]:
    """Return the processes with a word in their command lines."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def work(agent: Agent, program: Path, home: Path, model: ScriptedModel) -> list[str]:
    """Have an agent do its work; return the outcomes of the calls, as its model was told."""
    folder = home / "work"
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [program, *agent.words],
        env={**os.environ, "HOME": str(home), **agent.environment(model.url)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [outcome(told) for told in model.told]


def holdfast(home: Path, *words: str) -> None:
    command = [sys.executable, "-m", "holdfast", *words, "--yes"]
    environment = {**os.environ, "HOME": str(home)}
    subprocess.run(command, env=environment, cwd=home, check=True, capture_output=True)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_s_server_comes_back(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]
    try:
        program = next(install("npm", name, [agent.pin]).glob(agent.program))
    except NotHere as reason:
        pytest.skip(str(reason))
    server = tmp_path / "demo_server.py"
    server.write_text(SERVER.format(sources=str(PROJECT / "src")))
    model, file = ScriptedModel(CALLS, agent.prefix), tmp_path / agent.file
    with model.served():
        file.parent.mkdir(exist_ok=True)
        file.write_text(agent.text([sys.executable, str(server)], model.url))
        alone = work(agent, program, tmp_path, model)
        before = file.read_bytes()
        holdfast(tmp_path, "install", name, "demo")
        assert file.read_bytes() != before
        through = work(agent, program, tmp_path, model)
    assert alone[:2] == ["5", "lost"]
    assert through == ["5", "may have run", "6", "7"]
    until = time.monotonic() + SOON
    while left := running(str(server)):
        assert time.monotonic() < until, f"processes that are left: {left}"
        time.sleep(0.05)
    holdfast(tmp_path, "uninstall", name, "demo")
    if name != "claude-code":  # which writes down in its file what it did
        assert file.read_bytes() == before
    else:
        servers = [json.loads(text)["mcpServers"] for text in (file.read_bytes(), before)]
        assert servers[0] == servers[1]
