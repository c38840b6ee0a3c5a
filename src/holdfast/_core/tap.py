"""The tap: everything that crosses between a client and its transport, as values.

A driver with a tap gives it one `TraceEvent` for each message in either direction, for whatever
else a transport reports, and for each change of state. ``--trace`` shows messages by it, and
`holdfast.trace` writes them to a file.

Events hold what was sent and received as it is, secrets included: whoever shows or stores them
redacts them first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from holdfast._core import boundary as b
from holdfast._core.boundary import Generation, Report, Ticket, WireId
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import HoldfastError

Direction: TypeAlias = Literal["→", "←"]


class TraceEvent(Struct, frozen=True, gc=False):
    """One message, one report of a transport, or one change of state."""

    at: float
    """The time, by `time.perf_counter`: a loop may know milliseconds only."""
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


class _Head(Struct):
    id: int | str | None = None


_head = msgspec.json.Decoder(_Head)


TicketOf: TypeAlias = Callable[[Any], Ticket | None]
"""Returns the ticket of the request under way with this wire id."""


Crossing: TypeAlias = b.Send | b.Retract | b.Failed | b.Moved | b.Misfit | Report
Watcher: TypeAlias = Callable[[Crossing, float, Generation, TicketOf], None]
"""What a driver shows all that crosses, with the time and the number of its link."""


def watcher(tap: Tap) -> Watcher:
    """Return what makes events of all that crosses, for a tap."""

    def watch(crossing: Crossing, at: float, generation: Generation, ticket_of: TicketOf) -> None:
        for event in crossing_events(crossing, at, generation, ticket_of):
            tap(event)

    return watch


def both(first: Watcher, second: Watcher) -> Watcher:
    """Return what shows all that crosses to two."""

    def watch(crossing: Crossing, at: float, generation: Generation, ticket_of: TicketOf) -> None:
        first(crossing, at, generation, ticket_of)
        second(crossing, at, generation, ticket_of)

    return watch


def crossing_events(
    crossing: Crossing,
    at: float,
    generation: Generation,
    ticket_of: TicketOf,
) -> Sequence[TraceEvent]:
    """Return the events of what crosses between the client and its transport now."""
    if isinstance(crossing, b.Send):
        frame, wire_id, ticket = crossing.frame, crossing.wire_id, crossing.ticket
        return (TraceEvent(at, "message", generation, "→", frame, wire_id, ticket),)
    if isinstance(crossing, b.Delivered):
        return _received(crossing, at, ticket_of)
    if isinstance(crossing, b.Retract):
        wire_id, ticket = crossing.wire_id, crossing.ticket
        return (TraceEvent(at, "withdrawn", generation, "→", crossing.frame, wire_id, ticket),)
    if isinstance(crossing, b.Failed):
        # A call that goes back to its caller to be checked again has not ended: none is shown.
        error = None if isinstance(crossing.error, b.LinkChanged) else crossing.error
        return (TraceEvent(at, "failed", generation, ticket=crossing.ticket, error=error),)
    if isinstance(crossing, b.Moved):
        old, new, reason = crossing.old, crossing.new, crossing.reason
        return (TraceEvent(at, "state", generation, old=old, new=new, error=reason),)
    if isinstance(crossing, b.Misfit):
        wire_id, faults = crossing.wire_id, crossing.faults
        return (TraceEvent(at, "checked", generation, wire_id=wire_id, faults=faults),)
    return reported(crossing, at, ticket_of)


def reported(report: Report, at: float, ticket_of: TicketOf) -> Sequence[TraceEvent]:
    """Return the events of a report: one for each message in it, or one for the report."""
    generation = report.generation
    if isinstance(report, b.Delivered):
        return _received(report, at, ticket_of)
    kind, wire_id = type(report).__name__.lower(), getattr(report, "wire_id", None)
    if isinstance(report, b.Busy):
        wire_id = report.command.wire_id
    error = getattr(report, "error", None)
    ticket = ticket_of(wire_id)
    return (TraceEvent(at, kind, generation, wire_id=wire_id, ticket=ticket, error=error),)


def _received(report: b.Delivered, at: float, ticket_of: TicketOf) -> Sequence[TraceEvent]:
    events, generation = [], report.generation
    for frame in [report.data] if report.whole else report.data.split(b"\n"):
        if frame and not frame.isspace():
            wire_id = _wire_id(frame, report.stream)
            ticket = ticket_of(wire_id)
            events.append(TraceEvent(at, "message", generation, "←", frame, wire_id, ticket))
    return events


def _wire_id(frame: bytes, stream: WireId | None) -> WireId | str | None:
    """Return the id in a message, or that of the stream on which it came."""
    try:
        wire_id = _head.decode(frame).id
    except MALFORMED:
        wire_id = None
    return stream if wire_id is None else wire_id  # type: ignore[return-value]
