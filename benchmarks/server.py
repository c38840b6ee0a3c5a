"""Which server to measure against: the one in C where a compiler is found, else Python's."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "echo.c"

Target = list[str] | str
"""A command, or a URL."""


@dataclass(frozen=True)
class Server:
    """A command to start the echo server, and what it is."""

    command: tuple[str, ...]
    about: str

    def listing(self, tools: int, *, legacy: bool = False) -> Target:
        extra = ["--legacy"] if legacy else []
        return [*self.command, "--tools", str(tools), *extra]


def find(*, compiled: bool = True) -> Server:
    binary = build() if compiled else None
    if binary is not None:
        return Server((str(binary),), "echo.c (cc -O2)")
    python = Server((sys.executable, str(HERE / "echo_server.py")), "echo_server.py (no compiler)")
    return python if compiled else Server(python.command, "echo_server.py (asked for)")


def build() -> Path | None:
    """The compiled server, from the cache when the source has not changed."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    binary = cache() / f"echo-{digest}"
    if binary.exists():
        return binary
    fresh = binary.with_suffix(f".{os.getpid()}")
    order = [compiler, "-O2", "-o", str(fresh), str(SOURCE)]
    made = subprocess.run(order, capture_output=True, timeout=60, check=False)
    if made.returncode:
        print(made.stderr.decode(errors="replace"), file=sys.stderr)
        return None
    fresh.replace(binary)
    return binary


def cache() -> Path:
    """A folder of this user alone: what lies there is run."""
    folder = Path(tempfile.gettempdir()) / f"holdfast-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    return folder
