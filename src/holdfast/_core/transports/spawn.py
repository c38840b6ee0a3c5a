"""Start a server process: its environment, its pipes, its launcher, and why it could not start."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from holdfast.errors import Hint, TransportError

BASIC_ENVIRONMENT: Final = "HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER"
"""Variables that every program expects."""
NETWORK_ENVIRONMENT: Final = (
    "ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY all_proxy http_proxy https_proxy no_proxy "
    "CURL_CA_BUNDLE GIT_SSL_CAINFO NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA REQUESTS_CA_BUNDLE "
    "SSL_CERT_DIR SSL_CERT_FILE"
)
"""Proxies and certificate authorities: without them a launcher cannot download."""
LAUNCHER_ENVIRONMENT: Final = (
    "BUN_INSTALL COREPACK_HOME DENO_DIR DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST "
    "DOCKER_TLS_VERIFY FNM_DIR NPM_CONFIG_* NVM_BIN NVM_DIR PIPX_* PIP_* PNPM_HOME UV_* "
    "VOLTA_HOME XDG_* npm_config_*"
)
"""The variables by which launchers find registries, caches and runtimes; ``*`` is a wildcard."""
PASSED_ENVIRONMENT: Final = tuple(
    f"{BASIC_ENVIRONMENT} {NETWORK_ENVIRONMENT} {LAUNCHER_ENVIRONMENT}".split()
)
"""The variables that a server inherits by default."""
_EXACT: Final = frozenset(name for name in PASSED_ENVIRONMENT if not name.endswith("*"))
_PREFIXES: Final = tuple(name[:-1] for name in PASSED_ENVIRONMENT if name.endswith("*"))
_NEVER: Final = "UV_PUBLISH_"
"""Credentials for uploading packages: no server needs them."""


def environment(
    extra: Mapping[str, str], inherit: Iterable[str] | bool, ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a server.

    Args:
        extra: Variables to set; they win over inherited ones.
        inherit: Names to pass on beside `PASSED_ENVIRONMENT`, or True for all.
        ours: The environment to take them from.
    """
    named = _EXACT if isinstance(inherit, bool) else _EXACT.union(inherit)
    found = {}
    for name in ours:
        is_passed = name in named or (name.startswith(_PREFIXES) and not name.startswith(_NEVER))
        # CVE-2014-6271: old versions of bash run functions found in values that begin with "()".
        if (is_passed or inherit is True) and not (value := ours[name]).startswith("()"):
            found[name] = value
    return {**found, **extra}


class Spawned(Struct, frozen=True):
    """A started process and our ends of its pipes; the caller reaps it and closes them."""

    pid: int
    stdin: int
    stdout: int
    stderr: int | None = None


def spawn(
    command: tuple[str, ...], env: dict[str, str], cwd: str | None, *, inherit_stderr: bool
) -> Spawned:
    """Start the server in a session and process group of its own, with pipes."""
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
        path = env.get("PATH", "")
        missing = isinstance(error, FileNotFoundError) and os.sep not in command[0]
        hints = (Hint("env.PATH", f"is {path!r}"),) if missing else ()
        told = TransportError(_why(error, command, path, cwd), hints=hints)
        raise told from error.with_traceback(None)
    finally:
        for theirs, _ in ends:
            os.close(theirs)
    process.returncode = 0  # The caller waits for it.
    return Spawned(process.pid, *(ours for _, ours in ends))


def _why(error: Exception, command: tuple[str, ...], path: str, cwd: str | None) -> str:
    program = command[0]
    if cwd is not None and not os.path.isdir(cwd):
        return f"cannot start {program!r}: the working directory {cwd!r} does not exist"
    # Imported here: it brings four compression modules along.
    from shutil import which

    found = which(program, path=path)
    if isinstance(error, FileNotFoundError):
        if os.sep not in program:
            return f"command not found: {program!r}"
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


# Commands that fetch or build a server before they run it: ``npx -y``, ``uvx`` or ``docker run``
# with a cold cache may be silent for a minute. They are recognised by their command line, also
# behind ``env`` or ``sh -c``; other commands by children that use the processor.

LAUNCHERS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("bunx", "dnx", "jbang", "nix-shell", "npx", "pnpx", "uvx"), ()),
    **dict.fromkeys(("cargo", "conda", "go", "hatch", "pipx", "rye"), ("run",)),
    **dict.fromkeys(("docker", "nerdctl", "podman"), ("run", "compose")),
    **dict.fromkeys(("dotnet", "uv"), ("run", "tool")),
    "bun": ("x",),
    "deno": ("run", "x"),
    "nix": ("run", "shell", "develop"),
    "npm": ("exec", "x", "init", "create"),
    "pixi": ("run", "exec"),
    "pnpm": ("dlx", "exec"),
    "yarn": ("dlx",),
}
"""Programs, and the subcommands with which they may fetch or build something (empty: any)."""
WRAPPERS: Final = frozenset(
    {"bash", "cmd", "command", "dash", "dotenv", "dotenvx", "env", "exec", "fish", "mise", "nice"}
    | {"nohup", "powershell", "pwsh", "setsid", "sh", "stdbuf", "sudo", "time", "timeout", "zsh"}
)
"""Programs that run what the rest of their command line says."""
_SUFFIXES: Final = (".exe", ".cmd", ".bat", ".ps1")
_PUNCTUATION: Final = ";&|()"
MOST_PROCESSES: Final = 256


def is_launcher(command: Sequence[str]) -> bool:
    """Return True if the command may fetch or build the server before it starts it."""
    words, last = list(command), 1
    if words and _program(words[0]) in WRAPPERS:
        words = [part for word in words for part in _split(word)]
        last = len(words)
    for position, word in enumerate(words[:last]):
        program, rest = _program(word), words[position + 1 :]
        if program in LAUNCHERS and (
            not LAUNCHERS[program] or not set(LAUNCHERS[program]).isdisjoint(rest)
        ):
            return True
    return False


def _split(word: str) -> list[str]:
    """Split the words of a shell script."""
    import shlex

    try:
        lexer = shlex.shlex(word, posix=True, punctuation_chars=_PUNCTUATION)
        lexer.whitespace_split = True
        return list(lexer) or [word]
    except ValueError:
        return word.split()


def _program(word: str) -> str:
    name = word.replace("\\", "/").rpartition("/")[2].lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def activity(pid: int) -> dict[int, int]:
    """Return the processor time used by each descendant of ``pid``, where there is a ``/proc``."""
    found: dict[int, int] = {}
    waiting = [pid]
    while waiting and len(found) < MOST_PROCESSES:
        parent = waiting.pop()
        # A process that is gone meanwhile, or a system without these files, has no children.
        with suppress(OSError, ValueError, IndexError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    children = [int(child) for child in file.read().split()]
                waiting += children
                for child in children:
                    found[child] = _ticks(child)
    return found


def _ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        # proc(5): the name in parentheses may hold spaces; utime and stime are fields 14, 15.
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
