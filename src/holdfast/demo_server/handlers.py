"""What each method does. The tables at the foot say which era has which methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from . import prompts, tools
from .call import Call, check_level
from .eras import Era
from .resources import TEMPLATES
from .wire import INVALID_PARAMS, Json, RpcError

INSTRUCTIONS = (
    "A server to try MCP clients against. Every tool does what its description says; "
    "`crash` ends the server, `sleep` and `countdown` take the time they are given."
)


def capabilities(era: Era) -> Json:
    """What the server declares; only its resources ever change."""
    declared: Json = {
        "tools": {},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {},
        "logging": {},
    }
    if era.annotates:
        declared["completions"] = {}
    return declared


def discover(call: Call) -> Json:
    return {
        "supportedVersions": list(call.server.supported),
        "capabilities": capabilities(call.era),
        "instructions": INSTRUCTIONS,
    }


def ping(call: Call) -> Json:
    return {}


def list_tools(call: Call) -> Json:
    return _page(call, "tools", tools.listed(call.era))


def list_resources(call: Call) -> Json:
    return _page(call, "resources", call.server.shelf.listed())


def list_templates(call: Call) -> Json:
    return _page(call, "resourceTemplates", TEMPLATES)


def list_prompts(call: Call) -> Json:
    return _page(call, "prompts", prompts.PROMPTS)


def read_resource(call: Call) -> Json:
    uri = _uri(call)
    result = call.server.shelf.read(uri)
    if result is None:
        raise _not_found(call, uri)
    return result


def get_prompt(call: Call) -> Json:
    return prompts.get(call.params)


def complete(call: Call) -> Json:
    return prompts.complete(call.params, call.server.shelf.note_names)


def set_level(call: Call) -> Json:
    call.era.log_level = check_level(call.params.get("level"), "level")
    return {}


def subscribe(call: Call) -> Json:
    uri = _uri(call)
    if not call.server.shelf.knows(uri):
        raise _not_found(call, uri)
    call.server.subscriptions.subscribe(uri)
    return {}


def unsubscribe(call: Call) -> Json:
    call.server.subscriptions.unsubscribe(_uri(call))
    return {}


def listen(call: Call) -> None:
    """Opens a stream of notifications; there is no answer until the server ends it."""
    wanted = call.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "notifications must be an object")
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise RpcError(INVALID_PARAMS, "resourceSubscriptions must be an array of strings")
    agreed: Json = {}
    if wanted.get("resourcesListChanged") is True:
        agreed["resourcesListChanged"] = True
    if uris:
        agreed["resourceSubscriptions"] = [uri for uri in uris if call.server.shelf.knows(uri)]
    call.server.subscriptions.open_stream(call.id, agreed)


def _page(call: Call, key: str, items: list[Json]) -> Json:
    """A part of a list, from the cursor on, and the cursor of the next part."""
    start = _position(call.params.get("cursor"), len(items))
    end = start + (call.server.page_size or len(items))
    result: Json = {key: items[start:end]}
    if end < len(items):
        result["nextCursor"] = f"from-{end}"
    return result


def _position(cursor: Any, length: int) -> int:
    if cursor is None:
        return 0
    for position in range(1, length):
        if cursor == f"from-{position}":
            return position
    raise RpcError(INVALID_PARAMS, f"unknown cursor: {cursor!r}")


def _uri(call: Call) -> str:
    uri = call.params.get("uri")
    if not isinstance(uri, str):
        raise RpcError(INVALID_PARAMS, "uri must be a string")
    return uri


def _not_found(call: Call, uri: str) -> RpcError:
    return RpcError(call.era.resource_not_found, f"resource not found: {uri}", {"uri": uri})


Handler: TypeAlias = Callable[[Call], Json | None]

_IN_BOTH: dict[str, Handler] = {
    "tools/list": list_tools,
    "tools/call": tools.call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
}

HANDSHAKE_METHODS: dict[str, Handler] = {
    **_IN_BOTH,
    "ping": ping,
    "logging/setLevel": set_level,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
}

STATELESS_METHODS: dict[str, Handler] = {
    **_IN_BOTH,
    "server/discover": discover,
    "subscriptions/listen": listen,
}

# What may take time; the rest is answered at once, in the order in which it came.
IN_A_THREAD = {"tools/call"}
