"""Taking compressed bodies apart, a bounded piece at a time: a little can become very much."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

CODINGS: Final = ("gzip", "x-gzip", "deflate")
PIECE: Final = 256 * 1024


class BadBody(Exception):  # noqa: N818  (a finding, reported by the link)
    """The body is not what its coding says."""


class Inflater:
    """Reads one body in one of ``CODINGS``."""

    def __init__(self, coding: str) -> None:
        self._gzip = coding != "deflate"
        self._inflate: Any = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk becomes."""
        while chunk:
            inflate = self._inflate or self._begin(chunk)
            yield from _pieces(inflate, chunk)
            # A gzip body may be several, one after the other.
            chunk = inflate.unused_data if self._gzip else b""
            self._inflate = None if chunk else inflate

    def close(self) -> None:
        """The body is over; raise if it ends too early."""
        if self._inflate is not None and not self._inflate.eof:
            raise BadBody("it ends too early")

    def _begin(self, start: bytes) -> Any:
        if self._gzip:
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        # "deflate" means zlib's format, but some servers send the bare one.
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
        chunk = inflate.unconsumed_tail
        if not chunk and len(data) < PIECE:
            return
