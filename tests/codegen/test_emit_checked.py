"""What is generated is good Python: it runs, is typed, and is laid out as formatters want it.

The type checkers are asked once, about everything: real registries, made-up ones, and code
that uses a handle rightly and wrongly. They take long: in short, what is made runs, and is laid
out.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.codegen import SessionTools, generate
from holdfast.types.tools import Tool
from tests.codegen.material import COMMANDS, golden, hostile, registries
from tests.thorough import THOROUGH

PROJECT = Path(__file__).resolve().parents[2]
MADE_UP = 25

USES = """
from __future__ import annotations

from typing import assert_type

from holdfast.handles import HandleResult
from real import everything, sessions


async def right() -> None:
    launch: sessions.OpenArguments = {"launchOptions": {"headless": True}}
    async with sessions.connect("p4n-test", open_arguments=launch) as mcp:
        result = await mcp.browser.run_test(grep="acceptCookies")
        assert_type(result, sessions.BrowserRunTestResult)
        assert_type(result["passed"], int)
        found = await mcp.nav.goto(url="http://a", waitUntil="load", parallel=True, timeout=3)
        assert_type(found, HandleResult)
        await mcp.browser["run.file"](path="a.js")
    async with sessions.connect(target=["other"], drift="warn", log=print):
        pass


def right_without_a_loop() -> None:
    with sessions.connect_sync("p4n-test", open_arguments={"url": "http://a"}) as mcp:
        assert_type(mcp.browser.run_test(), sessions.BrowserRunTestResult)
    with everything.connect_sync() as other:
        weather = other["_root"]["get-structured-content"](location="Chicago")
        print(weather["temperature"])


async def wrong() -> None:
    mcp = sessions.connect()
    await mcp.nav.goto()  # type: ignore[call-arg]
    await mcp.nav.goto(url=1)  # type: ignore[arg-type]
    await mcp.nav.goto("http://a")  # type: ignore[call-arg]
    await mcp.nav.goto(url="http://a", waitUntil="never")  # type: ignore[arg-type]
    await mcp.nav.goto(url="http://a", sessionName="x")  # type: ignore[call-arg]
    mcp.nav.forward()  # type: ignore[attr-defined]
    mcp.cookies.list()  # type: ignore[attr-defined]
    sessions.connect(open_arguments={"url": 1})  # type: ignore[arg-type]
    sessions.connect(drift="maybe")  # type: ignore[arg-type]
"""


def made_up() -> list[str]:
    """Modules for whatever hypothesis comes upon. They are tried as they are made."""
    found: list[str] = []

    @settings(
        max_examples=MADE_UP,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(registries(), hostile(), st.randoms(use_true_random=False))
    def make(tools: list[Tool], command: str, chance: random.Random) -> None:
        session = SessionTools("a", "a.b", "a.a") if len(found) % 3 == 0 else None
        target = [command, "x"] if len(found) % 2 else command
        made = generate(tools, command=command, target=target, sync=True, session=session)
        chance.shuffle(tools)
        again = generate(tools, command=command, target=target, sync=True, session=session)
        assert again == made
        run(made.source)
        found.append(made.source)

    make()
    return found


def run(source: str) -> None:
    module = ModuleType("generated")
    exec(compile(source, "generated.py", "exec"), module.__dict__)
    assert isinstance(module.connect(target=["nothing"]), module.Tools)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    files = {f"real/{name}.py": golden(name).source for name in COMMANDS}
    files |= {f"made/number_{at}.py": source for at, source in enumerate(made_up())}
    files |= {"real/__init__.py": "", "made/__init__.py": "", "uses.py": USES}
    files |= {"mypy.ini": MYPY, "pyrightconfig.json": json.dumps(PYRIGHT)}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


MYPY = f"""\
[mypy]
strict = true
python_version = 3.11
cache_dir = {PROJECT / ".mypy_cache" / "generated"}
follow_imports = silent
"""
PYRIGHT = {
    "typeCheckingMode": "strict",
    "extraPaths": [str(PROJECT / "src")],
    "reportUnnecessaryTypeIgnoreComment": "error",
    "pythonVersion": "3.11",
}
CHECKERS = {
    "mypy": ("mypy", "--config-file=mypy.ini", "real", "made", "uses.py"),
    "pyright": ("pyright", "--project", ".", "--pythonpath", sys.executable),
    "ruff": ("ruff", "format", "--isolated", "--diff", "real", "made"),
}

Checks = dict[str, subprocess.Popen[str]]


@pytest.fixture(scope="module")
def checks(folder: Path) -> Iterator[Checks]:
    """All checkers at once: they are slow, and do not need each other."""
    env = {**os.environ, "MYPYPATH": str(PROJECT / "src"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", *words],
                    cwd=folder,
                    env=env,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                )
            )
            for name, words in CHECKERS.items()
            if THOROUGH or name == "ruff"
        }


@pytest.mark.req("H1", "H3")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough(only=name != "ruff")) for name in CHECKERS],
)
@pytest.mark.long
def test_checkers_are_content(checks: Checks, name: str) -> None:
    said, _ = checks[name].communicate()
    assert checks[name].returncode == 0, said
