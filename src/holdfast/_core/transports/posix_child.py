"""A child on POSIX: descriptors on the loop, a process group, and a guard against orphans."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Hashable

from holdfast._core.boundary import WireId
from holdfast._core.system import HAS_LINUX
from holdfast._core.transports.child import ChildListener
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.pipes import PipeReader, Writer
from holdfast._core.transports.spawn import Spawned

if sys.platform != "win32":
    from holdfast._core.transports.process_group import EXIT_POLL, ProcessGroup

assert sys.platform != "win32"


class PosixChild:
    """A started process that is the leader of its process group."""

    def __init__(self, process: Spawned, listener: ChildListener, backlog: int) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._listener = listener
        self._group = group = ProcessGroup(process.pid)
        self.pid: int = process.pid
        self.exited: bool = False
        self.termination: tuple[str, str] = group.termination
        self._released = False
        on_broken, on_room = listener.on_input_broken, listener.on_room
        self._writer = writer = Writer(process.stdin, loop, backlog, on_broken, on_room)
        self.send: Callable[..., bool] = writer.send
        self.withdraw: Callable[[WireId], bool] = writer.withdraw
        self.unsent: Callable[[], frozenset[WireId]] = writer.unsent
        self.unread: Callable[[], bool] = writer.unread
        self.close_input: Callable[[], None] = writer.close
        self.exit_code: Callable[[], int | None] = group.exit_code
        self.activity: Callable[[], Hashable] = group.activity
        self.terminate: Callable[[], None] = group.terminate
        self.kill: Callable[[], None] = group.kill
        self.reap: Callable[[], bool] = group.reap
        self.is_gone: Callable[[], bool] = group.is_gone
        on_data, on_end = listener.on_data, listener.on_output_end
        self._stdout = PipeReader(process.stdout, loop, on_data, on_end, writer)
        self._stderr: PipeReader | None = None
        if process.stderr is not None:
            on_data, on_end = listener.on_error_data, listener.on_error_end
            self._stderr = PipeReader(process.stderr, loop, on_data, on_end)
        self._watch_exit()
        if guard.is_started:
            group.guard()
        else:
            # Starting the guard takes longer than the child: after it, then.
            loop.call_soon(self._guard)

    def __repr__(self) -> str:
        return f"<PosixChild {self.pid}{' exited' if self.exited else ''}>"

    def _guard(self) -> None:
        if not self._released:
            self._group.guard()

    # Output

    def drain_errors(self) -> None:
        if self._stderr is not None:
            self._stderr.drain()

    # The end

    def _watch_exit(self) -> None:
        self._poll: asyncio.TimerHandle | None = None
        self._pidfd = _open_pidfd(self.pid)
        if self._pidfd < 0:
            self._poll = self._loop.call_later(EXIT_POLL, self._poll_exit)
        else:
            self._loop.add_reader(self._pidfd, self._exit)

    def _poll_exit(self) -> None:
        """Poll for the exit, where the system has no pidfd."""
        if self._group.has_ended():
            self._exit()
        elif not self._released:
            self._poll = self._loop.call_later(EXIT_POLL, self._poll_exit)

    def _exit(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        self.exited = True
        # A child of it may hold the pipes open: their end may never come.
        self._stdout.drain()
        self.drain_errors()
        self._listener.on_exit()

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        if self._poll is not None:
            self._poll.cancel()
        self._writer.close()
        self._stdout.close()
        if self._stderr is not None:
            self._stderr.close()
        if self._pidfd >= 0:
            if not self.exited:
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._group.release()


def _open_pidfd(pid: int) -> int:
    """Return a descriptor that tells of the end of a process; -1 where there is none."""
    if sys.platform == "linux" and HAS_LINUX:
        try:
            return os.pidfd_open(pid)
        except (AttributeError, OSError):
            pass
    return -1
