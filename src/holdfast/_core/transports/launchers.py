"""Commands that fetch or build a server before they run it, and signs that they are at work.

``npx -y``, ``uvx`` or ``docker run`` with a cold cache may be silent for a minute. They are
recognised by their command line, also behind ``env`` or ``sh -c``; other commands by children
that use the processor.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

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
