"""The definition of a server, and the methods that every server has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from holdfast._core.eras.revisions import VERSIONS
from holdfast._core.eras.serving import Json, begin, check_level, granted, mark
from holdfast._core.server.incoming import SILENCE, Handler, Incoming
from holdfast._core.wire.codes import INVALID_PARAMS, INVALID_REQUEST, RequestError

if TYPE_CHECKING:
    from holdfast._core.server.session import ServerSession


class Server:
    """A server: handlers, capabilities and revisions, for every client that connects.

    Args:
        name: The name that clients are given.
        handlers: A handler for each method, of both eras.
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
        versions: tuple[str, ...] = VERSIONS,
        capabilities: Callable[[], Json] = dict,
        instructions: str | None = None,
        hints: dict[str, Json] | None = None,
    ) -> None:
        self.info: Json = {"name": name, "version": "1.0.0"}
        self.handlers: dict[str, Handler] = {**_LIFECYCLE, **handlers}
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
        self.heard: Callable[[Incoming], object] = lambda incoming: None
        """Called with every request and notification before it is handled."""
        self.sessions: WeakSet[ServerSession] = WeakSet()
        self.watchable: Callable[[str], bool] = bool
        """Return whether a resource can be subscribed to."""

    def announce(self, method: str, params: Json | None = None) -> None:
        """Send a change notification to every session and stream that asked for it."""
        for session in list(self.sessions):
            session.announce(method, params)

    def grant(self, wanted: Json) -> Json:
        """Return the part of a ``subscriptions/listen`` filter that is honoured."""
        kept = granted(wanted, self.capabilities())
        if "resourceSubscriptions" in kept:
            kept["resourceSubscriptions"] = [*filter(self.watchable, kept["resourceSubscriptions"])]
        return kept

    def introduction(self) -> Json:
        """Return what the answers to ``initialize`` and ``server/discover`` have in common."""
        more = {} if self.instructions is None else {"instructions": self.instructions}
        return {"capabilities": self.capabilities(), **more}


def uri_of(incoming: Incoming) -> str:
    """Return the ``uri`` parameter of a request."""
    uri = incoming.params.get("uri")
    if not isinstance(uri, str):
        raise RequestError(INVALID_PARAMS, "uri must be a string")
    return uri


def not_found(incoming: Incoming, uri: str) -> RequestError:
    """Return the error for a resource that does not exist."""
    text = f"resource not found: {uri}"
    return RequestError(incoming.era.resource_not_found, text, {"uri": uri})


def _initialize(incoming: Incoming) -> Json:
    server = incoming.session.server
    if incoming.session.era is not None:
        raise RequestError(INVALID_REQUEST, "already initialized")
    era = begin(incoming.params, server.versions)
    return {**server.introduction(), **era.introduce(server.capabilities(), server.info)}


def _discover(incoming: Incoming) -> Json:
    server = incoming.session.server
    return {"supportedVersions": list(server.versions), **server.introduction()}


def _set_level(incoming: Incoming) -> Json:
    incoming.era.log_level = check_level(incoming.params.get("level"), "level")
    return {}


def _subscribe(incoming: Incoming) -> Json:
    uri = uri_of(incoming)
    if not incoming.session.server.watchable(uri):
        raise not_found(incoming, uri)
    incoming.session.subscribed.add(uri)
    return {}


def _unsubscribe(incoming: Incoming) -> Json:
    incoming.session.subscribed.discard(uri_of(incoming))
    return {}


def _listen(incoming: Incoming) -> Any:
    """Open a stream of notifications; it is answered when the server ends it."""
    wanted = incoming.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RequestError(INVALID_PARAMS, "notifications must be an object")
    assert incoming.id is not None
    agreed = incoming.session.server.grant(wanted)
    # Basic: Subscriptions: the acknowledgement comes before anything else on the stream.
    params = {"notifications": agreed, **mark(incoming.id)}
    method = "notifications/subscriptions/acknowledged"
    incoming.session.notify(method, params, incoming.write)
    incoming.session.streams[incoming.id] = agreed
    return SILENCE


_LIFECYCLE: Final[dict[str, Handler]] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "ping": lambda incoming: {},
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
    "subscriptions/listen": _listen,
}
