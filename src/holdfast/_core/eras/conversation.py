"""The values of a negotiation: what is known before, each turn, and how it ends."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import RefusalReason
from holdfast._core.eras.base import Era, OutgoingRequest
from holdfast._core.eras.revisions import VERSIONS
from holdfast._core.wire.jsonrpc import ErrorObject
from holdfast.errors import HoldfastError, ValidationError
from holdfast.policies import Identity
from holdfast.types.base import decode
from holdfast.types.lifecycle import Implementation, ServerCapabilities

Opening: TypeAlias = Literal["discover", "initialize"]


class Plan(Struct, frozen=True):
    """The facts known before the first message."""

    identity: Identity
    abilities: frozenset[str] = frozenset()
    pin: str | None = None
    opening: Opening | None = None
    """The opening that this server is known to support; None: negotiate."""
    patience: float = 0.5
    streams: bool = False
    """Each request travels on a stream of its own."""
    variant: str | None = None
    """The way by which the server is reached, if it is not the usual one."""

    def __post_init__(self) -> None:
        if self.pin is not None and self.pin not in VERSIONS:
            revisions = ", ".join(VERSIONS)
            raise ValidationError(f"protocol {self.pin!r}: not a revision we speak ({revisions})")


class Facts(Struct, frozen=True):
    """The server's description of itself."""

    version: str
    info: Raw | None = None
    capabilities: Raw = Raw(b"{}")
    instructions: str | None = None
    answer: Raw = Raw(b"{}")
    """The whole of what the server answered, for a relay."""

    @property
    def server_info(self) -> Implementation | None:
        """The server's name and version; None if it gave none that can be read."""
        try:
            return None if self.info is None else decode(self.info, Implementation)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """The server's capabilities; none if they cannot be read."""
        try:
            return decode(self.capabilities, ServerCapabilities)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ServerCapabilities()

    def offers(self, capability: str) -> bool:
        """Return True if the server declares a capability; the others are not read."""
        try:
            declared = _declared.decode(self.capabilities)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        return bytes(declared.get(capability, b"")).startswith(b"{")

    @property
    def changing(self) -> list[str]:
        """The lists whose changes the server announces: tools, prompts, resources."""
        declared = self.server_capabilities
        sections = {name: getattr(declared, name) for name in ("tools", "prompts", "resources")}
        return [name for name, section in sections.items() if section and section.list_changed]


_declared = msgspec.json.Decoder(dict[str, Raw])


class Agreement(Struct, frozen=True):
    era: Era
    facts: Facts
    opening: Opening


class Turn(Struct, frozen=True):
    """One turn: send ``requests``, then wait for ``patience`` seconds (None: without limit)."""

    requests: tuple[OutgoingRequest, ...] = ()
    patience: float | None = None


class Reply(Struct, frozen=True):
    """The answer to a request: a result, or an error."""

    method: str
    result: Raw | None = None
    fault: ErrorObject | None = None
    reason: RefusalReason | None = None
    """The reason of a refusal below the protocol."""


class Silence(Struct, frozen=True):
    """No answer in time; ``unread``: the server has not even read the request."""

    unread: bool = False


Heard: TypeAlias = Reply | Silence

Conversation: TypeAlias = Generator[Turn, Heard, Agreement]


class StartAgain(Exception):  # noqa: N818  (a turn of the conversation, not a failure)
    """The link cannot be used; open another and begin with ``opening``."""

    def __init__(
        self,
        opening: Opening | None,
        variant: str | None = None,
        error: HoldfastError | None = None,
    ) -> None:
        super().__init__(opening)
        self.opening = opening
        self.variant = variant
        self.error = error


class NoAgreement(Exception):  # noqa: N818
    """The negotiation failed; ``final``: trying again cannot help."""

    def __init__(self, error: HoldfastError, *, final: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.final = final


MOST_SERVERS: Final = 1000
_known: dict[Hashable, Opening] = {}
"""The opening that each server accepts, remembered for this process.

2026-07-28 basic/versioning, Backward Compatibility: "Clients SHOULD cache the result for the
lifetime of the server process (stdio) or origin (HTTP)".
"""


def recall(key: Hashable | None) -> Opening | None:
    return None if key is None else _known.get(key)


def remember(key: Hashable | None, opening: Opening | None) -> None:
    """Remember the opening that worked last; None: forget it."""
    if key is None:
        return
    if opening is None:
        _known.pop(key, None)
        return
    if len(_known) >= MOST_SERVERS:
        _known.clear()
    _known[key] = opening
