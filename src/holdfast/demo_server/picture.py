"""Draws a PNG with nothing but zlib and struct."""

from __future__ import annotations

import struct
import zlib
from binascii import b2a_base64

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def gradient(width: int, height: int) -> bytes:
    """An RGB picture: red grows to the right, green downwards, blue stays."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(_row(width, y * 255 // max(height - 1, 1)) for y in range(height))
    return (
        _SIGNATURE
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def base64_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _row(width: int, green: int) -> bytes:
    """One line of pixels after its filter byte (0: as it is)."""
    pixels = ((x * 255 // max(width - 1, 1), green, 128) for x in range(width))
    return b"\x00" + b"".join(map(bytes, pixels))


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
