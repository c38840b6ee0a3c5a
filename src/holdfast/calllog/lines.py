"""The lines of a call log: a call first, what was observed of it after that.

    {"name":…,"arguments":…,"_phase":"before","_seq":3}
    {"name":…,"arguments":…,"_phase":"after","_result":…,"_ok":true,"_ms":84,"_seq":3}
    {"name":…,"arguments":…,"_phase":"after","_ok":false,"_ms":18,"_error":"…","_seq":3}

A line is one line for every reader: what some take for a line end is escaped.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast._core.wire.codes import UNENCODABLE

_encode: Final = msgspec.json.Encoder().encode

_LINE_ENDS: Final = (
    ("\u0085".encode(), rb"\u0085"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
"""JSON allows these inside of strings as they are; ``str.splitlines`` and JavaScript do not."""


def compact(value: Any) -> bytes:
    """A value as JSON without spaces, in UTF-8, on one line."""
    found = _encode(value)
    if not found.isascii():
        for end, escaped in _LINE_ENDS:
            found = found.replace(end, escaped)
    return found


def call(name: str, arguments: Any) -> bytes:
    """Return the common start of both lines."""
    try:
        given = compact(arguments)
    except UNENCODABLE:
        given = b"{}"  # such a call cannot be sent either
    return b'{"name":%b,"arguments":%b' % (compact(printable(name)), given)


def before(head: bytes, seq: int) -> bytes:
    """Return the line that is written before the call."""
    return b'%b,"_phase":"before","_seq":%d}' % (head, seq)


def success(head: bytes, result: bytes | None, ms: int, seq: int) -> bytes:
    """Return the line that is written after a successful call."""
    shown = b"" if result is None else b',"_result":%b' % result
    return b'%b,"_phase":"after"%b,"_ok":true,"_ms":%d,"_seq":%d}' % (head, shown, ms, seq)


def failure(head: bytes, error: str, ms: int, seq: int) -> bytes:
    """Return the line that is written after a failed call."""
    shown = compact(printable(error))
    return b'%b,"_phase":"after","_ok":false,"_ms":%d,"_error":%b,"_seq":%d}' % (
        head,
        ms,
        shown,
        seq,
    )


def printable(text: str) -> str:
    """A text that can be written as UTF-8: halves of surrogate pairs become question marks."""
    return text.encode("utf-8", "replace").decode()
