"""Servers as commands: one that works, and some that do not."""

from __future__ import annotations

import sys
from pathlib import Path

DEMO = [sys.executable, "-m", "holdfast.demo.server"]
GONE = ["no-such-command-at-all", "--flag"]
DEAD = [sys.executable, "-c", "import sys; print('out of paper', file=sys.stderr); sys.exit(3)"]
HUNG = [sys.executable, "-c", "import time; print('', flush=True); time.sleep(3600)"]

_MEETING = """
import runpy, sys
_, where, how = sys.argv
open(where, how).close()  # a pipe by name: opening it waits for the other side
sys.argv = ["demo"]
runpy.run_module("holdfast.demo.server", run_name="__main__")
"""


def meeting(pipe: Path, how: str) -> list[str]:
    """A server that starts only once another one, at the other end of the pipe, starts too."""
    return [sys.executable, "-c", _MEETING, str(pipe), how]
