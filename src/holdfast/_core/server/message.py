"""Messages of a client as they come in: the envelope is read, what is in it is left raw.

A relay passes parameters on without looking into them. So nothing but the envelope and ``_meta``
is decoded before a handler asks for more.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from holdfast._core.eras.serving import Json
from holdfast._core.wire.codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED

EMPTY: Final = Raw(b"{}")


class ClientMessage(Struct):
    """A request, notification or answer of the client, valid or not."""

    jsonrpc: Any = None
    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_answer(self) -> bool:
        """Return whether this answers a question of the server."""
        return self.method is UNSET and (self.result is not UNSET or self.error is not UNSET)

    @property
    def request_id(self) -> int | str | None:
        """The id of a request; None if there is none that an answer could carry."""
        return self.id if is_id(self.id) else None

    def check(self) -> None:
        """Raise `RequestError` for what is no JSON-RPC request; the method is checked later."""
        if self.jsonrpc != "2.0":
            raise RequestError(INVALID_REQUEST, _NOT_A_MESSAGE)
        if self.id is not UNSET and not is_id(self.id):
            raise RequestError(INVALID_REQUEST, "id must be a string or an integer")
        if not isinstance(self.method, str):
            raise RequestError(INVALID_REQUEST, "method must be a string")
        if self.params is not UNSET and not bytes(self.params).lstrip().startswith(b"{"):
            raise RequestError(INVALID_PARAMS, "params must be an object")

    def meta(self) -> Json:
        """Return the ``_meta`` of the parameters; empty if there is none."""
        try:
            meta = _meta_decoder.decode(EMPTY if self.params is UNSET else self.params).meta
        except MALFORMED:
            return {}
        return meta if isinstance(meta, dict) else {}


class _WithMeta(Struct):
    meta: Any = field(default=None, name="_meta")


_NOT_A_MESSAGE: Final = 'a message is an object with "jsonrpc": "2.0"'
_decoder = msgspec.json.Decoder(ClientMessage)
_batch_decoder = msgspec.json.Decoder(list[Raw])
_meta_decoder = msgspec.json.Decoder(_WithMeta)


def read(frame: bytes, *, batches: bool = False) -> list[ClientMessage | RequestError]:
    """Return the messages of a frame: one, or those of a batch where the revision has them.

    What cannot be read is the error to answer it with: JSON-RPC 2.0, section 5.1.
    """
    if batches and frame.lstrip().startswith(b"["):
        try:
            items = _batch_decoder.decode(frame)
        except MALFORMED as error:
            return [_unreadable(error)]
        # An empty batch is an invalid request (section 6); one inside another is, too.
        return [_read(bytes(item)) for item in items] or [_read(frame)]
    return [_read(frame)]


def _read(frame: bytes) -> ClientMessage | RequestError:
    try:
        if not frame.isascii():
            # The decoder does not look at strings that stay raw.
            frame.decode()
        return _decoder.decode(frame)
    except msgspec.ValidationError:
        return _not_an_object(frame)
    except MALFORMED as error:
        return _unreadable(error)


def _not_an_object(frame: bytes) -> RequestError:
    try:
        msgspec.json.decode(frame)
    except MALFORMED as error:
        return _unreadable(error)
    return RequestError(INVALID_REQUEST, _NOT_A_MESSAGE)


def _unreadable(error: Exception) -> RequestError:
    return RequestError(PARSE_ERROR, f"not JSON: {error}")


def decode(raw: Raw) -> Any:
    """Decode a part of a message; raise `RequestError` for what only its envelope could hide."""
    try:
        return msgspec.json.decode(raw)
    except MALFORMED as error:
        raise _unreadable(error) from None


def is_id(value: Any) -> bool:
    """Return whether a value can be the id of a request (MCP allows no null)."""
    return isinstance(value, str | int) and not isinstance(value, bool)
