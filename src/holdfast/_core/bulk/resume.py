"""A file of outcomes: which rows it has, its last line mended, and lines added to it."""

# A process that is killed leaves whole lines and at most one that is torn: each line is one write.
# The torn one is cut off, if it begins as ours do; its row has no outcome and is called again. So a
# row is in the file once, whatever happens. Whether its *call* was made twice is another question:
# a call that was under way at the end has no line either. Only a ledger (``once``) knows of those.
#
# A line in the middle that is none of ours is not skipped: it would be somebody else's file.

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from holdfast._core import files
from holdfast._core.bulk.outcomes import Ending, RowOutcome
from holdfast._core.text import visible
from holdfast.errors import StateError, ValidationError

SHOWN: Final = 1000
"""Rows with an unknown outcome that are remembered by number."""
_LARGEST: Final = 2**40
_PAGE: Final = 512
"""Bytes of a page."""
_BEGINNING: Final = b'{"row":'
"""Of every line."""


class _Line(Struct):
    row: int
    outcome: Ending


class RowSet:
    """Numbers of rows, one bit each, in pages: a file may name any number."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, row: int) -> None:
        number, place = divmod(row >> 3, _PAGE)
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = bytearray(_PAGE)
        page[place] |= 1 << (row & 7)

    def __contains__(self, row: int) -> bool:
        number, place = divmod(row >> 3, _PAGE)
        page = self._pages.get(number)
        return page is not None and bool(page[place] >> (row & 7) & 1)


class OutcomeFile:
    """A file of outcomes, open to be added to.

    Args:
        path: The file.
        resume: Go on with a file that is there. Without it there must be none, or an empty one.

    Attributes:
        rows: The rows that have an outcome.
        counts: How many, by outcome.
        unknown: The first rows whose outcome is unknown.

    Raises:
        ValidationError: The file is there, or is not one of outcomes.
        StateError: Another process writes to it.
    """

    def __init__(self, path: str, *, resume: bool = False) -> None:
        self.path = path
        self.rows = RowSet()
        self.counts: dict[str, int] = {"ok": 0, "error": 0, "unknown": 0}
        self.unknown: list[int] = []
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            raise ValidationError(f"{path}: {files.reason(error)}") from None
        try:
            if not files.try_lock(self._descriptor):
                raise StateError(f"{path}: another process writes to it", state="locked")
            details = os.fstat(self._descriptor)
            if stat.S_ISREG(details.st_mode):  # a device is always there, and has no end
                if details.st_size and not resume:
                    text = f"{path}: there is such a file already; --resume goes on with it"
                    raise ValidationError(text)
                self._read()
        except BaseException:
            os.close(self._descriptor)
            raise

    def _read(self) -> None:
        """Read the rows that are there; cut off a last line that is torn."""
        decode = msgspec.json.Decoder(_Line).decode
        end = 0
        with os.fdopen(os.dup(self._descriptor), "rb") as stream:
            for number, text in enumerate(stream, 1):
                if not text.endswith(b"\n") and _is_torn(text):
                    break
                try:
                    line = decode(text)
                    if not 0 <= line.row < _LARGEST or not text.endswith(b"\n"):
                        raise ValueError("it is not as it was written")
                except ValueError as error:
                    reason = f"{self.path}: line {number} is no outcome of a row: {error}"
                    raise ValidationError(visible(reason, 300)) from None
                self._count(line.row, line.outcome)
                end += len(text)
        os.ftruncate(self._descriptor, end)
        os.lseek(self._descriptor, 0, os.SEEK_END)

    def _count(self, row: int, outcome: str) -> None:
        self.rows.add(row)
        self.counts[outcome] += 1
        if outcome == "unknown" and len(self.unknown) < SHOWN:
            self.unknown.append(row)

    def write(self, *outcomes: RowOutcome) -> None:
        """Add the lines of outcomes; they outlive this process from here on."""
        lines = memoryview(b"".join([outcome.line() for outcome in outcomes]))
        while lines:
            lines = lines[os.write(self._descriptor, lines) :]
        for outcome in outcomes:
            self._count(outcome.row, outcome.outcome)

    def close(self) -> None:
        os.close(self._descriptor)


def _is_torn(text: bytes) -> bool:
    """Return True if a last line is the beginning of one of ours; zeros are a power cut's."""
    text = text.rstrip(b"\0")
    return text.startswith(_BEGINNING) or _BEGINNING.startswith(text)


class OutcomeStream:
    """The same for a pipe, which has no rows yet."""

    def __init__(self, stream: BinaryIO) -> None:
        self.rows = RowSet()
        self.counts: dict[str, int] = {"ok": 0, "error": 0, "unknown": 0}
        self.unknown: list[int] = []
        self._stream = stream

    def write(self, *outcomes: RowOutcome) -> None:
        """Write the lines of outcomes at once."""
        self._stream.write(b"".join([outcome.line() for outcome in outcomes]))
        self._stream.flush()
        for outcome in outcomes:
            self.counts[outcome.outcome] += 1
            if outcome.outcome == "unknown" and len(self.unknown) < SHOWN:
                self.unknown.append(outcome.row)

    def close(self) -> None:
        """Leave the stream to its owner."""
