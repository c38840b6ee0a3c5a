"""Which server a command is about: a name from the configuration, a URL, or a command.

Every verb takes it the same way, with the same options; `aimed` adds them.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.output import Output, harmless
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.configuration import Configuration, Input

VARIABLE = "MCP_SERVER_URL"
"""As `holdfast.targets` has it, which need not be loaded to ask whether it is set."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Aim:
    """One command's server, as it was said, and how to reach it."""

    output: Output
    command: list[str] | None = None
    url: str | None = None
    config: str | None = None
    verbose: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """Of ``holdfast.connect``."""
    stdio: dict[str, Any] = field(default_factory=dict)
    http: dict[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether the server is a URL or a command, so that no word names it."""
        return self.command is not None or self.url is not None

    @cached_property
    def configuration(self) -> Configuration:
        from holdfast.configuration import load

        return load(self.config)

    def take(self, words: tuple[str, ...], wanted: str) -> tuple[str | None, list[str]]:
        """Of ``[SERVER] wanted…`` the server, unless it is given otherwise, and the rest."""
        rest = list(words)
        if self.given or (self._from_variable and not self._names_server(rest)):
            return None, rest
        if not rest:
            raise click.UsageError(f"Which server? {self._hint()}\nUsage: SERVER {wanted}")
        return rest.pop(0), rest

    def split(self, word: str) -> tuple[str | None, str]:
        """``git.git_log``: the server and the tool; only the tool if the server is given."""
        if self.given:
            return None, word
        names = sorted(self.configuration.servers, key=len, reverse=True)
        for name in names:
            if word.startswith(f"{name}."):
                return name, word[len(name) + 1 :]
        if self._from_variable:
            return None, word
        raise ValidationError(f"{word!r} begins with no configured server. {self._hint(word)}")

    def client(self, server: str | None = None) -> Client:
        """A client for the server, not connected yet."""
        _show_logs(self.verbose)
        if self.command is not None:
            return self._connect(self.command or None, self.stdio)
        if self.url is not None:
            return self._connect(self.url, self.http)
        if server is None:
            return self._connect(None, {})
        if server.lower().startswith(("http://", "https://")):
            return self._connect(server, self.http)
        return self._configured(server)

    def _connect(self, target: Any, more: dict[str, Any]) -> Client:
        import holdfast

        return holdfast.connect(target, **self.options, **more)

    def _configured(self, name: str) -> Client:
        entry = self.configuration.servers.get(name)
        if entry is None:
            raise ValidationError(f"There is no server {name!r}. {self._hint(name)}")
        extra = {} if entry.url is not None else self.stdio
        return entry.connect(prompt=_ask, **self.options, **extra)

    @property
    def _from_variable(self) -> bool:
        return bool(os.environ.get(VARIABLE))

    def _names_server(self, words: list[str]) -> bool:
        return bool(words) and words[0] in self.configuration.servers

    def _hint(self, word: str = "") -> str:
        names = list(self.configuration.servers)
        near = get_close_matches(word.partition(".")[0], names, 1)
        if near:
            return f"Did you mean {near[0]!r}?"
        if names:
            return f"Configured: {', '.join(names)}. Or give --url URL, or -- COMMAND."
        return (
            "No server is configured: give --url URL, or a command after --, "
            f"set {VARIABLE}, or add one to .mcp.json."
        )


def _ask(wanted: Input) -> str | None:
    """A value that a configuration leaves to its user; None where nobody can be asked."""
    if not sys.stdin.isatty():
        return None
    text = harmless(wanted.description or wanted.id)
    answer: str = click.prompt(text, hide_input=wanted.password, default=wanted.default, err=True)
    return answer


def aimed(function: F) -> Any:
    """A verb about a server: the common options, gathered into an `Aim` as its first argument.

    The verb may be a coroutine; what it returns is the exit code.
    """

    @wraps(function)
    def run(**given: Any) -> Any:
        aim = _gather(click.get_current_context().obj, given)
        found = function(aim, **given)
        return _run(found) if inspect.iscoroutine(found) else found

    verb: Any = run
    for option in reversed(OPTIONS):
        verb = option(verb)
    return verb


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """On a loop of its own, which Ctrl-C ends: calls are cancelled, servers told and closed."""
    import asyncio

    with asyncio.Runner() as runner:
        return runner.run(work)


def _gather(command: list[str] | None, given: dict[str, Any]) -> Aim:
    url = given.pop("url")
    if url is not None and command is not None:
        raise click.UsageError("Give --url or a command after --, not both.")
    if command is not None and not command:
        raise click.UsageError("There is no command after --.")
    verbose = given.pop("verbose")
    stdio: dict[str, Any] = {"stderr": "inherit"} if verbose else {}
    env, cwd = given.pop("env"), given.pop("cwd")
    if env:
        stdio["env"] = dict(_pairs("--env", env, "="))
    if cwd:
        stdio["cwd"] = cwd
    http: dict[str, Any] = {"transport": given.pop("transport")}
    headers = given.pop("header")
    if headers:
        http["headers"] = dict(_pairs("--header", headers, ":"))
    return Aim(
        Output(given.pop("output")),
        command,
        url,
        given.pop("config"),
        verbose,
        _policies(given),
        stdio,
        http,
    )


def _policies(given: dict[str, Any]) -> dict[str, Any]:
    options = {name: given.pop(name) for name in ("protocol", "log", "lock")}
    seconds = given.pop("timeout")
    if seconds is not None:
        from holdfast.config import Timeouts

        options["timeouts"] = Timeouts(request=seconds, handshake=seconds)
    return {name: value for name, value in options.items() if value is not None}


def _pairs(option: str, texts: tuple[str, ...], mark: str) -> list[tuple[str, str]]:
    found = []
    for text in texts:
        name, sign, value = text.partition(mark)
        if not sign or not name.strip():
            raise click.UsageError(f"{option} {text!r}: must be NAME{mark}VALUE")
        found.append((name.strip(), value.strip() if mark == ":" else value))
    return found


def _show_logs(verbose: bool) -> None:
    """With --verbose the library's own words too; else only what the verb says."""
    import logging

    logger = logging.getLogger("holdfast")
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
        logger.setLevel(logging.DEBUG)
    elif not logger.handlers:
        logger.addHandler(logging.NullHandler())


OPTIONS = (
    click.option("--url", metavar="URL", help="A server at a URL."),
    click.option("--header", metavar="K:V", multiple=True, help="A header for the URL."),
    click.option(
        "--transport",
        type=click.Choice(["auto", "streamable", "sse"]),
        default="auto",
        help="How to speak to the URL.",
    ),
    click.option("--env", metavar="K=V", multiple=True, help="A variable for the command."),
    click.option("--cwd", metavar="DIR", help="Where the command runs."),
    click.option("--config", metavar="FILE", help="A configuration, not the usual ones."),
    click.option("--timeout", metavar="SECONDS", type=float, help="How long one request may take."),
    click.option("--protocol", metavar="REVISION", help="Speak this revision and no other."),
    click.option("--log", metavar="FILE", help="Add the calls to a log, as JSON lines."),
    click.option("--lock", metavar="FILE", help="Refuse tools that are not as the lock file says."),
    click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        help="json: everything the server said, as JSON.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Show the server's stderr, and logs."),
)
