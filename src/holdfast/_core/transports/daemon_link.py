"""One connection to a server of the daemon: messages, and what the daemon says between them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from holdfast import errors
from holdfast._core import boundary as b
from holdfast._core.transports.daemon_socket import MARK
from holdfast._core.transports.pipes import LineReader, PipeReader, Writer
from holdfast._core.transports.stderr import Stderr
from holdfast._core.wire.framing import FrameTooLarge
from holdfast.errors import Hint, HoldfastError, ProtocolError, TransportError
from holdfast.policies import Limits

_MARKED_LINE: Final = b"\n" + MARK
_FIELDS: Final = ("message", "code", "exit_code", "stderr_tail")
"""The fields of an error that the daemon passes on."""


class ServerLoss(Struct, frozen=True, kw_only=True):
    """How a server ended, from the daemon to its clients."""

    type: str
    message: str
    code: int | None = None
    exit_code: int | None = None
    stderr_tail: str = ""
    hints: tuple[tuple[str, str, str | bool | None], ...] = ()

    @classmethod
    def of(cls, error: HoldfastError) -> ServerLoss:
        """Return what the clients are told of an error."""
        fields = {name: getattr(error, name) for name in _FIELDS if hasattr(error, name)}
        hints = tuple((hint.option, hint.text, hint.value) for hint in error.hints)
        return cls(type=type(error).__name__, hints=hints, **fields)

    def error(self) -> HoldfastError:
        """Return the same error on this side."""
        kind = getattr(errors, self.type, None)
        if not (isinstance(kind, type) and issubclass(kind, HoldfastError)):
            kind = TransportError
        fields = {name: getattr(self, name) for name in _FIELDS[1:] if hasattr(kind, name)}
        return kind(self.message, hints=tuple(Hint(*hint) for hint in self.hints), **fields)


class StartReport(Struct, frozen=True):
    """The server is being started, from the daemon to the clients that wait for it."""

    elapsed: float
    again: float
    busy: bool


def marked_line(word: str, value: Any) -> bytes:
    """Return a line of the daemon about the connection itself."""
    return MARK + word.encode() + b" " + msgspec.json.encode(value) + b"\n"


class DaemonLink:
    """A link to a server of the daemon, from its welcome on."""

    def __init__(
        self,
        connection: socket.socket,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        *,
        pid: int,
        stderr: Stderr,
    ) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._pid = pid
        self._generation = generation
        self._report = report
        self._stderr = stderr
        self._drained = False
        self._lines = LineReader(limits.frame_bytes, generation, self._deliver, self._oversized)
        # A descriptor for each direction: either may end before the other.
        self._writer = Writer(
            os.dup(connection.fileno()), loop, limits.backlog_bytes, self._broken, self._room
        )
        self._reader = PipeReader(
            connection.detach(), loop, self._lines.feed, self._ended, self._writer
        )
        self.send: Callable[..., bool] = self._writer.send
        self.withdraw: Callable[[b.WireId], bool] = self._writer.withdraw
        self.unsent: Callable[[], frozenset[b.WireId]] = self._writer.unsent

    def __repr__(self) -> str:
        return f"<DaemonLink #{self._generation} pid {self._pid}>"

    # What comes

    def feed(self, data: bytes) -> None:
        """Take what was read before there was this link."""
        if data and not self._lines.lost:
            self._lines.feed(data)

    def _deliver(self, report: b.Report) -> None:
        """Report whole lines, and act on those that the daemon wrote itself."""
        assert isinstance(report, b.Delivered)
        data = report.data
        if not data.startswith(MARK) and _MARKED_LINE not in data:
            self._report(report)
            return
        messages: list[bytes] = []
        for line in data.split(b"\n")[:-1]:
            if line.startswith(MARK):
                self._pass(messages)
                self._act(line)
            else:
                messages.append(line)
        self._pass(messages)

    def _pass(self, messages: list[bytes]) -> None:
        if messages and not self._lines.lost:
            self._report(b.Delivered(self._generation, b"\n".join(messages) + b"\n"))
        messages.clear()

    def _act(self, line: bytes) -> None:
        word, _, value = line[len(MARK) :].partition(b" ")
        try:
            action = _ACTIONS[word]
            action(self, value)
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
            self._lose(ProtocolError(f"the daemon (pid {self._pid}) is not understood: {word!r}"))

    def _ready(self, value: bytes) -> None:
        if not self._lines.lost:
            self._report(b.Opened(self._generation))

    def _starting(self, value: bytes) -> None:
        news = msgspec.json.decode(value, type=StartReport)
        if not self._lines.lost:
            self._report(b.Starting(self._generation, news.elapsed, news.again, news.busy))

    def _wrote(self, value: bytes) -> None:
        self._stderr.feed(msgspec.json.decode(value, type=str).encode() + b"\n")

    def _server_lost(self, value: bytes) -> None:
        self._lose(msgspec.json.decode(value, type=ServerLoss).error())

    def _oversized(self, error: FrameTooLarge) -> None:
        hint = Hint("limits.frame_bytes", "sets this")
        self._lose(ProtocolError(f"the server sent {error}", hints=(hint,)), error.size)

    def _ended(self) -> None:
        self._lose(TransportError(f"the daemon (pid {self._pid}) ended, and with it its servers"))

    def _broken(self, error: OSError) -> None:
        # What it wrote before it ended is there to be read, and tells why.
        self._reader.drain()
        self._ended()

    def _room(self) -> None:
        if not self._lines.lost:
            self._report(b.Room(self._generation))

    def _lose(self, error: HoldfastError, frame_size: int | None = None) -> None:
        if not self._lines.lost:
            self._lines.lost = True
            self._report(b.Lost(self._generation, error, self.unsent(), frame_size))

    # What the driver asks for

    def unread(self) -> bool:
        return bool(self._writer.backlog)

    def received(self) -> None:
        """All that is read is reported at once."""

    def agreed(self) -> None:
        self._stderr.forget()

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: b.StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        self.kill()
        if not self._drained:
            self._drained = True
            self._loop.call_soon(self._report, b.Drained(self._generation))

    def kill(self) -> None:
        self._lines.lost = True
        self._writer.close()
        self._reader.close()


_ACTIONS: Final[dict[bytes, Callable[[DaemonLink, bytes], None]]] = {
    b"ready": DaemonLink._ready,
    b"starting": DaemonLink._starting,
    b"stderr": DaemonLink._wrote,
    b"lost": DaemonLink._server_lost,
}
