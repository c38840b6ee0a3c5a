"""The questions that the server side asks of a protocol revision.

`HandshakeServing` lasts from ``initialize`` to the end of the connection; `StatelessServing`
is made for each request, from that request's ``_meta``. A difference between revisions is
another question here, never a comparison elsewhere.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from holdfast._core.eras.revisions import (
    BATCHING,
    CLIENT_CAPABILITIES,
    CORE_TASKS,
    HANDSHAKE,
    LOG_LEVEL,
    MISSING_CAPABILITY,
    PROTOCOL_VERSION,
    SERVER_INFO,
    STATELESS,
    SUBSCRIPTION,
    TASKS,
    UNSUPPORTED_VERSION,
    VERSIONS,
)
from holdfast._core.wire.codes import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    RequestError,
)

Json: TypeAlias = dict[str, Any]

POLL: Final = 50
"""Milliseconds between the polls of a task."""
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

NEEDED: Final[dict[str, Json]] = {
    "elicitation/create": {"elicitation": {"form": {}}},
    "sampling/createMessage": {"sampling": {}},
    "roots/list": {"roots": {}},
}
"""The capabilities that a client must have declared before it may be asked."""

_HANDSHAKE_ONLY: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "tasks/result", "tasks/list"}
    | {"resources/subscribe", "resources/unsubscribe"}
)
_STATELESS_VERSIONS: Final = frozenset(STATELESS)
_STATELESS_ONLY: Final = frozenset({"server/discover", "subscriptions/listen", "tasks/update"})

_ADDED: Final[dict[str, dict[str, str]]] = {
    "tools/list": {
        "annotations": "2025-03-26",
        "title": "2025-06-18",
        "outputSchema": "2025-06-18",
        "execution": CORE_TASKS,
    },
    "tools/call": {"structuredContent": "2025-06-18"},
    "initialize": {"completions": "2025-03-26", "tasks": CORE_TASKS},
    "notifications/progress": {"message": "2025-03-26"},
    "elicitation/create": {"": "2025-06-18"},
}
"""Fields by method, with the revision that introduced them (the changelog of each revision)."""

_CACHEABLE: Final = ("/list", "/discover", "/read", "skills/get")
"""Ends of the methods whose results must have cache hints (2026-07-28 server/utilities/caching)."""
_UNCACHED: Final[Json] = {"ttlMs": 0, "cacheScope": "private"}

STATELESS_FIELDS: Final = ("resultType", "ttlMs", "cacheScope")
"""Fields of results that only the stateless era has."""

_STREAMED: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
"""Change notifications, and the field of a ``subscriptions/listen`` filter that asks for them."""


class ClientRefused(RequestError):  # noqa: N818
    """The client does not offer what a tool asked it for, or refused (handshake era)."""


class HandshakeServing:
    """A session of 2025-11-25 or earlier."""

    resource_not_found = RESOURCE_NOT_FOUND
    asks = True
    """Questions are requests to the client, not results."""
    absent = _STATELESS_ONLY
    """Methods that do not exist in this era."""

    def __init__(self, version: Any = None, capabilities: Any = None) -> None:
        self.version: str = version if version in HANDSHAKE else HANDSHAKE[0]
        self.capabilities: Json = capabilities if isinstance(capabilities, dict) else {}
        self.log_level: str | None = "warning"
        self.batches: bool = self.version == BATCHING

    def __repr__(self) -> str:
        return f"<HandshakeServing {self.version}>"

    def knows(self, method: str, field: str = "") -> bool:
        """Return whether this revision has a field of a method, or the method itself."""
        return self.version >= _ADDED.get(method, {}).get(field, "")

    def finish(self, method: str, result: Json, info: Json, hints: Json) -> Json:
        """Return the result without the fields that the revision does not have."""
        result = {key: value for key, value in result.items() if key not in STATELESS_FIELDS}
        if method == "tools/list" and isinstance(result.get("tools"), list):
            result["tools"] = [self._strip(method, tool) for tool in result["tools"]]
        return self._strip(method, result)  # type: ignore[no-any-return]

    def _strip(self, method: str, value: Any) -> Any:
        missing = [field for field in _ADDED.get(method, ()) if not self.knows(method, field)]
        if not missing or not isinstance(value, dict):
            return value
        return {key: part for key, part in value.items() if key not in missing}

    def introduce(self, capabilities: Json, info: Json) -> Json:
        """Return the version-dependent part of the answer to ``initialize``."""
        declared = self._strip("initialize", capabilities)
        return {"protocolVersion": self.version, "capabilities": declared, "serverInfo": info}

    def takes_task(self, params: Json) -> bool:
        """Return whether a call may be answered with a task."""
        return self.version == CORE_TASKS and isinstance(params.get("task"), dict)

    def require_tasks(self) -> None:
        """Raise unless the client may ask about tasks."""

    def created(self, task: Json) -> Json:
        """Return the answer to a call that became a task."""
        return {"task": task}

    def task(self, task: Json, fields: Json) -> Json:
        """Return a task as clients see it; ``fields`` come with its status."""
        return {**task, "ttl": None, "pollInterval": POLL}

    def require(self, method: str) -> None:
        """Raise unless the client can be asked for ``method``."""
        if not (_offers(self.capabilities, method) and self.knows(method)):
            raise ClientRefused(METHOD_NOT_FOUND, f"this client does not offer {method}")


class StatelessServing:
    """One request of 2026-07-28: ``_meta`` carries all there is to know about the client."""

    resource_not_found = INVALID_PARAMS
    asks = False
    absent = _HANDSHAKE_ONLY
    batches = False

    def __init__(self, meta: Json) -> None:
        self.version: str = str(meta.get(PROTOCOL_VERSION))
        self.capabilities: Json = meta.get(CLIENT_CAPABILITIES)  # type: ignore[assignment]
        self.log_level: str | None = meta.get(LOG_LEVEL)
        self.is_checked: bool = False
        """It is complete and served."""
        self._meta = meta

    def __repr__(self) -> str:
        return f"<StatelessServing {self.version}>"

    def check(self, supported: tuple[str, ...]) -> None:
        """Raise unless the request is complete and of a revision that is served."""
        version = self._meta.get(PROTOCOL_VERSION)
        if not isinstance(version, str):
            raise _invalid(f"params._meta {PROTOCOL_VERSION} must be a string")
        if version not in STATELESS or version not in supported:
            # A revision that begins with `initialize` cannot be used per request.
            usable = [
                revision
                for revision in supported
                if version not in HANDSHAKE or revision in STATELESS
            ]
            raise unsupported(version, usable)
        if not isinstance(self.capabilities, dict):
            raise _invalid(f"params._meta {CLIENT_CAPABILITIES} must be an object")
        if self.log_level is not None:
            check_level(self.log_level, LOG_LEVEL)
        self.is_checked = True

    def knows(self, method: str, field: str = "") -> bool:
        return True

    def finish(self, method: str, result: Json, info: Json, hints: Json) -> Json:
        """Return the result with its type, the server's name and cache hints."""
        fresh = {**_UNCACHED, **result} if method.endswith(_CACHEABLE) else {}
        finished = {"resultType": "complete", **result, **fresh, **hints}
        meta = finished.pop("_meta", {})
        named_meta = {SERVER_INFO: info, **meta} if isinstance(meta, dict) else meta
        return {**finished, "_meta": named_meta}

    def takes_task(self, params: Json) -> bool:
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and TASKS in extensions

    def require_tasks(self) -> None:
        # Tasks extension, Protocol Errors: those who do not declare it may not ask.
        if not self.takes_task({}):
            needed: Json = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise RequestError(MISSING_CAPABILITY, "the client does not declare tasks", needed)

    def created(self, task: Json) -> Json:
        return {**task, "resultType": "task"}

    def task(self, task: Json, fields: Json) -> Json:
        if "result" in fields:
            # Tasks extension, Task Execution Errors: exactly what the call would have returned.
            fields = {"result": {"resultType": "complete", **fields["result"]}}
        return {**task, **fields, "ttlMs": None, "pollIntervalMs": POLL}

    def require(self, method: str) -> None:
        if not _offers(self.capabilities, method):
            needed = {"requiredCapabilities": NEEDED.get(method, {})}
            raise RequestError(MISSING_CAPABILITY, f"the client does not offer {method}", needed)


ServingEra: TypeAlias = HandshakeServing | StatelessServing


def is_stateless(meta: Json, supported: Iterable[str]) -> bool:
    """Return whether a request claims the stateless era, complete or not, and it is served."""
    claimed = PROTOCOL_VERSION in meta or CLIENT_CAPABILITIES in meta
    return claimed and not _STATELESS_VERSIONS.isdisjoint(supported)


def known_version(sent: str | None) -> bool:
    """Return whether a version header is acceptable within a session; it may be left out."""
    return sent is None or sent in HANDSHAKE


def begin(params: Json, supported: tuple[str, ...]) -> HandshakeServing:
    """Return the session that an ``initialize`` request begins."""
    requested = params.get("protocolVersion")
    ours = [version for version in HANDSHAKE if version in supported]
    if not ours:
        # Clients of that era know no way forward: this message is all they can show.
        raise unsupported(str(requested), supported)
    for name, kind in (("protocolVersion", str), ("capabilities", dict), ("clientInfo", dict)):
        if not isinstance(params.get(name), kind):
            raise _invalid(f"{name} is missing or of the wrong type")
    version = requested if requested in ours else ours[0]
    return HandshakeServing(version, params["capabilities"])


def adopt(params: Json, result: Json) -> HandshakeServing:
    """Return the session of an ``initialize`` request and the result it was given."""
    return HandshakeServing(result.get("protocolVersion"), params.get("capabilities"))


def no_era(method: str, is_known: bool, supported: Iterable[str]) -> RequestError:
    """Return the error for a request that belongs to no session and has no ``_meta``."""
    stateless = any(version in STATELESS for version in supported)
    if not is_known or (method in _STATELESS_ONLY and not stateless):
        return RequestError(METHOD_NOT_FOUND, f"method not found: {method}")
    if not stateless:
        return RequestError(INVALID_REQUEST, f"{method} came before initialize")
    return _invalid(
        f"{method}: no initialize has succeeded, and params._meta lacks {PROTOCOL_VERSION}"
    )


def unsupported(requested: str, supported: Iterable[str]) -> RequestError:
    """Return the error for a revision that is not served."""
    listed = list(supported)
    text = f"unsupported protocol version {requested}; supported: {', '.join(listed)}"
    return RequestError(UNSUPPORTED_VERSION, text, {"supported": listed, "requested": requested})


def select(eras: str) -> tuple[str, ...]:
    """Return the revisions of ``handshake``, ``stateless`` or ``both``."""
    return {"handshake": HANDSHAKE, "stateless": STATELESS, "both": VERSIONS}[eras]


def check_level(level: Any, where: str) -> str:
    """Return a log level, or raise an error that names the field."""
    if not isinstance(level, str) or level not in LEVELS:
        raise _invalid(f"{where} must be one of {', '.join(LEVELS)}")
    return level


def grants(filters: Json, method: str, params: Json) -> bool:
    """Return whether a ``subscriptions/listen`` filter asks for a notification."""
    if method == "notifications/resources/updated":
        return params.get("uri") in filters.get("resourceSubscriptions", ())
    return filters.get(_STREAMED.get(method, "")) is True


def granted(filters: Json, capabilities: Json) -> Json:
    """Return the part of a filter that a server with these capabilities honours."""
    honoured: Json = {}
    for method, field in _STREAMED.items():
        section = capabilities.get(method.split("/")[1])
        if filters.get(field) is True and isinstance(section, dict) and section.get("listChanged"):
            honoured[field] = True
    uris = filters.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise _invalid("resourceSubscriptions must be an array of strings")
    if uris and capabilities.get("resources", {}).get("subscribe"):
        honoured["resourceSubscriptions"] = uris
    return honoured


def subscription_meta(stream: float | str, meta: Any = None) -> Json:
    """Return the ``_meta`` that ties a notification to its subscription, besides what it has."""
    return {"_meta": {**(meta if isinstance(meta, dict) else {}), SUBSCRIPTION: stream}}


def request_state(params: Json, answers: Json) -> str:
    """Return a ``requestState`` that fits this request alone, and carries the answers so far.

    It carries no secret and needs no signature: whoever forges it gets a refusal, or what they
    could have had by asking again. It survives a restart, because nothing of it is stored.
    """
    target = [params.get("name"), params.get("uri"), params.get("arguments")]
    target_json = json.dumps(target, sort_keys=True)
    mark = f"state-{zlib.crc32(target_json.encode('utf-8', 'surrogatepass')):08x}"
    return mark + json.dumps(answers) if answers else mark


def answers_before(params: Json) -> Json | None:
    """Return the answers that a ``requestState`` carries; None if it is of another request."""
    state, mark = params.get("requestState"), request_state(params, {})
    if not isinstance(state, str) or not state.startswith(mark):
        return None
    try:
        answers = json.loads(state[len(mark) :] or "{}")
    except (ValueError, RecursionError):
        return None
    return answers if isinstance(answers, dict) else None


def _invalid(text: str) -> RequestError:
    return RequestError(INVALID_PARAMS, text)


def _offers(capabilities: Json, method: str) -> bool:
    if method == "elicitation/create":
        elicitation = capabilities.get("elicitation")
        # Before 2025-11-25 an empty object was the way to declare forms.
        return isinstance(elicitation, dict) and (not elicitation or "form" in elicitation)
    return all(name in capabilities for name in NEEDED.get(method, ()))
