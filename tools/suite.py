"""Run the tests where there is no ``make``: ``py -m tools.suite`` (Windows), from a checkout.

It makes the virtual environment in ``.venv`` as ``make`` does, installs the package with its
development tools, and runs pytest. Whatever follows goes to pytest: ``py -m tools.suite -k wire``.
Without arguments it runs what ``make test`` runs. Only the standard library is needed to start it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / ".stamp"
ELSEWHERE = ("conformance", "frameworks", "interop", "site", "windows")
"""Folders of tests that have targets of their own."""


def python_of(venv: Path, platform: str = sys.platform) -> Path:
    """Return the interpreter of a virtual environment."""
    return venv / "Scripts" / "python.exe" if platform == "win32" else venv / "bin" / "python"


def is_fresh(stamp: Path, project: Path, root: Path) -> bool:
    """Return whether the environment was made for this checkout, after its last change."""
    if not stamp.exists() or stamp.stat().st_mtime < project.stat().st_mtime:
        return False
    return stamp.read_text(encoding="utf-8").strip() == str(root)


def pytest_arguments(words: Sequence[str]) -> list[str]:
    """Return what pytest is given: everything that ``make test`` runs, unless words say else."""
    skipped = [f"--ignore=tests/{name}" for name in ELSEWHERE]
    workers = ["--numprocesses", "4", "--dist", "worksteal"]
    return [*skipped, *workers, *words]


def set_up() -> Path:
    """Make the virtual environment, unless it is there; return its interpreter."""
    python = python_of(VENV)
    if not is_fresh(STAMP, ROOT / "pyproject.toml", ROOT):
        if not python.exists():
            print(f"setting up {VENV} with Python {sys.version.split()[0]}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([str(python), *install, "--editable", f"{ROOT}[dev]"], check=True, cwd=ROOT)
        STAMP.write_text(f"{ROOT}\n", encoding="utf-8")
    return python


def main(words: Sequence[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036
        print("Python 3.11 or newer is needed.", file=sys.stderr)
        return 2
    python = set_up()
    # UTF-8 everywhere, also in what the tests start: a code page would be theirs alone.
    env = {**os.environ, "PYTHONUTF8": "1"}
    command = [str(python), "-m", "pytest", *pytest_arguments(words)]
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
