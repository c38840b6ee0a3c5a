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
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

import msgspec

from holdfast._core.boundary import Moved
from holdfast._core.observers.observer import TOOL_CALL, End, ObservedCall
from holdfast._core.wire.codes import UNENCODABLE
from holdfast.calllog.results import Long, compact, one_line, show
from holdfast.calllog.sinks import FOLDER, FileSink, Guarded, Sidecars, sink_for
from holdfast.errors import HoldfastError, ValidationError
from holdfast.policies import Redaction
from holdfast.schema.explain import SchemaFault
from holdfast.types.lifecycle import Task

if TYPE_CHECKING:
    from holdfast._core.redact import Redactor

log: logging.Logger = logging.getLogger("holdfast")

LONGEST_ERROR: Final = 500
"""Characters of an error that are written."""
MOMENT: Final = 0.01
"""Seconds in which a file is hardly moved."""

_encode: Final = msgspec.json.Encoder().encode

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

    def _before(self, call: ObservedCall, seq: int) -> bytes:
        """Write the line before a call; return the beginning of both lines."""
        given = b"{}"  # for what cannot be written: such a call cannot be sent either
        try:
            arguments, secret = (call.params or {}).get("arguments"), call.secret_names()
            data = _encode(arguments)
            if secret or secret is None or not self._redactor.is_plain(data):
                data = _encode(self._redactor.value(arguments, secret))
            if data[:1] == b"{":
                given = one_line(data)
        except UNENCODABLE:
            pass
        name = call.about
        named = _encode(name) if name.isascii() else compact(_printable(name))
        head = b'{"name":%b,"arguments":%b' % (named, given)
        self._sink.write(b'%b,"_phase":"before","_seq":%d}' % (head, seq))
        return head

    def _end(self, call: ObservedCall, head: bytes, seq: int) -> None:
        """Write the line after a call, which begins with ``head``."""
        result, error, what = call.result, "", b""
        ok = call.error is None and result is not None and not result.is_error
        try:
            if result is None or not ok:
                error = self._error(call)
            else:
                shown = show(result, self._redactor, self._threshold)
                if isinstance(shown, Long):
                    shown = self._summary(call, seq, shown)
                if shown is not None:
                    what = b',"_result":%b' % shown
        except Exception:
            log.exception("the call log: the outcome of %r cannot be shown", call.about)
        if call.task is not None:
            what += self._task(call.task, call.error is None)
        ms = round(call.duration * 1000)
        if ok:
            line = b'%b,"_phase":"after"%b,"_ok":true,"_ms":%d,"_seq":%d}' % (head, what, ms, seq)
        else:
            end = (head, what, ms, compact(_printable(error)), seq)
            line = b'%b,"_phase":"after"%b,"_ok":false,"_ms":%d,"_error":%b,"_seq":%d}' % end
        # A moment after the first line there is no need to look for the file again.
        self._sink.write(line, call.duration > MOMENT)

    # What came of it

    def _task(self, task: Task, ok: bool) -> bytes:
        status = "completed" if ok else self._redactor.text(task.status)
        shown = {"id": _printable(self._redactor.text(task.task_id)), "status": status}
        return b',"_task":%b' % compact(shown)

    def _summary(self, call: ObservedCall, seq: int, result: Long) -> bytes:
        path = None
        if self._sidecars is not None:
            ending = ".json" if result.text is None else ".txt"
            make = partial(result.redacted, self._redactor)
            path = self._sidecars.keep(seq, call.about, ending, result.size, make)
        return compact(result.summary(path))

    def _error(self, call: ObservedCall) -> str:
        """Return a short reason for the failure."""
        error = call.error
        if error is None:
            assert call.result is not None
            text = call.result.text or "The tool failed and gave no reason."
        elif isinstance(error, HoldfastError):
            text = _without_call(error, call.about)
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            return "cancelled"
        else:
            text = f"{type(error).__name__}: {error}"
        return self._redactor.beginning(text, LONGEST_ERROR)


def _printable(text: str) -> str:
    """Return text that UTF-8 can hold: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


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
