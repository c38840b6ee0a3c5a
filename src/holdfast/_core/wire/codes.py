"""JSON-RPC error codes, and the exception that stands for an error response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""Revisions before 2026-07-28; later ones answer with ``INVALID_PARAMS``."""
RATE_LIMITED: Final = -32023
"""Draft SEP-3304: nothing has run; ``data.retryAfterMs`` says when to try again."""

UNENCODABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""Raised by encoders for values that JSON cannot hold."""


class CancelReason(str):
    """The words with which a peer cancels: the message of a `CancelledError`, to be passed on."""

    __slots__ = ()


def cancel_reason(cancelled: BaseException) -> str | None:
    """Return the words of the peer that cancelled; None: it was cancelled for another reason."""
    return next((str(word) for word in cancelled.args if isinstance(word, CancelReason)), None)


class RequestError(Exception):
    """A request that is answered with a JSON-RPC error.

    A handler of a server raises it to refuse a request; ``Peer.ask`` and ``ServerRequest.ask``
    raise it when the client refuses theirs.

    Args:
        code: The JSON-RPC error code.
        message: One sentence for people.
        data: Anything JSON can hold, for programs.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code: int = code
        self.message: str = message
        self.data: Any = data
        self.unusual: Mapping[str, Any] = {}
        """Fields that no revision knows, and data that is null."""
        self.request_id: int | str | None = None
        """The id of the request that is refused, where nothing but that could be read."""

    @property
    def fault(self) -> dict[str, Any]:
        """The error as it is sent."""
        data = {} if self.data is None else {"data": self.data}
        return {"code": self.code, "message": self.message, **data, **self.unusual}
