"""click: the options that verbs share, how a verb is found and run, errors as exit codes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from holdfast._core.text import did_you_mean
from holdfast.cli.main import MOVED, VERBS, WITHOUT_SERVER, columns_of_terminal, help_text
from holdfast.cli.output import Exit, Output, abandon
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast import Client

F = TypeVar("F", bound=Callable[..., Any])

EVERYTHING: Final = "*"
"""What ``--inherit-env`` without names stands for."""

_NAMES: Final = re.compile(r"[A-Z_][A-Z0-9_]*(,[A-Z_][A-Z0-9_]*)*")


files: Final = click.Path().shell_complete
folders: Final = click.Path(file_okay=False).shell_complete


class ServerCommand(click.Command):
    """A verb that takes the command of a server after ``--``."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Add the command after ``--`` to the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


SERVER_OPTIONS: Final = "Options of the server (--url, --env, ...): holdfast help servers."


def option(spec: str, text: str, name: str | None = None, **settings: Any) -> Callable[[F], F]:
    """Declare an option: ``"--flag"``, ``"--key VALUE"``, ``"--key VALUE..."`` for one of many.

    A shell completes a FILE and a DIR; ``name`` is the verb's parameter, if it is another word.
    """
    keys = spec.split()
    value = "" if keys[-1].startswith("-") else keys.pop()
    attributes: dict[str, Any] = {"is_flag": True}
    if value:
        form = value.removesuffix("...")
        complete = {"FILE": files, "LOCK": files, "DIR": folders}.get(form)
        attributes = {"metavar": form, "multiple": value != form, "shell_complete": complete}
    attributes["show_default"] = "default" in settings
    return click.option(*keys, *filter(None, [name]), help=text, **{**attributes, **settings})


def output_option(function: F) -> F:
    """Add ``--json``; the verb gets the `Output` that `run` made by it."""
    declare = option(
        "--json",
        "Everything there is, as JSON.",
        "output",
        callback=lambda ctx, param, value: ctx.obj.output,
    )
    return declare(function)


CONFIG = option("--config FILE", "Read this configuration file, not the usual ones.")
YES = option("-y --yes", "Do not ask for confirmation.")
HEADER = option("--header K:V...", "A header for the URL.")
TRANSPORT = option(
    "--transport HOW",
    "The transport for the URL: auto, streamable or sse.",
    type=click.Choice(["auto", "streamable", "sse"]),
)
CWD = option("--cwd DIR", "The working directory of the command.")
REGISTRY = option(
    "--registry [URL]",
    "The registry of MCP servers; with a URL, another one.",
    is_flag=False,
    flag_value=EVERYTHING,
)
SAVE = option("--save DIR", "The folder for pictures and other files.")


def no_empty_word(
    context: click.Context, parameter: click.Parameter, words: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse an empty word: of ``--allow "$TOOLS"`` without a value nobody knows what is meant."""
    if any(not word.strip() for word in words):
        raise click.UsageError(f"{parameter.opts[0]} '': must be the name of a tool, or a pattern.")
    return words


ALLOW = option("--allow TOOL...", "Offer these tools only (git_*).", callback=no_empty_word)
DENY = option("--deny TOOL...", "Do not offer these tools.", callback=no_empty_word)
OPEN = option("--open TOOL", "The tool that opens a session.", "open_tool", default="session.open")
CLOSE = option("--close TOOL", "The tool that closes it.", "close_tool", default="session.close")


@click.command()
@output_option
@option("--url URL", "A server at a URL.")
@HEADER
@TRANSPORT
@option("--env K[=V]...", "A variable for the command; without a value, the one set here.")
@option(
    "--inherit-env [NAMES]",
    "Pass these variables (A,B), or all, to the command.",
    is_flag=False,
    flag_value=EVERYTHING,
)
@CWD
@CONFIG
@option("--timeout SECONDS", "The timeout of one request.", type=float)
@option("--concurrent N", "Send the server at most N calls at once.", type=int)
@option("--rate RATE", "Send it at most so many calls in a time, such as 60/m or 10/s.")
@option("--protocol REVISION", "Use this protocol revision and no other.")
@option("--log FILE", "Append the calls to a log, as JSON lines.")
@option("--lock FILE", "Refuse tools that differ from the lock file.")
@option(
    "--trace [FORM]",
    "Show each message on stderr, redacted; --trace=full with its body.",
    is_flag=False,
    flag_value="head",
    type=click.Choice(["head", "full"]),
)
@option("--trace-file FILE", "Write everything that crosses the wire to a file, for 'view'.")
@option("-v --verbose", "Show the server's stderr, and the client's log.")
def _any_verb() -> None:
    """Stand for every verb about a server."""


OPTIONS: Final = _any_verb.params
COMMON: Final = frozenset(str(parameter.name) for parameter in OPTIONS) - {"output"}
"""The options of `ServerTarget`, which help shows apart."""


def pairs(option: str, texts: tuple[str, ...], mark: str = "=") -> dict[str, str]:
    """Parse ``NAME=VALUE`` or ``NAME:VALUE`` of an option that may be given often."""
    values = {}
    for text in texts:
        name, sign, value = text.partition(mark)
        if not sign or not name.strip():
            # The text may be a secret whose name was forgotten.
            word = "…" if option in ("--env", "--header") else repr(text)
            raise click.UsageError(f"{option} {word}: must be NAME{mark}VALUE")
        values[name.strip()] = value.strip() if mark == ":" else value
    return values


# Verbs

DEBUG = "HOLDFAST_DEBUG"
"""The variable that makes an internal error print its traceback."""

LISTS = ("list", "ls")
"""Synonyms of ``tools`` with a server, and of ``servers`` without one."""

SYNONYMS = {
    **dict.fromkeys(("exec", "invoke", "use"), "call"),
    **dict.fromkeys(("info", "inspect", "show"), "describe"),
    **dict.fromkeys(("delete", "rm"), "remove"),
    **dict.fromkeys(("find", "grep"), "search"),
    **dict.fromkeys(("health", "list-servers"), "status"),
    "new": "add",
}
"""Words of other tools, and the verb to suggest."""


def moved(verb: str) -> click.UsageError:
    """Return the error for a verb that there was: one line, with what does its work now."""
    return click.UsageError(f"'{verb}' is gone. Use: {MOVED[verb]}")


class SubVerbs(click.Group):
    """The verbs below a verb, such as ``log replay``."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb; raise a pointer for one that there was."""
        if (path := f"{self.name} {cmd_name}") in MOVED:
            raise moved(path)
        return super().get_command(ctx, cmd_name)


class Verbs(click.Group):
    """All verbs, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Load a verb; suggest the nearest for one that does not exist."""
        if cmd_name in MOVED:
            raise moved(cmd_name)
        if cmd_name not in VERBS:
            meant = SYNONYMS.get(cmd_name, cmd_name)
            calls = [f"call {meant}"] if "." in meant.strip(".") else []
            near = did_you_mean(meant, calls or [*VERBS, *LISTS, "help", "version"])
            hint = f" D{near[1:]}" if near else ""
            raise click.UsageError(f"There is no verb '{cmd_name}'.{hint} See 'holdfast --help'.")
        module, summary = VERBS[cmd_name]
        keyword = "_" * (cmd_name in ("import", "map"))
        verbs = import_module(f"holdfast.cli.verbs.{module}")
        command: click.Command = getattr(verbs, cmd_name.replace("-", "_") + keyword)
        command.short_help = summary
        return command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first screen."""
        formatter.write(help_text())


HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
root: Verbs = Verbs("holdfast", context_settings=HELP)


class CommandLine(NamedTuple):
    """The values that `run` gives to verbs, as the context's ``obj``."""

    output: Output
    command: list[str] | None
    """The words after ``--``."""
    open_client: Client | None
    """The connection of the shell, if this is a line of one."""


# How a command line runs
#
# click parses, and decides nothing else. Its own `main` would print errors in its words, exit with
# 1 for all of them, and take SIGINT and closed pipes for itself. Here every way in which a command
# can end is a row of `run`, and has its exit code.
#
# Two things are read from the words before click sees them. ``--`` ends our words: what follows is
# the server's command, whose options are its own, even ``--help``. And the form of the output,
# because an error in the words themselves has to be JSON for somebody who asked for JSON.


def run(words: list[str], open_client: Client | None = None) -> int:
    """Run one command line, or a line of a shell with its connection; return the exit code.

    Unlike ``root.main``, which would take care of signals, pipes and exit codes itself.
    """
    words, command = split(words) if open_client is None else (words, None)
    # The form of errors is needed before the words are parsed.
    output = Output("json" if "--json" in words else "text")
    line = CommandLine(output, command, open_client)
    width = min(columns_of_terminal(), 80)
    try:
        with root.make_context("holdfast", words, obj=line, terminal_width=width) as context:
            code = root.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else Exit.OK
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
        ending = "; the server was told to stop" if open_client is not None else ""
        return output.complain(f"interrupted{ending}", Exit.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        return abandon()
    except HoldfastError as error:
        return output.fail(error)
    except Exception as error:
        if os.environ.get(DEBUG):
            import traceback

            traceback.print_exception(error)
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = f"This is an internal error of holdfast; {DEBUG}=1 shows where."
        return output.complain(f"{message}\n{hint}", Exit.FAULT, "fault")


def split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the words for click, and the command after ``--``, of a verb about a server."""
    command = None
    if words[:1] and words[0] in LISTS:
        of_server = words[1:] and (words[1][:1] != "-" or {"--", "--url"} & set(words))
        words = ["tools" if of_server else "servers", *words[1:]]
    if "--" in words and not {words[0], " ".join(words[:2])} & WITHOUT_SERVER:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    following = [*words[1:], ""]
    words = [
        _with_value(word, after) for word, after in zip(words, following[: len(words)], strict=True)
    ]
    return words, command


def _with_value(word: str, after: str) -> str:
    """Give an option that may stand alone its value: click would take any next word for it."""
    if word == "--trace":
        return "--trace=head"
    is_alone = word == "--inherit-env" and not _NAMES.fullmatch(after)
    is_alone = is_alone or (word == "--registry" and "://" not in after)
    return f"{word}={EVERYTHING}" if is_alone else word


def _usage(error: click.ClickException) -> str:
    text: str = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.option_name == "--output":
        return f"{text} Use --json."
    context: Any = getattr(error, "ctx", None)
    if context is not None and context.parent is not None:
        return f"{text}\n{context.get_usage()}"
    if isinstance(error, click.NoSuchOption):
        return f"{text} Options stand after the verb; see 'holdfast --help'."
    return text
