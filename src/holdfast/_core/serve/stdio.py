"""The server side over standard input and output, for one client.

Pipes, which is what a client gives its server, are read and written through their descriptors.
Files and terminals cannot be waited for by a loop: a thread reads them, and writing to them blocks.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final, Protocol, cast

from holdfast._core.serve.runner import LoopRunner
from holdfast._core.serve.unread import may_wait
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.transports.pipes import CHUNK, PipeReader, Writer, set_blocking
from holdfast._core.wire.codes import INVALID_REQUEST, RequestError
from holdfast._core.wire.framing import FrameTooLarge, Lines
from holdfast._core.wire.jsonrpc import id_of_request

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a message."""
BACKLOG: Final = 16 * 1024 * 1024
"""Bytes of answers that wait to be read before no more requests are read."""
LONGEST_END: Final = 0.5
"""Seconds for a client to read the last answers, once its own output has ended."""
_READ_AHEAD: Final = 100
"""Lines of a file that wait to be handled."""
_POLL: Final = 0.005


class _Input(Protocol):
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...


class _Output(Protocol):
    def send(self, frame: bytes, wire_id: None) -> bool: ...
    @property
    def backlog(self) -> int: ...
    def close(self) -> None: ...


async def serve(
    server: Server,
    source: BinaryIO | None = None,
    target: BinaryIO | None = None,
    *,
    patience: float = 0.0,
) -> None:
    """Serve one client until its input ends, or nobody reads the answers any more.

    Args:
        server: What is served.
        source: Where its messages come from; standard input by default.
        target: Where the answers go to; standard output by default.
        patience: Seconds that handlers have left when the input has ended.
    """
    source, target = source or sys.stdin.buffer, target or sys.stdout.buffer
    await Conversation(server, source, target, patience).serve()


def run(server: Server) -> None:
    """Serve on standard input and output, as the whole of a program."""
    try:
        asyncio.run(serve(server))
    except KeyboardInterrupt:
        sys.exit(130)


class Channel(Protocol):
    """A file or a socket."""

    def fileno(self) -> int: ...


class Conversation:
    """One client: what it sends is handled in order, what it does not read waits."""

    def __init__(
        self,
        server: Server,
        source: BinaryIO | Channel,
        target: BinaryIO | Channel,
        patience: float = 0.0,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._patience = patience
        self._is_broken = self._is_skipping = False
        self.ended: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._lines = Lines(LARGEST)
        self._overflow: deque[bytes] = deque()
        """Messages that the output has refused; while there are any, nothing is read."""
        self._overflow_size = 0
        self._session = ServerSession(server, self.write, LoopRunner())
        self._output: _Output
        writer: Writer | None = None
        if _is_pipe(target):
            descriptor = os.dup(target.fileno())
            self._output = writer = Writer(descriptor, loop, BACKLOG, self._broken, self._room)
        else:
            self._output = _FileOutput(cast(BinaryIO, target), self._broken)
        self._input: _Input
        if _is_pipe(source):
            descriptor = os.dup(source.fileno())
            self._input = PipeReader(descriptor, loop, self._feed, self._end, writer)
        else:
            self._input = _FileInput(cast(BinaryIO, source), loop, self._feed, self._end)
        self._shared = [file for file in (source, target) if _is_pipe(file)]

    # In

    def _feed(self, data: bytes) -> None:
        if self.ended.done():
            return
        if self._is_skipping:
            data = self._skip(data)
        if len(data) <= LARGEST and not self._lines.pieces and data.find(b"\n") == len(data) - 1:
            self._session.feed(data)  # one message, as nearly always
            return
        try:
            lines = self._lines.feed(data)
        except FrameTooLarge as error:
            self._refuse(error.limit, error.beginning or data[:CHUNK])
            self._feed(self._skip(data))
            return
        if lines.find(b"\n") == len(lines) - 1:
            self._session.feed(lines)  # a copy of one that is large would be another as large
            return
        for line in lines.split(b"\n"):
            self._session.feed(line)

    def _skip(self, data: bytes) -> bytes:
        """Return what follows a line that is too long; the rest of it may be still to come."""
        _, end, following = data.partition(b"\n")
        self._is_skipping = not end
        return following

    def _refuse(self, limit: int, beginning: bytes) -> None:
        """Refuse a message that is too large, by its id if that is at its beginning."""
        fault = RequestError(INVALID_REQUEST, f"a message has more than {limit} bytes")
        fault.request_id = id_of_request(beginning)
        self._session.take(fault)

    def _end(self) -> None:
        if not self.ended.done():
            self._session.feed(self._lines.rest())
            self.ended.set_result(None)

    # Out

    def write(self, line: bytes) -> None:
        """Send a line, after those before it."""
        if not self._overflow and self._output.send(line, None):
            return
        # The client does not read. It will not be answered more than it has asked already.
        self._input.pause()
        if may_wait(line, len(self._overflow), self._overflow_size):
            self._overflow.append(line)
            self._overflow_size += len(line)

    @property
    def is_behind(self) -> bool:
        """True while more waits for the client than it should."""
        return bool(self._overflow)

    def _room(self) -> None:
        while self._overflow:
            if not self._output.send(self._overflow[0], None):
                return
            self._overflow_size -= len(self._overflow.popleft())
        self._input.resume()

    def _broken(self, error: OSError) -> None:
        self._is_broken = True
        if not self.ended.done():
            self.ended.set_result(None)

    # The end

    async def serve(self) -> None:
        """Serve until the client's input ends, or nobody reads the answers any more."""
        try:
            await self.ended
            await self.finish()
        finally:
            self.close()

    def end(self, last: bytes) -> None:
        """End it from this side: nothing is answered any more, and one more line is written."""
        if not self.ended.done():
            self._session.close()
            self.write(last)
            self.ended.set_result(None)

    async def finish(self) -> None:
        """Let handlers finish within the patience, cancel the rest, and have the answers read."""
        await asyncio.sleep(0)
        # Neither a session nor a pipe reports that nothing is left; this is the end, and bounded.
        until = self._loop.time() + self._patience
        while self._session.is_busy and not self._is_broken and self._loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        self._session.close()
        until = self._loop.time() + LONGEST_END
        await asyncio.sleep(0)
        while (self._overflow or self._output.backlog) and self._loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)

    def close(self) -> None:
        self._input.close()
        self._output.close()
        for file in self._shared:
            # The descriptors were copies, but whether they block is a property that they share.
            with suppress(OSError, ValueError):
                set_blocking(file.fileno(), True)


def _is_pipe(file: BinaryIO | Channel) -> bool:
    """Return whether a loop can wait for a file; never on Windows."""
    if os.name != "posix":
        return False
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class _FileInput:
    """Reads lines on a thread, some ahead of those that are handled."""

    def __init__(
        self,
        source: BinaryIO,
        loop: asyncio.AbstractEventLoop,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._source = source
        self._copy: BinaryIO | None = None
        with suppress(OSError, ValueError):
            # Not sys.stdin itself: at the end Python would wait for the thread that reads it.
            self._source = self._copy = os.fdopen(os.dup(source.fileno()), "rb")
        self._loop = loop
        self._on_data = on_data
        self._on_end = on_end
        self._ahead = threading.Semaphore(_READ_AHEAD)
        # A daemon: a read that waits for a person to type must not hold up the end.
        threading.Thread(target=self._read, name="holdfast-stdin", daemon=True).start()

    def _read(self) -> None:
        # RuntimeError: the loop is closed.
        with suppress(RuntimeError):
            with suppress(OSError, ValueError):
                for line in iter(self._source.readline, b""):
                    self._ahead.acquire()
                    self._loop.call_soon_threadsafe(self._take, line)
            self._loop.call_soon_threadsafe(self._on_end)
        if self._copy is not None:
            self._copy.close()

    def _take(self, line: bytes) -> None:
        self._ahead.release()
        self._on_data(line)

    def pause(self) -> None:
        """Do nothing: what is written to a pipe from a file is bounded by the file."""

    def resume(self) -> None:
        """Do nothing, as `pause` did."""

    def close(self) -> None:
        """Do nothing: the thread may be reading."""


class _FileOutput:
    """Writes to a file or a terminal, at once."""

    def __init__(self, target: BinaryIO, on_broken: Callable[[OSError], None]) -> None:
        self._target = target
        self._on_broken = on_broken

    def send(self, frame: bytes, wire_id: None) -> bool:
        try:
            self._target.write(frame)
            self._target.flush()
        except OSError as error:
            self._on_broken(error)
        return True

    @property
    def backlog(self) -> int:
        return 0

    def close(self) -> None:
        """Leave the file to its owner."""
