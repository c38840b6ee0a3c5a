"""Rates and their token bucket, without a clock."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Limits, ToolPolicy
from holdfast._core.rate import JUMP, Rate, TokenBucket, parse_rate
from holdfast.errors import ValidationError
from tests.rows import rows


@pytest.mark.req("S3")
@rows(
    ("text", "rate"),
    [
        ("60/m", Rate(60, 60)),
        ("10/s", Rate(10, 1)),
        (" 0.5 / second ", Rate(0.5, 1)),
        ("1000/hour", Rate(1000, 3600)),
        ("5/day", Rate(5, 86_400)),
    ],
)
def test_a_rate_is_calls_per_unit_of_time(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.req("S3")
@rows("text", ["", "60", "60/", "/m", "0/s", "-1/s", "nan/s", "inf/m", "a/s", 5])
def test_what_is_no_rate_is_refused_by_its_value(text: str) -> None:
    with pytest.raises(ValidationError, match=r"rate=.*such as '60/m'"):
        parse_rate(text)
    with pytest.raises(
        ValidationError, match=rf"^Limits\(rate={re.escape(repr(text))}\): must be "
    ):
        Limits(rate=text)
    with pytest.raises(ValidationError, match=r"ToolPolicy\(rate=\{'send': "):
        ToolPolicy(rate={"send": text})


@pytest.mark.req("S3")
@rows("number", [0, -1, True, 1.5, "4"])
def test_a_number_of_places_is_a_whole_number(number: int) -> None:
    with pytest.raises(ValidationError, match="concurrent"):
        Limits(concurrent=number)
    with pytest.raises(ValidationError, match=r"concurrent=\{'send'"):
        ToolPolicy(concurrent={"send": number})


@pytest.mark.req("S3")
@given(
    calls=st.floats(0.1, 1000),
    seconds=st.sampled_from([1.0, 60.0, 3600.0]),
    steps=st.lists(st.floats(0, 100), max_size=200),
    window=st.floats(0.001, 1000),
)
def test_no_stretch_of_time_has_more_than_its_calls_and_the_burst(
    calls: float, seconds: float, steps: list[float], window: float
) -> None:
    rate = Rate(calls, seconds)
    bucket, now, grants = TokenBucket(rate, 0.0), 0.0, []
    for step in steps:
        now += step
        while bucket.take(now):
            grants.append(now)
    for begin in grants:
        inside = [at for at in grants if begin <= at <= begin + window]
        assert len(inside) <= rate.burst + rate.per_second * window + 1e-6


@pytest.mark.req("S3")
@given(calls=st.floats(0.1, 1000), taken=st.integers(0, 200), pause=st.floats(0, 10))
def test_a_token_is_there_at_the_time_it_is_promised_for(
    calls: float, taken: int, pause: float
) -> None:
    bucket = TokenBucket(Rate(calls, 1.0), 0.0)
    for _ in range(taken):
        bucket.take(0.0)
    at = bucket.ready_at(pause)
    assert at >= pause
    assert bucket.take(at + 1e-6)


@pytest.mark.req("S3")
def test_a_clock_behind_fills_nothing_and_one_far_behind_begins_anew() -> None:
    bucket = TokenBucket(Rate(10, 1), 1000.0)
    assert bucket.take(1000.0)
    assert not bucket.take(1000.0 - JUMP / 2)
    assert not bucket.take(1000.0 - JUMP * 2)
    assert bucket.take(1000.0 - JUMP * 2 + 0.1)


@pytest.mark.req("S3")
def test_a_call_that_was_not_made_gives_its_token_back_and_no_more() -> None:
    bucket = TokenBucket(Rate(1, 1), 0.0)
    assert bucket.take(0.0)
    assert not bucket.take(0.0)
    bucket.give_back()
    bucket.give_back()
    assert bucket.take(0.0)
    assert not bucket.take(0.0)
