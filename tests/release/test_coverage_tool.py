"""tools/coverage.py on reports as coverage writes them."""

from __future__ import annotations

import io
from typing import Any

from tools.coverage import PURE, Cover, gaps, read, show, total


def entry(missing: list[int], jumps: list[list[int]], branches: int = 4) -> dict[str, Any]:
    return {
        "missing_lines": missing,
        "missing_branches": jumps,
        "summary": {
            "num_statements": 10,
            "missing_lines": len(missing),
            "num_branches": branches,
            "missing_branches": len(jumps),
        },
    }


REPORT = {
    "files": {
        "src/holdfast/_core/wire/framing.py": entry([], []),
        "/elsewhere/src/holdfast/_core/engine/state.py": entry([7], [[3, 7], [4, -1], [9, 5]]),
        "src/holdfast/__init__.py": entry([], [], 0),
        "src/holdfast/_core/eras/__init__.py": entry([], [], 0),
        "src/holdfast/_core/server/server.py": entry([], []),
    }
}


def test_a_report_is_read_module_by_module() -> None:
    assert [cover.module for cover in read(REPORT)] == [
        "__init__",
        "engine.state",
        "eras",
        "server.server",
        "wire.framing",
    ]


def test_a_gap_is_named_by_its_lines_and_jumps() -> None:
    (fault,) = gaps(read(REPORT))
    assert fault == "engine.state: 71.4 %, not run: 7, 4→exit, 9→5"


def test_a_missed_branch_alone_keeps_the_gate_shut() -> None:
    covers = [Cover("engine.state", 10, 0, 4, 1, ("3→5",))]
    assert gaps(covers, ["engine"]) == ["engine.state: 92.9 %, not run: 3→5"]


def test_other_modules_may_have_gaps() -> None:
    covers = [Cover(f"{unit}.a", 1, 0, 0, 0) for unit in PURE]
    assert gaps([*covers, Cover("client", 10, 5, 0, 0)]) == []


def test_a_package_that_was_not_measured_keeps_the_gate_shut() -> None:
    assert gaps([], ["engine"]) == ["engine: nothing of it was measured"]


def test_the_table_shows_modules_packages_and_all() -> None:
    out = io.StringIO()
    show(read(REPORT), out)
    lines = [line.split() for line in out.getvalue().splitlines() if line]
    assert lines[2] == ["engine.state", "10", "1", "4", "3", "71.4", "%", "7,", "4→exit,", "9→5"]
    assert lines[-1] == ["all", "50", "1", "12", "3", "93.5", "%"]


def test_a_hundred_is_never_rounded_up_to() -> None:
    out = io.StringIO()
    show([Cover("client", 10_000, 1, 0, 0)], out)
    assert "99.9 %" in out.getvalue()
    assert total([], "nothing").percent == 100.0
