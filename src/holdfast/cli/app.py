"""Finds the verb, runs it, and turns whatever happens into an exit code."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from holdfast.cli.exits import Exit
from holdfast.cli.output import Output, abandon
from holdfast.cli.verbs import VERBS
from holdfast.errors import HoldfastError


class Verbs(click.Group):
    """All verbs, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        module = import_module(f"holdfast.cli.{verb.module}")
        command: click.Command = getattr(module, verb.command)
        command.short_help = verb.summary
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = get_close_matches(args[0], VERBS, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no verb '{args[0]}'.{hint} See 'holdfast --help'.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from holdfast.cli.main import help_text

        formatter.write(help_text())


root = Verbs(
    "holdfast", context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True
)


def run(words: list[str]) -> int:
    """One command line, start to end."""
    words, command = split(words)
    output = Output(_form(words))
    try:
        ended = root.main(words, "holdfast", standalone_mode=False, obj=command)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        output.complain(_usage(error), Exit.USAGE, {"kind": "usage"})
        return Exit.USAGE
    except (KeyboardInterrupt, click.Abort):
        output.complain("interrupted", Exit.INTERRUPTED, {"kind": "interrupted"})
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return abandon()
    except HoldfastError as error:
        return output.fail(error)
    return ended if isinstance(ended, int) else Exit.OK


def split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """The words, and the command after ``--`` if there is one."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _form(words: list[str]) -> str:
    """Whether errors should be JSON too: asked before the words have been understood."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    wanted = any(one == "--output" and other == "json" for one, other in pairs)
    return "json" if wanted or "--output=json" in words else "text"


def _usage(error: click.ClickException) -> str:
    text: str = error.format_message()
    context: Any = getattr(error, "ctx", None)
    if context is not None and context.parent is not None:
        text += f"\n{context.get_usage()}"
    return text
