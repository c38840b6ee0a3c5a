"""Dates and delays in HTTP headers."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
"""RFC 9110 has whole seconds; some servers send fractions, and mean them."""


def timestamp(date: str) -> float | None:
    """Return the time that an HTTP date names (RFC 9110 §5.6.7); None if it is none."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def retry_after(value: str, now: float) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110 §10.2.3), given as such or as a date.

    ``now`` is the time on the sender's clock, as far as it is known.
    """
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    until = timestamp(value)
    return None if until is None else max(0.0, until - now)
