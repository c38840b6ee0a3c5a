"""Split a byte stream into lines, in linear time and within a size limit."""

from __future__ import annotations

from io import BytesIO

SMALL = 512
"""Bytes of a piece that is worth an object of its own."""
LARGE = 256 * 1024
"""Bytes of a line from which on it is kept in a buffer that grows."""


_SPACES = bytes.maketrans(b"\r\n", b"  ")


def one_line(text: bytes) -> bytes:
    """Return a JSON text without the line ends between its parts.

    Attack: parts of it are passed on as they are. A line of its own inside of a result would be
    another message to whoever reads lines.
    """
    is_split = text.find(b"\n", 0, -1) >= 0 or text.find(b"\r", 0, -1) >= 0
    return text.translate(_SPACES) if is_split else text


class FrameTooLarge(Exception):  # noqa: N818  (a finding, handled by the transport)
    """A frame passed the limit; the stream cannot be trusted further."""

    def __init__(self, size: int, limit: int, beginning: bytes = b"") -> None:
        super().__init__(f"a message of more than {limit} bytes ({size} read so far)")
        self.size = size
        self.limit = limit
        self.beginning = beginning


class Lines:
    """Collects reads and returns whole lines, many at a time.

    A line that spans reads is kept as the list of its pieces and joined once, so a frame
    costs time linear in its size however it was cut. What is kept never passes the limit.
    A large one is a buffer that grows: joining it would need all of it twice.
    """

    __slots__ = ("_buffer", "_size", "limit", "pieces")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.pieces: list[bytes] = []
        """The unfinished line; of a large one, what came last."""
        self._buffer: BytesIO | None = None
        """The unfinished line, if it is large."""
        self._size = 0

    def __repr__(self) -> str:
        return f"<Lines {self._size} bytes of an unfinished line>"

    def feed(self, data: bytes) -> bytes:
        """Return all lines completed by ``data``, with their newlines; empty if none is."""
        if not self.pieces and len(data) <= self.limit and data.endswith(b"\n"):
            return data  # whole lines, as nearly always
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return b""
        if self.pieces:
            self._check(self._size + data.find(b"\n"))
            self.pieces.append(data if end == len(data) else data[:end])
            whole = self.rest()
        else:
            whole = data if end == len(data) else data[:end]
        if end != len(data):
            self._keep(data[end:])
        if len(whole) > self.limit:
            self._check(longest_line(whole))
        return whole

    def rest(self) -> bytes:
        """Return the unfinished line at the end of the stream."""
        buffer, self._buffer = self._buffer, None
        if buffer is None:
            unfinished = b"".join(self.pieces)
        else:
            buffer.writelines(self.pieces)
            unfinished = buffer.getvalue()  # the buffer itself, not a copy of it
        self.pieces.clear()
        self._size = 0
        return unfinished

    def _keep(self, data: bytes) -> None:
        self._check(self._size + len(data))
        join(self.pieces, data)
        self._size += len(data)
        if self._size > LARGE:
            self._buffer = self._buffer or BytesIO()
            self._buffer.writelines(self.pieces)
            self.pieces[:] = [b""]

    def _check(self, size: int) -> None:
        if size > self.limit:
            beginning = self._buffer.getbuffer() if self._buffer else b"".join(self.pieces)
            error = FrameTooLarge(size, self.limit, bytes(beginning[:LARGE]))
            self.pieces.clear()
            self._buffer, self._size = None, 0
            raise error


def join(pieces: list[bytes], data: bytes, between: bytes = b"") -> None:
    """Add to pieces that are joined in the end, small ones to the last of them.

    Attack: each piece costs an object, and a server may send two bytes at a time.
    """
    if pieces and len(pieces[-1]) + len(data) <= SMALL:
        pieces[-1] += between + data
    else:
        pieces.append(data)


def longest_line(data: bytes) -> int:
    return max(map(len, data.split(b"\n")))
