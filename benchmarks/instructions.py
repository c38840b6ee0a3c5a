"""Count the instructions of a start, a connection and a call, here and in another checkout.

    python -m benchmarks.instructions [--against TREE] [--runs 3] [ROW …]

Counts, unlike times, can be compared on a busy machine. valgrind's callgrind counts one process:
the client. A row other than `cold` is the slope between few and many repetitions, so that starting
is left out. Each figure is the least of the runs; bytecode is written beforehand.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.server import find

HERE = Path(__file__).resolve().parent
COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


class Row(NamedTuple):
    """What is repeated, how often at least and at most, and the server's options."""

    title: str
    few: int
    many: int
    options: tuple[str, ...] = ()


ROWS = {
    "cold": Row("start, first answer, exit", 0, 1),
    "connect": Row("connect, list 100 tools, close", 5, 45, ("--tools", "100")),
    "call": Row("a sequential call", 200, 1200),
    "parallel": Row("a call, 64 at once", 320, 1600),
    "progress": Row("a progress notification", 500, 5500),
    "relay": Row("a call through a relay in memory", 200, 1200),
    "trace": Row("a call with a trace in a file", 200, 1200),
    "call-log": Row("a call with a call log in a file", 200, 1200),
}


def count(tree: Path, row: str, repetitions: int, command: list[str]) -> int:
    """Count the instructions of one client that does `row` so often, with the package of `tree`."""
    environment = dict(os.environ, PYTHONHASHSEED="0", PYTHONPATH=str(tree / "src"))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    work = [sys.executable, str(HERE / "instructions_work.py"), row, str(repetitions), *command]
    subprocess.run(work, env=environment, check=True)
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*valgrind, *work], env=environment, capture_output=True, text=True, check=False
    )
    match = COLLECTED.search(done.stderr)
    if done.returncode or match is None:
        sys.exit(f"{row} in {tree} did not end well:\n{done.stderr}")
    return int(match[1])


def least(tree: Path, name: str, runs: int, command: list[str]) -> float:
    """Return the least instructions of one repetition, out of so many runs."""
    row = ROWS[name]
    command = [*command, *row.options]
    most = min(count(tree, name, row.many, command) for _ in range(runs))
    if name == "cold":
        return most
    return (most - min(count(tree, name, row.few, command) for _ in range(runs))) / (
        row.many - row.few
    )


def lines(names: list[str], trees: list[Path], runs: int) -> Iterator[str]:
    command = list(find().command)
    for name in names:
        figures = [least(tree, name, runs, command) for tree in trees]
        change = f"  {figures[-1] / figures[0] - 1:+.1%}" if len(figures) > 1 else ""
        yield f"{ROWS[name].title:32}" + "".join(f"{figure:>15,.0f}" for figure in figures) + change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--against", type=Path, help="another checkout, counted first")
    parser.add_argument("--runs", type=int, default=3, help="the least of so many (3)")
    options = parser.parse_args()
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    trees = [tree.resolve() for tree in (options.against, HERE.parent) if tree]
    for line in lines(options.rows or list(ROWS), trees, options.runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
