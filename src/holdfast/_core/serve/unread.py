"""What may wait for a client that does not read, whichever way it is served."""

from __future__ import annotations

from typing import Final

MOST_LINES: Final = 1_000
MOST_BYTES: Final = 16 * 1024 * 1024

_NOTIFICATION: Final = b'{"jsonrpc":"2.0","method":'


def may_wait(line: bytes, lines: int, size: int) -> bool:
    """Return whether a message may wait behind others, so many and so large.

    A client is answered no more than it has asked, and asked no more than a server may ask at
    once. What it is told beside that would be without a bound, so it is dropped beyond one.
    """
    return not line.startswith(_NOTIFICATION) or has_room(line, lines, size)


def has_room(line: bytes, lines: int, size: int) -> bool:
    """Return whether there is room for a message behind others; for one alone there is."""
    return not lines or (lines < MOST_LINES and size + len(line) <= MOST_BYTES)
