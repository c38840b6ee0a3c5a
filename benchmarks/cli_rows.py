"""The command line against the start of Python, and against a program that uses the library."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bench import Bench, Found, Measure, MeasureError, Row, Stopwatch, last_line
from benchmarks.sides import Side, named

SERVER = "bench"
TIMES = 15
SCRIPT = """\
import sys
from holdfast.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""
"""What people type, as uv and pip since 25.0 install it.

That of an older pip loads ``re``, and takes half the start of Python more, as ``python -m`` does:
neither is a matter of the command.
"""


def command_line(floor: str, *words: str) -> Measure:
    """``holdfast`` with some words, in a home where a server's tools have been seen before.

    Words that end with ``--`` are followed by the command of the server.
    """

    def measure(bench: Bench, side: Side) -> Found:
        with tempfile.TemporaryDirectory() as home:
            own = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache"}
            _remember(Path(home))
            script = Path(home, "holdfast")
            script.write_text(SCRIPT, encoding="utf-8")
            command = [str(script), *words, *(bench.target(side) if words[-1] == "--" else ())]
            pairs = [(_floor(floor, bench), _timed(command, own)) for _ in range(TIMES)]
        floors, ours = zip(*pairs, strict=True)
        return {floor: min(floors), "holdfast": min(ours)}

    return measure


def through_daemon(bench: Bench, side: Side) -> Found:
    """``holdfast call`` on a warm server of the daemon, against the start of the command itself."""
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        own = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "XDG_STATE_HOME": home}
        own |= {"XDG_RUNTIME_DIR": home, "HOLDFAST_DAEMON_TIMEOUT": "10"}
        call = ["-m", "holdfast", "call", "echo", "text=hello", "--", *bench.target(side)]
        _timed(["-m", "holdfast", "daemon", "start"], own)
        try:
            _timed(call, own)
            pairs = [
                (_timed(["-m", "holdfast", "call", "--help"], own), _timed(call, own))
                for _ in range(TIMES)
            ]
        finally:
            _timed(["-m", "holdfast", "daemon", "stop"], own)
    starts, calls = zip(*pairs, strict=True)
    return {"start": statistics.median(starts), "holdfast": statistics.median(calls)}


def _floor(floor: str, bench: Bench) -> float:
    if floor == "python":
        return _timed(["-c", "pass"], {})
    with Stopwatch() as watch:
        side = named("holdfast-stateless")
        bench.python(side.cold_code(bench.target(side)))
    return watch.seconds


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
        "from holdfast.cli.tool_cache import save; from holdfast.types import Tool; "
        f"save({SERVER!r}, [Tool.make(f'tool{{n}}', description='A tool') for n in range(100)])"
    )
    _timed(["-c", code], {"HOME": str(home), "XDG_CACHE_HOME": f"{home}/cache"})


def _row(key: str, title: str, floor: str, *words: str) -> Row:
    measure = command_line(floor, *words)
    return Row(key, title, "ms", measure, spawns=True, only=("holdfast-stateless",), group="cli")


ROWS = (
    _row("help", "holdfast --help", "python", "--help"),
    _row("offline", "holdfast tools --offline", "python", "tools", SERVER, "--offline"),
    _row("call", "holdfast call", "cold", "call", "echo", "text=hello", "--"),
    Row(
        "daemon",
        "holdfast call, through the daemon",
        "ms",
        through_daemon,
        spawns=True,
        only=("holdfast-stateless",),
        group="cli",
    ),
)
