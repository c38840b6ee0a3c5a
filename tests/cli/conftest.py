"""The command line, run in this process (quick), as one of its own (real), or at a terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import main
from tests.cli.terminal import PATIENCE, Screen, Terminal, attached
from tests.cli.web import Web

DEMO = [sys.executable, "-m", "holdfast.demo.server"]


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """stdout, as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The one line on stderr that says why it failed, as JSON."""
        (line,) = self.err.splitlines()
        found = json.loads(line)["error"]
        assert found["exit"] == self.code
        assert isinstance(found, dict)
        return found


Cli = Callable[..., Done]
Open = Callable[..., Terminal]
Seen = Callable[..., Screen]
Configure = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and an empty folder to work in."""
    place = tmp_path / "home"
    work = tmp_path / "work"
    place.mkdir()
    work.mkdir()
    monkeypatch.delenv("CODEX_HOME", raising=False)
    for name in ("HOLDFAST_CONFIG", "HOLDFAST_DEBUG", "MCP_SERVER_URL", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("FORCE_COLOR", "COLORTERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_REGISTRY", "http://127.0.0.1:9")  # nobody is there
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("HOME", str(place))
    (place / "run").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))  # where no daemon runs
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(place / name.lower()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(work)
    return place


@pytest.fixture
def cli(home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line in this process."""

    def run(*words: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capfd.readouterr()
        code = main(list(words))
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture
def seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Run a command line in this process, with a terminal for stdout and stderr: its screen."""

    def run(*words: str, columns: int = 80) -> Screen:
        monkeypatch.setenv("COLUMNS", str(columns))
        with attached(monkeypatch, columns) as screen:
            main(list(words))
        return screen

    return run


@pytest.fixture
def process(home: Path) -> Cli:
    """Run a command line as a process of its own."""

    def run(*words: str, stdin: str = "", **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env={**os.environ, **env},
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def terminal(home: Path) -> Iterator[Open]:
    """Run a command line as a process at a terminal of its own."""
    opened: list[Terminal] = []

    def run(*words: str, **options: Any) -> Terminal:
        command = [sys.executable, "-m", "holdfast", *words]
        opened.append(Terminal(command, **options))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


@pytest.fixture
def configure(home: Path) -> Configure:
    """Write the user's own configuration: servers by name, each as in a ``mcp.json``."""

    def write(**servers: Any) -> Path:
        path = home / "config" / "holdfast" / "mcp.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        return path

    return write


@pytest.fixture
def web() -> Iterator[Web]:
    """A server over HTTP."""
    with Web() as server:
        yield server


def stdio(command: list[str], **more: Any) -> dict[str, Any]:
    """A server for `configure`."""
    return {"command": command[0], "args": command[1:], **more}
