"""What a server offers, to every client that connects. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from holdfast._core.eras.revisions import VERSIONS
from holdfast._core.eras.serving import Json, granted
from holdfast._core.server.lifecycle import LIFECYCLE
from holdfast._core.server.request import Handler, ServerRequest

if TYPE_CHECKING:
    from holdfast._core.server.session import ServerSession


class Server:
    """A server: handlers, capabilities and revisions, for every client that connects.

    Args:
        name: The name that clients are given.
        handlers: A handler for each method, of both eras. One for a method of `LIFECYCLE`
            takes the place of what is there.
        default: Handles every request and notification that has no handler; without one such
            a request is refused, and such a notification ignored.
        versions: The revisions to speak.
        capabilities: What to declare, made for each client.
        instructions: Text for the model.
        hints: Cache hints (``ttlMs``, ``cacheScope``) by method, for the stateless era.
    """

    def __init__(
        self,
        name: str,
        handlers: dict[str, Handler],
        *,
        default: Handler | None = None,
        versions: tuple[str, ...] = VERSIONS,
        capabilities: Callable[[], Json] = dict,
        instructions: str | None = None,
        hints: dict[str, Json] | None = None,
    ) -> None:
        self.info: Json = {"name": name, "version": "1.0.0"}
        self.handlers: dict[str, Handler] = {**LIFECYCLE, **handlers}
        self.default = default
        self.overrides: dict[str, Handler] = {}
        """Handlers that are called whatever the era, even before ``initialize``."""
        self.versions = versions
        self.capabilities = capabilities
        self.instructions = instructions
        self.hints: dict[str, Json] = hints or {}
        self.strict: bool = True
        """Refuse requests before ``initialize`` that name no revision."""
        self.verbatim: bool = False
        """Send handshake clients results as they are, with fields of later revisions."""
        self.heard: Callable[[ServerRequest], object] = lambda request: None
        """Called with every request and notification before it is handled."""
        self.left: Callable[[ServerSession], object] = lambda session: None
        """Called with each session that has ended."""
        self.sessions: WeakSet[ServerSession] = WeakSet()
        self.watchable: Callable[[str], bool] = bool
        """Return whether a resource can be subscribed to."""

    def announce(self, method: str, params: Json | None = None) -> None:
        """Send a change notification to every session and stream that asked for it."""
        for session in list(self.sessions):
            session.announce(method, params)

    def grant(self, filters: Json) -> Json:
        """Return the part of a ``subscriptions/listen`` filter that is honoured."""
        agreed = granted(filters, self.capabilities())
        if "resourceSubscriptions" in agreed:
            uris = agreed["resourceSubscriptions"]
            agreed["resourceSubscriptions"] = [*filter(self.watchable, uris)]
        return agreed

    def introduction(self) -> Json:
        """Return what the answers to ``initialize`` and ``server/discover`` have in common."""
        text = {} if self.instructions is None else {"instructions": self.instructions}
        return {"capabilities": self.capabilities(), **text}
