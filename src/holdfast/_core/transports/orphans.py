"""A watcher process that kills orphaned servers.

A parent that is killed cannot clean up. So one small shell per process waits at a pipe that only
this process holds open, beside a list of the process groups of its servers. However the process
ends, the pipe breaks, and the shell kills what is on the list: servers and their children. The
list is a file that both hold: adding a group to it wakes nobody.

The parent-death signal of Linux (prctl(2), PR_SET_PDEATHSIG) would save the shell, but it reaches
only the direct child (not what a launcher like npx started), fires when the spawning *thread* ends,
and can only be set between fork and exec, which rules out posix_spawn.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import subprocess
import sys
from threading import Lock
from typing import Final

from holdfast._core.system import HAS_LINUX

log: logging.Logger = logging.getLogger("holdfast")

_SCRIPT = """
trap '' INT TERM HUP QUIT
read -r end
while read -r group; do [ -z "$group" ] || kill -s KILL -- "-$group"; done <&1 2>/dev/null
"""
END_WAIT: Final = 1.0
"""Seconds for which the end of this process waits for that of its watcher."""
_SLOT: Final = 16
"""Bytes of a line of the list: a number and spaces."""


class Guard:
    """The watcher of this process; a forked child starts one of its own."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._list = -1
        """The list, as a file without a name: shell and process share it."""
        self._slots: dict[int, int] = {}
        """The line of each group."""
        self._free: list[int] = []
        self._lock = Lock()
        """Clients may run in several threads, each with a loop of its own."""
        self._registered = False

    @property
    def is_started(self) -> bool:
        return self._shell is not None

    def watch(self, group: int) -> None:
        with self._lock:
            running = self._shell is not None and self._shell.poll() is None
            if not running and not self._start():
                return
            if group not in self._slots:
                self._slots[group] = self._free.pop() if self._free else len(self._slots)
            self._write(self._slots[group], str(group))

    def forget(self, group: int) -> None:
        with self._lock:
            slot = self._slots.pop(group, None)
            if slot is not None:
                self._free.append(slot)
                self._write(slot, "")

    def _write(self, slot: int, text: str) -> None:
        if sys.platform == "win32":
            return
        try:
            os.pwrite(self._list, f"{text:<{_SLOT - 1}}\n".encode(), slot * _SLOT)
        except OSError as error:
            log.debug("a server is not on the guard's list: %s", error)

    def register(self) -> None:
        """Stop the watcher at exit, after everything that registers with atexit later."""
        if not self._registered:
            self._registered = True
            atexit.register(self.stop)
            if sys.platform != "win32":
                os.register_at_fork(after_in_child=self._leave_to_parent)

    def stop(self) -> None:
        """End the watcher; it kills what is still on its list."""
        shell = self._drop()
        if shell is not None:
            try:
                shell.wait(END_WAIT)
            except subprocess.TimeoutExpired:
                shell.returncode = 0  # It ends by itself: not to be warned about.

    def _start(self) -> bool:
        if self._shell is not None and self._shell.stdin is not None:
            self._shell.stdin.close()
        try:
            if self._list < 0:
                self._list = _unnamed_file()
            os.lseek(self._list, 0, os.SEEK_SET)
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=self._list,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            log.debug("no guard against orphans: %s", error)
            return False
        self.register()
        return True

    def _drop(self) -> subprocess.Popen[bytes] | None:
        """Let go of the watcher and its list."""
        shell, self._shell = self._shell, None
        if shell is not None and shell.stdin is not None:
            shell.stdin.close()
        if self._list >= 0:
            os.close(self._list)
            self._list = -1
        self._slots.clear()
        self._free.clear()
        return shell

    def _leave_to_parent(self) -> None:
        """Drop the parent's watcher in a forked child: holding its pipe would keep it running."""
        self._lock = Lock()
        shell = self._drop()
        if shell is not None:
            shell.returncode = 0


def _unnamed_file() -> int:
    if sys.platform == "linux" and HAS_LINUX:
        with contextlib.suppress(AttributeError, OSError):
            return os.memfd_create("holdfast-servers")
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        return os.dup(file.fileno())


guard: Guard = Guard()
