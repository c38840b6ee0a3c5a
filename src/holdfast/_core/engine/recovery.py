"""The memory of a connection from one attempt to the next: opening, reason, failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from holdfast._core.boundary import Call
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import NEVER
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.engine.state import State
from holdfast._core.eras.conversation import Opening, Plan
from holdfast.errors import HoldfastError
from holdfast.policies import Backoff

MOST_RESTARTS: Final = 2
"""New links without a pause, in one attempt to connect."""


class Recovery:
    """Counts failures and remembers how the server is opened."""

    def __init__(self, plan: Plan, backoff: Backoff, jitter: Iterator[float]) -> None:
        self.opening = plan.opening
        """The opening that this server accepts, once known."""
        self.variant: str | None = None
        """The variant of the transport, if not the usual one."""
        self.reason: HoldfastError | None = None
        """The error that ended the last link."""
        self.gave_up = False
        self.base = plan
        """What each negotiation is planned from."""
        self._backoff = backoff
        self._jitter = jitter
        self._failures = 0
        """Losses since the last stretch of health: they make the pause longer."""
        self._attempts = 0
        """The same, without the end of the healthy link itself."""
        self._ready_since = 0.0
        self._restarts = 0
        self._spoilt: HoldfastError | None = None
        """The error of the first opening of this attempt."""

    def __repr__(self) -> str:
        return f"<Recovery {self._failures} failures, {self.reason!r}>"

    def check(self, name: str, call: Call, state: State, *, waits: bool, retry_in: float) -> None:
        """Raise if a call has nothing to wait for in this state."""
        reason = self.reason
        if state is State.BACKOFF and reason is not None and reason.final:
            raise messages.lost(name, call, reason, sent=False)
        if state is State.BACKOFF and not waits:
            raise messages.down(name, call, reason, retry_in)
        if self.gave_up and reason is not None:
            raise messages.gave_up(name, call, reason)
        if state is State.CLOSED or state is State.CLOSING:
            raise messages.closed(name, call, state)

    def plan(self, *, streams: bool) -> Plan:
        """Return the plan of a negotiation on a new link."""
        return replace(self.base, opening=self.opening, streams=streams, variant=self.variant)

    def agreed(self, opening: Opening, now: float) -> None:
        self.opening = opening
        self.reason = self._spoilt = None
        self._restarts = 0
        self._ready_since = now

    @property
    def is_presuming(self) -> bool:
        """True if this attempt goes by the variant of the last connection."""
        return self.variant is not None and not self._restarts

    def restart(
        self, opening: Opening | None, variant: str | None, error: HoldfastError | None
    ) -> bool:
        """Note a restart with another opening; return False if there were too many."""
        self._restarts += 1
        if self._restarts > MOST_RESTARTS:
            return False
        self.opening, self.variant = opening, variant
        self._spoilt = error or self._spoilt
        return True

    def died_of_probe(self, negotiator: Negotiator | None) -> bool:
        """Return True, once, if the server may have exited because of the probe."""
        if negotiator is None or negotiator.answered or self._spoilt is not None:
            return False
        return negotiator.plan.opening is None and negotiator.plan.pin is None

    def lost(self, error: HoldfastError, *, connected: bool, now: float) -> HoldfastError:
        """Note a loss; the count starts over only after a healthy connection."""
        if self._spoilt is not None:
            error, self._spoilt = messages.died_of_probe(self._spoilt, error), None
        self._restarts = 0
        if not connected:
            # What is remembered of the server may be out of date.
            self.opening = self.variant = None
        elif now - self._ready_since >= self._backoff.healthy_after:
            self._failures, self._attempts = 0, -1
        self._failures += 1
        self._attempts += 1
        self.reason = error
        return error

    def pause(self) -> float | None:
        """Return the seconds to the next attempt; None if there is none.

        An error that only a person can do something about is waited out without an end.
        """
        if self.reason is not None and self.reason.final:
            return NEVER
        attempts = self._backoff.attempts
        if attempts is not None and self._attempts >= attempts:
            return None
        return self._backoff.delay(self._failures, self._jitter)
