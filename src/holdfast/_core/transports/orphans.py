"""A watcher process that kills orphaned servers.

A parent that is killed cannot clean up. So one small shell per process reads from a pipe that
only this process holds open, and keeps the list of the process groups of its servers. However
the process ends, the pipe breaks, and the shell kills what is left: servers and their children.

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

log: logging.Logger = logging.getLogger("holdfast")

_SCRIPT = """
trap '' INT TERM HUP QUIT
groups=
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -) kept=
           for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done
           groups=$kept ;;
    esac
done
for one in $groups; do kill -s KILL -- "-$one"; done 2>/dev/null
"""


class Guard:
    """The watcher of this process; a forked child starts one of its own."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._registered = False

    def watch(self, group: int) -> None:
        self._write(f"+ {group}\n", start=True)

    def forget(self, group: int) -> None:
        self._write(f"- {group}\n", start=False)

    def register(self) -> None:
        """Stop the watcher at exit, after everything that registers with atexit later."""
        if not self._registered:
            self._registered = True
            atexit.register(self.stop)
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def stop(self) -> None:
        """End the watcher; it kills what is still on its list."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        assert shell.stdin is not None
        with contextlib.suppress(OSError):
            shell.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            shell.wait(1.0)

    def _write(self, line: str, *, start: bool) -> None:
        if self._shell is None and not (start and self._start()):
            return
        assert self._shell is not None
        assert self._shell.stdin is not None
        try:
            os.write(self._shell.stdin.fileno(), line.encode())
        except OSError as error:
            log.debug("the guard is gone: %s", error)
            self.stop()

    def _start(self) -> bool:
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            log.debug("no guard against orphans: %s", error)
            return False
        self.register()
        return True

    def _leave_to_parent(self) -> None:
        """Drop the parent's watcher in a forked child: holding its pipe would keep it running."""
        shell, self._shell = self._shell, None
        if shell is not None and shell.stdin is not None:
            shell.stdin.close()
            shell.returncode = 0


guard: Guard = Guard()
