"""Brings the other clients, at pinned versions, each into an environment of its own.

Only ``pip`` and ``npm`` are used, with whatever settings they have. What is there is kept as long
as the pins and the Python stay the same.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.peers.clients import Client

LONGEST: Final = 300.0
"""Seconds for one command of an installation."""

Run = Callable[[Sequence[str]], None]


class InstallError(Exception):
    """A client could not be installed; it is left out of the comparison, which says so."""


def run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"{command[0]}: no end after {LONGEST:g} s") from None
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise InstallError((lines or ["no message"])[-1][:200])


def install(client: Client, run: Run = run) -> None:
    """Make sure that a client is there, or say in an InstallError why it is not."""
    if client.source == "tree":
        return
    home, stamp = client.home, client.home.with_suffix(".json")
    wanted = json.dumps([*client.pins, platform.python_version(), str(home)])
    if home.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    (_from_pypi if client.source == "pypi" else _from_npm)(home, client.pins, run)
    stamp.write_text(wanted, encoding="utf-8")


def _from_pypi(home: Path, pins: Sequence[str], run: Run) -> None:
    """A virtual environment without a pip of its own: ours installs into it."""
    run([sys.executable, "-m", "venv", "--without-pip", str(home)])
    options = "--quiet --no-input --disable-pip-version-check --compile"
    python = str(home / "bin" / "python")
    run([sys.executable, "-m", "pip", "--python", python, "install", *options.split(), *pins])


def _from_npm(home: Path, pins: Sequence[str], run: Run) -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise InstallError(f"{program} is not on this machine")
    home.mkdir(parents=True)
    options = "--ignore-scripts --no-audit --no-fund --loglevel=error"
    run(["npm", "install", "--prefix", str(home), *options.split(), *pins])


def install_all(clients: Sequence[Client]) -> tuple[list[Client], dict[str, str]]:
    """Those that can be measured, and why the others cannot."""
    there: list[Client] = []
    missing: dict[str, str] = {}
    for client in clients:
        try:
            install(client)
        except InstallError as error:
            missing[client.name] = str(error)
        else:
            there.append(client)
    return there, missing
