"""The values that cross between engine, driver and transports.

Commands go down (the engine asks, the driver has the transport do it), reports come up
(what the transport saw), outcomes go further up (what callers and handlers are told).
A ticket is the caller's name for a request, a wire id the peer's: two types, so that one
is never taken for the other. A generation numbers the links of one client: a report
of an older link is not heard.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NewType, Protocol, TypeAlias

from msgspec import Raw, Struct

from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._core.wire.jsonrpc import ErrorObject, Id
from holdfast.errors import HoldfastError
from holdfast.policies import Limits
from holdfast.types.notifications import Progress

Ticket = NewType("Ticket", int)
WireId = NewType("WireId", int)
Generation = NewType("Generation", int)


# Calls: what the layers above ask for.


class Call(Struct, gc=False):
    """One request as the engine takes it. ``params`` and ``meta`` are not changed."""

    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    idle: float = 30.0
    total: float = 300.0
    about: str = ""
    """The tool, resource or prompt meant, for messages."""
    progress: bool = False
    """Ask the server for progress."""
    repeatable: bool = False
    """Running it twice does no harm."""
    lasting: bool = False
    """A stream that stays open: it has no deadline."""
    wait: bool | None = None
    """Wait for a server that is down; None: as the policy says."""
    wire_id: WireId | None = None
    """What it was sent as last, once it was sent."""
    param_headers: dict[str, str] | None = None
    """Arguments that are repeated in headers, where there are headers."""
    origin: Any = None
    """Where the call came from, for a driver that has to send it from there."""


# Commands: engine → driver → transport.


class Open(Struct, frozen=True):
    """Open a link; ``variant`` is another way to the same server than the usual one."""

    generation: Generation
    variant: str | None = None


class StreamOptions(Struct, frozen=True):
    """What a frame wears where each request travels on a stream of its own."""

    headers: dict[str, str]
    resume: bool = False
    """A stream that breaks off may be taken up again where it broke."""
    first: bool = False
    """What follows waits until this has arrived."""


class Send(Struct, frozen=True, gc=False):
    frame: bytes
    wire_id: WireId | None = None
    options: StreamOptions | None = None
    origin: Any = None
    """That of the call, if it is one."""


class Listen(Struct, frozen=True):
    """Open a stream for what the server says of its own accord, and keep it open."""

    options: StreamOptions


class Retract(Struct, frozen=True):
    """Take a request back: drop it if it has not left yet, else send ``frame``.

    Without a frame, ending the request's stream says it all.
    """

    wire_id: WireId
    frame: bytes | None
    options: StreamOptions | None = None


class Finish(Struct, frozen=True):
    """A request was answered: its stream has nothing more to say."""

    wire_id: WireId


class CheckRead(Struct, frozen=True):
    """Ask the link whether the server has read what was sent."""


class Close(Struct, frozen=True):
    """Tear a link down; ``farewell`` is what the server is told, if anything."""

    generation: Generation
    farewell: StreamOptions | None = None


# Reports: transport → driver → engine.


class Opened(Struct, frozen=True):
    """The link stands. ``streams``: each request travels on a stream of its own."""

    generation: Generation
    streams: bool = False


class Delivered(Struct, frozen=True, gc=False):
    """Whole frames, each ended by a newline.

    ``stream`` is the request on whose stream they came: 0 for a stream without one, None
    where all messages share one channel. ``session`` came in the head of the answer.
    """

    generation: Generation
    data: bytes
    stream: WireId | None = None
    session: str | None = None


class Refused(Struct, frozen=True):
    """One request failed below the protocol; the link as such goes on.

    ``fault`` is the error object in the refusal's body, if there was one. ``processed``
    is False if the server cannot have run the request.
    """

    generation: Generation
    wire_id: WireId
    error: HoldfastError
    status: int | None = None
    fault: ErrorObject | None = None
    processed: bool = True
    retry_after: float | None = None


_BAD_REQUEST, _NOT_FOUND = 400, 404


def no_such_session(status: int | None, fault: ErrorObject | None) -> bool:
    """Whether, where a session was named, a refusal says that the server does not know it."""
    if status == _BAD_REQUEST:
        # Not what the specification says, but what many servers do.
        return fault is not None and "session" in (fault.message or "").lower()
    return status == _NOT_FOUND and (fault is None or fault.code != METHOD_NOT_FOUND)


class Expired(Struct, frozen=True):
    """The server does not know our session any more."""

    generation: Generation
    session: str | None = None


class Busy(Struct, frozen=True):
    """The link takes no more for now; nothing of this request was sent."""

    generation: Generation
    wire_id: WireId


class ReadChecked(Struct, frozen=True):
    generation: Generation
    unread: bool


class Lost(Struct, frozen=True):
    """The link is gone. ``unsent`` lists the requests of which no byte has left."""

    generation: Generation
    error: HoldfastError
    unsent: frozenset[WireId] = frozenset()


class Drained(Struct, frozen=True):
    """The link's teardown is complete: process reaped, descriptors closed."""

    generation: Generation


# Outcomes: engine → driver → callers and handlers.


class Completed(Struct, frozen=True, gc=False):
    ticket: Ticket
    result: Raw


class Failed(Struct, frozen=True):
    ticket: Ticket
    error: HoldfastError


class Related(Struct, frozen=True, gc=False):
    """A notification that belongs to a request under way."""

    ticket: Ticket
    method: str
    params: Raw


class Progressed(Struct, frozen=True, gc=False):
    ticket: Ticket
    progress: Progress


class Noticed(Struct, frozen=True, gc=False):
    method: str
    params: Raw | None


class Asked(Struct, frozen=True):
    """A request of the server."""

    generation: Generation
    id: Id
    method: str
    params: Raw | None


class Dismissed(Struct, frozen=True):
    """The server no longer wants the answer to its request."""

    generation: Generation
    id: Id


class Moved(Struct, frozen=True):
    """The state changed."""

    old: str
    new: str
    reason: HoldfastError | None = None


class Violated(Struct, frozen=True):
    """The server did what the protocol does not allow; it was dropped and counted."""

    reason: str
    detail: str
    count: int
    """How many of this kind so far; the first is worth a line in the log."""


Command: TypeAlias = Open | Send | Listen | Retract | Finish | CheckRead | Close
Report: TypeAlias = Opened | Delivered | Refused | Expired | Busy | ReadChecked | Lost | Drained
Outcome: TypeAlias = (
    Completed | Failed | Related | Progressed | Noticed | Asked | Dismissed | Moved | Violated
)
Effect: TypeAlias = Command | Outcome


# What a transport is.


class Link(Protocol):
    """One live connection. Its methods return at once and never report from inside a call."""

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        """Take a frame; False if too much is waiting already (nothing is taken then)."""

    def listen(self, options: StreamOptions) -> None:
        """Open a stream for what the server says of its own accord, where there is one."""

    def withdraw(self, wire_id: WireId) -> bool:
        """Drop a frame of which no byte has left; False if it has. A stream of its own ends."""

    def finish(self, wire_id: WireId) -> None:
        """A request was answered; let its stream, if it has one, come to its end."""

    def unread(self) -> bool:
        """True if the peer is known not to have read all that was sent."""

    def close(self, farewell: StreamOptions | None = None) -> None:
        """Begin the bounded teardown; ``Drained`` is reported when it is done."""

    def kill(self) -> None:
        """End it here and now, without waiting: the loop is going away."""


class Transport(Protocol):
    """Opens links. One transport serves one client; every link has a new generation."""

    @property
    def name(self) -> str:
        """How the server is called in messages."""

    @property
    def key(self) -> Hashable | None:
        """The same for every transport that leads to the same server; None: cannot be told."""

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> Link:
        """Start a link; raise ``TransportError`` if it cannot even be tried."""
