"""The interface of a protocol revision to the engine and the call layer.

A difference between revisions is another method here, never a comparison elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Raw, Struct

from holdfast._core.boundary import StreamOptions, WireId
from holdfast._core.wire.jsonrpc import ErrorObject, Id

if TYPE_CHECKING:
    from holdfast._core.eras.tasks import TaskForm


class Complete(Struct, frozen=True):
    """The request is done."""


class NeedsInput(Struct, frozen=True):
    """The server needs input before it goes on (2026-07-28 basic/patterns/mrtr)."""

    requests: dict[str, Raw]
    state: Raw | None
    """``requestState`` exactly as received: the client "MUST echo back the exact value"."""


class Invalid(Struct, frozen=True):
    """A result that the revision does not allow."""

    reason: str


Reading = Complete | NeedsInput | Invalid
COMPLETE: Final = Complete()
FINAL: Final = (None, "complete")
"""The types of results that need no second look (2026-07-28 basic/index, ResultType)."""


class OutgoingRequest(Struct, frozen=True):
    """A request to send: method, parameters and stream options."""

    method: str
    params: dict[str, Any] | None = None
    options: StreamOptions | None = None


class Era(Protocol):
    """One agreed revision."""

    version: str
    batches: bool
    """Arrays of messages are legal."""
    may_ask: bool
    """The server may send requests of its own."""
    withheld: frozenset[str]
    """Notifications of clients that the revision does not have any more."""
    listens: bool
    """Change notifications come on a stream that is asked for, not by themselves."""

    def greet(self) -> list[bytes]:
        """Return the messages to send once the revision is agreed."""

    def stamp(
        self,
        params: dict[str, Any] | None,
        meta: dict[str, Any] | None = None,
        token: WireId | None = None,
        extensions: tuple[str, ...] = (),
    ) -> dict[str, Any] | None:
        """Return the parameters to send.

        ``token`` asks for progress under that name; ``extensions`` are declared for this
        request alone, where each request declares what the client can do.
        """

    def read(self, method: str, result: Raw) -> Reading:
        """Classify a result: complete, in need of input, or invalid."""

    def tasks(self, capabilities: Raw) -> TaskForm | None:
        """Return the form of tasks with a server of these capabilities; None: it has none."""

    param_headers: bool
    """Tools may want arguments repeated in headers."""
    session: str | None
    """The session id that the server assigned, if it did."""

    def options(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        param_headers: dict[str, str] | None = None,
    ) -> StreamOptions:
        """Return headers and stream options of a message, where each has a stream of its own."""

    def cancel(self, wire_id: WireId, reason: str, *, streams: bool = False) -> bytes | None:
        """Return the message that cancels a request; None where closing its stream does that."""

    def contradicted_by(self, fault: ErrorObject | None) -> bool:
        """Return True if a refusal shows that the server speaks another revision than agreed.

        ``fault`` is the JSON-RPC error in the refusal, None if there was none.
        """

    def disowned_by(self, method: str, fault: ErrorObject) -> bool:
        """Return True if an error may be that of a server which speaks another revision.

        The error came as the answer to ``method``, not as a refusal below the protocol, so it
        may as well be the tool's: only another negotiation can tell.
        """

    def farewell(self) -> StreamOptions | None:
        """Return the options of the message that ends the session, if there is a session."""

    def ping(self) -> OutgoingRequest:
        """Return the cheapest request that shows that the server is alive."""

    def log_level(self, level: str) -> OutgoingRequest | None:
        """Set the log level; return the request to send, if the revision has one."""

    def watch(self, uri: str) -> OutgoingRequest:
        """Return the request that subscribes to one resource, where there is such a request."""

    def unwatch(self, uri: str) -> OutgoingRequest: ...

    def subscription(self, params: Raw) -> Id | None:
        """Return the id of the subscription that a notification names, if it names one."""

    def listen(self, uris: Iterable[str], changes: Iterable[str]) -> OutgoingRequest:
        """Return the request for a stream of updates and list changes, where there is one."""


def best(offered: Iterable[object], ours: Iterable[str]) -> str | None:
    """Return the newest of ``ours`` that is offered."""
    theirs = {offer for offer in offered if isinstance(offer, str)}
    return next((version for version in ours if version in theirs), None)


def declare(abilities: Iterable[str], extra: dict[str, Any], *, changes: bool) -> dict[str, Any]:
    """Return the client capabilities for what has a handler, and what the user adds.

    ``changes``: the era has ``notifications/roots/list_changed`` (2025-11-25 client/roots,
    Capabilities).
    """
    declared: dict[str, Any] = {}
    for ability in abilities:
        section, _, feature = ability.partition(".")
        features = declared.setdefault(section, {})
        if feature:
            features[feature] = {}
    if changes and "roots" in declared:
        declared["roots"] = {"listChanged": True}
    return {**declared, **extra}
