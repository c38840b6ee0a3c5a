"""What a caller of the service is told when a call of ours fails."""

from __future__ import annotations

import math
from typing import Any, Final

from starlette.responses import JSONResponse

import holdfast

STATUS: Final[tuple[tuple[type[holdfast.HoldfastError], int], ...]] = (
    (holdfast.ValidationError, 422),  # the caller's arguments do not fit; nothing was sent
    (holdfast.errors.ResourceNotFoundError, 404),
    (holdfast.ToolError, 409),  # the tool ran and says no
    (holdfast.RequestTimeout, 504),
    (holdfast.OutcomeUnknown, 504),  # begun before; nobody knows how it ended
    (holdfast.errors.ApprovalError, 403),  # nobody approved the call; nothing was sent
    (holdfast.errors.TrustError, 500),  # ours to mend: nobody approved this server
    (holdfast.AuthError, 500),  # ours to mend: our credentials
    (holdfast.StateError, 503),  # down for now; the error says for how long
    (holdfast.errors.BackpressureError, 503),
    (holdfast.errors.ShutdownError, 503),
    (holdfast.TransportError, 503),  # never reached it, or see `status_of`
    (holdfast.DriftError, 502),  # its tools are not those that were reviewed
    (holdfast.ProtocolError, 502),
    (holdfast.RpcError, 502),
)
"""The first that fits counts."""


def status_of(error: holdfast.HoldfastError) -> int:
    """503 says "try again". What may have run must not be tried again, so it is never 503."""
    found = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    return 502 if found == 503 and error.outcome_unknown else found


def body_of(error: holdfast.HoldfastError) -> dict[str, Any]:
    return {
        "error": error.kind,
        "message": error.message,
        "outcome_unknown": error.outcome_unknown,
    }


def response(error: holdfast.HoldfastError, **more: Any) -> JSONResponse:
    status = status_of(error)
    headers = {}
    if status == 503:
        wait = getattr(error, "retry_in", None) or 0.0
        headers["Retry-After"] = str(max(1, math.ceil(wait)))
    return JSONResponse({**body_of(error), **more}, status_code=status, headers=headers)
