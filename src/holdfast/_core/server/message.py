"""Messages of a client as they come in: the envelope is read, what is in it is left raw.

A relay passes parameters on without looking into them. So nothing but the envelope and ``_meta``
is decoded before a handler asks for more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.eras.serving import Json
from holdfast._core.wire.codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED, id_of_request, mend

Id: TypeAlias = float | str
EMPTY: Final = Raw(b"{}")


class ClientMessage(Struct, gc=False):
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
    def request_id(self) -> Id | None:
        """The id of a request; None if there is none that an answer could carry."""
        return self.id if is_id(self.id) else None

    def checked_fields(self) -> dict[str, Raw]:
        """Return the parameters by their names, as `fields` does; the method is checked later.

        Raises:
            RequestError: It is no JSON-RPC request.
        """
        if self.jsonrpc != "2.0":
            raise RequestError(INVALID_REQUEST, _NOT_A_MESSAGE)
        if not (type(self.id) is int or self.id is UNSET or is_id(self.id)):
            raise RequestError(INVALID_REQUEST, "id must be a string or a number")
        if not isinstance(self.method, str):
            raise RequestError(INVALID_REQUEST, "method must be a string")
        if self.params is UNSET:
            return {}
        try:
            return _fields_decoder.decode(self.params)
        except MALFORMED:
            self._drop_null(self.params)
            return {}

    def _drop_null(self, params: Raw) -> None:
        """Take parameters that are null for none: some languages write what is absent so."""
        if bytes(params) != b"null":
            raise RequestError(INVALID_PARAMS, "params must be an object")
        self.params = UNSET

    def fields(self) -> dict[str, Raw]:
        """Return the parameters by their names, each as it came."""
        return {} if self.params is UNSET else raw_fields(self.params)


def raw_fields(params: Raw) -> dict[str, Raw]:
    """Return the fields of parameters, each as it came; none if they cannot be read."""
    try:
        return _fields_decoder.decode(params)
    except MALFORMED:
        return {}


def meta_of(fields: dict[str, Raw]) -> Json:
    """Return the ``_meta`` among the fields of parameters; empty if there is none."""
    raw = fields.get("_meta")
    if raw is None:
        return {}
    try:
        meta = msgspec.json.decode(raw)
    except MALFORMED:
        return {}
    return meta if isinstance(meta, dict) else {}


_NOT_A_MESSAGE: Final = 'a message is an object with "jsonrpc": "2.0"'
_decoder = msgspec.json.Decoder(ClientMessage)
_batch_decoder = msgspec.json.Decoder(list[Raw])
_fields_decoder = msgspec.json.Decoder(dict[str, Raw])


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
        return [read_message(bytes(item)) for item in items] or [read_message(frame)]
    return [read_message(frame)]


def read_message(frame: bytes) -> ClientMessage | RequestError:
    """Return the only message of a frame, or the error to answer it with."""
    try:
        if not frame.isascii():
            # The decoder does not look at strings that stay raw.
            frame.decode()
        return _decoder.decode(frame)
    except msgspec.ValidationError:
        return _not_an_object(frame)
    except MALFORMED as error:
        return _read_mended(frame, error)


def _read_mended(frame: bytes, error: Exception) -> ClientMessage | RequestError:
    """Read what clients write that is nearly JSON, such as half of a character.

    The sender of a request that is refused without its id waits in vain.
    """
    mended = mend(frame)
    with suppress(*MALFORMED):
        if mended != frame:
            mended.decode()
            return _decoder.decode(mended)
    fault = _unreadable(error)
    fault.request_id = id_of_request(mended)
    return fault


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
    """Return whether a value can be the id of a request (MCP allows no null).

    The specification's text has integers, its schema any number, and some languages no other.
    """
    return type(value) in (int, str, float)
