"""Pipes read and written by threads, for loops and systems that cannot wait for a pipe."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Final

from holdfast._core.boundary import StreamOptions, WireId
from holdfast._core.transports.blocking_pipe import BlockingPipe
from holdfast._core.transports.pipes import CAN_UNBLOCK, CHUNK, GATHER, LEAST, TURN, TURNS, Writer

# Which thread may touch what
# ---------------------------
#
# Everything that decides (the queue of frames, what was begun, who is told) belongs to the loop,
# as it does in `pipes`. The threads do what blocks, and nothing else:
#
#     reader:  read a chunk ─▶ append it to `_chunks` ─▶ wake the loop ─▶ wait while AHEAD are there
#     loop:    `_take` hands them on, within its turns and time, and lets the reader go on
#     loop:    writes by itself as long as the pipe takes it; a frame that does not fit goes to
#     writer:  write one piece to its end ─▶ tell the loop ─▶ wait for the next
#
# So a call costs the switch to the reader and back, and no more. The writer is started when a pipe
# is full for the first time, which it never is for most servers.
#
# The bounds are those of `pipes`. At most AHEAD chunks are read that nobody has taken (then the
# pipe fills, and the server waits: flow control). A piece for the writer is CHUNK at most or one
# frame, and the frames in it can neither be withdrawn nor be called unsent any more: which of
# their bytes have left, nobody knows until the thread says so.
#
# `_taking` says that `_take` is scheduled or running; whoever appends while it is not has to wake
# the loop. Both sides change it under a lock, so that there is one `_take` at a time: two would
# each schedule themselves again, and a flood would double them until nothing else has a turn.
# `_stalled` needs no lock: the reader sets it and clears the event *before* it looks whether there
# is room, so that at worst the event is set for nothing.
#
# A descriptor is closed by the thread that uses it, after its last use; by the loop only where no
# thread is inside of it. Threads are daemons: one that cannot be woken (its pipe is held open by a
# process that escaped, on Windows alone) holds up neither the close nor the interpreter. If the
# loop is closed first, waking it raises RuntimeError, and the thread ends.

AHEAD: Final = 2
"""Chunks that are read before they are handled."""
JOIN: Final = 0.5
"""Seconds for a thread to end that was woken for that."""


class ThreadReader:
    """Read a pipe in a thread; hand on what is read on the loop."""

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        writer: Writer | None = None,
    ) -> None:
        self.ended: bool = False
        self._pipe = BlockingPipe(fd)
        self._loop = loop
        self._on_data = on_data
        self._on_end = on_end
        self._writer = writer
        self._closed = False
        self._size = CHUNK
        """Bytes that are handed on at once: fewer in a flood of junk."""
        self._chunks: deque[bytes] = deque()
        self._lock = Lock()
        self._taking = False
        """The loop is going to look into `_chunks`."""
        self._stalled = False
        """The thread waits for room."""
        self._room = Event()
        self._thread = Thread(target=self._read, name="holdfast-reader", daemon=True)
        self._thread.start()

    # In the thread

    def _read(self) -> None:
        chunks, pipe, wait, lock = self._chunks, self._pipe, self._pipe.wait, self._lock
        wake = self._loop.call_soon_threadsafe
        try:
            while not self._closed:
                data = wait(CHUNK)
                with lock:
                    data = pipe.read(CHUNK) if data is None else data
                    if data is None:
                        continue  # the loop has drained the pipe meanwhile
                    chunks.append(data)
                    is_idle, self._taking = not self._taking, True
                if is_idle:
                    wake(self._take)
                if not data:
                    break
                if len(chunks) >= AHEAD:
                    self._wait_for_room()
        except RuntimeError:
            pass  # The loop is closed.
        finally:
            with lock:
                pipe.close()

    def _wait_for_room(self) -> None:
        while len(self._chunks) >= AHEAD and not self._closed:
            self._room.clear()
            self._stalled = True
            if len(self._chunks) >= AHEAD and not self._closed:
                self._room.wait()
        self._stalled = False

    # On the loop

    def _take(self) -> None:
        """Hand on what was read, but not too much at once."""
        for _ in range(TURNS):
            with self._lock:
                if not self._chunks:
                    self._taking = False
                    return
            if self._closed or not self._hand_on():
                break
        if not self._closed:
            self._loop.call_soon(self._take)

    def _hand_on(self) -> bool:
        """Hand on a chunk; return False if that took long, or was the last."""
        data = self._chunks.popleft()
        if self._stalled:
            self._room.set()
        if not data:
            self.ended = True
            self._on_end()
            return False
        if self._writer is not None:
            self._writer.burst = 0
        if len(data) >= LEAST:
            return self._hand_on_much(data)
        self._on_data(data)
        return True

    def _hand_on_much(self, data: bytes) -> bool:
        """Hand on a long chunk, or the part of it that took no longer than a turn last time."""
        if len(data) > self._size:
            self._chunks.appendleft(data[self._size :])
            data = data[: self._size]
        began = monotonic()
        self._on_data(data)
        quick = monotonic() <= began + TURN
        self._size = min(CHUNK, self._size * 2) if quick else max(LEAST, self._size // 4)
        return quick

    def drain(self) -> None:
        """Hand on what is in the pipe by now; on Windows, what is read by now."""
        # The thread may not have had its turn yet. It reads under the lock, so nothing overtakes.
        with self._lock:
            for _ in range(TURNS):
                if self._closed or not (data := self._pipe.read(CHUNK)):
                    break
                self._chunks.append(data)
            is_idle, self._taking = not self._taking, True
        if is_idle:
            self._loop.call_soon(self._take)
        for _ in range(len(self._chunks)):
            self._hand_on()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._room.set()
        self._pipe.cancel(self._thread)
        self._thread.join(JOIN)


class ThreadWriter(Writer):
    """Write what the pipe takes at once; a thread waits for the rest."""

    is_direct: bool = CAN_UNBLOCK
    """Whether the loop may write by itself: the pipe says when it is full, instead of blocking."""

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        on_broken: Callable[[OSError], None],
        on_room: Callable[[], None],
    ) -> None:
        super().__init__(fd, loop, limit, on_broken, on_room)
        self._pipe: BlockingPipe | None = None
        self._thread: Thread | None = None
        self._pieces: SimpleQueue[bytes | None] = SimpleQueue()
        self._handed: frozenset[int] = frozenset()
        """The frames that the thread is writing."""
        if not self.is_direct:
            self.send = self._send_by_thread  # type: ignore[method-assign]

    def _send_by_thread(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        accepted = self._enqueue(frame, wire_id)
        if not self._broken and not self._closed:
            self._wait()
        return accepted

    def withdraw(self, wire_id: WireId) -> bool:
        return wire_id not in self._handed and super().withdraw(wire_id)

    def unsent(self) -> frozenset[WireId]:
        return super().unsent() - self._handed

    def _wait(self) -> None:
        """Give the beginning of the queue to the thread."""
        if self._waiting:
            return
        self._waiting = True
        keys: list[int] = []
        size = 0
        for key, frame in islice(self._queue.items(), GATHER):
            size += len(frame)
            if keys and size > CHUNK:
                break
            keys.append(key)
        self._handed = frozenset(keys)
        piece = b"".join([self._queue[key] for key in keys])
        if self._thread is None:
            self._pipe = BlockingPipe(self._fd)
            self._thread = Thread(target=self._run, name="holdfast-writer", daemon=True)
            self._thread.start()
        self._pieces.put(piece)

    def _written(self, written: int, error: OSError | None) -> None:
        """Go on after the thread has written a piece, or a part of it."""
        self._waiting = False
        self._handed = frozenset()
        if self._closed:
            return
        if written:
            self._consume(written)
            self._check_room()
        if error is not None:
            self._break(error)
        elif self._queue:
            self._flush() if self.is_direct else self._wait()

    def _flush(self) -> None:
        if not self._waiting:
            super()._flush()

    def _stop_waiting(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _write_last(self) -> None:
        if self.is_direct and not self._waiting:
            super()._write_last()

    def _close_pipe(self) -> None:
        if self._thread is None or self._pipe is None:
            super()._close_pipe()
            return
        self._pieces.put(None)
        self._pipe.cancel(self._thread)

    def join(self) -> None:
        """Wait for the thread, after `close`."""
        if self._thread is not None:
            self._thread.join(JOIN)

    # In the thread

    def _run(self) -> None:
        pipe = self._pipe
        assert pipe is not None
        try:
            while (piece := self._pieces.get()) is not None:
                written, error = 0, None
                try:
                    written = pipe.write(piece)
                except OSError as problem:
                    error = problem
                self._loop.call_soon_threadsafe(self._written, written, error)
        except RuntimeError:
            pass  # The loop is closed.
        finally:
            pipe.close()
