"""A child on POSIX: descriptors on the loop, a process group, and a guard against orphans."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Hashable
from typing import Final

from holdfast._core.boundary import WireId
from holdfast._core.transports.child import ChildListener
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.pipes import PipeReader, Writer
from holdfast._core.transports.spawn import Spawned, activity

EXIT_POLL: Final = 0.025
"""Seconds between two looks for the end of a child, where the system has no pidfd."""


class PosixChild:
    """A started process that is the leader of its process group."""

    def __init__(self, process: Spawned, listener: ChildListener, backlog: int) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._listener = listener
        self.pid: int = process.pid
        self.exited: bool = False
        self._status: int | None = None
        """The exit code, once the process has been waited for."""
        self._released = False
        on_broken, on_room = listener.on_input_broken, listener.on_room
        self._writer = writer = Writer(process.stdin, loop, backlog, on_broken, on_room)
        self.send: Callable[..., bool] = writer.send
        self.withdraw: Callable[[WireId], bool] = writer.withdraw
        self.unsent: Callable[[], frozenset[WireId]] = writer.unsent
        self.unread: Callable[[], bool] = writer.unread
        self.close_input: Callable[[], None] = writer.close
        on_data, on_end = listener.on_data, listener.on_output_end
        self._stdout = PipeReader(process.stdout, loop, on_data, on_end, writer)
        self._stderr: PipeReader | None = None
        if process.stderr is not None:
            on_data, on_end = listener.on_error_data, listener.on_error_end
            self._stderr = PipeReader(process.stderr, loop, on_data, on_end)
        self._watch_exit()
        if guard.is_started:
            guard.watch(self.pid)
        else:
            # Starting the guard takes longer than the child: after it, then.
            loop.call_soon(self._watch)

    def __repr__(self) -> str:
        return f"<PosixChild {self.pid}{' exited' if self.exited else ''}>"

    def _watch(self) -> None:
        if not self._released:
            guard.watch(self.pid)

    # Output

    def drain_errors(self) -> None:
        if self._stderr is not None:
            self._stderr.drain()

    # The end

    def _watch_exit(self) -> None:
        self._poll: asyncio.TimerHandle | None = None
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            self._pidfd = -1
            self._poll = self._loop.call_later(EXIT_POLL, self._poll_exit)
        else:
            self._loop.add_reader(self._pidfd, self._exit)

    def _poll_exit(self) -> None:
        """Poll for the exit, where the system has no pidfd."""
        if self.reap():
            self._exit()
        elif not self._released:
            self._poll = self._loop.call_later(EXIT_POLL, self._poll_exit)

    def _exit(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        # It stays a zombie until the teardown, so that the id of its group is not reused: a
        # signal to the group must not reach a stranger.
        self.exited = True
        # A child of it may hold the pipes open: their end may never come.
        self._stdout.drain()
        self.drain_errors()
        self._listener.on_exit()

    def exit_code(self) -> int | None:
        if self._status is not None or self._pidfd < 0:
            return self._status
        try:
            end = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except OSError:
            self.reap()
            return self._status
        if end is None:
            return None
        return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def activity(self) -> Hashable:
        return tuple(activity(self.pid).items())

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def is_gone(self) -> bool:
        return not self._signal(0)

    def _signal(self, number: int) -> bool:
        """Signal the process group; return False if nothing is left of it."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def reap(self) -> bool:
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._status = 0  # Somebody else waited for it; the code is lost.
            else:
                self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is not None

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
        self.reap()
        guard.forget(self.pid)
