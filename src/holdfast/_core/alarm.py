"""The one timer of a client: it calls the engine when something is due, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import get_clock_info
from typing import Final

NEVER: Final = float("inf")
RESOLUTION: Final = max(0.001, get_clock_info("monotonic").resolution)
"""Seconds by which a loop may call a timer early: that of its clock, or uvloop's millisecond."""
LATE: Final = 0.05
"""Seconds by which a timer is called late if the application has held up the loop."""
READ_TURNS: Final = 40
"""Turns of the loop without anything to read, after which all that came meanwhile is read."""
READ_PAUSE: Final = 0.001
"""Seconds of the last of these turns."""
LONGEST_READ: Final = 1.0
"""Seconds for all of them, where each takes long."""

# Early and late
# --------------
#
# A loop may call a timer a little early: then it is the time that was asked for, or the engine
# would find nothing due and ask for the same moment again, in a circle. It is never the time at
# which something is due *now*: that may have moved since the timer was set, by minutes, and a
# clock that runs ahead ends handshakes and calls which have hardly begun.
#
# A loop that was held up by the application finds everything at once: answers that came in time,
# and the timer of their deadline, which has passed. asyncio calls the readers of descriptors
# before it calls timers, so over a pipe an answer is read first. Over HTTP a reader only wakes a
# task: the head of a response, each piece of its body and each event take another turn of the
# loop. Judging the deadlines in the first turn would discard answers that have been lying in the
# socket for seconds. So a timer that is later than a busy loop makes it lets the loop turn for a
# while, until nothing is left to read: what is read then was not late.


class Alarm:
    """Calls ``tick`` with the time, at the time that was set last.

    Args:
        loop: Its clock and its timers.
        tick: Called when something is due.
        received: Counts what was read; None where nothing is read but what is reported at once.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tick: Callable[[float], None],
        received: Callable[[], int | None],
    ) -> None:
        self.at: float = NEVER
        """The time that is set; before all times, if no other is to be set."""
        self._loop = loop
        self._tick = tick
        self._received = received
        self._timer: asyncio.Handle | None = None

    def __repr__(self) -> str:
        return f"<Alarm at {self.at}>"

    def set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.at = at
        self._timer = self._loop.call_at(at, self._fire)

    def stop(self) -> None:
        """Stop it for good."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self.at = -NEVER

    def _fire(self) -> None:
        now, at = self._loop.time(), self.at
        if now < at <= now + RESOLUTION:
            now = at
        received = self._received() if now > at + LATE else None
        if received is None:
            self._timer, self.at = None, NEVER
            self._tick(now)
        else:
            # No other timer meanwhile; `stop` ends this one, too.
            self.at = -NEVER
            self._read_first(READ_TURNS, received, now + LONGEST_READ)

    def _read_first(self, turns: int, received: int | None, until: float) -> None:
        """Let the loop read what is there, then judge the deadlines."""
        now, read = self._loop.time(), self._received()
        if turns > 0 and now < until and read is not None:
            turns = turns - 1 if read == received else READ_TURNS
            # The rest of a long answer comes once there is room for it, which takes a moment.
            pause = READ_PAUSE if turns < READ_TURNS // 2 else 0.0
            self._timer = self._loop.call_later(pause, self._read_first, turns, read, until)
        else:
            self._timer, self.at = None, NEVER
            self._tick(now)
