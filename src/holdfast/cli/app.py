"""Finds the verb, runs it, and turns whatever happens into an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import pairwise
from typing import Any

import click

from holdfast._core.text import did_you_mean
from holdfast.cli.exit_codes import Exit
from holdfast.cli.main import columns_of_terminal, help_text
from holdfast.cli.options import explicit
from holdfast.cli.output import Output, abandon
from holdfast.cli.table import LISTS, SYNONYMS, VERBS
from holdfast.errors import HoldfastError

DEBUG = "HOLDFAST_DEBUG"
"""Set to anything, it shows where an unexpected error came from."""


class Verbs(click.Group):
    """All verbs, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb; None if there is none of this name."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        module = import_module(f"holdfast.cli.verbs.{verb.module}")
        command: click.Command = getattr(module, verb.command)
        command.short_help = verb.summary
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; suggest the nearest for one that does not exist."""
        if args and args[0] not in VERBS:
            meant = next((verb for verb, words in SYNONYMS.items() if args[0] in words), args[0])
            calls = [f"call {meant}"] if "." in meant.strip(".") else []
            near = did_you_mean(meant, calls or [*VERBS, *LISTS, "help", "version"])
            hint = f" D{near[1:]}" if near else ""
            raise click.UsageError(f"There is no verb '{args[0]}'.{hint} See 'holdfast --help'.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first screen."""
        formatter.write(help_text())


root: Verbs = Verbs("holdfast", context_settings={"help_option_names": ["-h", "--help"]})


def run(words: list[str]) -> int:
    """Run one command line; return its exit code."""
    words, command = split(expand(words))
    words = explicit(words)
    output = Output(_form(words))
    try:
        found = _invoke(words, command)
        return found if isinstance(found, int) else Exit.OK
    except click.exceptions.NoArgsIsHelpError as error:
        return _lost(output, error)
    except click.ClickException as error:
        output.complain(_usage(error), Exit.USAGE, {"kind": "usage"})
        return Exit.USAGE
    except UnicodeEncodeError as error:
        text = f"Not understood: {error.object!r} cannot be the name of a file."
        output.complain(text, Exit.USAGE, {"kind": "usage"})
        return Exit.USAGE
    except (KeyboardInterrupt, EOFError, click.Abort):
        if sys.stderr.isatty():
            print(file=sys.stderr)  # the terminal has written ^C there
        output.complain("interrupted", Exit.INTERRUPTED, {"kind": "interrupted"})
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return abandon()
    except HoldfastError as error:
        return output.fail(error)
    except Exception as error:
        return _baffled(output, error)


def _invoke(words: list[str], command: list[str] | None) -> Any:
    """Run the command; unlike ``root.main``, leave signals, pipes and exit codes to `run`."""
    width = min(columns_of_terminal(), 80)
    try:
        with root.make_context("holdfast", words, obj=command, terminal_width=width) as context:
            found = root.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    return found


def _lost(output: Output, error: click.exceptions.NoArgsIsHelpError) -> int:
    """Show the help of an incomplete command on stderr."""
    if output.json:
        output.complain("Which one? See --help.", Exit.USAGE, {"kind": "usage"})
    else:
        print(error.format_message(), file=sys.stderr)
    return Exit.USAGE


def _baffled(output: Output, error: Exception) -> int:
    """Report an unexpected error; with a traceback only where ``HOLDFAST_DEBUG`` asks for it."""
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exception(error)
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = f"This is a fault of holdfast; with {DEBUG}=1 it shows where."
    output.complain(f"{told}\n{hint}", Exit.FAULT, {"kind": "fault"})
    return Exit.FAULT


def expand(words: list[str]) -> list[str]:
    """Return ``list`` and ``ls`` as the verb that is meant: of a server its tools, else servers."""
    if not words or words[0] not in LISTS:
        return words
    rest = words[1:]
    of_server = bool(rest) and (not rest[0].startswith("-") or {"--", "--url"} & set(rest))
    return ["tools" if of_server else "servers", *rest]


def split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the words, and the command after ``--``, where the verb is about a server."""
    verb = VERBS.get(words[0]) if words else None
    if "--" not in words or (verb is not None and not verb.takes_server):
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _form(words: list[str]) -> str:
    """Return the form of errors, which is needed before the words are parsed."""
    wanted = ("--output", "json") in pairwise(words)
    return "json" if wanted or {"--output=json", "--json"} & set(words) else "text"


def _usage(error: click.ClickException) -> str:
    text: str = error.format_message()
    context: Any = getattr(error, "ctx", None)
    if context is not None and context.parent is not None:
        return f"{text}\n{context.get_usage()}"
    if isinstance(error, click.NoSuchOption):
        return f"{text} Options stand after the verb; see 'holdfast --help'."
    return text
