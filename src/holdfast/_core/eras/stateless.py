"""The stateless revisions, from 2026-07-28: every request carries what it needs in ``_meta``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.boundary import StreamOptions, WireId
from holdfast._core.eras import headers
from holdfast._core.eras.base import COMPLETE, FINAL, Invalid, NeedsInput, OutgoingRequest, Reading
from holdfast._core.eras.handshake import cancelled
from holdfast._core.eras.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    HEADER_MISMATCH,
    LOG_LEVEL,
    MISSING_CAPABILITY,
    PROTOCOL_VERSION,
    SUBSCRIPTION,
    UNSUPPORTED_VERSION,
)
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from holdfast._core.wire.jsonrpc import ErrorObject, Id

if TYPE_CHECKING:
    from holdfast._core.eras.tasks import TaskForm

_MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests that a server may answer with questions."""
_MODERN: Final = (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    METHOD_NOT_FOUND,
    INVALID_PARAMS,
    INTERNAL_ERROR,
)
"""The errors with which a server of this era refuses a request (schema, error codes)."""
_UNINITIALIZED: Final = (
    r"(?i)\b(not|never|before)\b[\w ]{0,20} initiali[sz]|\buninitiali[sz]ed"
    r"|\b(missing|no valid) session|\bmcp-session-id|^invalid request parameters$"
)
"""The words of servers of the handshake era for a request without a handshake."""
_LARGE: Final = 1024 * 1024
"""Bytes of a result that is not copied to search it."""
_KEY: Final = b'"resultType"'
_NEAR: Final = 64
"""Bytes behind a key in which its value begins."""


class Stateless:
    """Each request carries version, identity and capabilities.

    2026-07-28 basic/index, Statelessness.
    """

    may_ask = False
    withheld = frozenset(
        {"notifications/initialized", "notifications/roots/list_changed"}
        | {"notifications/progress", "notifications/tasks/status"}
    )
    batches = False
    listens = True
    param_headers = True
    session: str | None = None

    def __init__(self, version: str, info: dict[str, str], capabilities: dict[str, Any]) -> None:
        self.version = version
        self._meta = request_meta(version, info, capabilities)
        self._encode()

    def __repr__(self) -> str:
        return f"<Stateless {self.version}>"

    @property
    def declared(self) -> dict[str, Any]:
        """The capabilities that each request declares, unless it declares others."""
        capabilities: dict[str, Any] = self._meta[CLIENT_CAPABILITIES]
        return capabilities

    def greet(self) -> list[bytes]:
        return []

    def _encode(self) -> None:
        """Encode once what nearly every request carries."""
        encoded = jsonrpc.encode(self._meta)
        self._encoded = Raw(encoded)
        self._before_token = encoded[:-1] + b',"progressToken":'

    def stamp(
        self,
        params: dict[str, Any] | None,
        meta: dict[str, Any] | None = None,
        token: WireId | None = None,
        extensions: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        stamped: Any
        if extensions:
            progress = {} if token is None else {"progressToken": token}
            of_host = {} if meta is None else _of_host(meta)
            stamped = {**(meta or {}), **self._meta, **of_host, **progress}
            declared = _with_extensions(stamped[CLIENT_CAPABILITIES], extensions)
            stamped[CLIENT_CAPABILITIES] = declared
        elif meta is not None:
            progress = {} if token is None else {"progressToken": token}
            stamped = {**meta, **self._meta, **_of_host(meta), **progress}
        elif token is None:
            stamped = self._encoded
        else:
            stamped = Raw(b"%b%d}" % (self._before_token, token))
        return {"_meta": stamped} if params is None else {**params, "_meta": stamped}

    def tasks(self, capabilities: Raw) -> TaskForm | None:
        from holdfast._core.eras.tasks import extension_tasks

        return extension_tasks(capabilities)

    def read(self, method: str, result: Raw) -> Reading:
        # basic/index, ResultType: clients "MUST treat an absent resultType as complete"; any
        # unrecognized value "MUST be considered invalid".
        if _is_plainly_complete(result):
            return COMPLETE
        try:
            seen = _result.decode(result)
        except jsonrpc.MALFORMED as error:
            return Invalid(str(error))
        if seen.resultType in FINAL:
            return COMPLETE
        if seen.resultType != "input_required":
            return Invalid(f"result type {seen.resultType!r} is not one that we know")
        # basic/patterns/mrtr, Supported Requests and Server Requirements.
        if method not in _MAY_ASK:
            return Invalid(f"{method} must not be answered with input_required")
        if seen.inputRequests is UNSET and seen.requestState is UNSET:
            return Invalid("input_required with neither inputRequests nor requestState")
        requests = {} if seen.inputRequests is UNSET else seen.inputRequests
        state = None if seen.requestState is UNSET else seen.requestState
        return NeedsInput(requests, state)

    def options(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        param_headers: dict[str, str] | None = None,
    ) -> StreamOptions:
        return StreamOptions(
            {**headers.standard(self.version, method, params), **(param_headers or {})}
        )

    def cancel(self, wire_id: WireId, reason: str, *, streams: bool = False) -> bytes | None:
        # basic/patterns/cancellation, Transport-Specific Cancellation: closing the response
        # stream (HTTP), or notifications/cancelled (stdio).
        return None if streams else cancelled(wire_id, reason)

    def contradicted_by(self, fault: ErrorObject | None) -> bool:
        # 2026-07-28 basic/transports/streamable-http, Backward Compatibility: a 4xx without a
        # recognized modern error identifies a server of the handshake era.
        if fault is None or fault.code == UNSUPPORTED_VERSION:
            return True
        if fault.code in _MODERN:
            # Servers of the handshake era use the standard codes for a missing session, too.
            text = (fault.message or "").lower()
            return "session" in text or "initializ" in text
        return True

    def disowned_by(self, method: str, fault: ErrorObject) -> bool:
        # 2026-07-28 server/discover: "Servers MUST implement server/discover".
        if fault.code == METHOD_NOT_FOUND:
            return method in ("server/discover", "tools/call")
        text = fault.message or ""
        return fault.code == UNSUPPORTED_VERSION or re.search(_UNINITIALIZED, text) is not None

    def farewell(self) -> StreamOptions | None:
        return None

    def ping(self) -> OutgoingRequest:
        return OutgoingRequest("server/discover")

    def log_level(self, level: str) -> OutgoingRequest | None:
        # server/utilities/logging: the level travels in the _meta of each request.
        self._meta[LOG_LEVEL] = level
        self._encode()
        return None

    def watch(self, uri: str) -> OutgoingRequest:
        raise AssertionError("updates are asked for as a stream in this era")

    unwatch = watch

    def subscription(self, params: Raw) -> Id | None:
        try:
            return msgspec.json.decode(params, type=_Subscribed).meta.id
        except jsonrpc.MALFORMED:
            return None

    def listen(self, uris: Iterable[str], changes: Iterable[str]) -> OutgoingRequest:
        # basic/patterns/subscriptions, Notification Filter.
        notifications: dict[str, Any] = dict.fromkeys(changes, True)
        watched = sorted(uris)
        if watched:
            notifications["resourceSubscriptions"] = watched
        return OutgoingRequest("subscriptions/listen", {"notifications": notifications})


def _of_host(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the capabilities of the host that a relay makes this request for, if it says so."""
    return {key: meta[key] for key in (CLIENT_CAPABILITIES, LOG_LEVEL) if key in meta}


def _with_extensions(declared: Any, extensions: tuple[str, ...]) -> dict[str, Any]:
    """Return capabilities, those of a host as it sent them, with some extensions more."""
    capabilities = msgspec.json.decode(declared) if isinstance(declared, Raw) else declared
    before = capabilities.get("extensions")
    settings = before if isinstance(before, dict) else {}
    return {**capabilities, "extensions": {**{name: {} for name in extensions}, **settings}}


def _is_plainly_complete(result: Raw) -> bool:
    """Return True if searching shows it, which is many times faster than decoding.

    A key that is escaped, or there twice, in whatever depth, is left to the decoder. Where the only
    ``resultType`` is not that of the result, the result has none, and is complete as well.
    """
    text = bytes(result) if len(result) < _LARGE else b""
    if not text.startswith(b"{") or (b"\\" in text and b"\\u00" in text):
        return False
    if (count := text.count(_KEY)) != 1:
        return count == 0
    start = text.index(_KEY) + len(_KEY)
    value = text[start : start + _NEAR].lstrip()
    return value[:1] == b":" and value[1:].lstrip().startswith(b'"complete"')


def request_meta(
    version: str, info: dict[str, str], capabilities: dict[str, Any]
) -> dict[str, Any]:
    return {
        PROTOCOL_VERSION: version,
        CLIENT_INFO: info,
        CLIENT_CAPABILITIES: capabilities,
    }


class _Result(Struct):
    resultType: str | None = None  # noqa: N815
    inputRequests: dict[str, Raw] | UnsetType = UNSET  # noqa: N815
    requestState: Raw | UnsetType = UNSET  # noqa: N815


class _SubscriptionMeta(Struct):
    id: Id | None = msgspec.field(name=SUBSCRIPTION, default=None)


class _Subscribed(Struct):
    meta: _SubscriptionMeta = msgspec.field(name="_meta", default_factory=_SubscriptionMeta)


_result = msgspec.json.Decoder(_Result)
