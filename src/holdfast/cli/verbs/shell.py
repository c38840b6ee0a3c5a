"""``holdfast shell``: a prompt over one kept connection. A line is a command line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holdfast._core.files import xdg_folder
from holdfast._core.text import counted, visible
from holdfast.cli.app import run
from holdfast.cli.elicitation import TerminalQuestions
from holdfast.cli.main import SHELL_VERBS, VERBS
from holdfast.cli.output import Exit, Output
from holdfast.cli.progress import status
from holdfast.cli.prompts import is_interactive
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.verbs.status import identity
from holdfast.schema.walk import properties
from holdfast.sync.portal import portal

if TYPE_CHECKING:
    from holdfast import Client


@click.command(cls=ServerVerb, takes="")
def shell(target: ServerTarget) -> int:
    """A prompt over one connection: tools are called by their names.

    Tab completes tools and parameters; Ctrl-C ends a call, Ctrl-D the shell. Lines may come
    through a pipe, too: the exit code is then that of the last line that failed.
    """
    from holdfast.sync.client import Client

    questions = TerminalQuestions()
    if is_interactive():
        target.options["handlers"] = questions.handlers()
    target.options.setdefault("when_down", "wait")
    client = portal().do(target.client)
    with Client(client, portal()) as connection:
        connection.open()
        tools = portal().run(target.list_tools(client)) or []
        who = identity(client) or client.name
        target.output.note(f"{who}: {counted(len(tools), 'tool')}. 'help' helps.")
        status.end()
        portal().do(questions.close)
        with editing(partial(suggestions, client)) as read:
            return _obey(client, target.output, questions, read)


# The connection lives on the portal's loop, in a thread of its own; lines are read in this one. A
# line is run by `run`, as a command line of its own with the open connection: so it has the same
# verbs, errors and exit codes, and Ctrl-C ends the line and not the shell.


def _obey(
    client: Client, output: Output, questions: TerminalQuestions, read: Callable[[str], str]
) -> int:
    """Run lines until the end of the input; return the exit code, for scripts."""
    failed = 0
    while failed != Exit.BROKEN_PIPE:
        try:
            words = shlex.split(read(f"{visible(client.name)}> "), comments=True)
        except KeyboardInterrupt:
            print(file=sys.stderr)
            continue
        except ValueError as error:
            failed = output.complain(f"not understood: {error}", Exit.USAGE, "usage")
            continue
        except EOFError:
            if sys.stdin.isatty():
                print(file=sys.stderr)
            break
        words = words[1:] if words[:1] == ["holdfast"] else words  # a command that was pasted
        if words in (["exit"], ["quit"]):
            break
        if words == ["help"]:
            output.result(_HELP, _HELP)
        elif words == ["state"]:
            output.result(str(client.state), str(client.state))
        elif words:
            verb, rest = (words[0], words[1:]) if words[0] in SHELL_VERBS else ("call", words)
            form = ["--json"] if output.json else []
            portal().do(questions.open)
            failed = run([verb, *form, *rest], client) or failed
            portal().do(questions.close)
    return Exit.OK if sys.stdin.isatty() else failed


_HELP: Final = "\n".join(
    [
        "TOOL name=value …  call a tool",
        *(f"{verb:<17}  {VERBS[verb][1]}" for verb in SHELL_VERBS),
        "state              how the connection is",
        "help, exit         this, and the end (Ctrl-D too)",
    ]
)


def suggestions(client: Client, line: str) -> list[str]:
    """Return the completions of the last word of a line."""
    *words, last = line.split(" ")
    words = [word for word in words if word]
    tools = client.tools
    if not words:
        candidates = [*SHELL_VERBS, "exit", "help", "state", *tools]
    elif words in (["call"], ["describe"]):
        candidates = list(tools)
    else:
        tool = tools.get(words[1] if words[0] == "call" else words[0])
        used = {word.partition("=")[0].rstrip(":") for word in words}
        parameters = properties(tool.input_schema) if tool is not None else ()
        candidates = [f"{candidate}=" for candidate in parameters if candidate not in used]
    return [candidate for candidate in candidates if candidate.startswith(last)]


# Reading lines


KEPT: Final = 1000
"""Lines of history."""

Suggest = Callable[[str], list[str]]


def ask(prompt: str) -> str:
    """Read a line. The prompt is not written to a pipe."""
    if not sys.stdin.isatty():
        prompt = ""
    elif not sys.stdout.isatty():
        print(prompt, end="", file=sys.stderr, flush=True)
        prompt = ""
    return input(prompt)


@contextmanager
def editing(suggest: Suggest) -> Iterator[Callable[[str], str]]:
    """Complete with ``suggest`` at Tab, and keep a history file; yield what reads a line.

    Where Python has no readline (Windows), prompt_toolkit does it, if it is installed
    (``holdfast[shell]``); else lines are read as they are typed.
    """
    if not sys.stdin.isatty():
        yield ask
    elif sys.platform != "win32" and find_spec("readline") is not None:
        from holdfast.cli.readline_lines import editing_by_readline

        with editing_by_readline(suggest, history_file(), KEPT):
            yield ask
    elif find_spec("prompt_toolkit") is not None:
        from holdfast.cli.prompt_toolkit_lines import line_reader

        yield line_reader(suggest, history_file(), KEPT)
    else:
        yield ask


def history_file() -> Path:
    """Return the file that keeps the lines of earlier shells."""
    return xdg_folder("state") / "holdfast" / "history"
