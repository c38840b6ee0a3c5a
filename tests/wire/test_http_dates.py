"""Dates and delays of HTTP headers, whatever stands in them."""

from __future__ import annotations

from holdfast._core.wire.http_dates import retry_after, timestamp
from tests.rows import rows

NOON = "Sun, 06 Nov 1994 12:00:00 GMT"


def test_a_date_is_read_and_anything_else_is_none() -> None:
    assert timestamp(NOON) == 784_123_200
    for text in ("", "soon", "Sun, 99 Nov 1994 12:00:00 GMT", "-1"):
        assert timestamp(text) is None


@rows(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        (NOON, 60.0),
        ("", None),
        ("-5", None),
        ("1.5", 1.5),
        ("90.25", 90.25),
    ]
    + [(text, None) for text in ("1.", ".5", "1e2", "inf", "nan", "+1", "1, 2", "\u0661", "1.5s")],
)
def test_a_delay_is_given_in_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after(value, 784_123_200 - 60) == seconds


def test_a_date_that_is_over_means_now() -> None:
    assert retry_after(NOON, 784_123_200 + 60) == 0.0
