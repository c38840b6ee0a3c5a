"""The calls of `holdfast._core.windows`, in order, against a Windows that only writes them down.

The layout of what it passes is compared with the headers of mingw-w64 in ``test_job.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SIMULATED = Path(__file__).with_name("simulated.py")

CALLS = """
import ctypes, json, subprocess, sys
import simulated

kernel = simulated.Kernel(json.loads(sys.argv[1]))
simulated.pretend_windows(kernel)
from holdfast._core import windows


class Process:
    pid = 4711
    returncode = None

    def kill(self): kernel.calls.append("kill")
    def wait(self): kernel.calls.append("wait")
    def poll(self): return self.returncode


try:
    job = windows.Job(Process())
    kernel.calls.append("-")
    job.activity(), job.is_gone()
    job.terminate()
    job.release()
    job.kill()
    kernel.calls.append(f"gone={job.is_gone()}")
except OSError as error:
    kernel.calls.append(f"OSError {error}")
print(json.dumps(kernel.calls))
"""


def calls(**answers: Any) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(answers)],
        cwd=SIMULATED.parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert isinstance(listed, list)
    return listed


@pytest.mark.req("S5")
def test_a_process_is_in_its_job_before_it_runs() -> None:
    whole = calls()
    start, rest = whole[: whole.index("-")], whole[whole.index("-") + 1 :]
    order = ["CreateJobObjectW", "SetInformationJobObject", "OpenProcess"]
    order += ["AssignProcessToJobObject", "CloseHandle", "CreateToolhelp32Snapshot"]
    assert start[:6] == order
    assert start.count("ResumeThread") == 1
    assert start.index("AssignProcessToJobObject") < start.index("ResumeThread")
    ends = ["QueryInformationJobObject", "QueryInformationJobObject"]
    assert rest == [*ends, "TerminateJobObject", "CloseHandle", "gone=True"]


@pytest.mark.req("S5")
@pytest.mark.parametrize(
    "failing",
    ["CreateJobObjectW", "SetInformationJobObject", "OpenProcess", "AssignProcessToJobObject"],
)
def test_a_process_that_gets_no_job_never_runs(failing: str) -> None:
    whole = calls(**{failing: 0})
    assert "ResumeThread" not in whole
    assert whole[whole.index("kill") : whole.index("kill") + 2] == ["kill", "wait"]
    assert whole[-1].startswith("OSError")


@pytest.mark.req("S5")
def test_a_process_that_cannot_be_resumed_is_ended() -> None:
    whole = calls(ResumeThread=0xFFFFFFFF)
    assert "kill" in whole
    assert "could be resumed" in whole[-1]
    assert whole.count("CloseHandle") == 4  # the process, the snapshot, the thread, the job
