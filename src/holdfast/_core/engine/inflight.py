"""All requests under way, and the memory of those that ended early: one object, one mutator.

A request is *parked* while it waits for a connection, *queued* while it waits for room on the
link, and *sent* once the link has taken it. When it ends without an answer its wire id becomes
a tombstone, so that the late answer is recognised and dropped quietly.

Nothing here looks at every request to find the few that are due: deadlines and retries are
heaps with lazy deletion, so the cost of a call does not grow with the number in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, cast

from msgspec import Struct

from holdfast._core.boundary import Call, Ticket, WireId
from holdfast.errors import HoldfastError

NEVER = float("inf")
_EMPTY: Final[deque[WireId]] = deque()
"""The tombstones of every client that has never had one: an empty queue takes 700 bytes."""
_FEW = 64
"""Entries of a heap below which stale ones are not worth removing."""


# The life of a request, and why nothing of it is ever searched for.
#
#                    ┌──────────── park (lost, busy, refused for now) ───────────┐
#                    ▼                                                           │
#     admit ──▶ parked ──queue──▶ queued ──unqueue──▶ dispatch ──▶ sent ─────────┘
#                    │                │                             │
#                    └────────────────┴──────── end ────────────────┤
#                                                │                settle
#                                                ▼                  ▼
#                                             buried              gone
#
# A *ticket* is given when a call comes in and lives as long as the call. A *wire id* is given when
# the request is handed to a link: a request that is sent again gets another one, because the
# server, or a proxy, may still answer the first. Neither is ever used twice in the life of a
# client, so an answer to an old id can never be taken for the answer to a new request.
#
# ``_requests`` holds every request that has no outcome yet; ``_sent`` those of them that have a
# wire id. All that ends a request removes it from both: with an answer by ``settle``, without one
# by ``end``. Whoever comes second (the answer after the timeout, the cancellation after the
# answer) finds nothing and does nothing. That, and not a flag, is what makes outcomes unique.
#
# An id whose request ended without an answer is *buried*: a late answer to it is dropped quietly,
# any other answer that nobody waits for is a violation that is counted. A tombstone costs memory,
# so it is swept after its time, and there is a most of them: a server that never answers cannot
# make the client grow. All tombstones have the same time to live, so the oldest is always the
# first in ``_buried``.
#
# A client may have a hundred thousand requests in flight, and every one of them may be answered
# in a millisecond. So there is no pass over all of them on the way of a call:
#
# * The next deadline is the top of a heap, and an answered request leaves its entry there. The
#   entry is thrown away when it comes to the top, or in ``_clear_deadlines`` when the stale ones
#   may be half of all: a fixed cost for each request, however long its timeout is.
# * Progress moves a deadline without touching the heap. The entry is then earlier than the
#   deadline; when its time comes, the request is found not to be due, and put back. The reverse,
#   an entry later than its deadline, must never be: whatever makes a deadline *earlier* (a request
#   that is released) pushes a new entry.
# * Those that wait for room are a heap of tickets: the oldest goes first, also if it was sent
#   before, lost its link and came back behind younger ones.


class Pending(Struct, gc=False):
    """One request under way."""

    ticket: Ticket
    call: Call
    idle_until: float
    total_until: float
    deadline: float
    """The earlier of both."""
    wire_id: WireId | None = None
    """None while parked."""
    offers: int = 0
    """The number of times the transport was too busy for it."""
    retry_at: float = NEVER
    queued: bool = False
    """It waits for room on the link."""
    repeated: bool = False
    """It has been sent again after a loss; it is never sent a third time."""
    epoch: int = 0
    """In which it was sent."""
    renewed: bool = False
    """The connection was negotiated again for it; that does not happen twice."""
    doubt: HoldfastError | None = None
    """Its answer, if that may be the error of a server which speaks another revision."""
    held: bool = False
    """It waits for credentials."""

    @property
    def may_have_run(self) -> bool:
        """True if it has left for the server, on this link or an earlier one."""
        return self.wire_id is not None or self.repeated

    def wait_until(self, idle_until: float) -> None:
        """Move the end of the silence that it may meet with."""
        self.idle_until = idle_until
        self.deadline = idle_until if idle_until < self.total_until else self.total_until


class Stray(Enum):
    """The kinds of answers that nobody waits for."""

    LATE = auto()
    UNKNOWN = auto()


class Inflight:
    """Tickets and wire ids rise for the client's whole life and are never used twice."""

    def __init__(self, tombstone_ttl: float, tombstone_limit: int) -> None:
        self._ttl = tombstone_ttl
        self._limit = tombstone_limit
        self._tickets = cast("Iterator[Ticket]", count(1))
        self._wire_ids = cast("Iterator[WireId]", count(1))
        self._requests: dict[Ticket, Pending] = {}
        self._sent: dict[WireId, Pending] = {}
        self._tombstones: dict[WireId, float] = {}
        self._buried = _EMPTY
        """The tombstones in order: the first key of a large dictionary is not found at once."""
        self._deadlines: list[tuple[float, Ticket]] = []
        """One entry for each request with a deadline; it may be earlier than the deadline."""
        self._crowded = _FEW
        """The number of those at which the ones of answered requests are removed."""
        self._retries: list[tuple[float, Ticket]] = []
        self.waiting: list[Ticket] = []
        """The requests that may be waiting for room, the oldest first."""

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

    def ticket_of(self, wire_id: object) -> Ticket | None:
        """Return the ticket of the request under way with this wire id."""
        pending = self.sent(wire_id)
        return None if pending is None else pending.ticket

    # Coming in

    def admit(self, call: Call, now: float) -> Pending:
        """Take a new request, parked."""
        ticket = next(self._tickets)
        if call.lasting:
            pending = Pending(ticket, call, NEVER, NEVER, NEVER)
        else:
            since = now if call.since is None else call.since
            idle, total = since + call.idle, since + call.total
            deadline = idle if idle < total else total
            pending = Pending(ticket, call, idle, total, deadline)
            deadlines = self._deadlines
            if len(deadlines) >= self._crowded:
                self._clear_deadlines()
            heappush(deadlines, (deadline, ticket))
        if call.refusals:
            pending.offers = call.refusals
        self._requests[ticket] = pending
        return pending

    def _clear_deadlines(self) -> None:
        """Remove the entries of answered requests: a fixed cost for each of them."""
        deadlines, requests = self._deadlines, self._requests
        deadlines[:] = [entry for entry in deadlines if entry[1] in requests] if requests else []
        heapify(deadlines)
        self._crowded = max(_FEW, 2 * len(deadlines))

    def hold(self, pending: Pending) -> None:
        """Note that a request waits for credentials. Its clock runs on: a call's time is a promise.

        Nobody is waited for here but an authorization server, which may hang as any other. A person
        who has to log in is waited for above, when this request has failed.
        """
        pending.held = True

    def release(self, pending: Pending) -> None:
        """Note that a request that was held is sent; it has what is left of its time."""
        pending.held = False

    def number(self) -> WireId:
        """Return the next wire id."""
        return next(self._wire_ids)

    def dispatch(self, pending: Pending) -> WireId:
        """Give a parked request its wire id."""
        wire_id = pending.wire_id = next(self._wire_ids)
        self._sent[wire_id] = pending
        return wire_id

    def park(self, pending: Pending) -> None:
        """Take a sent request back to wait for the next connection."""
        assert pending.wire_id is not None
        del self._sent[pending.wire_id]
        pending.wire_id = None

    def retry(self, pending: Pending, at: float) -> None:
        """Have a parked request returned by ``retries`` at that time."""
        pending.retry_at = at
        heappush(self._retries, (at, pending.ticket))

    def queue(self, pending: Pending) -> None:
        """Have a parked request wait for room on the link."""
        if not pending.queued:
            pending.queued = True
            heappush(self.waiting, pending.ticket)

    def unqueue(self) -> Pending | None:
        """Return the oldest request that waits for room."""
        while self.waiting:
            pending = self._requests.get(heappop(self.waiting))
            if pending is not None and pending.queued:
                pending.queued = False
                return pending
        return None

    # Looking up

    def find(self, ticket: Ticket) -> Pending | None:
        return self._requests.get(ticket)

    def sent(self, wire_id: object) -> Pending | None:
        return self._sent.get(wire_id)  # type: ignore[call-overload, no-any-return]

    def parked(self) -> list[Pending]:
        return [pending for pending in self._requests.values() if pending.wire_id is None]

    def deadline(self) -> float:
        """Return the earliest moment at which a request needs attention, or an earlier one."""
        requests, deadlines, retries = self._requests, self._deadlines, self._retries
        while deadlines and deadlines[0][1] not in requests:
            heappop(deadlines)
        soonest = deadlines[0][0] if deadlines else NEVER
        return min(soonest, retries[0][0]) if retries else soonest

    def expired(self, now: float) -> Iterator[Pending]:
        """Yield the requests whose deadline has passed, once each."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            pending = self._requests.get(heappop(deadlines)[1])
            if pending is None:
                continue
            if pending.deadline <= now:
                yield pending
            else:
                # Progress has moved the deadline.
                heappush(deadlines, (pending.deadline, pending.ticket))

    def retries(self, now: float) -> Iterator[Pending]:
        """Yield the requests that are to be sent again, once each."""
        while self._retries and self._retries[0][0] <= now:
            at, ticket = heappop(self._retries)
            pending = self._requests.get(ticket)
            if pending is not None and pending.retry_at == at:
                pending.retry_at = NEVER
                yield pending

    # Going out

    def settle(self, wire_id: object) -> Pending | None:
        """Return the request that this answer ends; None if nobody waits for it."""
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
        if self._buried is _EMPTY:
            self._buried = deque()
        self._tombstones[wire_id] = now + self._ttl
        self._buried.append(wire_id)
        if len(self._tombstones) > self._limit:
            del self._tombstones[self._buried.popleft()]

    def stray(self, wire_id: object, now: float) -> Stray:
        """Classify an answer to ``wire_id`` that nobody waits for."""
        until = self._tombstones.get(wire_id)  # type: ignore[call-overload]
        return Stray.LATE if until is not None and until > now else Stray.UNKNOWN

    def sweep(self, now: float) -> None:
        """Drop expired tombstones: all have the same life, so the oldest come first."""
        while self._buried and self._tombstones[self._buried[0]] <= now:
            del self._tombstones[self._buried.popleft()]
