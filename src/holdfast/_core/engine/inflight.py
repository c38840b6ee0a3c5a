"""All requests under way, and the memory of those that ended early: one object, one mutator.

A request is *parked* while it waits for a connection and *sent* once the link has taken it.
When it ends without an answer its wire id becomes a tombstone, so that the late answer is
recognised and dropped quietly.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct

from holdfast._core.boundary import Call, Ticket, WireId

NEVER = float("inf")


class Pending(Struct, gc=False):
    """One request under way."""

    ticket: Ticket
    call: Call
    idle_until: float
    total_until: float
    wire_id: WireId | None = None
    """None while parked."""
    offers: int = 0
    """How often a busy link was offered it."""
    retry_at: float = NEVER
    repeated: bool = False
    """It has been sent again after a loss; it is never sent a third time."""
    epoch: int = 0
    """In which it was sent."""
    renewed: bool = False
    """The connection was negotiated again for it; that does not happen twice."""

    @property
    def may_have_run(self) -> bool:
        """It has left for the server, on this link or an earlier one."""
        return self.wire_id is not None or self.repeated

    @property
    def deadline(self) -> float:
        return self.idle_until if self.idle_until < self.total_until else self.total_until


class Stray(Enum):
    """What an answer that nobody waits for is."""

    LATE = auto()
    UNKNOWN = auto()


class Inflight:
    """Tickets and wire ids rise for the client's whole life and are never used twice."""

    def __init__(self, tombstone_ttl: float, tombstone_limit: int) -> None:
        self._ttl = tombstone_ttl
        self._limit = tombstone_limit
        self._last_ticket = 0
        self._last_wire_id = 0
        self._requests: dict[Ticket, Pending] = {}
        self._sent: dict[WireId, Pending] = {}
        self._tombstones: dict[WireId, float] = {}

    def __repr__(self) -> str:
        parked = len(self._requests) - len(self._sent)
        return f"<Inflight {len(self._sent)} sent, {parked} parked, {len(self._tombstones)} buried>"

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Pending]:
        return iter(list(self._requests.values()))

    @property
    def tombstones(self) -> int:
        return len(self._tombstones)

    # Coming in

    def admit(self, call: Call, now: float) -> Pending:
        """A new request, parked."""
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        if call.lasting:
            pending = Pending(ticket, call, NEVER, NEVER)
        else:
            since = now if call.since is None else call.since
            pending = Pending(ticket, call, since + call.idle, since + call.total)
        self._requests[ticket] = pending
        return pending

    def number(self) -> WireId:
        """The next wire id, for whatever is sent."""
        self._last_wire_id += 1
        return WireId(self._last_wire_id)

    def dispatch(self, pending: Pending) -> WireId:
        """Give a parked request its wire id."""
        assert pending.wire_id is None
        wire_id = pending.wire_id = self.number()
        self._sent[wire_id] = pending
        return wire_id

    def park(self, pending: Pending) -> None:
        """Take a sent request back to wait for the next connection."""
        assert pending.wire_id is not None
        del self._sent[pending.wire_id]
        pending.wire_id = None

    # Looking up

    def find(self, ticket: Ticket) -> Pending | None:
        return self._requests.get(ticket)

    def sent(self, wire_id: object) -> Pending | None:
        return self._sent.get(wire_id)  # type: ignore[call-overload, no-any-return]

    def parked(self) -> list[Pending]:
        return [pending for pending in self._requests.values() if pending.wire_id is None]

    def deadline(self) -> float:
        """The earliest moment at which a request needs attention."""
        soonest = NEVER
        for pending in self._requests.values():
            soonest = min(soonest, pending.idle_until, pending.total_until, pending.retry_at)
        return soonest

    def expired(self, now: float) -> list[Pending]:
        return [pending for pending in self._requests.values() if pending.deadline <= now]

    def retries(self, now: float) -> list[Pending]:
        return [pending for pending in self._requests.values() if pending.retry_at <= now]

    # Going out

    def settle(self, wire_id: object) -> Pending | None:
        """The request that this answer ends; None if nobody waits for it."""
        pending = self._sent.pop(wire_id, None)  # type: ignore[call-overload]
        if pending is not None:
            del self._requests[pending.ticket]
        return pending  # type: ignore[no-any-return]

    def end(self, pending: Pending, now: float, *, bury: bool = True) -> None:
        """End a request without an answer."""
        del self._requests[pending.ticket]
        if pending.wire_id is not None:
            del self._sent[pending.wire_id]
            if bury:
                self.bury(pending.wire_id, now)

    # Tombstones

    def bury(self, wire_id: WireId, now: float) -> None:
        self._tombstones[wire_id] = now + self._ttl
        if len(self._tombstones) > self._limit:
            del self._tombstones[next(iter(self._tombstones))]

    def stray(self, wire_id: object, now: float) -> Stray:
        """What an answer to ``wire_id`` is, when nobody waits for it."""
        until = self._tombstones.get(wire_id)  # type: ignore[call-overload]
        return Stray.LATE if until is not None and until > now else Stray.UNKNOWN

    def sweep(self, now: float) -> None:
        """Drop expired tombstones: all have the same life, so the oldest come first."""
        while self._tombstones:
            wire_id = next(iter(self._tombstones))
            if self._tombstones[wire_id] > now:
                return
            del self._tombstones[wire_id]
