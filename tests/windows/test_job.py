"""The order of the calls of `holdfast._core.windows`, by a C program under Wine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("job.c")
COMPILER = "x86_64-w64-mingw32-gcc"

Run = Callable[..., str]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Compile the program, and return a function that runs it in a prefix of its own."""
    for tool in (COMPILER, "wine", "wineserver"):
        if shutil.which(tool) is None and not Path("/usr/lib/wine", tool).exists():
            pytest.skip(f"needs {tool} (Debian: apt install wine gcc-mingw-w64-x86-64)")
    folder = tmp_path_factory.mktemp("wine")
    program = folder / "job.exe"
    subprocess.run([COMPILER, "-O1", "-Wall", "-o", program, SOURCE], check=True, timeout=200)
    env = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    # No fonts, no browser, no .NET: a prefix for a program without a window.
    env |= {
        "WINEPREFIX": str(folder / "prefix"),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe=",
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            ["wine", str(program), *words], env=env, capture_output=True, timeout=220, check=False
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode().strip()

    yield run
    subprocess.run(["wineboot", "--kill"], env=env, capture_output=True, timeout=60, check=False)


@pytest.mark.req("S5")
@pytest.mark.long
@pytest.mark.parametrize("end", ["close", "terminate"])
def test_what_is_in_the_job_before_it_runs_ends_with_all_that_it_started(
    job: Run, end: str
) -> None:
    assert job("before", end).endswith(" middle=dead last=dead")


@pytest.mark.req("S5")
@pytest.mark.long
def test_what_was_started_before_the_job_survives_it(job: Run) -> None:
    """So the order matters: this is what happens to the children of a wrapper otherwise."""
    assert job("after", "close").endswith(" middle=dead last=alive")


LAYOUT = """
import sys
sys.path.insert(0, {folder!r})
import simulated
simulated.pretend_windows(simulated.Kernel({{}}))
from ctypes import sizeof
from holdfast._core.windows import BasicAccounting, BasicLimits, ExtendedLimits, ThreadEntry
facts = [
    ("ExtendedLimits", sizeof(ExtendedLimits)),
    ("LimitFlags", BasicLimits.LimitFlags.offset),
    ("JobMemoryLimit", ExtendedLimits.JobMemoryLimit.offset),
    ("BasicAccounting", sizeof(BasicAccounting)),
    ("ActiveProcesses", BasicAccounting.ActiveProcesses.offset),
    ("ThreadEntry", sizeof(ThreadEntry)),
    ("th32OwnerProcessID", ThreadEntry.th32OwnerProcessID.offset),
]
print(*(f"{{name}} {{number}}" for name, number in facts))
"""


@pytest.mark.req("S5")
@pytest.mark.long
def test_what_python_passes_has_the_layout_of_the_headers(job: Run) -> None:
    code = LAYOUT.format(folder=str(SOURCE.parent))
    ours = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert job("layout") == ours.stdout.strip()
