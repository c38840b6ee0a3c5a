"""The command line against the floor of starting Python: no client can be faster than that."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.rows import Bench, Measure, MeasureError, Row, Stopwatch, last_line
from benchmarks.sides import Side

SERVER = "bench"


def command_line(*words: str, times: int = 5) -> Measure:
    """``holdfast`` with some words, in a home where a server's tools have been seen before."""

    def measure(bench: Bench, side: Side) -> float:
        if side.family == "raw":
            return statistics.median(_timed(["-c", "pass"], {}) for _ in range(times))
        with tempfile.TemporaryDirectory() as home:
            environment = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache"}
            _remember(Path(home))
            command = ["-m", "holdfast", *words]
            return statistics.median(_timed(command, environment) for _ in range(times))

    return measure


def _timed(arguments: list[str], environment: dict[str, str]) -> float:
    with Stopwatch() as watch:
        done = subprocess.run(
            [sys.executable, "-P", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
        )
    if done.returncode:
        raise MeasureError(last_line(done.stderr))
    return watch.seconds


def _remember(home: Path) -> None:
    """A list of a hundred tools, as an earlier run would have left it."""
    code = (
        "from holdfast.cli.tool_cache import save; "
        f"save({SERVER!r}, [dict(name=f'tool{{n}}', description='A tool') for n in range(100)])"
    )
    _timed(["-c", code], {"HOME": str(home), "XDG_CACHE_HOME": f"{home}/cache"})


ROWS = (
    Row(
        "help",
        "holdfast --help, start to end",
        "ms",
        command_line("--help"),
        eras=False,
        spawns=True,
    ),
    Row(
        "offline",
        "holdfast tools (seen before), start to end",
        "ms",
        command_line("tools", SERVER, "--offline"),
        eras=False,
        spawns=True,
    ),
)
