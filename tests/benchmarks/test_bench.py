"""The benchmark runs, judges by its aims, and tells linear growth from faster growth."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import page, report, slopes
from benchmarks.aims import AIMS, FLOORS
from benchmarks.bench import Found
from benchmarks.main import chosen_rows
from benchmarks.report import Results
from benchmarks.rows import all_rows, by_key
from benchmarks.sides import named

ROOT = Path(__file__).parents[2]


@pytest.mark.req("V5")
@pytest.mark.hang(400)
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


def test_every_aim_belongs_to_a_row_and_a_known_floor() -> None:
    keys = [row.key for row in all_rows()]
    assert len(keys) == len(set(keys))
    assert AIMS.keys() <= set(keys)
    assert {aim.floor for aim in AIMS.values()} == FLOORS.keys()


def test_rows_are_chosen_by_group_and_by_key() -> None:
    assert [row.key for row in chosen_rows("cli,sequential,help")] == [
        *("help", "offline", "call", "daemon"),
        "sequential",
    ]
    with pytest.raises(SystemExit, match="no such row: nothing"):
        chosen_rows("nothing")


def results(key: str, **found: Found) -> Results:
    made = Results(by_key(key))
    for side, value in found.items():
        made.add(named(side.replace("_", "-")), value)
    return made


@pytest.mark.parametrize(("ours", "verdict"), [(1.5, "met"), (1.51, "missed")])
def test_stdio_calls_are_judged_by_the_descriptor_loop(ours: float, verdict: str) -> None:
    found = results("sequential", raw=0.1, raw_fd=1.0, holdfast_handshake=ours)
    assert found.mark("holdfast-handshake") == verdict
    assert found.mark("raw-fd") == ""


def test_http_calls_are_judged_by_the_bare_loop_of_their_era() -> None:
    found = results("http-json", raw=2.0, raw_stateless=1.0, holdfast_stateless=2.0)
    assert found.ratio("holdfast-stateless") == 2.0
    assert found.mark("holdfast-stateless") == "missed"


def test_an_addition_is_judged_by_the_plain_call_of_the_same_process() -> None:
    found = results("bearer", holdfast_stateless={"plain": 1.0, "holdfast": 1.009})
    assert found.ratio("holdfast") == 1.009
    assert found.mark("holdfast") == "met"
    text = report.show(
        [found],
        dict.fromkeys(("cpu", "server", "http", "loop", "rounds"), None)
        | {
            "shared": False,
            "clock": "wall time",
            "seconds": 1,
            "load": 0.0,
        },
    )
    assert "1.009    plain     1.01 met" in text
    assert "1 of 1 measured aims met" in text


@pytest.mark.parametrize(
    ("power", "verdict"), [(1.0, "met"), (1.05, "met"), (1.3, "above"), (2.0, "above")]
)
def test_growth_faster_than_the_work_is_reported(power: float, verdict: str) -> None:
    """A fixed cost hides growth among small sizes, so the larger ones are fitted alone."""
    (slope,) = [one for one in slopes.SLOPES if one.key == "in-flight"]
    found = []
    for row in slope.rows():
        one = Results(row)
        one.add(named("raw-fd"), 10.0 * row.size)
        one.add(named("holdfast-stateless"), 100.0 + row.size**power)
        found.append(one)
    floor, ours = report.slopes_as_json(found)
    assert (floor["upper"], floor["verdict"]) == (pytest.approx(1.0), "")
    assert (ours["upper"], ours["verdict"]) == (pytest.approx(power, abs=0.05), verdict)


def test_growth_that_the_bare_loop_shares_is_no_fault() -> None:
    (slope,) = [one for one in slopes.SLOPES if one.key == "known"]
    assert slopes.grows_too_fast(slope, 0.15, None)
    assert not slopes.grows_too_fast(slope, 0.15, 0.1)


def test_the_page_has_the_floor_and_the_aim_of_each_row() -> None:
    """The figures are those of some run; what they are judged by is today's."""
    line = r"^\| `([\w-]+)` \| [^|]+ \| ([\w-]+) \| ([\d.]+) \|"
    rows = re.findall(line, page.PAGE.read_text(), re.M)
    found = {key: (floor, float(aim)) for key, floor, aim in rows}
    assert found == {key: (aim.floor, aim.most) for key, aim in AIMS.items()}


@pytest.mark.parametrize(("price", "verdict"), [(0.00025, "met"), (0.00031, "missed")])
def test_the_price_of_a_key_is_on_the_page(price: float, verdict: str) -> None:
    text = page.price_table([results("once-redis", holdfast_stateless=price)])
    assert f"| 0.3 ms | {price * 1e3:g} ms | {verdict} |" in text


def test_a_cached_read_is_on_the_page_beside_a_call() -> None:
    times = {"plain": 0.000029, "holdfast": 0.000131}
    text = page.cache_table([results("cache-redis", holdfast_handshake=times)])
    assert "| `cache-redis` | list of 8 tools, cached in Redis | 131 µs | 29 µs |" in text
