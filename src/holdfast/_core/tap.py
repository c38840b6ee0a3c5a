"""The tap: everything that crosses between a client and its transport, as values.

A driver with a tap gives it one `TraceEvent` for each message in either direction, for whatever
else a transport reports, and for each change of state. ``--trace`` shows messages by it, and
`holdfast.trace` writes them to a file.

Events hold what was sent and received as it is, secrets included: whoever shows or stores them
redacts them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from holdfast._core import boundary as b
from holdfast._core.boundary import Generation, Report, Ticket, WireId
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import HoldfastError

Direction: TypeAlias = Literal["→", "←"]


class TraceEvent(Struct, frozen=True):
    """One message, one report of a transport, or one change of state."""

    at: float
    """The time of the event loop."""
    kind: str
    """``message``, ``state``, ``withdrawn``, ``failed`` (a call has no answer), ``checked`` (an
    answer does not fit its schema), or the name of a report: ``opened``, ``lost``…"""
    generation: Generation
    """The link, by its number."""
    direction: Direction | None = None
    """To the server, or from it; None: it is no message."""
    frame: bytes | None = None
    """The message as it was sent or received."""
    wire_id: WireId | str | None = None
    """The id of the request that it is, that it answers, or on whose stream it came."""
    ticket: Ticket | None = None
    """The call that this request belongs to, if it is one that is under way."""
    old: str = ""
    new: str = ""
    """The state before and after, for a change of state."""
    error: HoldfastError | None = None
    """The reason of a loss, of a refusal, or of a change of state."""
    faults: tuple[tuple[str, str], ...] = ()
    """The places of a structured result that do not fit the tool's schema, and how."""


Tap: TypeAlias = Callable[[TraceEvent], None]
"""Receives events, at once and in order. One that raises is taken off."""


def both(first: Tap, second: Tap) -> Tap:
    """Return a tap that gives each event to two."""

    def tap(event: TraceEvent) -> None:
        first(event)
        second(event)

    return tap


class _Head(Struct):
    id: int | str | None = None


_head = msgspec.json.Decoder(_Head)


TicketOf: TypeAlias = Callable[[Any], Ticket | None]
"""Returns the ticket of the request under way with this wire id."""


Crossing: TypeAlias = b.Send | b.Retract | b.Failed | b.Moved | Report


def crossing_events(
    crossing: Crossing,
    at: float,
    generation: Generation,
    ticket_of: TicketOf,
) -> Iterator[TraceEvent]:
    """Yield the events of what crosses between the client and its transport now."""
    if isinstance(crossing, b.Send | b.Retract):
        kind = "message" if isinstance(crossing, b.Send) else "withdrawn"
        frame, wire_id, ticket = crossing.frame, crossing.wire_id, crossing.ticket
        yield TraceEvent(at, kind, generation, "→", frame, wire_id, ticket)
    elif isinstance(crossing, b.Failed):
        # A call that goes back to its caller to be checked again has not ended: none is shown.
        error = None if isinstance(crossing.error, b.LinkChanged) else crossing.error
        yield TraceEvent(at, "failed", generation, ticket=crossing.ticket, error=error)
    elif isinstance(crossing, b.Moved):
        old, new, reason = crossing.old, crossing.new, crossing.reason
        yield TraceEvent(at, "state", generation, old=old, new=new, error=reason)
    else:
        yield from reported(crossing, at, ticket_of)


def reported(report: Report, at: float, ticket_of: TicketOf) -> Iterator[TraceEvent]:
    """Yield the events of a report: one for each message in it, or one for the report."""
    generation = report.generation
    if isinstance(report, b.Delivered):
        for frame in [report.data] if report.whole else report.data.split(b"\n"):
            if frame.strip():
                wire_id = _wire_id(frame, report.stream)
                ticket = ticket_of(wire_id)
                yield TraceEvent(at, "message", generation, "←", frame, wire_id, ticket)
        return
    kind, wire_id = type(report).__name__.lower(), getattr(report, "wire_id", None)
    if isinstance(report, b.Busy):
        wire_id = report.command.wire_id
    error = getattr(report, "error", None)
    yield TraceEvent(at, kind, generation, wire_id=wire_id, ticket=ticket_of(wire_id), error=error)


def _wire_id(frame: bytes, stream: WireId | None) -> WireId | str | None:
    """Return the id in a message, or that of the stream on which it came."""
    try:
        wire_id = _head.decode(frame).id
    except MALFORMED:
        wire_id = None
    return stream if wire_id is None else wire_id  # type: ignore[return-value]
