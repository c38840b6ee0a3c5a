"""The benchmark runs, and a message is parsed within its budget."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.req("V5")
@pytest.mark.hang(120)
def test_a_message_is_parsed_within_its_budget(tmp_path: Path) -> None:
    """Ten milliseconds is thousands of times what it takes: this shows that it is measured."""
    out = tmp_path / "bench.json"
    command = [sys.executable, "benchmarks/run.py", "--rows", "parse", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--json", str(out)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(out.read_text())["rows"]
    for side in ("holdfast-handshake", "holdfast-stateless"):
        assert max(row["values"][side]) < row["budget"] == 0.01
