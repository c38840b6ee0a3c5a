"""The call log: every tool call in two lines that can be pasted back as calls.

    {"name":"session.open","arguments":{"sessionName":"a"},"_phase":"before","_seq":1}
    {"name":"session.open","arguments":{"sessionName":"a"},"_phase":"after",
     "_result":{"opened":true},"_ok":true,"_ms":84,"_seq":1}          (one line, in the log)

It goes to a file, a stream or a function, and can neither fail a call nor hold it up. Files are
written by a thread.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, TextIO, TypeAlias

import msgspec
from msgspec import Raw, Struct

from holdfast._core.line_queue import LineQueue
from holdfast._core.observers.observer import TOOL_CALL, ObservedCall, Observer, faults_of
from holdfast._core.redact.redactor import Redactor
from holdfast._core.wire.codes import UNENCODABLE
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.calllog.results import Long, compact, is_text_alone, one_line, short_text, show
from holdfast.calllog.sinks import FOLDER, Sidecars, sink_for
from holdfast.errors import HoldfastError, ValidationError
from holdfast.policies import Redaction
from holdfast.types.base import decode
from holdfast.types.tools import ToolResult

log: logging.Logger = logging.getLogger("holdfast")

LONGEST_ERROR: Final = 500
"""Characters of an error that are written."""

_encode: Final = msgspec.json.Encoder().encode

To: TypeAlias = "str | os.PathLike[str] | TextIO | Callable[[str], Any]"


MOST_LINES: Final = 20_000
"""Lines that wait to be written; past it, a call writes them before it goes on."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of lines that wait."""
BATCH: Final = 1000
"""Lines of one write."""

# The order of lines, and what may go wrong with them
#
# ``begin`` takes a call before anything is sent, ``end`` takes its outcome, with the same ``_seq``.
# Both go into a queue, and a thread writes what has gathered there, within tens of milliseconds
# (`holdfast._core.line_queue`): a write for each line would take longer than to make it. What waits
# there are bytes and texts (`_Begun`, `_Ended`), which a caller cannot change and the garbage
# collector does not look at; the thread searches them for secrets together. Where that does not
# hold, the line is made at once and waits as it will be written: a call whose arguments may be
# secrets, which are known for certain only while it is under way; a failure, a task, and a result
# other than a short text.
#
# A log is what people replay, so nothing is left out of it: where too much waits, the call writes
# it all. Streams and functions get each line at once: both are the program's own, which looks at
# them after a call, or writes to them itself.
#
# Nothing that happens here may fail the call, for logging is not what the user asked for: what
# cannot be encoded is written without it, what cannot be shown is logged, what cannot be written is
# counted.
#
# Arguments are secret by three reasons, and each needs something else: their names (the policy),
# the tool's schema (the listed tools), and the secrets that this process holds (the register).
# Most lines have none of them, and for those the bytes that are written are the bytes that were
# encoded, once: `Redactor.is_plain` decides that without decoding them. A result may repeat an
# argument: the call's secret arguments are known until its sidecar is written, and after.


class _Begun(Struct, gc=False):
    """A call of which the first line is to be written."""

    seq: int
    name: str
    arguments: bytes
    """As JSON, as they were sent."""
    head: bytes = b""
    """What both lines begin with, without secrets; empty until they were searched for."""


class _Ended(Struct, gc=False):
    """A call of which the second line is to be written: its result is a short text, it seems."""

    begun: _Begun
    ms: int
    text: str
    source: Raw
    """The result as it came."""


_Item: TypeAlias = _Begun | _Ended | bytes
"""What is to be made a line, or is one."""


class CallLog(Observer):
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
        self._sink = sink_for(to)
        self._queue: LineQueue[_Item] = LineQueue(
            self._write,
            "holdfast-log",
            most_items=MOST_LINES,
            most_bytes=MOST_BYTES,
            batch=BATCH,
            forked=self._begin_in_fork,
        )
        self._threshold = threshold
        self._redactor = Redactor(Redaction() if redaction is None else redaction)
        self._numbers = itertools.count(1)
        self._sidecars: Sidecars | None = None
        if sidecars is not None and sidecars is not False:
            place = FOLDER if sidecars is True else os.fspath(sidecars)
            beside = os.path.dirname(os.fsdecode(to)) if isinstance(to, str | os.PathLike) else ""
            folder = os.path.abspath(os.path.join(beside, place))
            self._sidecars = Sidecars(place, folder, max_sidecar_bytes, max_sidecars)

    def __repr__(self) -> str:
        lost = f" {self.lost} lines lost" if self.lost else ""
        return f"<CallLog to {self._sink.label}{lost}>"

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._sink.lost

    def flush(self) -> None:
        """Wait until the lines and sidecars of all calls so far are written."""
        self._queue.flush()
        if self._sidecars is not None:
            self._sidecars.close()

    def close(self) -> None:
        """Finish writing and close the file; a later call opens it again."""
        self._queue.close()
        self.flush()
        self._sink.close()

    def _begin_in_fork(self) -> None:
        self._sink.begin_in_fork()
        if self._sidecars is not None:
            self._sidecars.begin_in_fork()

    def _put(self, item: _Item, size: int) -> None:
        if self._sink.is_immediate:
            self._write([item])
            return
        while not self._queue.put(item, size):
            self._queue.flush()

    # One call

    def begin(self, call: ObservedCall) -> _Begun | None:
        """Log the line before a tool call; return what the other line needs of it."""
        if call.method != TOOL_CALL:
            return None
        begun = _Begun(next(self._numbers), call.about, b"{}")
        try:
            arguments, secret = (call.params or {}).get("arguments"), call.secret_names()
            begun.arguments = _encode(arguments)
            if secret or secret is None:
                begun.arguments = _encode(self._redactor.value(arguments, secret))
        except UNENCODABLE:
            pass  # such a call cannot be sent either
        if secret or secret is None or call.may_hold_secrets:
            self._complete(begun, is_plain=False)
        self._put(begun, len(begun.arguments))
        return begun

    def end(self, call: ObservedCall, begun: _Begun) -> None:
        """Log the line after a tool call."""
        ms, result = round(call.duration * 1000), call.result
        has_failed = call.error is not None or result is None or result.is_error
        if result is not None and not (has_failed or call.task or call.may_hold_secrets):
            short = short_text(result, self._threshold)
            if short is not None:
                self._put(_Ended(begun, ms, *short), len(short[1]))
                return
        line = self._line_of_end(call, begun, ms)
        self._put(line, len(line))

    def _line_of_end(self, call: ObservedCall, begun: _Begun, ms: int) -> bytes:
        result = call.result
        what, why, ok = b"", b"", b"false"
        try:
            if call.error is not None or result is None or result.is_error:
                why = b',"_error":%b' % _text(self._error(call))
            else:
                ok = b"true"
                what = self._result(result, begun)
        except Exception:
            log.exception("the call log: the outcome of %r cannot be shown", call.about)
        if call.task is not None:
            task, hide = call.task, self._redactor.text
            status = "completed" if call.error is None else hide(task.status)
            names = _text(hide(task.task_id)), _text(status)
            what += b',"_task":{"id":%b,"status":%b}' % names
        self._complete(begun, is_plain=False)
        end = (begun.head, what, ok, ms, why, begun.seq)
        return b'%b,"_phase":"after"%b,"_ok":%b,"_ms":%d%b,"_seq":%d}' % end

    # Lines

    def _write(self, items: list[_Item]) -> None:
        self._sink.write(self._lines(items), perf_counter())

    def _lines(self, items: list[_Item]) -> list[bytes]:
        """Return the lines of some items, which are searched for secrets together."""
        searched = [_searched(item) for item in items]
        lines: list[bytes] = []
        for item, data, is_plain in zip(
            items, searched, self._redactor.are_plain(searched), strict=True
        ):
            try:
                if isinstance(item, _Begun):
                    self._complete(item, is_plain)
                    lines.append(b'%b,"_phase":"before","_seq":%d}' % (item.head, item.seq))
                elif isinstance(item, bytes):
                    lines.append(item)
                else:
                    lines.append(self._second_line(item, data, is_plain))
            except Exception:
                log.exception("the call log: a call cannot be shown")
        return lines

    def _complete(self, begun: _Begun, is_plain: bool) -> None:
        """Make what both lines of a call begin with, unless it is there."""
        if begun.head:
            return
        data = begun.arguments
        if not is_plain and not self._redactor.is_plain(data):
            try:
                data = _encode(self._redactor.value(msgspec.json.decode(data)))
            except (*MALFORMED, *UNENCODABLE):
                data = b""
        shown = one_line(data) if data[:1] == b"{" else b"{}"
        begun.head = b'{"name":%b,"arguments":%b' % (_text(begun.name), shown)

    def _second_line(self, ended: _Ended, text: bytes, is_plain: bool) -> bytes:
        begun = ended.begun
        # A forked process has not written the first line of a call that its parent began.
        self._complete(begun, is_plain=False)
        if is_plain and len(text) < self._threshold and is_text_alone(ended.source):
            end = (begun.head, text, ended.ms, begun.seq)
            return b'%b,"_phase":"after","_result":%b,"_ok":true,"_ms":%d,"_seq":%d}' % end
        what = b""
        try:
            what = self._result(decode(ended.source, ToolResult), begun)
        except Exception:
            log.exception("the call log: the outcome of %r cannot be shown", begun.name)
        end = (begun.head, what, ended.ms, begun.seq)
        return b'%b,"_phase":"after"%b,"_ok":true,"_ms":%d,"_seq":%d}' % end

    def _result(self, result: ToolResult, begun: _Begun) -> bytes:
        """Return the field of a line that shows a result; empty if there is nothing in it."""
        summary = show(result, self._redactor, self._threshold)
        if isinstance(summary, Long):
            summary = self._summary(begun, summary)
        return b"" if summary is None else b',"_result":%b' % summary

    def _summary(self, begun: _Begun, result: Long) -> bytes:
        path = None
        if self._sidecars is not None:
            ending = ".txt" if isinstance(result.value, str) else ".json"
            make = partial(result.redacted, self._redactor)
            path = self._sidecars.keep(begun.seq, begun.name, ending, result.size, make)
        return compact(result.summary(path))

    def _error(self, call: ObservedCall) -> str:
        """Return a short reason for the failure, without what the line says already."""
        error = call.error
        if error is None:
            assert call.result is not None
            text = call.result.text or "The tool failed and gave no reason."
        elif isinstance(error, HoldfastError):
            text = error.message.partition(f"tools/call {call.about!r}: ")[2] or error.message
            if places := faults_of(error):
                text = f"the arguments do not fit its schema; nothing was sent: {places}"
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            return "cancelled"
        else:
            text = f"{type(error).__name__}: {error}"
        return self._redactor.beginning(text, LONGEST_ERROR)


def _searched(item: _Item) -> bytes:
    """Return the part of an item that may have a secret in it; a line that is made has none."""
    if isinstance(item, _Begun):
        return b"" if item.head else item.arguments
    return b"" if isinstance(item, bytes) else _encode(item.text)


def _text(text: str) -> bytes:
    """Return a text as JSON; lone surrogates, which UTF-8 cannot hold, become question marks."""
    if text.isascii():
        return _encode(text)
    return compact(text.encode("utf-8", "replace").decode())


def open_log(where: To | CallLog, redaction: Redaction) -> CallLog:
    """Return the log for ``connect(log=…)``; a `CallLog` keeps its own redaction."""
    return where if isinstance(where, CallLog) else CallLog(where, redaction=redaction)
