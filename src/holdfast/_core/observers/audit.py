"""A record of every tool call: who, what, when, how long, how it ended. Secrets are redacted.

Records go to the log ``holdfast.audit`` at INFO, and to the callback of `Observability(audit=…)`.
Unless one of them is asked for, no record is made.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from holdfast._core.observers.observer import (
    TOOL_CALL,
    ObservedCall,
    Observer,
    Post,
    faults_of,
    reason,
    safely,
)
from holdfast._core.redact.redactor import Redactor
from holdfast.errors import HoldfastError
from holdfast.policies import Policy

audit_log: logging.Logger = logging.getLogger("holdfast.audit")

LONGEST: Final = 500
"""Characters of an error that are recorded."""


class AuditRecord(Struct, frozen=True, kw_only=True):
    """One call of a tool.

    ``outcome`` is ``"ok"``, ``"tool_error"`` (the tool ran and failed), ``"cancelled"``, or
    the kind of the error; ``outcome_unknown`` says that it may have run all the same.
    """

    time: float
    """The start time, in seconds since the epoch."""
    who: str
    server: str
    tool: str
    arguments: Any
    outcome: str
    duration: float
    correlation_id: str
    error: str | None = None
    outcome_unknown: bool = False
    task_id: str | None = None
    """The task that the call became."""


class Audit(Observer):
    """Writes a record of every tool call of one client."""

    def __init__(self, server: str, policy: Policy, post: Post, who: str) -> None:
        self._server = server
        self._who = who
        audit = policy.observability.audit
        self._callback: Callable[[AuditRecord], Any] | None = None
        if callable(audit):
            later = inspect.iscoroutinefunction(audit)
            self._callback = partial(post if later else safely, audit)
        self._redactor = Redactor(policy.observability.redaction)

    def begin(self, call: ObservedCall) -> bool | None:
        return call.method == TOOL_CALL or None

    def end(self, call: ObservedCall, state: bool) -> None:
        outcome, text, unknown = "ok", None, False
        error, result = call.error, call.result
        if result is not None and result.is_error:
            outcome, text = "tool_error", self._short(result.text)
        elif isinstance(error, HoldfastError):
            outcome, unknown = error.kind, error.outcome_unknown
            text = faults_of(error) or self._short(error.message)
        elif error is not None:
            outcome, text = reason(error), type(error).__name__
            unknown = getattr(error.__cause__, "outcome_unknown", False)
        arguments = (call.params or {}).get("arguments")
        record = AuditRecord(
            time=call.time,
            who=self._who,
            server=self._server,
            tool=call.about,
            arguments=self._redactor.value(arguments, call.secret_names()),
            outcome=outcome,
            duration=call.duration,
            correlation_id=call.correlation_id,
            error=text,
            outcome_unknown=unknown,
            task_id=None if call.task is None else self._short(call.task.task_id),
        )
        if audit_log.isEnabledFor(logging.INFO):
            line = msgspec.json.encode(record).decode()
            audit_log.info("%s", line, extra={"audit": record})
        if self._callback is not None:
            self._callback(record)

    def _short(self, text: str) -> str:
        return self._redactor.beginning(text, LONGEST)
