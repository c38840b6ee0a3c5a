"""A process on POSIX with all that it has started: the process group that it leads."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Hashable
from contextlib import suppress
from typing import Final

from holdfast._core.system import HAS_LINUX
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.spawn import activity

assert sys.platform != "win32"

EXIT_POLL: Final = 0.025
"""Seconds between two looks for the end of a process, where the system cannot tell of it."""

if sys.platform != "darwin" or sys.version_info >= (3, 13):
    _CAN_LOOK: Final = HAS_LINUX or sys.platform != "linux"
    """Whether the exit of a process can be known without making room for another of its number."""

    def _look_at(pid: int, flags: int) -> int | None:
        """Return the exit code, or minus the number of a signal; it stays a zombie."""
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | flags)
        if end is None:
            return None
        return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

else:
    _CAN_LOOK: Final = False

    def _look_at(pid: int, flags: int) -> int | None:
        raise NotImplementedError


class ProcessGroup:
    """A started process that leads its group; it is not waited for before the group has ended.

    As long as the leader is a zombie its id, which is that of the group, is not given to a new
    process: a signal to the group must not reach a stranger.
    """

    termination = ("SIGTERM", "SIGKILL")
    """What `terminate` and `kill` do, in words."""

    def __init__(self, pid: int) -> None:
        self.pid: int = pid
        self._status: int | None = None
        """The exit code, once the process has been waited for."""

    def guard(self) -> None:
        """Have the group killed when this process dies."""
        guard.watch(self.pid)

    def has_ended(self) -> bool:
        """Return whether the leader has ended; it stays a zombie, where the system can say so."""
        return self.exit_code() is not None

    def wait(self) -> None:
        """Block until the leader has ended; for a thread."""
        if not _CAN_LOOK:
            while not self.reap():
                time.sleep(EXIT_POLL)
            return
        with suppress(ChildProcessError):
            _look_at(self.pid, 0)

    def exit_code(self) -> int | None:
        if self._status is None and _CAN_LOOK:
            try:
                return _look_at(self.pid, os.WNOHANG)
            except OSError:  # somebody else has waited for it
                pass
        self.reap()
        return self._status

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
        self.reap()
        guard.forget(self.pid)
