"""The values that cross between engine, driver and transports.

Commands go down (the engine decides, the driver has the transport act), reports come up
(what the transport observed), outcomes go further up (to callers and handlers). A ticket is
the caller's name for a request, a wire id the peer's: two types, so that one is never taken
for the other. A generation numbers the links of one client: reports of older links are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NewType, Protocol, TypeAlias

from msgspec import Raw, Struct

from holdfast._core.wire.jsonrpc import ErrorObject, Id
from holdfast.errors import HoldfastError
from holdfast.policies import Limits
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer

Ticket = NewType("Ticket", int)
WireId = NewType("WireId", int)
Generation = NewType("Generation", int)


# Calls: what the layers above ask for.


class Call(Struct, frozen=True, gc=False):
    """One request as the engine takes it."""

    method: str
    params: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    idle: float = 30.0
    """Seconds without an answer or progress."""
    total: float = 300.0
    """Seconds in all."""
    about: str = ""
    """The tool, resource or prompt meant, for messages."""
    progress: bool = False
    """Ask the server for progress."""
    repeatable: bool = False
    """Running it twice does no harm."""
    since: float | None = None
    """The time its deadlines began; None: when the engine takes it."""
    spent: float = 0.0
    """Seconds of ``total`` which were gone before this request. For messages."""
    total_name: str = "Timeouts.total"
    """The option that ``total`` comes from; ``timeout``: a few times that. For messages."""
    place_within: float | None = None
    """Seconds to wait for a place under a limit; None: as long as it may take in all."""
    epoch: int | None = None
    """Send it only in this epoch of the connection, else fail with ``LinkChanged``."""
    refusals: int | None = None
    """How often it was refused for now, if its caller checks the server before each attempt."""
    param_headers: dict[str, str] | None = None
    """Arguments to repeat in headers, where there are headers."""
    extensions: tuple[str, ...] = ()
    """Extensions to declare with this request, where each request declares them."""
    lasting: bool = False
    """A stream that stays open: it has no deadline."""
    wait: bool | None = None
    """Wait for a server that is down; None: as the policy says."""
    answers: bool = False
    """It answers what a server asked in its result: only for servers that ask so."""


# Commands: engine → driver → transport.


class Open(Struct, frozen=True):
    """Open a link; ``variant`` is another way to the same server than the usual one."""

    generation: Generation
    variant: str | None = None


class StreamOptions(Struct, frozen=True):
    """The headers and options of a frame where each request has a stream of its own."""

    headers: dict[str, str]
    resume: bool = False
    """A stream that breaks off may be taken up again where it broke."""
    first: bool = False
    """Later frames wait until this one has arrived."""


class Send(Struct, frozen=True, gc=False):
    frame: bytes
    wire_id: WireId | None = None
    options: StreamOptions | None = None
    ticket: Ticket | None = None
    """That of the call, if it is one."""


class OpenStream(Struct, frozen=True):
    """Open a stream for unsolicited messages of the server, and hold it open."""

    options: StreamOptions


class Retract(Struct, frozen=True):
    """Take a request back: drop it if it has not left yet, else send ``frame``.

    Without a frame, ending the request's stream says it all.
    """

    wire_id: WireId
    frame: bytes | None
    options: StreamOptions | None = None
    ticket: Ticket | None = None


class Finish(Struct, frozen=True):
    """A request was answered: its stream has nothing more to say."""

    wire_id: WireId


class CheckRead(Struct, frozen=True):
    """Ask the link whether the server has read what was sent."""


class Close(Struct, frozen=True):
    """Tear a link down; ``farewell`` is the last message to the server, if any."""

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
    whole: bool = False
    """``data`` is one JSON text instead, such as the body of an HTTP response."""
    ended: bool = False
    """The stream ended here without a newline: the last message may be cut off."""


class RefusalReason(StrEnum):
    """The reason for which a request failed below the protocol."""

    UNAUTHORIZED = "unauthorized"
    """Credentials are missing or not accepted."""
    FORBIDDEN = "forbidden"
    """The credentials, or the place from which the request came, do not allow it."""
    NO_SUCH_SESSION = "no such session"
    """The request named a session that the server does not know."""
    NOT_UNDERSTOOD = "not understood"
    """The endpoint does not accept this kind of message: it may speak another protocol."""
    REJECTED = "rejected"
    """The endpoint understood the message and did not accept it."""
    BUSY = "busy"
    """Turned away for now; ``retry_after`` says for how long."""
    CRASHED = "crashed"
    """The server failed while it handled the request."""
    UNREACHABLE = "unreachable"
    """No connection came about."""
    BROKEN = "broken"
    """The connection ended midway."""
    UNANSWERED = "unanswered"
    """The response ended without an answer."""
    UNREADABLE = "unreadable"
    """The response is not one of the protocol."""
    NOT_SENT = "not sent"
    """The request cannot be sent with these settings."""


class Refused(Exception):  # noqa: N818  (a finding: raised inside a transport, then reported)
    """One request failed below the protocol; the link as such goes on.

    ``fault`` is the JSON-RPC error in the refusal's body, if there was one.
    ``processed`` is False if the server cannot have run the request. ``frame_size`` is that of
    an answer above the limit.
    """

    def __init__(
        self,
        error: HoldfastError,
        reason: RefusalReason,
        *,
        fault: ErrorObject | None = None,
        processed: bool = True,
        retry_after: float | None = None,
        frame_size: int | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.reason = reason
        self.fault = fault
        self.processed = processed
        self.retry_after = retry_after
        self.frame_size = frame_size
        self.generation: Generation = Generation(0)
        self.wire_id: WireId = WireId(0)

    def of(self, generation: Generation, wire_id: WireId) -> Refused:
        """Address the refusal to the request that it answers, for a report."""
        self.generation, self.wire_id = generation, wire_id
        return self

    @property
    def broken(self) -> bool:
        """The connection failed; the server may be fine."""
        return self.reason in (RefusalReason.BROKEN, RefusalReason.UNREACHABLE)


class Expired(Struct, frozen=True):
    """The server does not know our session any more."""

    generation: Generation
    session: str | None = None


class Busy(Struct, frozen=True):
    """The link takes no more for now; nothing of this message was sent."""

    generation: Generation
    command: Send


class Room(Struct, frozen=True):
    """The link that was busy takes messages again."""

    generation: Generation


class Starting(Struct, frozen=True):
    """The server has said nothing yet, and is being downloaded, built or started.

    The deadline of the handshake counts from here: the next such report, if any, comes in
    ``again`` seconds.
    """

    generation: Generation
    elapsed: float
    """Seconds since the command was started."""
    again: float
    busy: bool = True
    """It is seen to be at work; otherwise it is only known to be alive."""


class Held(Struct, frozen=True):
    """A request waits for credentials; it has not been sent."""

    generation: Generation
    wire_id: WireId


class Released(Struct, frozen=True):
    """A request that was held goes on."""

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
    frame_size: int | None = None
    """Bytes read of a message above the limit, if that is why."""


class Drained(Struct, frozen=True):
    """The link's teardown is complete: process reaped, descriptors closed."""

    generation: Generation


# Outcomes: engine → driver → callers and handlers.


class LinkChanged(Exception):  # noqa: N818  (a turn for the caller, who never raises it further)
    """The epoch of a call ended before it was sent: the caller has to check it again."""

    def __init__(self, message: str, *, may_have_run: bool = False, refusals: int = 0) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run
        """It had been sent before, on an earlier link."""
        self.refusals = refusals
        """How often it was turned away for now."""


class Completed(Struct, frozen=True, gc=False):
    ticket: Ticket
    result: Raw


class Failed(Struct, frozen=True):
    ticket: Ticket
    error: HoldfastError | LinkChanged
    unsent: HoldfastError | None = None
    """The error instead, if the link could still withdraw the request."""


class Related(Struct, frozen=True, gc=False):
    """A notification that belongs to a request under way."""

    ticket: Ticket
    method: str
    params: Raw


class Progressed(Struct, frozen=True, gc=False):
    """Progress of a request, as it came: one after another in one read is one outcome."""

    ticket: Ticket
    progress: list[Progress]


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
    """The server cancelled something: its own request ``id``, or None of those."""

    generation: Generation
    id: Id | None
    reason: str | None = None


class Moved(Struct, frozen=True):
    """The state changed."""

    old: str
    new: str
    reason: HoldfastError | None = None


class Misfit(Struct, frozen=True):
    """An answer does not fit its schema; shown to a tap alone."""

    wire_id: WireId | None
    faults: tuple[tuple[str, str], ...]
    """The places, and what is wrong there."""


class Violated(Struct, frozen=True):
    """The server did what the protocol does not allow; it was dropped and counted."""

    reason: str
    detail: str
    count: int
    """The number of this kind so far; only the first is logged."""
    frame_size: int | None = None
    """Bytes of the message, where known."""


class Throttled(Struct, frozen=True):
    """The server takes no calls for so many seconds."""

    seconds: float


class Waiting(Struct, frozen=True):
    """A call waits for a place under a limit, or because the server said "later"."""

    method: str
    about: str
    reason: str
    """``concurrent``, ``rate`` or ``later``."""
    limit: str
    """The limit as it was written; "" for ``later``."""
    seconds: float | None
    """How long, where that is known."""


class Unhandled(Struct, frozen=True):
    """A defect of ours: it is logged, and the rest goes on."""

    error: Exception


Command: TypeAlias = Open | Send | OpenStream | Retract | Finish | CheckRead | Close
Report: TypeAlias = (
    Opened
    | Starting
    | Delivered
    | Refused
    | Expired
    | Busy
    | Room
    | Held
    | Released
    | ReadChecked
    | Lost
    | Drained
)
Outcome: TypeAlias = (
    Completed
    | Failed
    | Related
    | Progressed
    | Noticed
    | Asked
    | Dismissed
    | Moved
    | Starting
    | Violated
    | Throttled
    | Unhandled
)
Effect: TypeAlias = Command | Outcome


# What a client is to its driver.


class DriverListener(Protocol):
    """Receives unsolicited messages and state changes. All methods return at once."""

    def notified(self, method: str, count: int) -> None: ...
    def noticed(self, method: str, params: Raw | None) -> None: ...
    def asked(self, request: Asked) -> None: ...
    def dismissed(self, dismissed: Dismissed) -> None: ...
    def moved(self, moved: Moved) -> None: ...
    def starting(self, starting: Starting) -> None: ...
    def violated(self, violated: Violated) -> None: ...
    def waiting(self, waiting: Waiting) -> None: ...
    def store_down(self, error: Exception) -> None: ...


# What a transport is.


class Traits(Struct, frozen=True):
    """The properties that a transport declares."""

    credentials: str | None = ""
    """Tells one user of the server from another. None: each request may carry other ones, so it
    is sent from the context of its caller, and nothing is shared between callers."""
    shutdown_request: bool = False
    """A request notifies the server before the link closes."""
    grace: float = 2.0
    """Seconds for the server to answer that request."""
    extensions: tuple[str, ...] = ()
    """Extensions of the protocol that it uses, to be declared to the server."""
    shows_stderr: bool = False
    """Somebody is given the server's stderr, which may repeat what is sent."""


class Link(Protocol):
    """One live connection. Its methods return at once and never report from inside a call."""

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        """Take a frame; False if too much is waiting already (nothing is taken then)."""

    def listen(self, options: StreamOptions) -> None:
        """Open a stream for unsolicited messages of the server, if the transport has one."""

    def withdraw(self, wire_id: WireId, /) -> bool:
        """Drop a frame of which no byte has left; False if it has. A stream of its own ends."""

    def finish(self, wire_id: WireId) -> None:
        """A request was answered; let its stream, if it has one, come to its end."""

    def unsent(self) -> frozenset[WireId]:
        """Return the requests of which no byte has left."""

    def unread(self) -> bool:
        """True if the peer is known not to have read all that was sent."""

    def received(self) -> int | None:
        """Count what was read: the number changes while there is more to read.

        None where all that is there is reported in the turn of the loop that reads it.
        """

    def agreed(self) -> None:
        """The handshake is over: what the server wrote about it is no longer of interest."""

    def close(self, farewell: StreamOptions | None = None) -> None:
        """Begin the bounded teardown; ``Drained`` is reported when it is done."""

    def kill(self) -> None:
        """End it here and now, without waiting: the loop is going away."""


class Transport(Protocol):
    """Opens links. One transport serves one client; every link has a new generation."""

    @property
    def name(self) -> str:
        """Return the name of the server for messages."""

    @property
    def key(self) -> Hashable | None:
        """The same for every transport that leads to the same server; None: unknown."""

    @property
    def traits(self) -> Traits:
        """Return the properties of this transport."""

    @property
    def authorizer(self) -> Authorizer | None:
        """What logs in and renews tokens; None where a transport has no logins."""

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> Link:
        """Start a link; raise ``TransportError`` if it cannot even be tried."""
