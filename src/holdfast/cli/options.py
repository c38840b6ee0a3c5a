"""The options of the verbs: those that every verb about a server has, and how help shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from holdfast.cli.output import Output

F = TypeVar("F", bound=Callable[..., Any])

EVERYTHING: Final = "*"
"""What ``--inherit-env`` without names stands for."""

_NAMES: Final = re.compile(r"[A-Z_][A-Z0-9_]*(,[A-Z_][A-Z0-9_]*)*")


files: Final = click.Path().shell_complete
folders: Final = click.Path(file_okay=False).shell_complete


class ServerCommand(click.Command):
    """A verb that takes a server. Its help shows first what is its own."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Add the command after ``--`` to the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's own options first, then the common ones."""
        parts: dict[str, list[tuple[str, str]]] = {"Options": [], "Server options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                parts["Server options" if parameter.name in COMMON else "Options"].append(record)
        for title, records in parts.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _output(ctx: click.Context, param: click.Parameter, value: str) -> Output:
    return Output("json" if ctx.params.pop("json", False) else value)


def output_option(function: F) -> F:
    """Add ``--output FORM``, and ``--json`` for its most used form; the verb gets an `Output`."""
    form = click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        metavar="FORM",
        callback=_output,
        help="text, or json: everything there is, as JSON.",
    )
    # Eager, so that it is known when the other one is.
    short = click.option("--json", is_flag=True, is_eager=True, help="The same as --output json.")
    return form(short(function))


CONFIG = click.option(
    "--config", metavar="FILE", shell_complete=files, help="A configuration, not the usual ones."
)
YES = click.option("-y", "--yes", is_flag=True, help="Do it without being asked.")
HEADER = click.option("--header", metavar="K:V", multiple=True, help="A header for the URL.")
TRANSPORT = click.option(
    "--transport",
    type=click.Choice(["auto", "streamable", "sse"]),
    metavar="HOW",
    help="Speak to the URL so: auto, streamable or sse.",
)
CWD = click.option("--cwd", metavar="DIR", shell_complete=folders, help="Where the command runs.")
SAVE = click.option(
    "--save", metavar="DIR", shell_complete=folders, help="Where pictures and other files go."
)


def session_tools(function: F) -> F:
    """Add ``--open`` and ``--close``."""
    for word, what in (("close", "closes it"), ("open", "opens a session")):
        function = click.option(
            f"--{word}",
            f"{word}_tool",
            metavar="TOOL",
            default=f"session.{word}",
            show_default=True,
            help=f"The tool that {what}.",
        )(function)
    return function


@click.command()
@output_option
@click.option("--url", metavar="URL", help="A server at a URL.")
@HEADER
@TRANSPORT
@click.option(
    "--env",
    metavar="K[=V]",
    multiple=True,
    help="A variable for the command; without a value, the one set here.",
)
@click.option(
    "--inherit-env",
    metavar="[NAMES]",
    is_flag=False,
    flag_value=EVERYTHING,
    help="Pass on these variables (A,B), or all of them.",
)
@CWD
@CONFIG
@click.option("--timeout", metavar="SECONDS", type=float, help="How long one request may take.")
@click.option("--protocol", metavar="REVISION", help="Speak this revision and no other.")
@click.option(
    "--log", metavar="FILE", shell_complete=files, help="Add the calls to a log, as JSON lines."
)
@click.option(
    "--lock",
    metavar="FILE",
    shell_complete=files,
    help="Refuse tools that are not as the lock file says.",
)
@click.option("--trace", is_flag=True, help="Show each message, without secrets, on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Show the server's stderr, and logs.")
def _any_verb() -> None:
    """Stand for every verb about a server."""


OPTIONS: Final = _any_verb.params
COMMON: Final = frozenset(str(one.name) for one in OPTIONS) - {"output", "json"}
"""Those of them that help shows apart."""


def explicit(words: list[str]) -> list[str]:
    """Return the words, with ``--inherit-env`` tied to all variables where no names follow.

    click would take any next word for its value, a server's name too.
    """
    following = [*words[1:], ""]
    return [
        f"{word}={EVERYTHING}" if word == "--inherit-env" and not _NAMES.fullmatch(after) else word
        for word, after in zip(words, following, strict=True)
    ]


def pairs(option: str, texts: tuple[str, ...], mark: str = "=") -> dict[str, str]:
    """Parse ``NAME=VALUE`` or ``NAME:VALUE`` of an option that may be given often."""
    found = {}
    for text in texts:
        name, sign, value = text.partition(mark)
        if not sign or not name.strip():
            raise click.UsageError(f"{option} {text!r}: must be NAME{mark}VALUE")
        found[name.strip()] = value.strip() if mark == ":" else value
    return found
