"""A newcomer: follows README and Installation with the package as it was built, then goes on.

``python -m tests.newcomer --python VENV/bin/python`` runs the examples of these pages, in order, in
a virtual environment that has the wheel and nothing else, and prints how long each step took. With
the server that the README configures it then writes a command (``cli``), and adds another server
from a registry, which is a stub on loopback.
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
from tests.registry.stub import Stub, listing, npm

PAGES = ("README.md", "docs/installation.md")
LIMIT = 60.0
"""Seconds from the first line to the last, for all together."""
REGISTERED = "io.github.owner/weather"
TASKS = (
    ("holdfast lock demo", "Locked 12 tools"),
    ("holdfast cli demo -o demo-tools", "Wrote 12 tools to demo-tools."),
    ("mkdir elsewhere && cd elsewhere && ../demo-tools add --a 2 --b 40", '{"sum": 42}'),
    ("holdfast search --registry weather", f"{REGISTERED} 1.2.3 (npm)"),
    ("! holdfast add weather", f"there are: {REGISTERED}"),
    (f"holdfast add {REGISTERED} --yes", "runs       npx -y @owner/weather@1.2.3"),
    ("holdfast servers", "npx -y @owner/weather@1.2.3"),
)
"""What is typed after the README, where ``demo`` was added, and what is then to be read."""

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
    if step.block.kind == "console":
        return at_a_prompt(text, python, home)
    return spawn([str(python), "-c", PYTHON, imports + text], python, home)


def go_on(python: Path, home: Path) -> Iterator[Tried]:
    """Write a command for the configured server, and add one from a registry."""
    registry = Stub(listing(REGISTERED, packages=[npm()]))
    try:
        for typed, expected in TASKS:
            began = time.monotonic()
            done = at_a_prompt(typed, python, home, HOLDFAST_REGISTRY=registry.url)
            fits = done.returncode == 0 and expected in " ".join(done.stdout.splitlines())
            yield Tried(typed, time.monotonic() - began, "" if fits else f"{done.stdout}\n")
    finally:
        registry.close()


def at_a_prompt(
    text: str, python: Path, home: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    return spawn(["bash", "-c", f"exec 2>&1\n{text}"], python, home, **variables)


def spawn(
    command: list[str], python: Path, home: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return subprocess.run(
        command,
        cwd=home,
        env={"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **variables},
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


def report(where: str, steps: Iterator[Tried]) -> Iterator[Tried]:
    """Print each step as it is done."""
    for tried in steps:
        mark = "FAIL" if tried.fault else "ok  "
        print(f"{mark} {tried.seconds:5.1f} s  {where}: {tried.typed[:70]}")
        print(tried.fault, end="")
        yield tried


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="newcomer", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    python = parser.parse_args(argv).python.absolute()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        home = Path(folder)
        tried = [step for page in PAGES for step in report(page, follow(page, python, home))]
        tried += report("then", go_on(python, home))
    total = sum(step.seconds for step in tried)
    faults = [step for step in tried if step.fault]
    print(f"{total:.1f} s in all; the limit is {LIMIT:g} s")
    return 1 if faults or total > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
