"""The command line, run in this process (quick) or as one of its own (real)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.cli.main import main

DEMO = [sys.executable, "-m", "holdfast.demo_server"]


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and an empty folder to work in."""
    place = tmp_path / "home"
    work = tmp_path / "work"
    place.mkdir()
    work.mkdir()
    for name in ("HOLDFAST_CONFIG", "MCP_SERVER_URL", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(place))
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(place / name.lower()))
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
def process(home: Path) -> Cli:
    """Run a command line as a process of its own."""

    def run(*words: str, stdin: str = "", **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **env},
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run
