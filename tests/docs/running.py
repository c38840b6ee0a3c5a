"""Runs pages, each in an interpreter and a folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import Step, name_of, read, steps

MARK = "\x1e"
"""Parts the outputs of a page's steps."""
LONGEST = 170.0
"""Seconds for one page: many times what it takes on an idle machine."""

RUNNER = f"""
import ast, asyncio, inspect, json, os, pathlib, subprocess, sys

def python(runner, namespace, page, line, text):
    source = "\\n" * line + text
    code = compile(source, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, namespace)
    if inspect.iscoroutine(found):
        async def run(work=found):
            return await work
        runner.run(run())

def console(text, must_succeed):
    # At a terminal of 100 columns without a keyboard. Prints what is on its screen in the end,
    # where a line that the program itself did not wrap stays one line.
    import pyte, termios
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (300, 100))
    done = subprocess.Popen(
        ["bash", "-ec" if must_succeed else "-c", "trap 'printf \\004' EXIT\\n" + text],
        stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, start_new_session=True,
    )
    written = b""
    while not written.endswith(b"\\4"):
        written += os.read(master, 65536)
    done.wait()
    os.close(master)
    os.close(slave)
    screen = pyte.Screen(1000, 300)
    pyte.ByteStream(screen).feed(written[:-1])
    # Of thousands of columns few are in use; the rest would be looked up one by one.
    rows = [screen.buffer[at] for at in range(max(screen.buffer, default=-1) + 1)]
    lines = ["".join(row[at].data for at in range(max(row, default=-1) + 1)) for row in rows]
    print("\\n".join(line.rstrip() for line in lines).rstrip())
    if must_succeed and done.returncode:
        sys.exit(f"exit code {{done.returncode}}: {{text}}\\n{{written.decode()}}")

# The disk of a busy machine is slower than a cache waits for.
import holdfast._core.calls.cache
holdfast._core.calls.cache.PATIENCE = 60.0

page, steps = json.load(sys.stdin)
namespace = {{"__name__": "__main__"}}
with asyncio.Runner() as runner:
    for kind, title, line, text in steps:
        if title is not None:
            pathlib.Path(title).write_text(text, encoding="utf-8")
        elif kind in ("console", "commands"):
            console(text, kind == "commands")
        else:
            python(runner, namespace, page, line, text)
        print({MARK!r}, end="", flush=True)
"""


def run_page(page: Path) -> subprocess.CompletedProcess[str]:
    return run_steps(name_of(page), steps(read(page)))


def run_steps(page: str, wanted: list[Step]) -> subprocess.CompletedProcess[str]:
    """One page, in a folder and a home of its own, so that nobody's settings count."""
    sent = [
        [
            "commands" if step.must_succeed else step.block.kind,
            step.block.title,
            step.block.line,
            typed(step.block.text, step),
        ]
        for step in wanted
    ]
    with tempfile.TemporaryDirectory(prefix="page-") as home:
        folder = Path(home, "project")
        folder.mkdir()
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", RUNNER],
            input=json.dumps([page, sent]),
            env=environment(home),
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=LONGEST,
            check=False,
        )


def typed(text: str, step: Step) -> str:
    """Commands without the prompts that a page may show before them."""
    return re.sub(r"^\$ ", "", text, flags=re.M) if step.block.kind == "console" else text


def environment(home: str) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MCP_SERVER_URL", "COLUMNS", "LINES")
        and not name.startswith(("XDG_", "HOLDFAST_"))
    }
    # Nor do the plugins of our own suite, which a reader of the page does not have.
    plugins = " ".join(f"-p no:{name}" for name in ("hypothesispytest", "xdist", "anyio"))
    words = {"TERM": "xterm", "NO_COLOR": "1", "PYTEST_ADDOPTS": plugins}
    return {**kept, "HOME": home, "PATH": path, **words}


def matches(expected: str, printed: str, *, wrapped: bool = False) -> bool:
    """Compare with ``…`` for anything; where lines may be wrapped, all white space is alike."""
    if wrapped:
        expected, printed = " ".join(expected.split()), " ".join(printed.split())
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None
