"""The stderr of a server: always drained, its tail kept, its lines passed on if wanted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

log: logging.Logger = logging.getLogger("holdfast")

Sink: TypeAlias = "Callable[[str], object] | logging.Logger | None"

_LONGEST_LINE = 8 * 1024


class Stderr:
    """Keep the last bytes of a stderr of any length, and pass its lines on."""

    __slots__ = ("_emit", "_limit", "_name", "_rest", "_tail")

    def __init__(self, name: str, sink: Sink, limit: int) -> None:
        self._name = name
        self._emit = sink.info if isinstance(sink, logging.Logger) else sink
        self._limit = limit
        self._tail = bytearray()
        self._rest = b""
        """The start of a line whose end has not come yet."""

    def feed(self, data: bytes) -> None:
        self._tail += data[-self._limit :]
        if len(self._tail) >= 2 * self._limit:
            # Half is removed at a time: a fixed cost for each byte.
            del self._tail[: -self._limit]
        if self._emit is None:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._pass_on(line)
        if len(self._rest) > _LONGEST_LINE:
            self.end()

    def end(self) -> None:
        """Pass on what has no end of line."""
        line, self._rest = self._rest, b""
        if line:
            self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        assert self._emit is not None
        try:
            self._emit(line.decode("utf-8", "replace").rstrip("\r"))
        except Exception:
            log.exception("%s: the stderr callback failed", self._name)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines."""
        whole = self._tail[-self._limit :].decode("utf-8", "replace")
        return "\n".join(whole.rstrip().splitlines()[-lines:])
