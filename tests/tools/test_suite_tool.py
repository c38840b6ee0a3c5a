"""The suite without ``make``, for Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.source import PROJECT
from tools.suite import ELSEWHERE, is_fresh, main, pytest_arguments, python_of


@pytest.mark.req("S5")
def test_the_interpreter_is_where_the_system_puts_it(tmp_path: Path) -> None:
    assert python_of(tmp_path, "win32") == tmp_path / "Scripts" / "python.exe"
    assert python_of(tmp_path, "linux") == tmp_path / "bin" / "python"


def test_it_leaves_out_what_make_leaves_out() -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    assert f"ELSEWHERE := {' '.join(ELSEWHERE)}\n" in makefile
    assert pytest_arguments(["tests/wire"])[-1] == "tests/wire"


def test_an_environment_of_another_checkout_is_made_again(tmp_path: Path) -> None:
    stamp, project = tmp_path / "stamp", tmp_path / "pyproject.toml"
    project.touch()
    assert not is_fresh(stamp, project, tmp_path)
    stamp.write_text(f"{tmp_path}\n", encoding="utf-8")
    assert is_fresh(stamp, project, tmp_path)
    assert not is_fresh(stamp, project, tmp_path / "moved")
    os.utime(project, (stamp.stat().st_mtime + 10,) * 2)
    assert not is_fresh(stamp, project, tmp_path)


def test_an_old_python_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10))
    assert main([]) == 2
    assert "3.11" in capsys.readouterr().err


@pytest.mark.thorough(only=True)
@pytest.mark.req("S5")
@pytest.mark.skipif(not (PROJECT / ".venv" / ".stamp").exists(), reason="no .venv in the checkout")
def test_one_command_runs_the_tests() -> None:
    command = [sys.executable, "-m", "tools.suite", "--collect-only", "-q", "-n0", "tests/rules"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_layers.py" in done.stdout
