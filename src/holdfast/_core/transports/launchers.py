"""Commands that fetch or build a server before they run it, and signs that they are at work.

``npx -y``, ``uvx`` or ``docker run`` with a cold cache may be silent for a minute. They are
recognised by their command line, also behind ``env`` or ``sh -c``; other commands by children
that use the processor.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

LAUNCHERS: Final[dict[str, frozenset[str]]] = {
    "bun": frozenset({"x"}),
    "bunx": frozenset(),
    "cargo": frozenset({"run"}),
    "conda": frozenset({"run"}),
    "deno": frozenset({"run", "x"}),
    "dnx": frozenset(),
    "docker": frozenset({"run", "compose"}),
    "dotnet": frozenset({"run", "tool"}),
    "go": frozenset({"run"}),
    "hatch": frozenset({"run"}),
    "jbang": frozenset(),
    "nerdctl": frozenset({"run", "compose"}),
    "nix": frozenset({"run", "shell", "develop"}),
    "nix-shell": frozenset(),
    "npm": frozenset({"exec", "x", "init", "create"}),
    "npx": frozenset(),
    "pipx": frozenset({"run"}),
    "pixi": frozenset({"run", "exec"}),
    "pnpm": frozenset({"dlx", "exec"}),
    "pnpx": frozenset(),
    "podman": frozenset({"run", "compose"}),
    "rye": frozenset({"run"}),
    "uv": frozenset({"run", "tool"}),
    "uvx": frozenset(),
    "yarn": frozenset({"dlx"}),
}
"""Programs, and the subcommands with which they may fetch or build something (empty: any)."""
WRAPPERS: Final = frozenset(
    {"bash", "cmd", "command", "dash", "dotenv", "dotenvx", "env", "exec", "fish", "mise", "nice"}
    | {"nohup", "powershell", "pwsh", "setsid", "sh", "stdbuf", "sudo", "time", "timeout", "zsh"}
)
"""Programs that run what the rest of their command line says."""
_SUFFIXES: Final = (".exe", ".cmd", ".bat", ".ps1")
_PUNCTUATION: Final = ";&|()"


def is_launcher(command: Sequence[str]) -> bool:
    """Return True if the command may fetch or build the server before it starts it."""
    if not command:
        return False
    words = list(command)
    positions = range(1)
    if _program(words[0]) in WRAPPERS:
        words = [part for word in words for part in _split(word)]
        positions = range(1, len(words))
    for position in positions:
        subcommands = LAUNCHERS.get(_program(words[position]))
        if subcommands is None:
            continue
        if not subcommands or not subcommands.isdisjoint(words[position + 1 :]):
            return True
    return False


def _split(word: str) -> list[str]:
    """Split what a shell would take for a script; other words stay whole."""
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


class Activity(Struct, frozen=True):
    """The children of a process, and the processor time that they have used."""

    children: frozenset[int] = frozenset()
    ticks: int = 0


def activity(pid: int) -> Activity:
    """Read the children of ``pid`` and their processor time, where there is a ``/proc``."""
    found = frozenset(_descendants(pid))
    return Activity(found, sum(map(_ticks, found)))


def _descendants(pid: int, most: int = 256) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < most:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except (OSError, ValueError):
        # The process is gone, or this system has no such files: no children that we know of.
        pass
    return found


def _ticks(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            # proc(5): the name in parentheses may hold spaces; utime and stime are fields 14, 15.
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0
