"""The call log: every tool call in two lines that can be pasted back as calls.

    {"name":"session.open","arguments":{"sessionName":"a"},"_phase":"before","_seq":1}
    {"name":"session.open","arguments":{"sessionName":"a"},"_phase":"after",
     "_result":{"opened":true},"_ok":true,"_ms":84,"_seq":1}          (one line, in the log)

It goes to a file, a stream or a function, and can neither fail a call nor hold it up.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

from msgspec import UNSET

from holdfast._core.boundary import Moved
from holdfast._core.observers.observer import TOOL_CALL, End, ObservedCall
from holdfast.calllog.results import (
    Shown,
    before_line,
    call_head,
    compact,
    failure_line,
    redacted_text,
    redacted_whole,
    show,
    success_line,
    task_field,
)
from holdfast.calllog.sinks import FOLDER, FileSink, Guarded, Sidecars, sink_for
from holdfast.errors import HoldfastError, ValidationError
from holdfast.policies import Redaction
from holdfast.schema.explain import SchemaFault
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.redact import Redactor

log: logging.Logger = logging.getLogger("holdfast")

LONGEST_ERROR: Final = 500
"""Characters of an error that are written."""

To: TypeAlias = "str | os.PathLike[str] | TextIO | Callable[[str], Any]"


class CallLog:
    """Writes the calls of one client, or of several, to one place.

    Args:
        to: A file, a stream, or a function that takes each line.
        threshold: The number of characters from which a result is only summarised.
        sidecars: Where such results are written whole: True for the folder ``.mcp-log``, or a
            folder; beside the log if that is a file, otherwise in the current folder.
        max_sidecar_bytes: Most bytes in that folder; the oldest files are deleted.
        max_sidecars: Most files in that folder.
        redaction: What is redacted.
    """

    def __init__(
        self,
        to: To,
        *,
        threshold: int = 200,
        sidecars: bool | str | os.PathLike[str] | None = None,
        max_sidecar_bytes: int = 256 * 1024 * 1024,
        max_sidecars: int = 1000,
        redaction: Redaction | None = None,
    ) -> None:
        if threshold < 0:
            raise ValidationError(f"CallLog(threshold={threshold!r}): must be at least 0")
        sink = sink_for(to)
        self._sink = Guarded(sink)
        self._threshold = threshold
        self._redaction = Redaction() if redaction is None else redaction
        self._numbers = itertools.count(1)
        self._sidecars: Sidecars | None = None
        if sidecars is not None and sidecars is not False:
            shown = FOLDER if sidecars is True else os.fspath(sidecars)
            base = os.path.dirname(sink.path) if isinstance(sink, FileSink) else os.getcwd()
            folder = os.path.join(base, shown)
            self._sidecars = Sidecars(shown, folder, max_sidecar_bytes, max_sidecars)

    def __repr__(self) -> str:
        lost = f" {self.lost} lines lost" if self.lost else ""
        return f"<CallLog to {self._sink.sink.label}{lost}>"

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._sink.lost

    @cached_property
    def _redactor(self) -> Redactor:
        from holdfast._core.redact import Redactor

        return Redactor(self._redaction)

    def flush(self) -> None:
        """Wait until the sidecars of all calls that have ended are written."""
        if self._sidecars is not None:
            self._sidecars.close()

    def close(self) -> None:
        """Finish writing and close the file; a later call opens it again."""
        self.flush()
        self._sink.close()

    # One call

    def begin(self, call: ObservedCall) -> End | None:
        """Write the line before a tool call; return what writes the line after it."""
        if call.method != TOOL_CALL:
            return None
        seq = next(self._numbers)
        return partial(self._end, call, self._before(call, seq), seq)

    def moved(self, moved: Moved) -> None:
        """Ignore changes of state: the log is of calls alone."""

    def _end(self, call: ObservedCall, head: bytes, seq: int) -> None:
        ending = call.result if call.error is None else call.error
        assert ending is not None
        task = task_field(call.task, call.error is None, self._redactor)
        self._after(head, call.about, (round(call.duration * 1000), seq, task), ending)

    def _before(self, call: ObservedCall, seq: int) -> bytes:
        name, arguments = call.about, (call.params or {}).get("arguments")
        try:
            given = self._redactor.value(arguments, call.secret_names())
            head = call_head(name, given if isinstance(given, Mapping) else {})
        except Exception:
            log.exception("the call log: the arguments of %r cannot be shown", name)
            head = call_head(name, {})
        self._sink.write(before_line(head, seq))
        return head

    def _after(
        self,
        head: bytes,
        name: str,
        tail: tuple[int, int, bytes],
        ending: ToolResult | BaseException,
    ) -> None:
        try:
            error = self._error(name, ending)
            if isinstance(ending, BaseException) or error is not None:
                line = failure_line(head, error or "", *tail)
            else:
                line = success_line(head, self._result(name, tail[1], ending), *tail)
        except Exception:
            log.exception("the call log: the outcome of %r cannot be shown", name)
            ok = isinstance(ending, ToolResult) and not ending.is_error
            line = success_line(head, None, *tail) if ok else failure_line(head, "", *tail)
        self._sink.write(line)

    # What came of it

    def _result(self, name: str, seq: int, result: ToolResult) -> bytes | None:
        shown = show(result, self._redactor, self._threshold)
        if shown.long:
            return compact(shown.summary(self._keep(name, seq, shown)))
        return None if shown.value is UNSET else compact(shown.value)

    def _keep(self, name: str, seq: int, shown: Shown) -> str | None:
        if self._sidecars is None:
            return None
        redactor, text, whole = self._redactor, shown.text, shown.whole

        def make() -> str:
            if text is not None:
                return redacted_text(text, redactor)
            return compact(redacted_whole(whole, redactor)).decode()

        ending = ".json" if text is None else ".txt"
        return self._sidecars.keep(seq, name, ending, shown.size, make)

    def _error(self, name: str, ending: ToolResult | BaseException) -> str | None:
        """Return a short reason for the failure; None for a success."""
        if isinstance(ending, ToolResult):
            if not ending.is_error:
                return None
            return self._short(ending.text) or "The tool failed and gave no reason."
        if isinstance(ending, HoldfastError):
            return self._short(_without_call(ending, name))
        if isinstance(ending, asyncio.CancelledError | GeneratorExit):
            return "cancelled"
        return self._short(f"{type(ending).__name__}: {ending}")

    def _short(self, text: str) -> str:
        return self._redactor.beginning(text, LONGEST_ERROR)


def _without_call(error: HoldfastError, name: str) -> str:
    """Return the error without what the line says already."""
    faults = error.data if isinstance(error.data, tuple) else ()
    if faults and all(isinstance(one, SchemaFault) for one in faults):
        places = "; ".join(f"{one.path or '/'}: {one.keyword}" for one in faults)
        return f"the arguments do not fit its schema; nothing was sent: {places}"
    return error.message.partition(f"tools/call {name!r}: ")[2] or error.message


def open_log(where: To | CallLog, redaction: Redaction) -> CallLog:
    """Return the log for ``connect(log=…)``; a `CallLog` keeps its own redaction."""
    return where if isinstance(where, CallLog) else CallLog(where, redaction=redaction)
