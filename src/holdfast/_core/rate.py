"""How many calls in a time, as a token bucket. Time is an argument."""

# A rate is written as people say it: ``60/m``. The bucket holds a tenth of that number, at least
# one token, and is filled evenly: so there are at most ``number + burst`` calls in any stretch of
# that length, and a server that counts by the minute is not sent sixty calls in its last second
# and sixty more in the next.
#
# The same arithmetic serves one process and many. Among machines the clock is not ours alone:
# ``at`` only moves forward, so that a clock which is behind fills nothing, and one that is ahead
# fills its lead once. A clock that jumped back by more than `JUMP` begins anew; otherwise it
# would take as long as it jumped until the bucket is filled again.

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.errors import ValidationError

UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_NAMES: Final = {"sec": "s", "second": "s", "min": "m", "minute": "m", "hour": "h", "day": "d"}
BURST_SHARE: Final = 0.1
JUMP: Final = 60.0
"""Seconds that a clock may be behind the latest one seen."""
_MOST: Final = 1e9
_ROUNDING: Final = 1e-9


class Rate(NamedTuple):
    """So many calls in so many seconds."""

    calls: float
    seconds: float

    @property
    def per_second(self) -> float:
        return self.calls / self.seconds

    @property
    def burst(self) -> float:
        """The calls that may be made at once."""
        return max(1.0, self.calls * BURST_SHARE)

    def share(self, parts: int) -> Rate:
        """Return an equal part of it."""
        return Rate(self.calls / max(1, parts), self.seconds)


def parse_rate(text: str) -> Rate:
    """Return the rate in ``60/m`` or ``10/s``: calls per second, minute, hour or day.

    Raises:
        ValidationError: It is not one.
    """
    count, _, unit = str(text).strip().partition("/")
    unit = unit.strip().lower()
    seconds = UNITS.get(_NAMES.get(unit, unit))
    try:
        calls = float(count)
    except ValueError:
        calls = 0.0
    if seconds is None or not 0 < calls <= _MOST:
        text = f"rate={text!r}: must be a number of calls per s, m, h or d, such as '60/m'"
        raise ValidationError(text)
    return Rate(calls, seconds)


class TokenBucket:
    """The tokens of one rate; a call takes one.

    Attributes:
        tokens: Those that are there, at the time ``at``.
        at: The latest time that was seen.
    """

    def __init__(self, rate: Rate, now: float, tokens: float | None = None) -> None:
        self.at: float = now
        self.tokens: float = rate.burst if tokens is None else min(tokens, rate.burst)
        self._per_second, self._burst = rate.per_second, rate.burst

    def __repr__(self) -> str:
        return f"<TokenBucket {self.tokens:.3g} of {self._burst:.3g}>"

    def fill(self, now: float) -> None:
        """Add what has come since the last time."""
        if now > self.at:
            grown = self.tokens + (now - self.at) * self._per_second
            self.tokens, self.at = (grown if grown < self._burst else self._burst), now
        elif self.at - now > JUMP:
            self.at = now

    def take(self, now: float, tokens: int = 1) -> bool:
        """Take tokens; False if there are not so many."""
        if now != self.at:
            self.fill(now)
        if self.tokens < tokens - _ROUNDING:
            return False
        self.tokens -= tokens
        return True

    def give_back(self) -> None:
        """Return the token of a call that was not made."""
        self.tokens = min(self.tokens + 1, self._burst)

    def ready_at(self, now: float) -> float:
        """Return the time from which there is a token."""
        self.fill(now)
        return now + max(0.0, 1.0 - self.tokens) / self._per_second
