"""Bodies of responses, read within a limit and decompressed with bounded memory and work.

A body is an attack surface: a few bytes may expand to gigabytes (zip bomb), and many bytes may
expand to nothing. Output is handed out in pieces of at most ``PIECE`` bytes, so the reader can
stop at its own limit; input that produces no output is refused after ``IDLE_INPUT`` bytes.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import aiohttp

from holdfast._core.wire.framing import FrameTooLarge, join

CODINGS: Final = ("gzip", "x-gzip", "deflate")
PIECE: Final = 256 * 1024
SLICE: Final = 4 * 1024
"""Input per call of zlib: it copies what follows the end of a gzip member, once per member."""
IDLE_INPUT: Final = 64 * 1024
"""Compressed bytes in a row that may expand to nothing (empty members, blocks, long headers)."""
FREE_MEMBERS: Final = 4096
"""Gzip members in one body before they must carry at least ``MEMBER_BYTES`` each on average."""
MEMBER_BYTES: Final = 64
TURN: Final = 16 * 1024
"""Bytes of a flood of tiny lines, or of tiny gzip members, that are read before other tasks run."""
LINGER: Final = 2.0
"""Seconds for a response to end after its use, so that its connection can be used again."""
START: Final = 64 * 1024
"""Bytes of the body of an error that are worth reading."""


class BadBody(Exception):  # noqa: N818  (a finding, reported by the link)
    """The body is not valid in its content coding, or is built to waste work."""

    def __init__(self, coding: str, why: str) -> None:
        super().__init__(f"in {coding!r}: {why}")


class Inflater:
    """Decompress one body in one of ``CODINGS``."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inflate: Any = None
        self._idle = 0
        self._members = 0
        self._produced = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what ``chunk`` expands to; raise `BadBody` where it breaks the coding."""
        for start in range(0, len(chunk), SLICE):
            piece = chunk[start : start + SLICE]
            self._idle += len(piece)
            more = True
            while more:
                if self._inflate is None or self._inflate.eof:
                    self._inflate = self._begin(piece)
                inflate = self._inflate
                try:
                    data = inflate.decompress(piece, PIECE)
                except zlib.error as error:
                    raise BadBody(self._coding, str(error)) from None
                if data:
                    self._idle = 0
                    self._produced += len(data)
                    yield data
                # ``unconsumed_tail`` may be that of an earlier call, once the end is reached.
                piece = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                more = bool(piece) or (len(data) == PIECE and not inflate.eof)
            if self._idle > IDLE_INPUT:
                raise BadBody(self._coding, f"{self._idle} bytes of it expand to nothing")

    def close(self) -> None:
        """Raise `BadBody` if the body ended before its compressed data did."""
        if self._inflate is not None and not self._inflate.eof:
            raise BadBody(self._coding, "it ends too early")

    def _begin(self, start: bytes) -> Any:
        self._members += 1
        if self._coding != "deflate":
            # RFC 1952 §2.2: a gzip file is a series of members, one after the other.
            if self._members > FREE_MEMBERS + self._produced // MEMBER_BYTES:
                raise BadBody(
                    self._coding, f"it has {self._members} members in {self._produced} bytes"
                )
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        if self._members > 1:
            # zlib would keep all of it in ``unused_data``, without a bound.
            raise BadBody(self._coding, "data follows its end")
        # RFC 9110 §8.4.1.2: "deflate" is the zlib format, but some servers send it bare.
        bare = start[0] & 0x0F != zlib.DEFLATED
        return zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read a whole body; raise `FrameTooLarge` beyond the limit."""
    read = body_reader(response)
    pieces = [await read()]
    size = len(pieces[0])
    while size <= limit and (piece := await read()):
        join(pieces, piece)
        size += len(piece)
    if size > limit:
        raise FrameTooLarge(size, limit)
    return b"".join(pieces)


async def read_start(response: aiohttp.ClientResponse) -> bytes:
    """Read as much of a body as there is soon, and as is worth reading of an error.

    A body that ends by then leaves its connection to be used again.
    """
    found = b""
    with suppress(aiohttp.ClientError, OSError, TimeoutError, BadBody):
        async with asyncio.timeout(LINGER):
            read = body_reader(response)
            while len(found) <= START and (chunk := await read()):
                found += chunk
    return found


def body_reader(response: aiohttp.ClientResponse) -> Callable[[], Awaitable[bytes]]:
    """Return a function that reads a body as it comes, decompressed; empty at its end.

    RFC 9110 §8.4: the header may be repeated and may list several codings. One that we did not
    offer, or one inside another, is not taken apart: nesting multiplies what a body expands to.
    """
    if "Content-Encoding" not in response.headers:
        return response.content.readany
    listed = ",".join(response.headers.getall("Content-Encoding")).lower().split(",")
    coding = ", ".join(name for one in listed if (name := one.strip()) not in ("", "identity"))
    if not coding:
        return response.content.readany
    if coding not in CODINGS:
        raise BadBody(coding, "it was not asked for")
    return partial(anext, _inflated(response, coding), b"")


async def _inflated(response: aiohttp.ClientResponse, coding: str) -> AsyncIterator[bytes]:
    inflater = Inflater(coding)
    while chunk := await response.content.readany():
        for start in range(0, len(chunk), TURN):
            for data in inflater.feed(chunk[start : start + TURN]):
                yield data
            await asyncio.sleep(0)
    inflater.close()


def content_type(response: aiohttp.ClientResponse) -> str:
    """Return the media type of a response, without its parameters."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
