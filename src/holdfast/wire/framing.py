"""Cutting a byte stream into frames, linear in its size and bounded by a limit."""

from __future__ import annotations


class FrameTooLarge(Exception):  # noqa: N818  (a finding, handled by the transport)
    """A frame passed the limit; the stream cannot be trusted further."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"a message of more than {limit} bytes ({size} read so far)")
        self.size = size
        self.limit = limit


class Lines:
    """Collects reads and hands out whole lines, many at a time.

    A line that spans reads is kept as the list of its pieces and joined once, so a frame
    costs time linear in its size however it was cut. What is kept never passes the limit.
    """

    __slots__ = ("_kept", "_pieces", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._pieces: list[bytes] = []
        self._kept = 0

    def __repr__(self) -> str:
        return f"<Lines {self._kept} bytes of an unfinished line>"

    def feed(self, data: bytes) -> bytes:
        """All lines completed by ``data``, newlines included; empty if there is none."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return b""
        if self._pieces:
            self._check(self._kept + data.find(b"\n"))
            self._pieces.append(data if end == len(data) else data[:end])
            whole = b"".join(self._pieces)
            self._pieces.clear()
            self._kept = 0
        else:
            whole = data if end == len(data) else data[:end]
        if end != len(data):
            self._keep(data[end:])
        if len(whole) > self.limit:
            self._check(longest_line(whole))
        return whole

    def rest(self) -> bytes:
        """What is left of an unfinished line when the stream ends."""
        left = b"".join(self._pieces)
        self._pieces.clear()
        self._kept = 0
        return left

    def _keep(self, data: bytes) -> None:
        self._check(self._kept + len(data))
        self._pieces.append(data)
        self._kept += len(data)

    def _check(self, size: int) -> None:
        if size > self.limit:
            self._pieces.clear()
            self._kept = 0
            raise FrameTooLarge(size, self.limit)


def longest_line(data: bytes) -> int:
    return max(map(len, data.split(b"\n")))
