"""Start a server process: its pipes, why it could not start, how it ended, what it is doing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from holdfast.errors import Hint, TransportError


class Spawned(Struct, frozen=True):
    """A started process and our ends of its pipes; the caller reaps it and closes them."""

    pid: int
    stdin: int
    stdout: int
    stderr: int | None = None


def spawn(
    command: tuple[str, ...],
    env: dict[str, str],
    cwd: str | None,
    *,
    inherit_stderr: bool,
    near_names: Callable[[str, str], tuple[Hint, ...]] = lambda program, path: (),
) -> Spawned:
    """Start the server in a session and process group of its own, with pipes.

    ``near_names`` suggests what a program that is not there, on this PATH, may have meant.
    """
    ends: list[tuple[int, int]] = []
    """Of each pipe the server's end and ours: Popen would make file objects of them."""
    try:
        for number in range(2 if inherit_stderr else 3):
            reading, writing = os.pipe()
            ends.append((writing, reading) if number else (reading, writing))
        process = subprocess.Popen(
            command,
            stdin=ends[0][0],
            stdout=ends[1][0],
            stderr=None if inherit_stderr else ends[2][0],
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except BaseException as error:
        for _, ours in ends:
            os.close(ours)
        if not isinstance(error, OSError | ValueError):
            raise
        raise _not_started(error, command, env.get("PATH", ""), cwd, near_names) from None
    finally:
        for theirs, _ in ends:
            os.close(theirs)
    process.returncode = 0  # The caller waits for it.
    return Spawned(process.pid, *(ours for _, ours in ends))


def _not_started(
    error: Exception,
    command: tuple[str, ...],
    path: str,
    cwd: str | None,
    near_names: Callable[[str, str], tuple[Hint, ...]],
) -> TransportError:
    hints: tuple[Hint, ...] = ()
    if isinstance(error, FileNotFoundError) and os.sep not in command[0]:
        hints = (*near_names(command[0], path), Hint("env.PATH", f"is {path!r}"))
    return TransportError(_why(error, command, path, cwd), hints=hints)


def _why(error: Exception, command: tuple[str, ...], path: str, cwd: str | None) -> str:
    program = command[0]
    if cwd is not None and not os.path.isdir(cwd):
        return f"cannot start {program!r}: the working directory {cwd!r} does not exist"
    # Imported here: it brings four compression modules along.
    from shutil import which

    location = which(program, path=path)
    if isinstance(error, FileNotFoundError):
        return _what_is_missing(program)
    if isinstance(error, PermissionError):
        what = "is a directory" if os.path.isdir(program) else "is not executable"
        return f"cannot start {program!r}: it {what}"
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return f"cannot start {location or program!r}: not a program (does it lack a #! line?)"
    return f"cannot start {program!r}: {error}"


def _what_is_missing(program: str) -> str:
    if os.sep not in program:
        return f"command not found: {program!r}"
    if not os.path.exists(program):
        return f"command not found: {program!r} does not exist"
    return f"cannot start {program!r}: the interpreter in its first line does not exist"


def ending(code: int | None) -> str:
    """Describe how a process ended."""
    if code is None:
        return "is still running"
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


MOST_PROCESSES: Final = 256


def activity(pid: int) -> dict[int, int]:
    """Return the processor time used by ``pid`` and each descendant, where there is a ``/proc``."""
    times: dict[int, int] = {}
    with suppress(OSError, ValueError, IndexError):
        times[pid] = _ticks(pid)
    waiting = [pid]
    while waiting and len(times) < MOST_PROCESSES:
        parent = waiting.pop()
        # A process that is gone meanwhile, or a system without these files, has no children.
        with suppress(OSError, ValueError, IndexError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    children = [int(child) for child in file.read().split()]
                waiting += children
                for child in children:
                    times[child] = _ticks(child)
    return times


def _ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        # proc(5): the name in parentheses may hold spaces; utime and stime are fields 14, 15.
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
