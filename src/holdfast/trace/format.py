"""The lines of a trace: one JSON object each, in the order of time.

The first line is a header. Every other line is a message, or something that the client saw beside
the messages: a change of state, a line of stderr, output that is no message, the outcome of a
request that got no answer. A trace is read leniently, because its writer may have been killed: what
is whole is used, what is not is counted and reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from holdfast.errors import ValidationError

FORMAT: Final = 1
"""The version of the format, in the header under `MARK`."""
MARK: Final = "holdfast-trace"
LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes of one line; a longer one is skipped. The writer's lines have 16 MiB at most."""

LATEST: Final = 1e9
"""Seconds of the longest trace: about thirty years. A later line is no line."""
LONGEST_HEADER: Final = 1024 * 1024

Direction = Literal[">", "<", ""]
"""To the server, from the server, or neither."""


class Header(Struct, rename={"format": MARK}):
    """The first line."""

    format: int
    started: str = ""
    """When the trace began, as ISO 8601 in UTC."""
    servers: dict[str, dict[str, Any]] = {}
    """What is known of each server: ``transport``, ``target``."""


class Line(Struct, rename={"to_state": "to", "from_state": "from"}):
    """Any other line."""

    t: Annotated[float, Meta(le=LATEST)]
    """Seconds since the start."""
    kind: str
    """``request result error notification outcome check state stderr http junk login dropped``."""
    server: str = ""
    link: int = 0
    """The generation of the connection: a restarted server has another."""
    dir: Direction = ""
    method: str = ""
    id: int | str | None = None
    of: int | str | None = None
    """The id of the request that it belongs to."""
    bytes: int = 0
    """The size on the wire."""
    body: Raw | UnsetType = UNSET
    """The message, redacted; absent if it was too large."""
    text: str = ""
    """The line of stderr, the junk, or the beginning of a body that was too large."""
    sidecar: str = ""
    """The file that has a large body."""
    to_state: str = ""
    from_state: str = ""
    why: str = ""
    """Why the state changed, or the request ended."""
    outcome: str = ""
    """How a request ended without an answer: ``timeout cancelled unknown failed``."""
    faults: dict[str, str] = {}
    """The places of an answer (JSON pointers) that do not fit the tool's schema, and how."""
    count: int = 0
    """How many lines were dropped."""
    status: int = 0
    headers: dict[str, str] = {}
    transport: str = ""
    target: str = ""
    """What is known of a server that joins later, in a line of the kind ``server``."""


_NO_HEADER: Final = (
    "its first line is not a header; --trace-file, or trace= in Python, writes a trace"
)
_OTHERS: Final = (
    (b'"_phase"', "it is a call log; --trace-file, or trace= in Python, writes a trace"),
    (b"<!doctype html", "it is a page; open it in a browser"),
    (b'{"log":', "it is a HAR; tools of browsers open it"),
    (b'"resourceSpans"', "it is OTLP; a collector of OpenTelemetry reads it"),
    (b'"traceEvents"', "it is a Chrome trace; ui.perfetto.dev opens it"),
)
"""What the first line of a file has that is often given instead, and what to do."""
_PACKED: Final = {
    b"\x1f\x8b": "it is compressed; gunzip -c FILE | holdfast view -",
    b"\x28\xb5\x2f\xfd": "it is compressed; zstd -dc FILE | holdfast view -",
    b"PK\x03\x04": "it is an archive; unpack it first",
}
"""What packed files begin with."""


_header = msgspec.json.Decoder(Header)
_line = msgspec.json.Decoder(Line)


decode_line: Final = _line.decode
"""Return the line of one row; for lines that were made here."""


class Reading:
    """One trace file while it is read, and what was wrong with it."""

    def __init__(self, name: str, place: str = "") -> None:
        self.name = name
        self.place = place or name
        """The file as errors name it."""
        self.header = Header(FORMAT)
        self.is_cut = False
        """True if the last line has no end, as when the writer was killed."""
        self.unreadable: list[tuple[int, str]] = []
        """The numbers of lines that were skipped, and why; the first twenty."""
        self.skipped = 0
        self.left_out = 0
        """Lines that were read, and have no place in what is made of them."""
        self._states: dict[str, str] = {}
        """The state that each server was in last."""
        self._number = 0
        """The number of the line that was read last."""

    def lines(self, rows: Iterable[bytes]) -> Iterator[Line]:
        """Yield the lines that can be read. The first row must be the header of a trace.

        Raises:
            ValidationError: It is no trace, or one of a later version.
        """
        rows = iter(rows)
        self.read_header(next(rows, b""))
        for row in self._whole(rows):
            line = self.read_line(row)
            if line is not None and line.kind == "server":
                facts = {"transport": line.transport, "target": line.target}
                self.header.servers[line.server] = facts
            elif line is not None:
                self.note_state(line)
                yield line

    def note_state(self, line: Line) -> None:
        """Remember the state that a line tells of; any other line may be given, too."""
        if line.kind == "state":
            self._states[line.server] = line.to_state

    def _whole(self, rows: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the rows that are whole: no part of a line that is too long, no line that is cut.

        A line without an end is cut, unless another file of the same run follows.
        """
        is_part = False
        for row in rows:
            self.is_cut = not row.endswith(b"\n")
            if not self.is_cut and is_part:
                self._number += 1
                self._skip(f"longer than {LONGEST_LINE} bytes")
            elif not self.is_cut:
                yield row
            is_part = self.is_cut and (is_part or len(row) > LONGEST_LINE)

    @property
    def unclosed(self) -> list[str]:
        """The servers that were not closed: a program that was killed left no half line behind."""
        return [server for server, state in self._states.items() if state != "closed"]

    def read_header(self, row: bytes) -> None:
        """Take the first line of a file.

        Raises:
            ValidationError: It is no trace, or one of a later version.
        """
        self._number = 1
        try:
            if len(row) > LONGEST_HEADER:
                raise msgspec.DecodeError(f"{len(row)} bytes")
            self.header = _header.decode(row)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            why = _other_than_a_trace(row[:LONGEST_HEADER])
            raise ValidationError(f"{self.place}: not a trace: {why}") from None
        if self.header.format > FORMAT:
            raise ValidationError(
                f"{self.place}: a trace of version {self.header.format}, of a later Holdfast; "
                f"this one reads version {FORMAT}"
            )

    def read_line(self, row: bytes) -> Line | None:
        """Return a line; None if it cannot be read, which is counted, or is a header."""
        self._number += 1
        if not row.strip():
            return None
        try:
            if len(row) > LONGEST_LINE:
                raise msgspec.DecodeError(f"{len(row)} bytes")
            return _line.decode(row)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # A rotated file begins with a header of its own.
            if not row.startswith(b'{"' + MARK.encode()):
                self._skip(str(error))
            return None

    def _skip(self, why: str) -> None:
        self.skipped += 1
        if len(self.unreadable) < 20:
            self.unreadable.append((self._number, why))


def _other_than_a_trace(row: bytes) -> str:
    """Return what a file is whose first row is not a header, and what to do."""
    if not row:
        return "it is empty"
    packed = (why for mark, why in _PACKED.items() if row.startswith(mark))
    return next(packed, next((why for mark, why in _OTHERS if mark in row), _NO_HEADER))


def rotated(path: Path) -> list[Path]:
    """Return the files of one run, the oldest first: ``run.jsonl.2 run.jsonl.1 run.jsonl``.

    What an earlier run has left under such a name began at another time, and is no part of it.
    """
    older = [
        (int(number), file)
        for file in path.parent.glob(f"{_escape(path.name)}.*")
        if (number := file.name.removeprefix(f"{path.name}.")).isdecimal()
    ]
    started, files = started_at(path), [path]
    for _, file in sorted(older):
        if not started or started_at(file) != started:
            break
        files.insert(0, file)
    return files


def started_at(path: str | os.PathLike[str]) -> str:
    """Return when a trace began, as its header says; empty if it cannot be read."""
    try:
        # A pipe can be read once only, and one without a writer would block.
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return _header.decode(file.readline(LONGEST_HEADER)).started
    except (OSError, UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return ""


def _escape(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
