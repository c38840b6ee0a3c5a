"""Reading an HTTP error: the JSON-RPC error in its body, and when to retry."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from holdfast._core.wire.jsonrpc import ErrorObject, decode_error_object


class _ErrorBody(Struct):
    error: Raw


_error_body = msgspec.json.Decoder(_ErrorBody)


def fault_in(body: bytes) -> ErrorObject | None:
    """The JSON-RPC error in a body, if that is what it is."""
    try:
        fault = decode_error_object(_error_body.decode(body).error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fault if fault is not None and fault.code is not None else None


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds, said as such or as a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return 1.0
    return max(0.0, date.timestamp() - time.time())
