"""Decompression of response bodies with bounded memory and bounded work.

A body is an attack surface: a few bytes may expand to gigabytes (zip bomb), and many bytes may
expand to nothing. Output is handed out in pieces of at most ``PIECE`` bytes, so the reader can
stop at its own limit; input that produces no output is refused after ``IDLE_INPUT`` bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

CODINGS: Final = ("gzip", "x-gzip", "deflate")
PIECE: Final = 256 * 1024
SLICE: Final = 4 * 1024
"""Input per call of zlib: it copies what follows the end of a gzip member, once per member."""
IDLE_INPUT: Final = 64 * 1024
"""Compressed bytes in a row that may expand to nothing (empty members, blocks, long headers)."""
FREE_MEMBERS: Final = 4096
"""Gzip members in one body before they must carry at least ``MEMBER_BYTES`` each on average."""
MEMBER_BYTES: Final = 64


class BadBody(Exception):  # noqa: N818  (a finding, reported by the link)
    """The body is not valid in its content coding, or is built to waste work."""


class Inflater:
    """Decompress one body in one of ``CODINGS``."""

    def __init__(self, coding: str) -> None:
        self._gzip = coding != "deflate"
        self._inflate: Any = None
        self._idle = 0
        self._members = 0
        self._produced = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what ``chunk`` expands to; raise `BadBody` where it breaks the coding."""
        for start in range(0, len(chunk), SLICE):
            piece = chunk[start : start + SLICE]
            self._idle += len(piece)
            yield from self._feed(piece)
            if self._idle > IDLE_INPUT:
                raise BadBody(f"{self._idle} bytes of it expand to nothing")

    def close(self) -> None:
        """Raise `BadBody` if the body ended before its compressed data did."""
        if self._inflate is not None and not self._inflate.eof:
            raise BadBody("it ends too early")

    def _feed(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            if self._inflate is None or self._inflate.eof:
                self._inflate = self._begin(piece)
            inflate = self._inflate
            for data in _pieces(inflate, piece):
                self._idle = 0
                self._produced += len(data)
                yield data
            piece = inflate.unused_data

    def _begin(self, start: bytes) -> Any:
        self._members += 1
        if self._gzip:
            # RFC 1952 §2.2: a gzip file is a series of members, one after the other.
            if self._members > FREE_MEMBERS + self._produced // MEMBER_BYTES:
                raise BadBody(f"it has {self._members} members in {self._produced} bytes")
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        if self._members > 1:
            # zlib would keep all of it in ``unused_data``, without a bound.
            raise BadBody("data follows its end")
        # RFC 9110 §8.4.1.2: "deflate" is the zlib format, but some servers send it bare.
        bare = start[0] & 0x0F != zlib.DEFLATED
        return zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)


def _pieces(inflate: Any, chunk: bytes) -> Iterator[bytes]:
    while True:
        try:
            data = inflate.decompress(chunk, PIECE)
        except zlib.error as error:
            raise BadBody(str(error)) from None
        if data:
            yield data
        if inflate.eof:
            # The rest is in ``unused_data``; ``unconsumed_tail`` may be that of an earlier call.
            return
        chunk = inflate.unconsumed_tail
        if not chunk and len(data) < PIECE:
            return
