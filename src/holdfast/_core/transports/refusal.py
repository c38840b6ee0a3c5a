"""A request that was not answered with a message: why, and what may be done about it."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import Generation, Refused, WireId
from holdfast._core.wire.jsonrpc import ErrorObject, decode_error_object
from holdfast.errors import HoldfastError


class Refusal(Exception):  # noqa: N818  (a finding, reported by the link)
    """A request that was not answered with a message."""

    def __init__(
        self,
        error: HoldfastError,
        *,
        status: int | None = None,
        fault: ErrorObject | None = None,
        processed: bool = True,
        retry_after: float | None = None,
        broken: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = status
        self.fault = fault
        self.processed = processed
        self.retry_after = retry_after
        self.broken = broken
        """The connection failed; the server may be fine."""

    def report(self, generation: Generation, wire_id: WireId) -> Refused:
        return Refused(
            generation,
            wire_id,
            self.error,
            self.status,
            self.fault,
            self.processed,
            self.retry_after,
        )


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
