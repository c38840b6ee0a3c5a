"""Runs pages, each in an interpreter and a folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.docs.pages import Step, name_of, read, steps
from tests.interop.catalogue import TIME
from tests.interop.install import install

MARK = "\x1e"
"""Parts the outputs of a page's steps."""
LONGEST = 170.0
"""Seconds for one page: many times what it takes on an idle machine."""

RUNNER = f"""
import ast, asyncio, inspect, json, pathlib, subprocess, sys

def python(runner, namespace, page, line, text):
    source = "\\n" * line + text
    code = compile(source, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, namespace)
    if inspect.iscoroutine(found):
        async def run(work=found):
            return await work
        runner.run(run())

def console(text):
    done = subprocess.run(
        ["bash", "-c", text],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    print(done.stdout.decode(), end="")

page, steps = json.load(sys.stdin)
namespace = {{"__name__": "__main__"}}
with asyncio.Runner() as runner:
    for kind, title, line, text in steps:
        if title is not None:
            pathlib.Path(title).write_text(text, encoding="utf-8")
        elif kind == "console":
            console(text)
        else:
            python(runner, namespace, page, line, text)
        print({MARK!r}, end="", flush=True)
"""


def run_page(page: Path) -> subprocess.CompletedProcess[str]:
    return run_steps(name_of(page), steps(read(page)))


def run_steps(page: str, wanted: list[Step]) -> subprocess.CompletedProcess[str]:
    """One page, in a folder and a home of its own, so that nobody's settings count."""
    sent = [
        [step.block.kind, step.block.title, step.block.line, typed(step.block.text, step)]
        for step in wanted
    ]
    with tempfile.TemporaryDirectory(prefix="page-") as home:
        folder = Path(home, "project")
        folder.mkdir()
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", RUNNER],
            input=json.dumps([page, sent]),
            env=environment(home, needs_time(wanted)),
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=LONGEST,
            check=False,
        )


def typed(text: str, step: Step) -> str:
    """Commands without the prompts that a page may show before them."""
    return re.sub(r"^\$ ", "", text, flags=re.M) if step.block.kind == "console" else text


def environment(home: str, with_time: bool) -> dict[str, str]:
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    if with_time:
        path.append(str(install(TIME.source, TIME.name, TIME.pins) / "bin"))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "MCP_SERVER_URL" and not name.startswith(("XDG_", "HOLDFAST_"))
    }
    return {**kept, "HOME": home, "PATH": os.pathsep.join(path)}


def needs_time(wanted: Iterable[Step]) -> bool:
    """Whether a page uses mcp-server-time, which the tests with real servers install."""
    return any(TIME.package in step.block.text for step in wanted)


def matches(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None
