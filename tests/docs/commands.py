"""The commands of a page's ``console`` blocks, and what is wrong with them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator

import click

from holdfast.cli.app import HELP, CommandLine, root, split
from holdfast.cli.output import Output

PUNCTUATION = "|&;<>()"


def commands(text: str) -> Iterator[list[str]]:
    """Every command in a console block: prompts, comments, pipes and redirections taken away."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(re.sub(r"^\$ ", "", line), posix=True, punctuation_chars=PUNCTUATION)
        lexer.whitespace_split = True
        command: list[str] = []
        for word in lexer:
            if set(word) <= set(PUNCTUATION):
                yield command
                command = []
            elif command or not re.match(r"[A-Z_]+=", word):
                command.append(word)
        yield command


def fault(words: list[str]) -> str | None:
    """What is wrong with the words after ``holdfast``: a verb, an option, a missing word."""
    words, _ = split(words)
    if words in (["--help"], ["--version"]):
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            _parse(words)
        except click.exceptions.Exit:  # --help
            return None
        except click.ClickException as error:
            return error.format_message()
    return None


def _parse(words: list[str]) -> None:
    """As the program would, up to the point where it would do something."""
    command: click.Command = root
    while isinstance(command, click.Group):
        name, *words = words or [""]
        found = command.get_command(click.Context(command), name)
        if found is None:
            raise click.UsageError(f"there is no verb {name!r}")
        command = found
    # With the names that the program has: a command keeps its first option for help.
    line = CommandLine(Output(), None, None)
    command.make_context(command.name, words, obj=line, **HELP)
