"""Read server-sent events, in linear time and within a size limit."""

from __future__ import annotations

from msgspec import Struct

from holdfast._core.wire.framing import FrameTooLarge, Lines, join, longest_line

_FIELD = len("data: ")
_END = b"\n\n"
_USUAL = (b"event: message\ndata: {", b"data: {")
"""The beginnings of nearly every event."""
LONGEST_ID = 4096
"""Bytes of an event's id: a longer one fits into no header to resume with."""


class ServerSentEvent(Struct, frozen=True):
    """One server-sent event."""

    data: bytes
    name: str = "message"

    @property
    def line(self) -> bytes:
        """Return the message in the event as a line; empty if there is none.

        Priming events have no data, and those of other names only keep a stream alive.
        """
        if self.name != "message" or not self.data.strip():
            return b""
        # Outside of strings, the line ends of a JSON text are only white space.
        return self.data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


class SseParser:
    """Reads server-sent events out of chunks that may be cut anywhere.

    Lines end in LF, CR or CRLF; a BOM at the start, comments and unknown fields are passed
    over. ``last_id`` and ``retry`` are the last that the stream gave. What is kept of an
    unfinished event never passes the limit by more than a field's name.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.last_id: str | None = None
        self.retry: float | None = None
        """Seconds to wait before reconnecting."""
        self.restart()

    def restart(self) -> None:
        """Drop the unfinished event: the stream continues on a new connection."""
        self._lines = Lines(self.limit + _FIELD)
        self._begun = False
        self._open = False
        """A line of an unfinished event has been read."""
        self._after_cr = False
        self._data: list[bytes] = []
        self._size = 0
        self._name = ""
        self._id: str | None = None

    def __repr__(self) -> str:
        return f"<SseParser {self._size} bytes of an unfinished event>"

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events completed by ``chunk``."""
        return self._read(self._normal(chunk))

    def messages(self, chunk: bytes) -> bytes:
        """Return the messages in the events completed by ``chunk``, each as a line."""
        chunk, lines = self._normal(chunk), b""
        if self._open or self._lines.pieces:
            start = chunk.find(_END) + len(_END)
            if start < len(_END):
                return self._slowly(chunk)
            lines, chunk = self._slowly(chunk[:start]), chunk[start:]
        end = chunk.rfind(_END) + len(_END)
        if end < len(_END):
            return lines + self._slowly(chunk)
        if end < len(chunk):
            return lines + self._usual(chunk[:end]) + self._slowly(chunk[end:])
        return lines + self._usual(chunk)

    def _usual(self, events: bytes) -> bytes:
        """Return the messages in whole events: all at once, if all have one of the usual forms.

        They have if the line ends at their beginnings and ends are all that there are.
        """
        for start in _USUAL:
            if events.startswith(start):
                between = _END + start
                ends = start.count(b"\n") + len(_END)
                if (events.count(between) + 1) * ends != events.count(b"\n"):
                    break
                self._begun = True
                lines = events[len(start) - 1 : -1].replace(between, b"\n{")
                if len(lines) > self.limit and (longest := longest_line(lines)) > self.limit:
                    raise FrameTooLarge(longest, self.limit)
                return lines
        return self._slowly(events)

    def _slowly(self, chunk: bytes) -> bytes:
        return b"".join([event.line for event in self._read(chunk)])

    def _read(self, chunk: bytes) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        try:
            lines = self._lines.feed(chunk)
        except FrameTooLarge as error:
            raise FrameTooLarge(error.size, self.limit) from None
        for line in lines.split(b"\n")[:-1]:
            event = self._line(line)
            if event is not None:
                events.append(event)
        return events

    def _normal(self, chunk: bytes) -> bytes:
        """Return the chunk with every line end as LF; a CRLF may be cut in two."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        elif chunk:
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _line(self, line: bytes) -> ServerSentEvent | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        self._open = bool(line)
        if not line:
            return self._finish()
        if line.startswith(b"data: "):
            # Nearly every line is one of these.
            self._add(line[6:])
            return None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._add(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value and len(value) <= LONGEST_ID:
            self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry = int(value[:9]) / 1000
        return None

    def _add(self, value: bytes) -> None:
        self._size += len(value) + (1 if self._data else 0)
        if self._size > self.limit:
            raise FrameTooLarge(self._size, self.limit)
        join(self._data, value, b"\n")

    def _finish(self) -> ServerSentEvent | None:
        if self._id is not None:
            self.last_id = self._id or None
        data, name = self._data, self._name
        self._data, self._name, self._size = [], "", 0
        if not data:
            return None
        return ServerSentEvent(data[0] if len(data) == 1 else b"\n".join(data), name or "message")
