"""Starting a server process: its command, its environment, and why it could not start."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.errors import TransportError

BASIC_ENVIRONMENT: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""What a server is given of our environment unless more is asked for."""


def environment(
    extra: Mapping[str, str] | None, inherit: Iterable[str] | bool, ours: Mapping[str, str]
) -> dict[str, str]:
    """The server's environment: the basics, what is inherited by name (True: all), and extra.

    Values that begin with ``()`` are shell functions of old bash versions and stay behind.
    """
    if inherit is True:
        base = dict(ours)
    else:
        names = {*BASIC_ENVIRONMENT, *(inherit or ())}
        base = {name: ours[name] for name in sorted(names) if name in ours}
    kept = {name: value for name, value in base.items() if not value.startswith("()")}
    return {**kept, **(extra or {})}


def spawn(
    command: tuple[str, ...], env: dict[str, str], cwd: str | None, *, inherit_stderr: bool
) -> subprocess.Popen[bytes]:
    """Start the server in a process group of its own, with pipes."""
    try:
        return subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if inherit_stderr else subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise TransportError(_why(error, command, env, cwd)) from error


def _why(
    error: Exception, command: tuple[str, ...], env: Mapping[str, str], cwd: str | None
) -> str:
    program = command[0]
    if cwd is not None and not os.path.isdir(cwd):
        return f"cannot start {program!r}: the working directory {cwd!r} does not exist"
    path = env.get("PATH", "")
    found = shutil.which(program, path=path)
    if isinstance(error, FileNotFoundError):
        if os.sep not in program:
            return f"command not found: {program!r} (PATH is {path!r})"
        if not os.path.exists(program):
            return f"command not found: {program!r} does not exist"
        return f"cannot start {program!r}: the interpreter in its first line does not exist"
    if isinstance(error, PermissionError):
        what = "is a directory" if os.path.isdir(program) else "is not executable"
        return f"cannot start {program!r}: it {what}"
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return f"cannot start {found or program!r}: not a program (does it lack a #! line?)"
    return f"cannot start {program!r}: {error}"


def ending(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "is still running"
    if code >= 0:
        return f"exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"
