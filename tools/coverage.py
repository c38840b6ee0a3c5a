"""Coverage per module, and the gate: engine, eras, server and wire at 100 % of branches.

The gate runs the tests of those four alone, and of those only the ones whose cases are
written down: a branch that a random case happens to reach is not proven. That takes seconds.
``--all`` runs the whole suite, child processes included, and shows every module.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

PROJECT: Final = Path(__file__).resolve().parent.parent
PURE: Final = ("engine", "eras", "server", "wire")
"""Packages that must be covered whole."""

SETTINGS: Final = """
[run]
branch = true
source_pkgs = holdfast
data_file = {folder}/data
parallel = true
disable_warnings = couldnt-parse, module-not-measured, no-data-collected
{more}
"""
CHILDREN: Final = "patch = subprocess, _exit\nsigterm = true"
"""Many tests start interpreters of their own: what those run counts too. A server that a client
starts gets a clean environment, though, and is not measured."""


@dataclass(frozen=True)
class Cover:
    """What of one module was run."""

    module: str
    statements: int
    missed: int
    branches: int
    partial: int
    where: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return not self.missed and not self.partial

    @property
    def percent(self) -> float:
        total = self.statements + self.branches
        return 100.0 if not total else 100.0 * (total - self.missed - self.partial) / total

    def gaps(self, most: int) -> str:
        """Lines, and jumps from line to line, that were not run."""
        more = f", … ({len(self.where) - most} more)" if len(self.where) > most else ""
        return ", ".join(self.where[:most]) + more

    @property
    def unit(self) -> str:
        """``engine`` for ``engine.state``."""
        return self.module.partition(".")[0]


def read(report: dict[str, Any]) -> list[Cover]:
    """What coverage's own JSON report says, module by module."""
    return sorted(
        (_cover(path, entry) for path, entry in report["files"].items()),
        key=lambda cover: cover.module,
    )


def _cover(path: str, entry: dict[str, Any]) -> Cover:
    summary = entry["summary"]
    lines = [str(line) for line in entry["missing_lines"]]
    jumps = [
        f"{start}→{'exit' if end < 0 else end}"
        for start, end in entry["missing_branches"]
        if start not in entry["missing_lines"] and end not in entry["missing_lines"]
    ]
    return Cover(
        module=_module(path),
        statements=summary["num_statements"],
        missed=summary["missing_lines"],
        branches=summary["num_branches"],
        partial=summary["missing_branches"],
        where=(*lines, *jumps),
    )


def _module(path: str) -> str:
    """Return ``engine.state`` for ``…/holdfast/_core/engine/state.py``."""
    parts = Path(path).with_suffix("").parts
    last = len(parts) - 1 - parts[::-1].index("holdfast")
    inner = [part for part in parts[last + 1 :] if part != "__init__"]
    return ".".join(inner).removeprefix("_core.") or "__init__"


def total(covers: Iterable[Cover], name: str) -> Cover:
    found = list(covers)
    return Cover(
        name,
        sum(one.statements for one in found),
        sum(one.missed for one in found),
        sum(one.branches for one in found),
        sum(one.partial for one in found),
    )


def gaps(covers: Iterable[Cover], units: Sequence[str] = PURE) -> list[str]:
    """What keeps the gate shut: modules with a gap, and packages that were not seen at all."""
    found = list(covers)
    faults = [
        f"{one.module}: {_percent(one)} %, not run: {one.gaps(20)}"
        for one in found
        if one.unit in units and not one.whole
    ]
    seen = {one.unit for one in found if one.statements}
    return faults + [f"{unit}: nothing of it was measured" for unit in units if unit not in seen]


def show(covers: Sequence[Cover], out: TextIO) -> None:
    width = max((len(one.module) for one in covers), default=0)
    print(f"{'module':<{width}}  lines  missed  branches  missed  covered", file=out)
    for one in covers:
        print(_row(one, width, one.gaps(8)), file=out)
    units = sorted({one.unit for one in covers if "." in one.module})
    print(file=out)
    for unit in units:
        print(_row(total((one for one in covers if one.unit == unit), unit), width), file=out)
    print(_row(total(covers, "all"), width), file=out)


def _row(one: Cover, width: int, where: str = "") -> str:
    numbers = f"{one.statements:>5}  {one.missed:>6}  {one.branches:>8}  {one.partial:>6}"
    return f"{one.module:<{width}}  {numbers}  {_percent(one):>5} %  {where}".rstrip()


def _percent(one: Cover) -> str:
    """Never rounded up to 100."""
    return "100" if one.whole else f"{min(one.percent, 99.9):.1f}"


def measure(folder: Path, everything: bool, extra: Sequence[str]) -> tuple[int, list[Cover]]:
    """Run the tests under coverage in a folder for its files; pytest's status, and the covers."""
    settings = folder / "settings"
    settings.write_text(
        SETTINGS.format(folder=folder, more=CHILDREN if everything else ""), encoding="utf-8"
    )
    tests = [f"--ignore=tests/{name}" for name in ("conformance", "frameworks", "interop", "site")]
    if not everything:
        tests = ["-m", "not hypothesis", *_homes()]
    environ = {**os.environ, "COVERAGE_RCFILE": str(settings)}
    command = [sys.executable, "-m", "coverage"]
    run = ["run", f"--rcfile={settings}", "-m", "pytest", "-q", *tests, *extra]
    status = _do([*command, *run], environ)
    _do([*command, "combine", "-q", f"--rcfile={settings}"], environ)
    report = folder / "report.json"
    _do([*command, "json", "-q", f"--rcfile={settings}", "-o", str(report)], environ)
    return status, read(json.loads(report.read_bytes()))


def _homes() -> list[str]:
    return [f"tests/{unit}" for unit in PURE]


def _do(command: Sequence[str], environ: dict[str, str]) -> int:
    return subprocess.run(command, cwd=PROJECT, env=environ, check=False).returncode


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="coverage", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--all", action="store_true", help="the whole suite, and every module")
    options, extra = parser.parse_known_args(argv)
    with tempfile.TemporaryDirectory(prefix="holdfast-coverage-") as folder:
        status, covers = measure(Path(folder), options.all, extra)
    show(covers if options.all else [one for one in covers if one.unit in PURE], sys.stdout)
    faults = gaps(covers)
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if status:
        print("error: tests failed", file=sys.stderr)
    return 1 if status or faults else 0


if __name__ == "__main__":
    sys.exit(main())
