"""The questions that the engine and the call layer ask of a protocol revision.

A difference between revisions is another question here, never a comparison elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

from msgspec import Raw, Struct

from holdfast._core.boundary import StreamOptions, WireId
from holdfast._core.wire.jsonrpc import ErrorObject, Id


class Complete(Struct, frozen=True):
    """The request is done."""


class NeedsInput(Struct, frozen=True):
    """The server wants answers before it goes on."""

    requests: dict[str, Raw]
    state: Raw | None
    """``requestState`` exactly as it came: it is echoed byte for byte."""


class Invalid(Struct, frozen=True):
    """A result that this revision does not allow."""

    reason: str


Reading = Complete | NeedsInput | Invalid
COMPLETE: Final = Complete()


class OutgoingRequest(Struct, frozen=True):
    """A request that an era would have sent: method and parameters."""

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
    listens: bool
    """Change notifications come on a stream that is asked for, not by themselves."""

    def greet(self) -> list[bytes]:
        """What is sent once the revision is agreed."""

    def stamp(
        self,
        params: dict[str, Any] | None,
        meta: dict[str, Any] | None = None,
        token: WireId | None = None,
    ) -> dict[str, Any] | None:
        """The parameters as they go on the wire; ``token`` asks for progress under that name."""

    def read(self, method: str, result: Raw) -> Reading:
        """Whether a result is final."""

    param_headers: bool
    """Tools may want arguments repeated in headers."""
    session: str | None
    """What the server calls our conversation, where it gave it a name."""

    def options(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        param_headers: dict[str, str] | None = None,
    ) -> StreamOptions:
        """What a message wears where each travels on a stream of its own."""

    def cancel(self, wire_id: WireId, reason: str, *, streams: bool = False) -> bytes | None:
        """The frame that tells the server to stop working on a request.

        None where ending the request's own stream is what tells it.
        """

    def contradicted_by(self, fault: ErrorObject | None) -> bool:
        """Return True if a refusal shows that the server speaks another revision than agreed.

        ``fault`` is the JSON-RPC error in the refusal, None if there was none.
        """

    def farewell(self) -> StreamOptions | None:
        """What ends the conversation, where the server keeps one."""

    def ping(self) -> OutgoingRequest:
        """The cheapest request that shows the server alive."""

    def log_level(self, level: str) -> OutgoingRequest | None:
        """Set the level from now on; a request if the server must be asked."""

    def watch(self, uri: str) -> OutgoingRequest:
        """Ask for the updates of one resource (where updates come by themselves)."""

    def unwatch(self, uri: str) -> OutgoingRequest: ...

    def subscription(self, params: Raw) -> Id | None:
        """The request for a stream that a notification belongs to, if it names one."""

    def listen(self, uris: Iterable[str], changes: Iterable[str]) -> OutgoingRequest:
        """Open a stream of updates and list changes (where it must be asked for)."""


def best(offered: Iterable[object], ours: Iterable[str]) -> str | None:
    """The newest of our revisions that is on offer."""
    theirs = {offer for offer in offered if isinstance(offer, str)}
    return next((version for version in ours if version in theirs), None)


def declare(abilities: Iterable[str], extra: dict[str, Any], *, changes: bool) -> dict[str, Any]:
    """The client capabilities for what has a handler, plus what the user adds.

    ``changes``: this era lets a client announce that its roots changed.
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
