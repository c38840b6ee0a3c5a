"""Commands that fetch or build a server before they run it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

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


def is_launcher(command: Sequence[str]) -> bool:
    """Return True if the command may fetch or build the server before it starts it."""
    for program, arguments in _launchers(command):
        subcommands = LAUNCHERS[program]
        if not subcommands or not set(subcommands).isdisjoint(arguments):
            return True
    return False


def uses_launcher(command: Sequence[str]) -> bool:
    """Return True if the command is one of a package manager, whether it fetches or not."""
    return any(True for _ in _launchers(command))


def _launchers(command: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the launchers that a command runs, each with what follows it."""
    words, last = list(command), 1
    if words and _program(words[0]) in WRAPPERS:
        words = [part for word in words for part in _split(word)]
        last = len(words)
    for position, word in enumerate(words[:last]):
        program = _program(word)
        if program in LAUNCHERS:
            yield program, words[position + 1 :]


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
    if name.endswith(_SUFFIXES):
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
    return name
