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


def option(spec: str, text: str, name: str | None = None, **settings: Any) -> Callable[[F], F]:
    """Declare an option: ``"--flag"``, ``"--key VALUE"``, ``"--key VALUE..."`` for one of many.

    A shell completes a FILE and a DIR; ``name`` is the verb's parameter, if it is another word.
    """
    keys = spec.split()
    value = "" if keys[-1].startswith("-") else keys.pop()
    found: dict[str, Any] = {"is_flag": True}
    if value:
        form = value.removesuffix("...")
        complete = {"FILE": files, "LOCK": files, "DIR": folders}.get(form)
        found = {"metavar": form, "multiple": value != form, "shell_complete": complete}
    return click.option(*keys, *filter(None, [name]), help=text, **{**found, **settings})


def _output(ctx: click.Context, param: click.Parameter, value: str) -> Output:
    return Output("json" if ctx.params.pop("json", False) else value)


def output_option(function: F) -> F:
    """Add ``--output FORM``, and ``--json`` for its most used form; the verb gets an `Output`."""
    form = option(
        "--output FORM",
        "text, or json: everything there is, as JSON.",
        type=click.Choice(["text", "json"]),
        default="text",
        callback=_output,
    )
    # Eager, so that it is known when the other one is.
    short = option("--json", "The same as --output json.", is_eager=True)
    return form(short(function))


CONFIG = option("--config FILE", "A configuration, not the usual ones.")
YES = option("-y --yes", "Do it without being asked.")
HEADER = option("--header K:V...", "A header for the URL.")
TRANSPORT = option(
    "--transport HOW",
    "Speak to the URL so: auto, streamable or sse.",
    type=click.Choice(["auto", "streamable", "sse"]),
)
CWD = option("--cwd DIR", "Where the command runs.")
SAVE = option("--save DIR", "Where pictures and other files go.")


def session_tools(function: F) -> F:
    """Add ``--open`` and ``--close``."""
    for word, text in (
        ("close", "The tool that closes it."),
        ("open", "The tool that opens a session."),
    ):
        usual = f"session.{word}"
        add = option(f"--{word} TOOL", text, f"{word}_tool", default=usual, show_default=True)
        function = add(function)
    return function


@click.command()
@output_option
@option("--url URL", "A server at a URL.")
@HEADER
@TRANSPORT
@option("--env K[=V]...", "A variable for the command; without a value, the one set here.")
@option(
    "--inherit-env [NAMES]",
    "Pass on these variables (A,B), or all of them.",
    is_flag=False,
    flag_value=EVERYTHING,
)
@CWD
@CONFIG
@option("--timeout SECONDS", "How long one request may take.", type=float)
@option("--protocol REVISION", "Speak this revision and no other.")
@option("--log FILE", "Add the calls to a log, as JSON lines.")
@option("--lock FILE", "Refuse tools that are not as the lock file says.")
@option("--trace", "Show each message, without secrets, on stderr.")
@option("-v --verbose", "Show the server's stderr, and logs.")
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
