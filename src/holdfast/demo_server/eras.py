"""What differs between the revisions of the protocol.

`Handshake` is a session: it begins with `initialize` and lasts as long as the process.
`Stateless` is made anew for each request, from that request's `_meta`.
Both answer the same questions, so no tool or resource knows which one it serves.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, TypeAlias

from .call import Call, CancelledError, InputRequiredError, ToolError, check_level
from .wire import INVALID_PARAMS, Json, RpcError

STATELESS = ("2026-07-28",)
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
SUPPORTED = {"both": STATELESS + HANDSHAKE, "stateless": STATELESS, "handshake": HANDSHAKE}

MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
OLD_RESOURCE_NOT_FOUND = -32002

_META = "io.modelcontextprotocol/"
VERSION_KEY = _META + "protocolVersion"
CAPABILITIES_KEY = _META + "clientCapabilities"
LOG_LEVEL_KEY = _META + "logLevel"
SERVER_INFO_KEY = _META + "serverInfo"
SUBSCRIPTION_KEY = _META + "subscriptionId"

SERVER_INFO = {"name": "holdfast-demo", "version": "1.0.0"}

# What a client must have declared before it may be asked.
NEEDED: dict[str, Json] = {
    "elicitation/create": {"elicitation": {"form": {}}},
    "sampling/createMessage": {"sampling": {}},
    "roots/list": {"roots": {}},
}

# How long an answer stays fresh: what is fixed in the code for a minute, what notes change not at
# all. `resources/read` says it for itself.
_FIXED = {"ttlMs": 60_000, "cacheScope": "public"}
_CHANGING = {"ttlMs": 0, "cacheScope": "private"}
CACHE_HINTS: dict[str, Json] = {
    "server/discover": _FIXED,
    "tools/list": _FIXED,
    "prompts/list": _FIXED,
    "resources/templates/list": _FIXED,
    "resources/list": _CHANGING,
}


class Handshake:
    """A session of 2025-11-25 or earlier."""

    resource_not_found = OLD_RESOURCE_NOT_FOUND

    def __init__(self, version: str, capabilities: Json) -> None:
        self.version = version
        self.capabilities = capabilities
        self.log_level: str | None = "warning"
        self.annotates: bool = (
            version >= "2025-03-26"
        )  # tool annotations, progress messages, completions
        self.structures: bool = (
            version >= "2025-06-18"
        )  # output schemas, structured results, elicitation
        self.batches: bool = version == "2025-03-26"  # the only revision with JSON-RPC batches

    def finish(self, method: str, result: Json) -> Json:
        """The result as this revision has it."""
        if method == "tools/call" and not self.structures:
            result.pop("structuredContent", None)
        if method == "resources/read":
            del result["ttlMs"], result["cacheScope"]
        return result

    def ask(self, call: Call, key: str, method: str, params: Json) -> Json:
        """Sends the client a request and waits for its answer."""
        if not _offers(self.capabilities, method) or self._too_old_for(method):
            raise ToolError(f"this client does not offer {method}")
        question = call.server.questions.put(method, params, call.inbox)
        try:
            answer = call.wait_for_answer()
        except CancelledError:
            call.server.questions.withdraw(question)
            raise
        if "error" in answer:
            raise ToolError(f"the client refused {method}: {_message_of(answer['error'])}")
        return _object(answer.get("result"), f"the result of {method}")

    def _too_old_for(self, method: str) -> bool:
        return method == "elicitation/create" and not self.structures


class Stateless:
    """One request of 2026-07-28: all there is to know about the client came with it."""

    resource_not_found = INVALID_PARAMS
    annotates = True
    structures = True

    def __init__(self, meta: Json, supported: tuple[str, ...]) -> None:
        _check_version(meta, supported)
        self.capabilities: Json = _object(
            meta.get(CAPABILITIES_KEY), f"params._meta {CAPABILITIES_KEY}"
        )
        level = meta.get(LOG_LEVEL_KEY)
        self.log_level: str | None = None if level is None else check_level(level, LOG_LEVEL_KEY)

    def finish(self, method: str, result: Json) -> Json:
        """The result with its type, the server's name and, where it may be kept, for how long."""
        meta = {SERVER_INFO_KEY: SERVER_INFO, **result.get("_meta", {})}
        hints = CACHE_HINTS.get(method, {})
        return {"resultType": "complete", **result, **hints, "_meta": meta}

    def ask(self, call: Call, key: str, method: str, params: Json) -> Json:
        """Takes the answer that the request brought; without one, answers it with the question."""
        if not _offers(self.capabilities, method):
            needed = {"requiredCapabilities": NEEDED[method]}
            raise RpcError(MISSING_CAPABILITY, f"the client does not offer {method}", needed)
        state = _state_for(call.params)
        answers = _object(call.params.get("inputResponses", {}), "inputResponses")
        if key not in answers:
            raise InputRequiredError({key: {"method": method, "params": params}}, state)
        if call.params.get("requestState") != state:
            raise RpcError(INVALID_PARAMS, "requestState is not the one given out for this request")
        return _object(answers[key], f"inputResponses[{key!r}]")


Era: TypeAlias = Handshake | Stateless


def looks_stateless(meta: Json) -> bool:
    """Whether a request speaks the stateless era, be it incompletely."""
    return VERSION_KEY in meta or CAPABILITIES_KEY in meta


def unsupported(requested: str, supported: tuple[str, ...]) -> RpcError:
    """The error for a version that is not spoken here."""
    data = {"supported": list(supported), "requested": requested}
    text = f"unsupported protocol version {requested}; supported: {', '.join(supported)}"
    return RpcError(UNSUPPORTED_VERSION, text, data)


def _check_version(meta: Json, supported: tuple[str, ...]) -> None:
    version = meta.get(VERSION_KEY)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"params._meta {VERSION_KEY} must be a string")
    if version in STATELESS:
        return
    # A version that begins with `initialize` cannot be had per request: do not offer it again.
    raise unsupported(version, STATELESS if version in HANDSHAKE else supported)


def _offers(capabilities: Json, method: str) -> bool:
    if method == "elicitation/create":
        elicitation = capabilities.get("elicitation")
        # An empty object is the older way to declare forms.
        return isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)
    return all(name in capabilities for name in NEEDED[method])


def _state_for(params: Json) -> str:
    """A state that fits this tool and these arguments alone.

    It carries no secret and needs no signature: a client that forges it gets a refusal or what it
    could have had by asking again. It holds after a restart, as nothing of it is kept here.
    """
    asked = json.dumps([params.get("name"), params.get("arguments")], sort_keys=True)
    return f"{params.get('name')}-{zlib.crc32(asked.encode()):08x}"


def _object(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"{where} must be an object")
    return value


def _message_of(error: Any) -> str:
    return str(error.get("message")) if isinstance(error, dict) else str(error)
