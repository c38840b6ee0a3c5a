"""A newcomer: follows README and Installation with the package as it was built.

``python -m tests.newcomer --python VENV/bin/python`` runs the examples of these pages, in order, in
a virtual environment that has the wheel and nothing else, and prints how long each step took.
``make release-check`` builds the wheel, makes the environment, and calls this.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import PROJECT, Step, read, steps
from tests.docs.running import matches

PAGES = ("README.md", "docs/installation.md")
LIMIT = 60.0
"""Seconds from the first line to the last, for both pages together."""

# `await` at the top level, as `python -m asyncio` has it.
PYTHON = """
import ast, asyncio, inspect, sys
code = compile(sys.argv[1], "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
found = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(found):
    async def main():
        await found
    asyncio.run(main())
"""


@dataclass(frozen=True)
class Tried:
    """One step of a page: what was typed, what came of it, in how many seconds."""

    typed: str
    seconds: float
    fault: str


def follow(page: str, python: Path, home: Path) -> Iterator[Tried]:
    """Do what a page says, as far as it shows what comes of it."""
    imports = ""
    for step in steps(read(PROJECT / page)):
        began = time.monotonic()
        done = run(step, imports, python, home)
        fault = "" if fits(step, done) else done.stdout + done.stderr
        yield Tried(first_line(step), time.monotonic() - began, fault)
        if step.block.kind == "python" and step.block.title is None:
            imports += "".join(re.findall(r"^(?:import|from) .+\n", step.block.text, re.M))


def run(step: Step, imports: str, python: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a block by itself; of the blocks before it only the imports and the files are there."""
    if step.block.title is not None:
        (home / step.block.title).write_text(step.block.text, encoding="utf-8")
        return subprocess.CompletedProcess([], 0, "", "")
    text = re.sub(r"^\$ ", "", step.block.text, flags=re.M)
    command = [str(python), "-c", PYTHON, imports + text]
    if step.block.kind == "console":
        command = ["bash", "-c", f"exec 2>&1\n{text}"]  # as at a terminal
    path = os.pathsep.join([str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return subprocess.run(
        command,
        cwd=home,
        env={"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )


def fits(step: Step, done: subprocess.CompletedProcess[str]) -> bool:
    expected = (step.expected if step.is_printed else None) or "…"
    return done.returncode == 0 and matches(expected, done.stdout, wrapped=True)


def first_line(step: Step) -> str:
    lines = [line for line in step.block.text.splitlines() if line and "import" not in line]
    return lines[0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="newcomer", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    python = parser.parse_args(argv).python.absolute()
    total, faults = 0.0, 0
    with tempfile.TemporaryDirectory(prefix="newcomer-") as home:
        for page in PAGES:
            for tried in follow(page, python, Path(home)):
                total += tried.seconds
                faults += bool(tried.fault)
                mark = "FAIL" if tried.fault else "ok  "
                print(f"{mark} {tried.seconds:5.1f} s  {page}: {tried.typed[:70]}")
                print(tried.fault, end="")
    print(f"{total:.1f} s in all; the limit is {LIMIT:g} s")
    return 1 if faults or total > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
