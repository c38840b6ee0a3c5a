"""How the call of one row ended."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.errors import HoldfastError, RpcError, StateError, TransportError
from holdfast.types.tools import ToolResult

Ending = Literal["ok", "error", "unknown"]

BUSY: Final = "busy"
RETRYABLE: Final = ("transport", BUSY, "timeout")
"""What a row may be tried again after, if nothing of it has run."""
NO_REASON: Final = "The tool failed and gave no reason."
_BUSY_STATUS: Final = (429, 503)
_BUSY_CODE: Final = -32023


class RowOutcome(Struct, frozen=True, gc=False):
    """How the call of one row ended.

    Attributes:
        row: The number of the row, from 0.
        outcome: ``"ok"``; ``"error"``: the tool failed, or the call did and has not run;
            ``"unknown"``: it may have run, and no answer came.
        result: The structured result, else the text; only if it is ok.
        error: ``kind`` and ``message``, and ``code`` where there is one; unless it is ok.
        attempts: How often it was tried; 0 if the row could not even be read.
        ms: Milliseconds from the first attempt to the outcome.
    """

    row: int
    outcome: Ending
    result: Any = UNSET
    error: dict[str, Any] | UnsetType = UNSET
    attempts: int = 1
    ms: float = 0.0

    @property
    def ok(self) -> bool:
        """True if there is a result."""
        return self.outcome == "ok"

    def line(self) -> bytes:
        """Return it as one line of JSON."""
        return _encoder.encode(self) + b"\n"


def of_result(row: int, result: ToolResult, attempts: int, ms: float) -> RowOutcome:
    """Return the outcome of a call that the server answered."""
    if result.is_error:
        from holdfast._core.redact.redactor import redact_text

        message = redact_text(result.text) or NO_REASON
        error = {"kind": "tool", "message": message}
        return RowOutcome(row, "error", UNSET, error, attempts, ms)
    content = result.structured_content
    value = result.text if content is UNSET else content
    return RowOutcome(row, "ok", value, UNSET, attempts, ms)


def of_error(row: int, error: BaseException, attempts: int, ms: float) -> RowOutcome:
    """Return the outcome of a call that failed; what is secret in its arguments is hidden."""
    facts: dict[str, Any] = {"kind": kind_of(error), "message": str(error) or repr(error)}
    unknown = False
    if isinstance(error, HoldfastError):
        facts["message"] = error.redacted
        unknown = error.outcome_unknown
        if error.code is not None:
            facts["code"] = error.code
        if error.task_id is not None:
            facts["task_id"] = error.task_id
    return RowOutcome(row, "unknown" if unknown else "error", UNSET, facts, attempts, ms)


def kind_of(error: BaseException) -> str:
    """Return the kind of an error; ``internal`` for one that is not Holdfast's."""
    return error.kind if isinstance(error, HoldfastError) else "internal"


def retry_class(error: BaseException) -> str | None:
    """Return what an error counts as where rows are tried again; None: never again.

    A call that may have run is never repeated here, whatever became of it.
    """
    if not isinstance(error, HoldfastError) or error.outcome_unknown:
        return None
    if error.kind == "backpressure" or (
        error.code == _BUSY_CODE
        if isinstance(error, RpcError)
        else isinstance(error, TransportError) and error.code in _BUSY_STATUS
    ):
        return BUSY
    if isinstance(error, StateError):
        return "transport" if error.retry_in is not None else None
    return error.kind if error.kind in RETRYABLE else None


_encoder: Final = msgspec.json.Encoder(enc_hook=repr)
