"""Start a server process: its pipes, why it could not start, how it ended, what it is doing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import Struct

from holdfast._core.system import HAS_LINUX
from holdfast.errors import Hint, TransportError


class Spawned(Struct, frozen=True):
    """A started process and our ends of its pipes; the caller reaps it and closes them."""

    pid: int
    stdin: int
    stdout: int
    stderr: int | None = None


def _no_names(program: str, path: str) -> tuple[Hint, ...]:
    return ()


class SpawnRequest(Struct, frozen=True):
    """What to start, and how."""

    command: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None = None
    inherit_stderr: bool = False
    near_names: Callable[[str, str], tuple[Hint, ...]] = _no_names
    """Suggests what a program that is not there, on this PATH, may have meant."""


def spawn(request: SpawnRequest) -> Spawned:
    """Start the server with pipes, in a session and process group of its own."""
    with pipes(request.inherit_stderr) as (theirs, ours):
        try:
            process = subprocess.Popen(
                request.command,
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2] if len(theirs) > 2 else None,
                env=request.env,
                cwd=request.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise not_started(error, request) from None
    process.returncode = 0  # The caller waits for it.
    return Spawned(process.pid, *ours)


@contextmanager
def pipes(inherit_stderr: bool) -> Iterator[tuple[list[int], list[int]]]:
    """Make the pipes of a server; yield its ends and ours: stdin, stdout, stderr.

    The server's ends are closed afterwards, ours only after an exception. `Popen` itself would
    make file objects of them.
    """
    theirs: list[int] = []
    ours: list[int] = []
    try:
        for number in range(2 if inherit_stderr else 3):
            reading, writing = os.pipe()
            theirs.append(writing if number else reading)
            ours.append(reading if number else writing)
        yield theirs, ours
    except BaseException:
        for end in ours:
            os.close(end)
        raise
    finally:
        for end in theirs:
            os.close(end)


def not_started(error: Exception, request: SpawnRequest) -> TransportError:
    """Return why a server could not be started, with hints."""
    command, path = request.command, request.env.get("PATH", "")
    hints: tuple[Hint, ...] = ()
    if isinstance(error, FileNotFoundError) and not os.path.dirname(command[0]):
        hints = (*request.near_names(command[0], path), Hint("env.PATH", f"is {path!r}"))
    return TransportError(_why(error, command, path, request.cwd), hints=hints)


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
    if not os.path.dirname(program):
        return f"command not found: {program!r}"
    if not os.path.exists(program):
        return f"command not found: {program!r} does not exist"
    return f"cannot start {program!r}: the interpreter in its first line does not exist"


_WINDOWS_FAULT: Final = 0x80000000
"""Exit codes from here on are faults (NTSTATUS), which people know by their hexadecimal digits."""
_FAULTS: Final = {
    0xC0000005: "access violation",
    0xC000001D: "illegal instruction",
    0xC00000FD: "stack overflow",
    0xC0000135: "a DLL was not found",
    0xC0000139: "an entry point was not found",
    0xC0000142: "a DLL failed to start",
    0xC000013A: "ended by Ctrl-C",
    0xC0000374: "heap corruption",
    0xC0000409: "stack buffer overrun",
}


def ending(code: int | None) -> str:
    """Describe how a process ended."""
    if code is None:
        return "is still running"
    if code >= _WINDOWS_FAULT:
        name = _FAULTS.get(code, "")
        return f"exited with code 0x{code:08X}{name and f' ({name})'}"
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
    if not HAS_LINUX:
        return times
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
