"""Pipes read and written through their descriptors: no streams, no tasks, few copies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic

from holdfast._core.boundary import Delivered, Generation, Report, StreamOptions, WireId
from holdfast._core.wire.framing import FrameTooLarge, Lines

CHUNK = 64 * 1024
"""As much as a pipe holds."""
TURNS = 4
"""Reads in one turn of the loop: a flood must not starve the others."""
TURN = 0.01
"""Seconds after which no more is read in a turn, and less at once from then on: what a flood of
junk costs is not known before."""
LEAST = 4 * 1024
"""Bytes that are read at once in a flood of junk."""
BURST = 2
"""Frames written at once between two reads; more of them are gathered into one write."""
NEWLINE = ord("\n")
BEGINNING = 1024
"""Bytes of the beginning of an output that are kept."""
GATHER = 512
"""Frames in one gathered write (systems allow 1024)."""
SPARE = 1024
"""Bytes that a frame of msgspec's holds, however short it is. A server that asks for ever and reads
nothing would have a backlog of thirty times its bytes: those that wait long are copied."""

if sys.platform == "win32":

    def write_frames(fd: int, frames: Sequence[bytes | memoryview]) -> int:
        return os.write(fd, b"".join(frames))

else:
    write_frames = os.writev

if sys.platform != "win32" or sys.version_info >= (3, 12):
    CAN_UNBLOCK = True
    """Whether a pipe can be written without waiting for it."""
    set_blocking = os.set_blocking
else:
    CAN_UNBLOCK = False

    def set_blocking(fd: int, blocking: bool, /) -> None:
        """Leave the pipe as it is: it blocks."""


class Writer:
    """Write what the pipe takes at once, and queue the rest up to a limit."""

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        on_broken: Callable[[OSError], None],
        on_room: Callable[[], None],
    ) -> None:
        self.burst: int = 0
        """Frames since the last read; the `PipeReader` sets it back."""
        self._fd = fd
        self._loop = loop
        self._limit = limit
        self._on_broken = on_broken
        self._on_room = on_room
        self._refused = False
        """A frame was refused since there was room last."""
        self._queue: dict[int, bytes | memoryview] = {}
        """Frames in order: of requests by their wire ids, others by negative numbers."""
        self._messages = 0
        """Queued frames so far that are not those of requests."""
        self._begun: int | None = None
        """The frame of which a part was written."""
        self._backlog = 0
        self._waiting = False
        self._scheduled: asyncio.Handle | None = None
        self._broken = False
        self._closed = False
        set_blocking(fd, False)

    def __repr__(self) -> str:
        return f"<Writer {self._backlog} bytes waiting>"

    @property
    def backlog(self) -> int:
        """Bytes that the pipe has not taken yet."""
        return self._backlog

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        """Write or queue a frame; False if the queue is full (nothing is taken then)."""
        if self._queue or self._broken or self._closed:
            return self._enqueue(frame, wire_id)
        self.burst += 1
        if self.burst > BURST:
            self._enqueue(frame, wire_id)
            self._scheduled = self._loop.call_soon(self._flush)
            return True
        try:
            written = os.write(self._fd, frame)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError as error:
            self._enqueue(frame, wire_id)
            self._break(error)
            return True
        if written != len(frame):
            self._enqueue(frame, wire_id, written)
            self._wait()
        return True

    def withdraw(self, wire_id: WireId) -> bool:
        frame = None if wire_id == self._begun else self._queue.pop(wire_id, None)
        if frame is None:
            return False
        self._backlog -= len(frame)
        self._check_room()
        return True

    def unsent(self) -> frozenset[WireId]:
        """Return the requests of which no byte was written."""
        return frozenset(WireId(key) for key in self._queue if key > 0 and key != self._begun)

    def unread(self) -> bool:
        """Return True if the pipe holds something that the server has not read."""
        if self._backlog:
            return True
        if self._closed or sys.platform == "win32":
            return False
        import fcntl
        import struct
        import termios

        try:
            answer = fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0")
        except OSError:
            return False
        return bool(struct.unpack("i", answer)[0])

    def close(self) -> None:
        """Close the pipe, after as much as it takes at once of what no caller waits for.

        A cancellation is to be heard. A request of which no byte has left never leaves any more:
        its caller hears that it was not sent.
        """
        if self._closed:
            return
        self._closed = True
        self._stop_waiting()
        with contextlib.suppress(OSError):
            if self._queue and not self._broken:
                self._write_last()
        with contextlib.suppress(OSError):
            self._close_pipe()

    def _write_last(self) -> None:
        unsent = self.unsent()
        frames = [frame for key, frame in self._queue.items() if key not in unsent]
        os.write(self._fd, b"".join(frames))

    def _close_pipe(self) -> None:
        os.close(self._fd)

    def _enqueue(self, frame: bytes, wire_id: WireId | None, written: int = 0) -> bool:
        # A message that has no answer cannot be offered again: it has the same space once more.
        limit = self._limit if wire_id is not None else 2 * self._limit
        backlog = self._backlog + len(frame) - written
        if self._backlog and backlog > limit:
            self._refused = True
            return False
        if wire_id is None:
            self._messages += 1
        key = -self._messages if wire_id is None else wire_id
        if self._backlog > CHUNK and len(frame) < SPARE:
            frame = bytes(memoryview(frame))
        self._queue[key] = frame
        self._backlog = backlog
        if written:
            self._begun, self._queue[key] = key, memoryview(frame)[written:]
        return True

    def _flush(self) -> None:
        """Write the queue, many frames in one system call."""
        self._scheduled = None
        while self._queue and not self._closed:
            try:
                written = write_frames(self._fd, [*islice(self._queue.values(), GATHER)])
            except (BlockingIOError, InterruptedError):
                self._wait()
                return
            except OSError as error:
                self._break(error)
                return
            self._consume(written)
            self._check_room()
        self._stop_waiting()

    def _check_room(self) -> None:
        if self._refused and self._backlog <= self._limit // 2:
            self._refused = False
            self._loop.call_soon(self._on_room)

    def _consume(self, written: int) -> None:
        self._backlog -= written
        if not self._backlog:
            self._queue.clear()
            return
        for key, frame in [*islice(self._queue.items(), GATHER)]:
            if written < len(frame):
                if written:
                    self._begun, self._queue[key] = key, memoryview(frame)[written:]
                return
            del self._queue[key]
            written -= len(frame)

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._flush)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _break(self, error: OSError) -> None:
        self._broken = True
        self._stop_waiting()
        self._loop.call_soon(self._on_broken, error)


class PipeReader:
    """Read a pipe; each read is handed on before the next one is asked for (flow control)."""

    __slots__ = (
        *("_closed", "_fd", "_loop", "_on_data", "_on_end", "_paused", "_size", "_stopped"),
        *("_writer", "ended"),
    )

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        writer: Writer | None = None,
    ) -> None:
        self.ended: bool = False
        self._writer = writer
        """Writes to the same peer, which is not in a burst any more once it is heard."""
        self._fd = fd
        self._loop = loop
        self._on_data = on_data
        self._on_end = on_end
        self._closed = False
        self._paused = False
        self._stopped = False
        """Closed or paused."""
        self._size = CHUNK
        set_blocking(fd, False)
        loop.add_reader(fd, self.read)

    def read(self) -> bool:
        """Read what is there, but not too much at once; return False if there was nothing."""
        turns = TURNS
        while not self._stopped:
            try:
                data = os.read(self._fd, self._size)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                data = b""
            if not data:
                self._end()
                return False
            if self._writer is not None:
                self._writer.burst = 0
            if len(data) < LEAST:
                self._on_data(data)
                return True
            began = monotonic()  # uvloop's own clock stands still meanwhile
            self._on_data(data)
            if monotonic() > began + TURN:
                self._size = max(LEAST, self._size // 4)
                return True
            is_full = len(data) == self._size
            self._size = min(CHUNK, self._size * 2)
            turns -= 1
            if not is_full or not turns:
                return True
        return False

    def pause(self) -> None:
        """Read no more until `resume`: what was read has to be digested first."""
        if not self._stopped and not self.ended:
            self._paused = self._stopped = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if self._paused and not self._closed:
            self._paused = self._stopped = False
            self._loop.add_reader(self._fd, self.read)

    def drain(self) -> None:
        """Read what is there now: the server is gone, but a child of it may hold the pipe open."""
        for _ in range(TURNS):
            if self.ended or not self.read():
                return

    def close(self) -> None:
        if self._closed:
            return
        self._closed = self._stopped = True
        if not self.ended and not self._paused:
            self._loop.remove_reader(self._fd)
        with contextlib.suppress(OSError):
            os.close(self._fd)

    def _end(self) -> None:
        self.ended = True
        self._loop.remove_reader(self._fd)
        self._on_end()


class LineReader:
    """Reports the whole lines of what is read from a pipe."""

    def __init__(
        self,
        limit: int,
        generation: Generation,
        report: Callable[[Report], None],
        on_oversized: Callable[[FrameTooLarge], None],
    ) -> None:
        self.heard: bool = False
        """The server has written something."""
        self.lost: bool = False
        """The link is lost: nothing is reported any more."""
        self.first: bytes | None = b""
        """How the output began, until it is known to be that of an MCP server."""
        self._lines = Lines(limit)
        self._generation = generation
        self._report = report
        self._on_oversized = on_oversized

    def feed(self, data: bytes) -> None:
        if self.first is not None and len(self.first) < BEGINNING:
            self.first += data[:BEGINNING]
        self.heard = True
        if self.lost:
            return
        lines = self._lines
        if lines.pieces or data[-1] != NEWLINE or len(data) > lines.limit:
            try:
                data = lines.feed(data)
            except FrameTooLarge as error:
                self._on_oversized(error)
                return
        if data:
            self._report(Delivered(self._generation, data))

    def end(self) -> None:
        """Report the unfinished line at the end."""
        rest = self._lines.rest()
        if rest and not self.lost:
            self._report(Delivered(self._generation, rest + b"\n", ended=True))
