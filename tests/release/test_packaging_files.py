"""The container file and the GitHub Action: what can be checked without a daemon or a runner."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rules.source import PROJECT

ACTION = PROJECT / ".github" / "actions" / "check" / "action.yml"
SERVER = "-- python -m holdfast.demo.server"
NEWER = """
import asyncio
from holdfast.calllog import MockServer
from holdfast.lock import guard

tools = guard.read("holdfast.lock").servers["demo"].definitions
del tools["crash"]
asyncio.run(MockServer([], tools=tools).serve_stdio())
"""


def action() -> dict[str, Any]:
    found = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def run_check(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the last step of the action as a runner would, with its inputs filled in."""
    declared = {name: one["default"] for name, one in action()["inputs"].items()} | inputs
    step = action()["runs"]["steps"][-1]
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: declared[found[1]], value)
        for name, value in step["env"].items()
    }
    return run(folder, "bash", "-e", "-c", step["run"], **filled)


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables, "PATH": path, "HOME": str(folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )


@pytest.mark.req("N4")
def test_the_action_passes_an_unchanged_server_and_fails_a_changed_one(tmp_path: Path) -> None:
    assert run(tmp_path, "holdfast", "lock", "--as", "demo", *SERVER.split()).returncode == 0
    done = run_check(tmp_path, server=SERVER)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "demo: as locked"), done
    (tmp_path / "newer.py").write_text(NEWER, encoding="utf-8")
    changed = run_check(tmp_path, server="-- python newer.py")
    assert (changed.returncode, "crash: removed" in changed.stdout) == (6, True), changed


def test_inputs_of_the_action_never_reach_a_shell(tmp_path: Path) -> None:
    run_check(tmp_path, server="$(touch evil); touch evil", lock="`touch evil`")
    assert not (tmp_path / "evil").exists()
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_container_file_copies_what_is_there_and_not_ignored() -> None:
    text = (PROJECT / "Containerfile").read_text(encoding="utf-8")
    kept = [
        line[1:]
        for line in (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    ]
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M)
    for source in " ".join(copied).split():
        assert (PROJECT / source).exists(), source
        assert any(fnmatch(source, one) for one in kept), source
    assert 'ENTRYPOINT ["holdfast"]' in text
