"""The stderr of a server: drained, passed on, and its end kept for error messages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast._core.callbacks import call_plain

log: logging.Logger = logging.getLogger("holdfast")

Sink: TypeAlias = "Callable[[str], object] | logging.Logger | None"
"""Receives the lines of a stderr."""

_LONGEST_LINE: Final = 8 * 1024
"""Bytes of a line of stderr; a longer one is passed on in parts."""


class Stderr:
    """Keep the last bytes of a stderr of any length, and pass its lines on."""

    __slots__ = ("_limit", "_name", "_receivers", "_rest", "_tail", "size")

    def __init__(
        self,
        name: str,
        sink: Sink,
        limit: int,
        watchers: tuple[Callable[[str], object], ...] = (),
    ) -> None:
        self.size: int = 0
        """Bytes that have come so far."""
        self._name = name
        receiver = _log_line(sink) if isinstance(sink, logging.Logger) else sink
        self._receivers = watchers if receiver is None else (receiver, *watchers)
        self._limit = limit
        self._tail = bytearray()
        self._rest = b""
        """The start of a line whose end has not come yet."""

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        self._tail += data[-self._limit :]
        if len(self._tail) >= 2 * self._limit:
            # Half is removed at a time: a fixed cost for each byte.
            del self._tail[: -self._limit]
        if not self._receivers:
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
        text = line.decode("utf-8", "replace").rstrip("\r")
        for receive in self._receivers:
            try:
                call_plain(receive, text)
            except Exception:
                log.exception("%s: the stderr callback failed", self._name)

    def forget(self) -> None:
        """Begin the tail anew: what was written so far explains nothing that comes."""
        self._tail.clear()

    def tail(self, lines: int = 20) -> str:
        """Return the last lines."""
        whole = self._tail[-self._limit :].decode("utf-8", "replace")
        return "\n".join(whole.rstrip().splitlines()[-lines:])


def _log_line(logger: logging.Logger) -> Callable[[str], None]:
    """Return a function that logs a line of stderr without the secrets that we hold."""
    from holdfast._core.redact.known import KNOWN

    return lambda line: logger.info(KNOWN.hide(line))
