"""The stderr of a server: always drained, its tail kept, its lines passed on if wanted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

log: logging.Logger = logging.getLogger("holdfast")

Sink: TypeAlias = "Callable[[str], object] | logging.Logger | None"

_LONGEST_LINE = 8 * 1024


class Tail:
    """Keep the last bytes of a stream of any length."""

    __slots__ = ("_bytes", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = bytearray()

    def __repr__(self) -> str:
        return f"<Tail {len(self._bytes)} bytes>"

    def append(self, data: bytes) -> None:
        self._bytes += data[-self._limit :]
        if len(self._bytes) >= 2 * self._limit:
            # Half is removed at a time: a fixed cost for each byte.
            del self._bytes[: -self._limit]

    def text(self, lines: int = 20) -> str:
        """Return the last lines."""
        whole = self._bytes[-self._limit :].decode("utf-8", "replace")
        return "\n".join(whole.rstrip().splitlines()[-lines:])


class Stderr:
    """Keep the tail of a stderr and pass its lines on."""

    __slots__ = ("_emit", "_name", "_rest", "tail")

    def __init__(self, name: str, sink: Sink, limit: int) -> None:
        self.tail: Tail = Tail(limit)
        self._name = name
        self._emit = sink.info if isinstance(sink, logging.Logger) else sink
        self._rest = b""

    def feed(self, data: bytes) -> None:
        self.tail.append(data)
        if self._emit is None:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._pass_on(line)

    def end(self) -> None:
        if self._rest and self._emit is not None:
            self._pass_on(self._rest)
        self._rest = b""

    def _pass_on(self, line: bytes) -> None:
        assert self._emit is not None
        try:
            self._emit(line.decode("utf-8", "replace").rstrip("\r"))
        except Exception:
            log.exception("%s: the stderr callback failed", self._name)
