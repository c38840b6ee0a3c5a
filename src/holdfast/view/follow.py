"""Follow the file of a trace while another process writes it."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from holdfast._core.files import RefusedFileError, is_pipe_or_device, reason
from holdfast.errors import ValidationError
from holdfast.trace.format import LONGEST_HEADER, LONGEST_LINE, Header, Line, Reading, rotated
from holdfast.view.feed import Feed

PAUSE: Final = 0.05
"""Seconds between two looks at the file."""
AT_ONCE: Final = 4 * 1024 * 1024
"""Bytes that are read before the page gets what there is."""
QUIET: Final = 10.0
"""Seconds after the last line in which the clock of the page goes on."""


class Follower:
    """Reads what is appended to a trace into a feed; goes on when the file is rotated.

    Raises:
        ValidationError: There is no such file, or it is no trace.
    """

    def __init__(self, path: Path, feed: Feed) -> None:
        self.path = path
        self._feed = feed
        self._reading = Reading(path.name, os.fspath(path))
        self._file: BinaryIO | None = None
        self._rest = b""
        """The beginning of a line whose end is not written yet."""
        self._last = 0.0
        self._grew = time.monotonic()
        feed.now = self._now
        for older in rotated(path)[:-1]:
            self._open(older)
            self._read_all()
            self._close()
        self._open(path)

    async def run(self) -> None:
        """Follow the file until cancelled."""
        try:
            while True:
                is_more = self._read()
                if not is_more and self._is_replaced():
                    self._read_all()
                    self._reopen()
                await asyncio.sleep(0 if is_more else PAUSE)
        finally:
            self._close()

    # The file

    def _open(self, path: Path) -> None:
        try:
            if is_pipe_or_device(path):  # A pipe without a writer would block.
                raise RefusedFileError(path, "is not a file that grows; give the trace itself")
            self._file = path.open("rb")
        except OSError as error:
            raise ValidationError(f"{path}: {reason(error)}") from None
        self._rest = b""
        header = self._file.readline(LONGEST_HEADER + 1)
        before = self._reading.header.started
        try:
            self._reading.read_header(header)
        except ValidationError:
            self._close()
            raise
        if self._feed.started and before != self._reading.header.started:
            self._feed.clear()
        self._take_header(self._reading.header)

    def _take_header(self, header: Header) -> None:
        self._feed.started = header.started
        for name, facts in header.servers.items():
            if name not in self._feed.servers:
                self._feed.know(name, facts)

    def _reopen(self) -> None:
        self._close()
        try:
            self._open(self.path)
        except ValidationError:
            # Between two files there is a moment without one, or with an empty one.
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _is_replaced(self) -> bool:
        """Return whether the path means another file by now, or this one was emptied."""
        if self._file is None:
            return True
        try:
            present, opened = os.stat(self.path), os.fstat(self._file.fileno())
        except OSError:
            return False  # It is being moved away; a new one comes.
        return not os.path.samestat(present, opened) or opened.st_size < self._file.tell()

    # Lines

    def _read_all(self) -> None:
        while self._read():
            pass

    def _read(self) -> bool:
        """Read a part of what is new; return whether there may be more."""
        data = b"" if self._file is None else self._file.read(AT_ONCE)
        if not data:
            return False
        *rows, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            self._rest = b""
        lines = [line for row in rows if (line := self._reading.read_line(row)) is not None]
        self._feed.skipped = self._reading.skipped
        self._note_time(lines)
        self._feed.add(lines)
        return len(data) == AT_ONCE

    def _note_time(self, lines: list[Line]) -> None:
        if lines:
            self._last = max(self._last, lines[-1].t)
            self._grew = time.monotonic()

    def _now(self) -> float:
        """Return the time of the trace: that of its writer's clock, while it is written."""
        quiet = min(QUIET, time.monotonic() - self._grew)
        try:
            started = datetime.fromisoformat(self._reading.header.started)
        except ValueError:
            return self._last + quiet
        by_clock = (datetime.now(UTC) - started).total_seconds()
        return max(self._last, min(by_clock, self._last + quiet))
