"""A record of every tool call: who, what, when, how long, how it ended. Secrets are redacted.

Records go to the log ``holdfast.audit`` at INFO, and to the callback of `Observability(audit=…)`.
While neither is wanted, none is made.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from holdfast._core.observers.observer import correlation_id, reason
from holdfast.errors import HoldfastError
from holdfast.policies import Policy
from holdfast.schema.explain import SchemaFault
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.redact import Redactor

audit_log: logging.Logger = logging.getLogger("holdfast.audit")
log: logging.Logger = logging.getLogger("holdfast")

LONGEST: Final = 500
"""Characters of an error that are kept."""


class AuditRecord(Struct, frozen=True, kw_only=True):
    """One call of a tool.

    ``outcome`` is ``"ok"``, ``"tool_error"`` (the tool ran and failed), ``"cancelled"``, or
    the kind of the error; ``outcome_unknown`` says that it may have run all the same.
    """

    time: float
    """When it began, in seconds since the epoch."""
    who: str
    server: str
    tool: str
    arguments: Any
    outcome: str
    duration: float
    correlation_id: str
    error: str | None = None
    outcome_unknown: bool = False


class Auditor:
    """Writes down the calls of one client."""

    def __init__(self, server: str, policy: Policy) -> None:
        self._server = server
        self._who = policy.identity.name
        self._callback = policy.observability.audit
        self._policy = policy.observability.redaction
        self.post: Callable[[Callable[[Any], Any], Any], None] | None = None
        """How an async callback is reached."""

    @cached_property
    def redactor(self) -> Redactor:
        from holdfast._core.redact import Redactor

        return Redactor(self._policy)

    def wanted(self) -> bool:
        return self._callback is not None or audit_log.isEnabledFor(logging.INFO)

    async def watch(
        self,
        tool: str,
        arguments: Any,
        schema: Callable[[], Any],
        work: Callable[[str], Awaitable[ToolResult]],
    ) -> ToolResult:
        """Run a call under a correlation id, and write down how it ended."""
        correlation = correlation_id()
        began, clock = time.time(), time.perf_counter()
        ending: dict[str, Any] = {"outcome": "ok"}
        try:
            result = await work(correlation)
            if result.is_error:
                ending = {"outcome": "tool_error", "error": self._short(result.text)}
            return result
        except BaseException as error:
            ending = self._ending(error)
            raise
        finally:
            record = AuditRecord(
                time=began,
                who=self._who,
                server=self._server,
                tool=tool,
                arguments=self.redactor.value(arguments, schema()),
                duration=time.perf_counter() - clock,
                correlation_id=correlation,
                **ending,
            )
            self._write(record)

    def _ending(self, error: BaseException) -> dict[str, Any]:
        if not isinstance(error, HoldfastError):
            return {"outcome": reason(error), "error": type(error).__name__}
        unknown = error.outcome_unknown
        return {"outcome": error.kind, "error": self._told(error), "outcome_unknown": unknown}

    def _told(self, error: HoldfastError) -> str:
        """What went wrong; of arguments that do not fit only where, because it shows them."""
        misfits = error.data if isinstance(error.data, tuple) else ()
        if misfits and all(isinstance(one, SchemaFault) for one in misfits):
            return "; ".join(f"{one.path or '/'}: {one.keyword}" for one in misfits)
        return self._short(error.message)

    def _short(self, text: str) -> str:
        text = self.redactor.text(text)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    def _write(self, record: AuditRecord) -> None:
        if audit_log.isEnabledFor(logging.INFO):
            line = msgspec.json.encode(record).decode()
            audit_log.info("%s", line, extra={"audit": record})
        if self._callback is None:
            return
        if inspect.iscoroutinefunction(self._callback):
            if self.post is not None:
                self.post(self._callback, record)
            return
        try:
            self._callback(record)
        except Exception:
            log.exception("%s: the audit callback failed", self._server)
