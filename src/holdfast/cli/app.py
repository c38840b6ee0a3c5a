"""Finds the verb, runs it, and turns whatever happens into an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import pairwise
from typing import Any

import click

from holdfast._core.text import did_you_mean
from holdfast.cli.main import VERBS, WITHOUT_SERVER, columns_of_terminal, help_text
from holdfast.cli.options import explicit
from holdfast.cli.output import Exit, Output, abandon
from holdfast.errors import HoldfastError

DEBUG = "HOLDFAST_DEBUG"
"""Set to anything, it shows where an unexpected error came from."""

LISTS = ("list", "ls")
"""Other words for ``tools`` with a server, and for ``servers`` without one."""

SYNONYMS = {
    **dict.fromkeys(("exec", "invoke", "use"), "call"),
    **dict.fromkeys(("info", "inspect", "show"), "describe"),
    **dict.fromkeys(("delete", "rm", "uninstall"), "remove"),
    **dict.fromkeys(("find", "grep"), "search"),
    **dict.fromkeys(("health", "list-servers"), "status"),
    **dict.fromkeys(("install", "new"), "add"),
}
"""What people type for a verb; it is suggested."""


class Verbs(click.Group):
    """All verbs, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Load a verb; suggest the nearest for one that does not exist."""
        if cmd_name not in VERBS:
            meant = SYNONYMS.get(cmd_name, cmd_name)
            calls = [f"call {meant}"] if "." in meant.strip(".") else []
            near = did_you_mean(meant, calls or [*VERBS, *LISTS, "help", "version"])
            hint = f" D{near[1:]}" if near else ""
            raise click.UsageError(f"There is no verb '{cmd_name}'.{hint} See 'holdfast --help'.")
        module, summary = VERBS[cmd_name]
        keyword = "_" * (cmd_name == "import")
        found = import_module(f"holdfast.cli.verbs.{module}")
        command: click.Command = getattr(found, cmd_name.replace("-", "_") + keyword)
        command.short_help = summary
        return command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first screen."""
        formatter.write(help_text())


HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
root: Verbs = Verbs("holdfast", context_settings=HELP)


def run(words: list[str], connected: Any = None) -> int:
    """Run one command line; return its exit code.

    Unlike ``root.main``, which would take care of signals, pipes and exit codes itself. The lines
    of a shell are about the server that it is ``connected`` to.
    """
    words, command = split(words) if connected is None else (words, connected)
    # The form of errors is needed before the words are parsed.
    is_json = {"--json", "--output=json"} & set(words) or ("--output", "json") in pairwise(words)
    output = Output("json" if is_json else "text")
    width = min(columns_of_terminal(), 80)
    try:
        with root.make_context("holdfast", words, obj=command, terminal_width=width) as context:
            found = root.invoke(context)
        sys.stdout.flush()
        return found if isinstance(found, int) else Exit.OK
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        if output.json:
            return output.complain("Which one? See --help.", Exit.USAGE, "usage")
        print(error.format_message(), file=sys.stderr)
        return Exit.USAGE
    except click.ClickException as error:
        return output.complain(_usage(error), Exit.USAGE, "usage")
    except UnicodeEncodeError as error:
        text = f"Not understood: {error.object!r} cannot be the name of a file."
        return output.complain(text, Exit.USAGE, "usage")
    except (KeyboardInterrupt, EOFError, click.Abort):
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the terminal has written ^C there
        more = "; the server was told to stop" if connected is not None else ""
        return output.complain(f"interrupted{more}", Exit.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        return abandon()
    except HoldfastError as error:
        return output.fail(error)
    except Exception as error:
        if os.environ.get(DEBUG):
            import traceback

            traceback.print_exception(error)
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = f"This is a fault of holdfast; with {DEBUG}=1 it shows where."
        return output.complain(f"{told}\n{hint}", Exit.FAULT, "fault")


def split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the words for click, and the command after ``--``, of a verb about a server."""
    command = None
    if words[:1] and words[0] in LISTS:
        of_server = words[1:] and (words[1][:1] != "-" or {"--", "--url"} & set(words))
        words = ["tools" if of_server else "servers", *words[1:]]
    if "--" in words and words[0] not in WITHOUT_SERVER:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    return explicit(words) if "--inherit-env" in words else words, command


def _usage(error: click.ClickException) -> str:
    text: str = error.format_message()
    context: Any = getattr(error, "ctx", None)
    if context is not None and context.parent is not None:
        return f"{text}\n{context.get_usage()}"
    if isinstance(error, click.NoSuchOption):
        return f"{text} Options stand after the verb; see 'holdfast --help'."
    return text
