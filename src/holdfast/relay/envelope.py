"""What belongs to one hop of a message, and is made anew for the next: errors, `_meta`, eras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.eras.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PREFIX,
    PROTOCOL_VERSION,
)
from holdfast._core.eras.serving import Json
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import (
    HoldfastError,
    RequestTimeout,
    RpcError,
    ShutdownError,
    StateError,
    TransportError,
    ValidationError,
)
from holdfast.types.lifecycle import RELATED_TASK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast._core.eras.conversation import Facts

CONNECTION_LOST: Final = -32000
TIMED_OUT: Final = -32001
"""Codes that the official SDKs use for the same, in the range that JSON-RPC leaves to servers."""

fields_of: Final = msgspec.json.Decoder(dict[str, Raw])
"""Decodes an object whose values stay as they came."""
items_of: Final = msgspec.json.Decoder(list[Raw])


def fault_of(error: HoldfastError) -> RequestError:
    """Return the error to answer the host with: the server's as it came, or one of ours."""
    if isinstance(error, RpcError) and error.code is not None:
        # The server's own words, though there may be none.
        is_servers = "server_message" in vars(error)
        message = error.server_message if is_servers else error.message
        fault = RequestError(error.code, message, error.data)
        fault.unusual = error.unusual
        return fault
    data: Json = {"kind": error.kind, "outcomeUnknown": error.outcome_unknown}
    if isinstance(error, StateError) and error.retry_in is not None:
        data["retryIn"] = error.retry_in
    if error.task_id is not None:
        data["taskId"] = error.task_id
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), INTERNAL_ERROR)
    return RequestError(code, error.redacted, data)


def full(text: str) -> RequestError:
    """Return the error for what there is no room for: nothing was sent."""
    return RequestError(INTERNAL_ERROR, text, {"kind": "state", "outcomeUnknown": False})


def unsendable(text: str) -> RequestError:
    """Return the error for what cannot be written as JSON: nothing was sent."""
    return RequestError(INVALID_PARAMS, text, {"kind": "validation", "outcomeUnknown": False})


def broken(text: str) -> RequestError:
    """Return the error for an answer of the server that breaks the protocol."""
    return RequestError(INTERNAL_ERROR, text, {"kind": "protocol", "outcomeUnknown": True})


_CODES: Final[Mapping[type[HoldfastError], int]] = {
    TransportError: CONNECTION_LOST,
    ShutdownError: CONNECTION_LOST,
    StateError: CONNECTION_LOST,
    RequestTimeout: TIMED_OUT,
    ValidationError: INVALID_PARAMS,
}


@contextmanager
def answered_errors() -> Iterator[None]:
    """Raise errors of the client as what the host is answered with."""
    try:
        yield
    except HoldfastError as error:
        raise fault_of(error) from error


def is_of_hop(key: str) -> bool:
    """Return whether an entry of ``_meta`` describes the connection; a task is no part of it."""
    return key.startswith(PREFIX) and key != RELATED_TASK


def without_hop(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if not is_of_hop(key)}


def of_any_hop(message: Raw) -> Json:
    """Return the fields of an object as they came, without ``_meta`` of the server's connection.

    Raises:
        MALFORMED: It is no object.
    """
    fields: Json = dict(fields_of.decode(message))
    # Some servers write null for what is absent.
    with suppress(*MALFORMED):
        meta = without_hop(fields_of.decode(fields.pop("_meta", Raw(b"{}"))))
        if meta:
            fields["_meta"] = meta
    return fields


def of_other_era(result: Raw) -> Any:
    """Return a result whose own fields the host's era may add to or take from."""
    try:
        return of_any_hop(result)
    except MALFORMED:
        return result


_OF_HOP_ONLY: Final = frozenset(
    {PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, "progressToken"}
)
"""Entries of ``_meta`` that do not pass, and nearly always are the only ones."""


def passing_meta(request: ServerRequest) -> Json:
    """Return the entries of ``_meta`` that pass, as they came.

    Raises:
        MALFORMED: They cannot be read.
    """
    if request.meta.keys() <= _OF_HOP_ONLY:
        return {}
    meta = without_hop(fields_of.decode(request.fields["_meta"]))
    meta.pop("progressToken", None)
    return meta


def subject_of(fields: Mapping[str, Any]) -> str:
    """Return what a request is about, for messages.

    Raises:
        MALFORMED: It cannot be read.
    """
    for name in ("name", "uri", "taskId"):
        if name in fields:
            subject = _decode(fields[name])
            return subject if isinstance(subject, str) else ""
    return ""


_decode: Final = msgspec.json.Decoder().decode

_FACTS: Final = frozenset(
    {"protocolVersion", "supportedVersions", "serverInfo", "capabilities", "instructions"}
    | {"resultType", "ttlMs", "cacheScope", "_meta"}
)


def unknown_facts(answer: Raw) -> Json:
    """Return what a server says of itself and no revision knows, ``_meta`` of the hop left out."""
    try:
        fields = fields_of.decode(answer)
        meta = without_hop(fields_of.decode(fields.get("_meta", Raw(b"{}"))))
    except MALFORMED:
        return {}
    unknown: Json = {name: value for name, value in fields.items() if name not in _FACTS}
    return {**unknown, "_meta": meta} if meta else unknown


def introduction(facts: Facts, capabilities: Json | None) -> Json:
    """Return what a server says of itself; with other capabilities, where not all can be passed."""
    instructions = {} if facts.instructions is None else {"instructions": facts.instructions}
    shown = facts.capabilities if capabilities is None else capabilities
    return {"capabilities": shown, **instructions, **unknown_facts(facts.answer)}


_DECLARED: Final = frozenset({"elicitation", "sampling", "roots"})
"""What a host is asked for only if it has declared that. Of other methods nobody knows."""


def may_be_asked(method: str, capabilities: Json) -> bool:
    """Return whether a host with these capabilities may be asked something."""
    capability = method.partition("/")[0]
    return capability not in _DECLARED or capability in capabilities


def item_name(tool: Raw) -> str:
    name = msgspec.json.decode(fields_of.decode(tool).get("name", b'""'))
    return name if isinstance(name, str) else ""
