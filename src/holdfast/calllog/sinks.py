"""The sinks of a log: a file, a stream or a function. None of them can fail a call.

An error is logged once, to the logger ``holdfast``. A file or stream that failed is retried
after a while.
"""

from __future__ import annotations

import inspect
import io
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from holdfast._core.files import open_for_append, open_without_links, reason
from holdfast.errors import ValidationError

log: logging.Logger = logging.getLogger("holdfast")

PAUSE: Final = 5.0
"""Seconds that a sink which failed is left alone."""


class Sink:
    """Takes lines, without their newlines."""

    label: str

    def write(self, line: bytes) -> None:
        """Write a line, or raise."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources; a later line is accepted all the same."""


def sink_for(to: Any) -> Sink:
    """Return the sink for a path, a stream or a function."""
    if isinstance(to, str | os.PathLike):
        return FileSink(os.fspath(to))
    if callable(getattr(to, "write", None)):
        return StreamSink(to)
    if callable(to):
        return CallbackSink(to)
    kind = type(to).__name__
    raise ValidationError(f"log={to!r}: a {kind} is no path, no stream and no function")


class FileSink(Sink):
    """Appends to a file. One write a line: those of several processes do not run together."""

    def __init__(self, path: str | bytes) -> None:
        self.path: str = os.path.abspath(os.fsdecode(path))
        self.label: str = f"the call log {os.fsdecode(path)}"
        self._descriptor: int | None = None
        self._opened: os.stat_result | None = None
        self._torn = False
        """The last line was not written to its end."""
        _refuse_hopeless(os.fsdecode(path), self.path)

    def write(self, line: bytes) -> None:
        """Append a line; open the file again if it was moved or deleted."""
        if self._descriptor is not None and not self._is_there():
            self.close()
        if self._descriptor is None:
            self._torn = self._torn or _ends_torn(self.path)
            self._descriptor = open_for_append(self.path)
            self._opened = os.fstat(self._descriptor)
        whole = rest = b"\n%b\n" % line if self._torn else line + b"\n"
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self._torn = self._torn or len(rest) < len(whole)
                raise
        self._torn = False

    def _is_there(self) -> bool:
        """Return True if the path still names the open file: logs are rotated and deleted."""
        assert self._opened is not None
        try:
            return os.path.samestat(os.lstat(self.path), self._opened)
        except OSError:
            return False

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _refuse_hopeless(given: str, path: str) -> None:
    """Raise for a path that can never work, without touching the file."""
    folder = os.path.dirname(path)
    if not given or os.path.isdir(path):
        why = "is a folder" if given else "an empty path"
    elif "\0" in path:
        why = "has a NUL character in it"
    elif not os.path.isdir(folder):
        why = f"there is no folder {folder}"
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        why = "may not be written"
    else:
        try:
            return os.close(open_for_append(path, create=False))
        except FileNotFoundError:
            return
        except OSError as error:
            why = reason(error)
    raise ValidationError(f"log={given!r}: {why}")


def _ends_torn(path: str) -> bool:
    """Return True if the last line is truncated: its writer died, or the disk was full."""
    try:
        descriptor = open_without_links(path, os.O_RDONLY)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        if not os.fstat(descriptor).st_size:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


class StreamSink(Sink):
    """Writes to a stream of text or bytes, and flushes it. The stream is its owner's to close."""

    def __init__(self, stream: Any) -> None:
        self.label: str = f"the call log {getattr(stream, 'name', None) or type(stream).__name__}"
        self._stream = stream
        self._bytes = isinstance(stream, io.RawIOBase | io.BufferedIOBase)

    def write(self, line: bytes) -> None:
        """Write a line and flush the stream."""
        if self._bytes:
            self._stream.write(line + b"\n")
        else:
            self._write_text(line.decode() + "\n")
        flush = getattr(self._stream, "flush", None)
        if flush is not None:
            flush()

    def _write_text(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            # A stream that knows ASCII only: JSON can be written in that as well.
            escaped = json.dumps(json.loads(text), separators=(",", ":"))
            self._stream.write(escaped + "\n")


class CallbackSink(Sink):
    """Calls a function with each line."""

    def __init__(self, callback: Callable[[str], Any]) -> None:
        if inspect.iscoroutinefunction(callback):
            text = f"log={callback!r}: give a plain function; a coroutine cannot be awaited here"
            raise ValidationError(text)
        self.label = "the function that takes the call log"
        self._callback = callback

    def write(self, line: bytes) -> None:
        """Call the function with a line."""
        self._callback(line.decode())


class Guarded:
    """A sink that never raises, for any number of threads."""

    def __init__(self, sink: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self.sink = sink
        self.lost: int = 0
        """Lines that could not be written."""
        self._clock = clock
        self._pauses = not isinstance(sink, CallbackSink)
        self._again = 0.0
        # A function that takes lines may make a call of its own.
        self._lock = threading.RLock()

    def write(self, line: bytes) -> None:
        """Write a line; log errors instead of raising them."""
        with self._lock:
            if self._again and self._clock() < self._again:
                self.lost += 1
                return
            try:
                self.sink.write(line)
                self._again = 0.0
            except Exception as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        if not self.lost:
            log.warning("%s: a line was lost: %s: %s", self.sink.label, type(error).__name__, error)
        self.lost += 1
        if self._pauses:
            self._again = self._clock() + PAUSE
            self._close()

    def close(self) -> None:
        """Close the sink."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        try:
            self.sink.close()
        except OSError:
            pass
