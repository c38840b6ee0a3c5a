"""The time that one call has."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import ValidationError
from holdfast.policies import Timeouts

PROGRESS_FACTOR: Final = 3
"""Times a caller's ``timeout`` that a tool call may take in all while progress comes."""
_TOOL_CALL: Final = "tools/call"
_FOREVER: Final = 1e300


class Deadline(Struct, frozen=True, gc=False):
    """The time that one call has: connecting, listing and every round included."""

    idle: float
    """Seconds without an answer or progress."""
    total: float
    """Seconds in all."""
    since: float
    """The beginning, on the loop's clock."""
    by_caller: bool = False
    """The caller named it: connecting counts too, however slow the server starts."""
    method: str = "open"
    """The call whose time it is, for messages."""
    about: str = ""
    """The tool, resource or prompt that the call is about, for messages."""
    total_name: str = "Timeouts.total"
    """The option that the time in all comes from, for messages."""

    @property
    def until(self) -> float:
        """The end of all, on the loop's clock."""
        return self.since + self.total

    def part(self, share: float, now: float) -> Deadline:
        """Return the deadline of a step that may take a share of the time that is left."""
        rest = min(self.until, self.since + self.idle) - now
        span = max(0.001, rest * share)
        return replace(self, idle=span, total=span, since=now, by_caller=True)

    def after_connecting(self, now: float) -> Deadline:
        """Return the deadline of what follows: a slow start costs a given time only."""
        if self.by_caller:
            return self
        return replace(self, since=now)


def make_deadline(
    timeouts: Timeouts,
    method: str,
    timeout: float | None,
    total_timeout: float | None,
    *,
    since: float,
    about: str = "",
) -> Deadline:
    """Return the deadline of a call that began at ``since``.

    A caller's ``timeout`` bounds the whole call; a tool that reports progress may take a few times
    as long, or up to its ``total_timeout``. Without either the policy applies. A total that is
    shorter than the silence allowed is what it says, whoever gave it: the end of all.
    """
    idle = timeouts.for_method(method) if timeout is None else seconds("timeout", timeout)
    total_name = "Timeouts.total"
    if total_timeout is not None:
        total, total_name = seconds("total_timeout", total_timeout), "total_timeout"
    elif timeout is None:
        total = timeouts.total_for(idle)
    else:
        total, total_name = idle * PROGRESS_FACTOR if method == _TOOL_CALL else idle, "timeout"
    by_caller = timeout is not None or total_timeout is not None
    return Deadline(idle, total, since, by_caller, method, about, total_name)


def seconds(name: str, value: float) -> float:
    """Return a caller's timeout; refuse what is no positive number of seconds."""
    if type(value) not in (int, float) or not value > 0:
        raise ValidationError(f"{name}={value!r}: must be a number of seconds, more than 0")
    # An integer may be more than a clock can add up.
    return value if value < _FOREVER else math.inf
