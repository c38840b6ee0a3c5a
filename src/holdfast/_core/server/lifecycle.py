"""The methods that every server has: the handshake, log levels and subscriptions.

A server that needs to know of one of them, such as a relay, gives a handler of its own for the
method, and calls the function here from it.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast._core.eras.serving import (
    HandshakeServing,
    Json,
    begin,
    check_level,
    subscription_meta,
)
from holdfast._core.server.request import SILENCE, Handler, ServerRequest
from holdfast._core.wire.codes import INVALID_PARAMS, INVALID_REQUEST, RequestError


def uri_of(request: ServerRequest) -> str:
    """Return the ``uri`` parameter of a request."""
    uri = request.get("uri")
    if not isinstance(uri, str):
        raise RequestError(INVALID_PARAMS, "uri must be a string")
    return uri


def not_found(request: ServerRequest, uri: str) -> RequestError:
    """Return the error for a resource that does not exist."""
    text = f"resource not found: {uri}"
    return RequestError(request.era.resource_not_found, text, {"uri": uri})


def initialize(request: ServerRequest) -> Json:
    """Begin a session of the handshake era."""
    server = request.session.server
    era = begin_session(request)
    return {**server.introduction(), **era.introduce(server.capabilities(), server.info)}


def begin_session(request: ServerRequest) -> HandshakeServing:
    """Return the session that ``initialize`` begins, which may be done once."""
    if request.session.era is not None:
        raise RequestError(INVALID_REQUEST, "already initialized")
    return begin(request.params, request.session.server.versions)


def discover(request: ServerRequest) -> Json:
    """Say what there is to a client of the stateless era."""
    server = request.session.server
    return {"supportedVersions": list(server.versions), **server.introduction()}


def set_level(request: ServerRequest) -> Json:
    """Set the level from which a session wants log messages."""
    request.era.log_level = check_level(request.get("level"), "level")
    return {}


def subscribe(request: ServerRequest) -> Json:
    """Send a session the updates of one resource from now on."""
    uri = uri_of(request)
    if not request.session.server.watchable(uri):
        raise not_found(request, uri)
    request.session.subscribed.add(uri)
    return {}


def unsubscribe(request: ServerRequest) -> Json:
    """End what `subscribe` began."""
    request.session.subscribed.discard(uri_of(request))
    return {}


def listen(request: ServerRequest) -> Any:
    """Open a stream of notifications; it is answered when the server ends it."""
    filters = request.get("notifications")
    if not isinstance(filters, dict):
        raise RequestError(INVALID_PARAMS, "notifications must be an object")
    assert request.id is not None
    agreed = request.session.server.grant(filters)
    # Basic: Subscriptions: the acknowledgement comes before anything else on the stream.
    params = {"notifications": agreed, **subscription_meta(request.id)}
    request.notify("notifications/subscriptions/acknowledged", params)
    request.session.streams[request.id] = agreed
    return SILENCE


LIFECYCLE: Final[dict[str, Handler]] = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": lambda request: {},
    "logging/setLevel": set_level,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "subscriptions/listen": listen,
}
