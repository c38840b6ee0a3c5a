"""``holdfast shell``: a prompt over one kept connection. A line is a command line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from holdfast._core.files import make_private_folder, open_for_append, xdg_folder
from holdfast._core.text import counted, visible
from holdfast.cli.app import run
from holdfast.cli.elicitation import Questions
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

    questions = Questions()
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
        with editing(partial(suggestions, client)):
            return _obey(client, target.output, questions)


# The connection lives on the portal's loop, in a thread of its own; lines are read in this one. A
# line is run by `run`, as a command line of its own with the open connection: so it has the same
# verbs, errors and exit codes, and Ctrl-C ends the line and not the shell.


def _obey(client: Client, output: Output, questions: Questions) -> int:
    """Run lines until the end of the input; return the exit code, for scripts."""
    failed = 0
    while failed != Exit.BROKEN_PIPE:
        try:
            words = shlex.split(ask(f"{visible(client.name)}> "), comments=True)
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
def editing(suggest: Suggest) -> Iterator[None]:
    """Complete with ``suggest`` at Tab, and keep a history file."""
    if not sys.stdin.isatty() or find_spec("readline") is None:
        yield
        return
    import readline

    readline.set_completer(completer(suggest))
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    history = history_file()
    with suppress(OSError):
        readline.read_history_file(history)
    before = readline.get_current_history_length()
    try:
        yield
    finally:
        readline.set_completer(None)
        new = readline.get_current_history_length() - before
        readline.set_history_length(KEPT)
        with suppress(OSError):
            # Arguments may be secrets: nobody else reads them, from the first line on.
            make_private_folder(history.parent)
            os.close(open_for_append(history))
            history.chmod(0o600)
            readline.append_history_file(max(new, 0), history)


def completer(suggest: Suggest) -> Callable[[str, int], str | None]:
    """Return a readline completer: the ``state``-th word, or None after the last."""
    import readline

    matches: list[str] = []

    def complete(_: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            words = map(visible, suggest(line))
            matches[:] = [word if word.endswith("=") else f"{word} " for word in words]
        return matches[state] if state < len(matches) else None

    return complete


def history_file() -> Path:
    """Return the file that keeps the lines of earlier shells."""
    return xdg_folder("state") / "holdfast" / "history"
