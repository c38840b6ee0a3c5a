"""The suite's own guards (tests/conftest.py), tried in a pytest of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rules.source import PROJECT, TESTS


@dataclass
class Outcome:
    """How one test module went: ``passed``, ``failure``, ``error`` or ``skipped``, and the text."""

    kinds: set[str]
    text: str


def run_suite(folder: Path, sources: dict[str, str], *, require_all: bool) -> dict[str, Outcome]:
    """Run test modules under our conftest and settings; the outcome of each by its name."""
    tests = folder / "tests"
    tests.mkdir(parents=True)
    shutil.copy(PROJECT / "pyproject.toml", folder)
    for name in ("conftest.py", "posix.py", "skipping.py", "thorough.py"):
        shutil.copy(TESTS / name, tests)
    for name, source in sources.items():
        (tests / f"test_{name}.py").write_text(f"import pytest\n{source}\n", encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not _is_ours(name)}
    if require_all:
        env["HOLDFAST_REQUIRE_ALL"] = "1"
    command = "-m pytest -q -p no:cacheprovider --continue-on-collection-errors --junitxml=out.xml"
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (folder / "out.xml").exists(), done.stdout + done.stderr
    return _outcomes(ET.parse(folder / "out.xml").getroot())


def _is_ours(name: str) -> bool:
    return name == "CI" or name.startswith(("HOLDFAST_", "PYTEST_"))


def _outcomes(report: ET.Element) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for case in report.iter("testcase"):
        # A module that could not be collected stands there by its own name alone.
        module = case.get("classname") or case.get("name") or ""
        name = module.rpartition(".")[2].removeprefix("test_")
        outcome = found.setdefault(name, Outcome(set(), ""))
        ends = [part for part in case if part.tag in ("failure", "error", "skipped")]
        outcome.kinds |= {part.tag for part in ends} or {"passed"}
        outcome.text += "".join(f"{part.get('message')}\n{part.text}\n" for part in ends)
    return found


SKIPS = {
    "mark": "@pytest.mark.skip(reason='no network')\ndef test_it(): pass",
    "condition": "@pytest.mark.skipif(True, reason='no network')\ndef test_it(): pass",
    "call": "def test_it(): pytest.skip('no network')",
    "fixture": (
        "@pytest.fixture\ndef net(): pytest.skip('no network')\ndef test_it(net): assert net"
    ),
    "module": "pytest.skip('no network', allow_module_level=True)",
    "import": "pytest.importorskip('no_such_module_here', reason='no network')",
}

XFAIL = "@pytest.mark.xfail(reason='known')\ndef test_it(): assert False"


def test_a_skip_fails_where_everything_must_run(tmp_path: Path) -> None:
    outcomes = run_suite(tmp_path / "suite", {**SKIPS, "xfail": XFAIL}, require_all=True)
    assert outcomes.pop("xfail").kinds == {"skipped"}, "an expected failure is not a skip"
    assert outcomes.keys() == SKIPS.keys()
    for name, outcome in outcomes.items():
        assert outcome.kinds <= {"failure", "error"}, name
        assert "HOLDFAST_REQUIRE_ALL=1 allows no skips" in outcome.text, name
        assert "no network" in outcome.text, name


def test_a_skip_is_a_skip_elsewhere(tmp_path: Path) -> None:
    outcomes = run_suite(tmp_path / "suite", SKIPS, require_all=False)
    assert outcomes.keys() == SKIPS.keys()
    assert all(outcome.kinds == {"skipped"} for outcome in outcomes.values())


HANGS = {
    "await": "async def test_it(): await asyncio.Event().wait()",
    "thread": "def test_it(): threading.Event().wait()",
    "busy": "def test_it():\n    while True: pass",
    "catches_everything": (
        "def test_it():\n    while True:\n        try: time.sleep(60)\n"
        "        except Exception: pass"
    ),
    "background_task": (
        "async def test_it():\n"
        "    async def spin():\n"
        "        while True: pass\n"
        "    spinning = asyncio.create_task(spin())\n"
        "    await asyncio.Event().wait()\n"
        "    await spinning"
    ),
    "named_task": (
        "async def wait_for_godot(): await asyncio.Event().wait()\n"
        "async def test_it(): await asyncio.create_task(wait_for_godot(), name='godot')"
    ),
    "fixture": (
        "@pytest.fixture\nasync def slow(): await asyncio.Event().wait()\n"
        "def test_it(slow): assert slow"
    ),
    "teardown": (
        "@pytest.fixture\nasync def slow():\n    yield\n    await asyncio.Event().wait()\n"
        "def test_it(slow): pass"
    ),
    "property": (
        "@hypothesis.given(hypothesis.strategies.integers())\n"
        "def test_it(n): asyncio.run(asyncio.Event().wait())"
    ),
    "uvloop": "import uvloop\ndef test_it(): uvloop.run(asyncio.Event().wait())",
}


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    top = "import asyncio, hypothesis, threading, time\npytestmark = pytest.mark.hang(0.3)\n"
    sources = {name: top + source for name, source in HANGS.items()}
    sources["zz_the_next"] = "def test_it(): pass"
    return run_suite(tmp_path_factory.mktemp("hung") / "suite", sources, require_all=False)


@pytest.mark.parametrize("name", HANGS)
def test_a_hung_test_fails_and_shows_where_it_stands(hung: dict[str, Outcome], name: str) -> None:
    outcome = hung[name]
    assert outcome.kinds & {"failure", "error"}
    assert "still running after 0.3 s" in outcome.text
    assert "thread MainThread" in outcome.text
    assert f"test_{name}.py" in outcome.text


def test_a_hung_task_is_shown_by_its_stack(hung: dict[str, Outcome]) -> None:
    assert "task godot" in hung["named_task"].text
    assert "in wait_for_godot" in hung["named_task"].text


def test_the_tests_after_a_hung_one_still_run(hung: dict[str, Outcome]) -> None:
    assert hung["zz_the_next"].kinds == {"passed"}


@pytest.mark.parametrize("require_all", [False, True])
def test_settings_of_the_suite(tmp_path: Path, require_all: bool) -> None:
    sources = {
        "warning": "import warnings\ndef test_it(): warnings.warn('careful')",
        "profile": (
            "from hypothesis import settings\n"
            "def test_it():\n"
            "    now = settings()\n"
            "    assert now.max_examples >= 100\n"
            "    assert now.deadline is None\n"
            f"    assert now.derandomize is {require_all}"
        ),
    }
    outcomes = run_suite(tmp_path / "suite", sources, require_all=require_all)
    assert outcomes["warning"].kinds == {"failure"}
    assert "UserWarning: careful" in outcomes["warning"].text
    assert outcomes["profile"].kinds == {"passed"}, outcomes["profile"].text
