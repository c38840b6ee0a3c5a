"""Reads and writes of a thread that waits for a pipe, and that another thread can end."""

from __future__ import annotations

import os
import sys
from threading import Thread

# A thread that waits in a read or a write cannot be asked to stop: closing the descriptor under it
# leaves it waiting, and the next file that is opened gets the number. So each system has its way.
#
# - POSIX: the pipe does not block, and the thread waits for it and for a second pipe, of which
#   nothing is ever written. Closing that one's other end wakes the thread for good, whether it
#   waits already or not.
# - Windows can wait for a pipe only by reading or writing it. ``CancelSynchronousIo`` ends that,
#   if the thread is inside of it at that moment; so it is called until the thread is gone.

CANCEL_TRIES = 50

if sys.platform == "win32":
    from holdfast._core.transports.pipes import set_blocking
    from holdfast._core.windows import cancel_blocking_call

    class BlockingPipe:
        """A descriptor that is read or written by one thread."""

        def __init__(self, fd: int) -> None:
            self.fd = fd
            self._cancelled = False

        def wait(self, size: int) -> bytes | None:
            """Wait for bytes, which is to read them; none at the end, and after `cancel`."""
            try:
                return b"" if self._cancelled else os.read(self.fd, size)
            except OSError:  # a broken pipe is the end of it
                return b""

        def read(self, size: int) -> bytes | None:
            """Return nothing: this system cannot look without waiting."""
            return None

        def write(self, data: bytes) -> int:
            """Wait until bytes are written; return how many, 0 after `cancel`."""
            if self._cancelled:
                return 0
            try:
                set_blocking(self.fd, True)
                written = os.write(self.fd, data)
                set_blocking(self.fd, False)
            except OSError:
                if self._cancelled:
                    return 0
                raise
            return written

        def cancel(self, thread: Thread) -> None:
            """Wake the thread for good."""
            self._cancelled = True
            for _ in range(CANCEL_TRIES):
                if not thread.is_alive() or thread.native_id is None:
                    return
                cancel_blocking_call(thread.native_id)
                thread.join(0.001)

        def close(self) -> None:
            """Close the descriptor; for the thread."""
            os.close(self.fd)

else:
    import select

    class BlockingPipe:
        """A descriptor that is read or written by one thread."""

        def __init__(self, fd: int) -> None:
            self.fd = fd
            os.set_blocking(fd, False)
            self._cancelled, self._open = os.pipe()
            self._reading, self._writing = select.poll(), select.poll()
            self._reading.register(fd, select.POLLIN)
            self._writing.register(fd, select.POLLOUT)
            for poll in (self._reading, self._writing):
                poll.register(self._cancelled, 0)  # its end is told of in any case

        def wait(self, size: int) -> bytes | None:
            """Wait for bytes; None: `read` them. No bytes after `cancel`."""
            # Only the pipe itself: the other one tells of nothing but its end.
            events = self._reading.poll()
            return None if len(events) == 1 and events[0][0] == self.fd else b""

        def read(self, size: int) -> bytes | None:
            """Return the bytes that are there, none at the end; None: not now."""
            try:
                return os.read(self.fd, size)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError:
                return b""

        def write(self, data: bytes) -> int:
            """Wait until bytes are written; return how many, 0 after `cancel`."""
            fd, wait = self.fd, self._writing.poll
            while len(events := wait()) == 1 and events[0][0] == fd:
                try:
                    return os.write(fd, data)
                except (BlockingIOError, InterruptedError):
                    continue
            return 0

        def cancel(self, thread: Thread) -> None:
            """Wake the thread for good."""
            if self._open >= 0:
                os.close(self._open)
                self._open = -1

        def close(self) -> None:
            """Close the descriptor; for the thread."""
            os.close(self.fd)
            os.close(self._cancelled)
            self.fd = -1  # the number may be that of another file soon
