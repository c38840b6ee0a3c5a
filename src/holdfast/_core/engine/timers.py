"""The times at which a connection has something to do."""

from __future__ import annotations

from msgspec import Struct

from holdfast._core.engine.inflight import NEVER, Inflight

SWEEP = 60.0
"""Seconds between sweeps of the tombstones."""


class Timers(Struct):
    """``due`` is the earliest of all times, or earlier: an early call does no harm."""

    due: float = NEVER
    handshake: float = NEVER
    """The deadline of the handshake."""
    startup: float = 0.0
    """Seconds for which a launcher was at work, before those of the handshake."""
    retry: float = NEVER
    """The next attempt to connect."""
    sweep: float = NEVER
    """The next sweep of the tombstones."""

    def alarm(self, at: float) -> None:
        """Be called at ``at``, or earlier."""
        if at < self.due:
            self.due = at

    def expect_agreement(self, until: float, startup: float = 0.0) -> None:
        self.retry, self.handshake, self.startup = NEVER, until, startup
        self.alarm(until)

    def retry_at(self, at: float) -> None:
        self.retry = at
        self.alarm(at)

    def watch(self, inflight: Inflight, now: float) -> None:
        """Schedule the sweep of the tombstones, if there are any."""
        if self.sweep == NEVER and inflight.tombstones:
            self.sweep = now + SWEEP
            self.alarm(self.sweep)

    def rest(self) -> None:
        """No more attempts to connect."""
        self.retry = self.handshake = NEVER

    def arm(self, inflight: Inflight, now: float, *others: float) -> None:
        """Find the next moment anew."""
        self.due = NEVER
        self.watch(inflight, now)
        for at in (self.handshake, self.retry, self.sweep, inflight.deadline(), *others):
            self.alarm(at)
