"""The numbers of a load test, without a clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.bulk.outcomes import RowOutcome
from holdfast.load.page import page, round_up
from holdfast.load.report import rows_of, summary
from holdfast.load.stats import SLICES, Durations, LoadStats


@pytest.mark.req("S4")
@given(st.lists(st.floats(0.01, 1e5), min_size=1), st.sampled_from([50, 90, 95, 99, 100]))
def test_a_percentile_is_right_to_five_percent(values: list[float], percent: int) -> None:
    durations = Durations()
    for value in values:
        durations.add(value)
    exact = sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]
    measured = durations.percentile(percent)
    assert measured is not None
    assert exact * 0.999 <= measured <= exact * 1.051


def outcome(ending: str, ms: float = 1.0, kind: str = "transport") -> RowOutcome:
    if ending == "ok":
        return RowOutcome(0, "ok", 1, ms=ms)
    return RowOutcome(0, ending, error={"kind": kind, "message": "x"}, ms=ms)  # type: ignore[arg-type]


def sample() -> LoadStats:
    stats = LoadStats(10)
    stats.elapsed = 2.0
    stats.reconnects = 1
    for number in range(100):
        stats.add("add", outcome("ok", number), 0.5)
    stats.add("<b>", outcome("unknown"), 1.5)
    stats.add("<b>", outcome("error", 5, "tool"), 1.5)
    return stats


@pytest.mark.req("S4")
def test_a_tool_may_be_named_as_the_row_of_all() -> None:
    stats = sample()
    stats.add("all", outcome("ok"), 1.5)
    rows = rows_of(stats.facts())
    assert [row[:2] for row in rows] == [("<b>", "2"), ("add", "100"), ("all", "1"), ("all", "103")]


@pytest.mark.req("S4")
def test_failures_are_counted_by_tool_and_kind() -> None:
    facts = sample().facts()
    assert facts["total"]["calls"] == 102
    assert facts["calls_per_second"] == 51
    assert facts["tools"]["<b>"]["failures"] == {"transport": 1, "tool": 1}
    assert facts["tools"]["<b>"]["unknown"] == 1
    assert facts["tools"]["<b>"]["max"] == 5, "an unanswered call has no duration"
    assert [part["calls"] for part in facts["slices"]] == [100, 2]
    assert summary(facts).endswith("1 reconnects. Failures: 1 transport, 1 tool.")


@pytest.mark.req("S4")
def test_a_long_test_has_no_more_points_than_a_short_one() -> None:
    stats = LoadStats(86_400)
    for at in range(0, 86_400, 60):
        stats.add("add", outcome("ok"), at)
    assert len(stats.slices) <= SLICES


@pytest.mark.req("S4")
def test_the_page_is_one_file_and_names_are_text() -> None:
    text = page(sample().facts(), "<i>server</i>")
    assert "<i>" not in text
    assert "<b>" not in text
    assert "<script" not in text
    assert "default-src 'none'; style-src 'sha256-" in text
    assert text.count("<svg") == 2
    assert "http" not in text.replace("http-equiv", "")
    assert 'class="unknown"' in text


@pytest.mark.req("S4")
def test_a_test_without_a_call_has_a_page() -> None:
    assert "0 calls" in page(LoadStats(1).facts(), "nothing")


@pytest.mark.req("S4")
@pytest.mark.parametrize(
    ("seconds", "lines"), [([0], 1), ([0, 1, 2], 1), ([0, 1, 8], 2), ([0, 3, 8], 3)]
)
def test_no_line_is_drawn_through_a_time_without_answers(seconds: list[int], lines: int) -> None:
    stats = LoadStats(10)
    stats.add("add", outcome("unknown"), 5.0)
    for second in seconds:
        stats.add("add", outcome("ok"), second + 0.5)
    text = page(stats.facts(), "a server that was away")
    assert text.count('class="trend p50"') == text.count('class="trend p95"') == lines


@pytest.mark.req("S4")
@given(st.floats(1e-6, 1e9))
def test_an_axis_ends_at_a_number_above_all_values_that_reads_well(value: float) -> None:
    top = round_up(value)
    assert value <= top <= value * 1.6
    assert float(f"{top:.1e}") == pytest.approx(top, rel=1e-12), "two digits are enough for it"


@pytest.mark.req("S4")
def test_the_page_tells_failures_apart_and_never_rounds_them_away() -> None:
    stats = LoadStats(10)
    stats.elapsed = 1.0
    for _ in range(9_999):
        stats.add("add", outcome("ok"), 0.5)
    stats.add("add", outcome("unknown", kind="<u>"), 0.5)
    text = page(stats.facts(), "one of many")
    assert "<dt>unknown</dt><dd>&lt; 0.1 %</dd>" in text
    assert "<dt>errors</dt><dd>0</dd>" in text
    assert "<td>&lt;u&gt;</td><td>1</td>" in text
    assert "Failures by kind" not in page(LoadStats(1).facts(), "nothing")
