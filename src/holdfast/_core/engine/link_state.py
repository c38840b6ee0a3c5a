"""The state and the times of the current link, shared by the parts of the engine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.boundary import (
    Generation,
    RefusalReason,
    Refused,
    Starting,
    StreamOptions,
    WireId,
)
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.eras.base import Era

QUIET = 30.0
"""Seconds at most of three times the handshake, for a process that is alive and silent."""
SWEEP = 60.0
"""Seconds between sweeps of the tombstones."""


class LinkState(Struct):
    """``generation`` is the gate: reports of another generation are dropped."""

    unsent: Callable[[], frozenset[WireId]] = frozenset
    """Return the requests of which no byte has left the link."""
    generation: Generation = Generation(0)
    epoch: int = 0
    """Counts the agreements: it changes with every new link and every renewed session."""
    revised: int = 0
    """The epoch since which the revision has been the same."""
    negotiator: Negotiator | None = None
    streams: bool = False
    """Each request travels on a stream of its own."""
    session: str | None = None
    """The session id that came with the message that is being read."""
    era: Era | None = None
    """The revision agreed last; it outlives its link, so that callers can still ask."""

    def advance(self) -> Generation:
        """Begin a new generation; reports of the earlier link are dropped from here on."""
        self.generation = Generation(self.generation + 1)
        self.negotiator = None
        return self.generation

    def agree(self, era: Era) -> bool:
        """Begin an epoch; return True if the revision is the same as in the last one."""
        is_same = self.era is not None and self.era.version == era.version
        self.negotiator = None
        self.epoch += 1
        if not is_same:
            self.revised = self.epoch
        self.era = era
        if self.streams and era.may_ask:
            era.session = self.session
        return is_same

    def carries(self, method: str) -> bool:
        """Return True if a notification of ours can be sent."""
        if self.era is None or method in self.era.withheld:
            return False
        # 2026-07-28 basic/transports/streamable-http: only requests are sent.
        return self.era.may_ask or not self.streams

    def options(self, method: str, *, first: bool = False) -> StreamOptions | None:
        """Return the options of a message other than a request, where messages have any."""
        if not self.streams or self.era is None:
            return None
        options = self.era.options(method)
        return replace(options, first=True) if first else options

    def outdated_by(self, report: Refused) -> bool:
        """Return True if a refusal shows that the agreed session or revision is not in force."""
        if report.reason is RefusalReason.NO_SUCH_SESSION:
            return True
        if not self.streams:
            # HTTP+SSE: the stream that named this endpoint belongs to a server that is gone.
            return report.reason is RefusalReason.NOT_UNDERSTOOD
        unsuited = report.reason in (RefusalReason.NOT_UNDERSTOOD, RefusalReason.REJECTED)
        return unsuited and self.era is not None and self.era.contradicted_by(report.fault)


class Timers(Struct):
    """The times at which a connection has something to do.

    ``due`` is the earliest of all times, or earlier: an early call does no harm.
    """

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

    def await_start(self, report: Starting, handshake: float, now: float) -> bool:
        """Give a server that is being started more time; False if it has had it.

        A server that is at work has as long as its transport says. One that is only known to be
        alive has more than one that speaks, and calls do not wait longer for it.
        """
        startup = report.elapsed + report.again
        longest = max(handshake, min(3 * handshake, QUIET))
        if not report.busy and startup + handshake > longest:
            return False
        self.expect_agreement(now + report.again + handshake, startup)
        return True

    def retry_at(self, at: float) -> None:
        self.retry = at
        self.alarm(at)

    def delay_retry(self, seconds: float | None, now: float) -> None:
        """Attempt no connection before a time that the server named, if there is one to come."""
        if seconds is not None and self.retry < NEVER:
            self.retry_at(max(self.retry, now + seconds))

    def watch(self, inflight: Inflight, now: float) -> None:
        """Schedule the sweep of the tombstones, if there are any."""
        if self.sweep == NEVER and inflight.tombstones:
            self.sweep = now + SWEEP
            self.alarm(self.sweep)

    def sweep_if_due(self, inflight: Inflight, now: float) -> None:
        if self.sweep <= now:
            self.sweep = NEVER
            inflight.sweep(now)

    def rest(self) -> None:
        """No more attempts to connect."""
        self.retry = self.handshake = NEVER

    def arm(self, inflight: Inflight, now: float, *others: float) -> None:
        """Compute the next time at which something is due."""
        self.due = NEVER
        self.watch(inflight, now)
        for at in (self.handshake, self.retry, self.sweep, inflight.deadline(), *others):
            self.alarm(at)
