"""The server that a command line names: from the configuration, by URL, or by command.

Every verb takes it the same way, with the same options; `server_options` adds them.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast._core.text import did_you_mean, visible_lines
from holdfast.cli import tool_cache
from holdfast.cli.consent import approve_in_place, is_interactive, offer_login
from holdfast.cli.options import OPTIONS, inherited, pairs, variables
from holdfast.cli.output import Output, show_message, show_stderr
from holdfast.cli.progress import status
from holdfast.errors import RpcError, ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.config import ConfigInput, Configuration, ServerEntry

VARIABLE = "MCP_SERVER_URL"
"""As `holdfast._core.targets` has it, which need not be loaded to ask whether it is set."""

NO_SERVER = "No server is configured. Add one: holdfast add NAME -- COMMAND, or NAME URL."

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class ServerTarget:
    """The server of one command line, and the options to reach it."""

    def __init__(
        self,
        output: Output,
        command: list[str] | None = None,
        url: str | None = None,
        *,
        config: str | None = None,
        verbose: bool = False,
        trace: bool = False,
    ) -> None:
        self.output = output
        self.command = command
        self.url = url
        self.config = config
        self.verbose = verbose
        self.trace = trace
        self.is_login = False
        """A login was asked for: it is not offered first."""
        self.options: dict[str, Any] = {}
        """Of ``holdfast.connect``, for any server."""
        self.stdio: dict[str, Any] = {}
        """The same, for a command: ``env`` and ``cwd`` as given, and what verbs want."""
        self.http: dict[str, Any] = {}
        """The same, for a URL."""

    @property
    def given(self) -> bool:
        """True if the server is a URL or a command, so that no word names it."""
        return self.command is not None or self.url is not None

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration, read at the first use."""
        from holdfast.config import load

        return load(self.config)

    def take(self, words: tuple[str, ...], *wanted: str) -> tuple[str | None, list[str]]:
        """Return the server of ``[SERVER] wanted…``, unless given otherwise, and the rest."""
        rest = list(words)
        server = None
        if not self.given and not (self._from_variable and not self._names_server(rest, wanted)):
            if not rest or (len(rest) <= len(wanted) and not self._is_server(rest[0])):
                raise click.UsageError(f"Which server? {self.hint()}")
            server = rest.pop(0)
        if len(rest) < len(wanted):
            raise click.UsageError(f"Missing: {' '.join(wanted[len(rest) :])}.")
        if len(rest) > len(wanted):
            extra = " ".join(rest[len(wanted) :])
            already = " (the server is given already)" if server is None else ""
            raise click.UsageError(f"Not understood: {extra}{already}.")
        return server, rest

    def _is_server(self, word: str) -> bool:
        return is_direct(word) or word in self.configuration.servers

    def only(self, words: tuple[str, ...]) -> str | None:
        """Return the server, where nothing else is wanted."""
        return self.take(words)[0]

    def split(self, word: str) -> tuple[str | None, str]:
        """Split ``git.git_log`` into server and tool; no server if it is given otherwise."""
        if self.given:
            return None, word
        server, rest = self.prefix(word)
        if server is not None or self._from_variable:
            return server, rest
        if word.rstrip(".") in self.configuration.servers:
            raise click.UsageError(f"Which one of {word.rstrip('.')!r}? Write SERVER.NAME.")
        hint = self._elsewhere(word) or self.hint(word)
        raise ValidationError(f"{word!r} begins with no configured server. {hint}")

    def prefix(self, word: str) -> tuple[str | None, str]:
        """Return the configured server that a word begins with, and the rest; else the word."""
        for name in sorted(self.configuration.servers, key=len, reverse=True):
            if word.startswith(f"{name}.") and len(word) > len(name) + 1:
                return name, word[len(name) + 1 :]
        return None, word

    def _elsewhere(self, word: str) -> str:
        """Return a hint, if ``word`` is ``server/tool``, or a tool that a server was seen with."""
        from holdfast.cli.find_tool import seen_with

        server, *tool = re.split("[/:]", word, maxsplit=1)
        if tool and server in self.configuration.servers:
            return f"Did you mean {f'{server}.{tool[0]}'!r}?"
        places = seen_with(self.configuration.servers, word)
        return f"Did you mean {' or '.join(map(repr, places))}?" if places else ""

    def named(self, word: str, words: tuple[str, ...]) -> tuple[str | None, str, tuple[str, ...]]:
        """Return server, name and the rest of ``server.name …`` or ``server name …``."""
        is_server = not self.given and self._is_server(word)
        if is_server and words and words[0][:1] not in "-{" and "=" not in words[0]:
            return word, words[0], words[1:]
        if is_server and is_direct(word):
            raise click.UsageError(f"Which one of {word!r}? Write its name after it.")
        return *self.split(word), words

    @property
    def is_open(self) -> bool:
        """True if no server is given, so that all of them may be meant."""
        return not self.given and not self._from_variable

    def client(self, server: str | None = None, *, ask: bool = True) -> Client:
        """Return a client, not connected yet; ``ask`` a person for what is missing."""
        _show_logs(self.verbose)
        client = self._client(server, ask)
        if ask:
            status.follow(client)
        return client

    def _client(self, server: str | None, ask: bool) -> Client:
        if server is not None and self.is_configured(server):
            return self._configured(server, ask)
        target = self.command or self.url or server or os.environ.get(VARIABLE) or ""
        import holdfast

        options = {**self.options, **self._fitting(target)}
        options = self._with_login(options, target) if ask else options
        if not self.trace:
            return holdfast.connect(target, **options)
        from holdfast._connect import Options
        from holdfast._core.targets import transport_for

        own = {name: options.pop(name) for name in Options.__optional_keys__ if name in options}
        return holdfast.connect(_traced(transport_for(target, own, os.environ)), **options)

    def reach(self) -> str:
        """Return the options that lead to the same server, quoted for a shell."""
        from holdfast.lock.commands import reach

        return reach(
            self.command or self.url,
            env=self.stdio.get("env"),
            inherit_env=self.stdio.get("inherit_env"),
            cwd=self.stdio.get("cwd"),
            headers=self.http.get("headers"),
            transport=self.http.get("transport"),
            protocol=self.options.get("protocol"),
            config=self.config,
        )

    def _fitting(self, target: str | list[str]) -> dict[str, Any]:
        """Return the options for this kind of server; refuse those for the other kind."""
        if isinstance(target, str) and is_url(target):
            _refuse(
                self.stdio, ("env", "cwd", "inherit_env"), "for a command, and the server is a URL"
            )
            return self.http
        _refuse(self.http, ("headers", "transport"), "for a URL, and the server is a command")
        return self.stdio

    def is_configured(self, name: str) -> bool:
        """Return whether a word names a server of the configuration, and is none itself."""
        return not is_url(name) and (not is_script(name) or name in self.configuration.servers)

    def entry(self, name: str) -> ServerEntry:
        """Return a configured server.

        Raises:
            ValidationError: There is none of this name.
        """
        entry = self.configuration.servers.get(name)
        if entry is None:
            raise ValidationError(f"There is no server {name!r}. {self.hint(name)}")
        return entry

    def _configured(self, name: str, ask: bool) -> Client:
        entry = self.entry(name)
        from holdfast.config.resolution import admit, client_for

        if ask and not self.output.json:
            approve_in_place(self.configuration, name)
        resolved = admit(entry, prompt=_ask if ask else None)
        options = dict(self._fitting(resolved.url or list(resolved.command)))
        options = {**self.options, **options}
        options = self._with_login(options, resolved.url or "") if ask else options
        for key, said in (("env", resolved.env), ("headers", resolved.headers)):
            if key in options:
                options[key] = {**said, **options[key]}
        return client_for(resolved, options, _traced if self.trace else None)

    def _with_login(self, options: dict[str, Any], target: str | list[str]) -> dict[str, Any]:
        """Add a login handler at a terminal; elsewhere a missing login is an error."""
        if not (isinstance(target, str) and is_url(target)) or self.output.json:
            return options
        if not is_interactive() or os.environ.get("HOLDFAST_NO_BROWSER"):
            return options
        from msgspec import structs

        from holdfast import Handlers, browser_login

        login = browser_login if self.is_login else offer_login
        handlers = structs.replace(options.get("handlers") or Handlers(), login=login)
        return {"auth": "oauth", **options, "handlers": handlers}

    # What was seen of it

    def key(self, server: str | None) -> str:
        """Return the key that a server's tools are stored under."""
        if self.command is not None:
            return shlex.join(self.command)
        if server is not None and not is_url(server) and not self.is_configured(server):
            return os.path.abspath(server)
        return self.url or server or os.environ.get(VARIABLE, "")

    def keep(self, server: str | None, tools: list[dict[str, Any]]) -> None:
        """Store a server's tools for completion and ``--offline``."""
        source = ""
        if server is not None and self.is_configured(server):
            source = self.configuration[server].source.file
        tool_cache.save(self.key(server), tools, source)

    async def list_tools(self, server: str | None, client: Client) -> list[dict[str, Any]]:
        """Return the tools as the server describes them, and store them."""
        # A cache that lives as long as one command would answer nobody.
        found = [tool.raw for tool in await client.list_tools(cache="bypass")]
        self.keep(server, found)
        return found

    # Which one it is

    @property
    def _from_variable(self) -> bool:
        return bool(os.environ.get(VARIABLE))

    def _names_server(self, words: list[str], wanted: tuple[str, ...]) -> bool:
        """Return True if the first word is a server, although the environment gives one."""
        if len(words) <= len(wanted):
            return False
        return self._is_server(words[0])

    def hint(self, word: str = "") -> str:
        """Return the servers that there are, or what ``word`` may mean."""
        if re.match(r"[\w.-]+:\d+(/|$)", word):
            return f"A URL begins with http:// or https://: is it http://{word}?"
        if _has_script_suffix(word):
            return "Nor is there such a file."
        names = list(self.configuration.servers)
        if hint := did_you_mean(word.partition(".")[0], names):
            return f"D{hint[1:]}"
        if names:
            return f"Configured: {', '.join(names)}. Or give --url URL, or -- COMMAND."
        return (
            "No server is configured: give --url URL, or a command after --, "
            f"set {VARIABLE}, or see 'holdfast add --help'."
        )


async def known(listing: Awaitable[Sequence[T]]) -> Sequence[T] | None:
    """Return a list; None if the server does not know the method."""
    from holdfast._core.wire.codes import METHOD_NOT_FOUND

    try:
        return await listing
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return None


def _traced(transport: Any) -> Any:
    """Return a transport that shows its messages."""
    from holdfast._core.transports.trace import TracedTransport

    return TracedTransport(transport, show_message)


def is_url(text: str) -> bool:
    """Return whether a word is a URL."""
    return text.lower().startswith(("http://", "https://"))


def is_direct(text: str) -> bool:
    """Return whether a word is a server itself: a URL, or a script that is there."""
    return is_url(text) or is_script(text)


def is_script(text: str) -> bool:
    """Return whether a word is the path of a script that can be run."""
    return "." in text and os.path.isfile(text) and _has_script_suffix(text)


def _has_script_suffix(text: str) -> bool:
    from holdfast._core.targets import SCRIPTS

    return os.path.splitext(text)[1].lower() in SCRIPTS


_SAID_AS = {
    "env": "--env",
    "inherit_env": "--inherit-env",
    "cwd": "--cwd",
    "headers": "--header",
    "transport": "--transport",
}


def _refuse(options: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name in options:
            raise ValidationError(f"{_SAID_AS[name]} is {why}")


def _ask(wanted: ConfigInput) -> str | None:
    """Ask for a value that a configuration leaves to its user; None without a terminal."""
    if not sys.stdin.isatty():
        return None
    text = visible_lines(wanted.description or wanted.id)
    answer: str = click.prompt(text, hide_input=wanted.password, default=wanted.default, err=True)
    return answer


def server_options(function: F) -> Any:
    """Give a verb the common options; it receives them as a `ServerTarget`, its first argument.

    The verb may be a coroutine; it returns the exit code.
    """

    @wraps(function)
    def run(**given: Any) -> Any:
        target = _gather(click.get_current_context().obj, given)
        found = function(target, **given)
        return _run(found) if inspect.iscoroutine(found) else found

    verb: Any = run
    for option in reversed(OPTIONS):
        verb = option(verb)
    return verb


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run on a loop of its own; Ctrl-C cancels calls and closes servers."""
    import asyncio

    try:
        with asyncio.Runner() as runner:
            return runner.run(work)
    finally:
        status.end()


def _gather(command: list[str] | None, given: dict[str, Any]) -> ServerTarget:
    url = given.pop("url")
    if url is not None and command is not None:
        raise click.UsageError("Give --url or a command after --, not both.")
    if url is not None and not is_url(url):
        raise click.UsageError(f"--url {url!r}: a URL begins with http:// or https://.")
    if command is not None and not command:
        raise click.UsageError("There is no command after --.")
    verbose = given.pop("verbose")
    stdio = {
        "stderr": show_stderr if verbose else None,
        "env": (env := given.pop("env")) and variables(env, os.environ),
        "inherit_env": (names := given.pop("inherit_env")) and inherited(names),
        "cwd": given.pop("cwd"),
    }
    http = {
        "headers": (header := given.pop("header")) and pairs("--header", header, ":"),
        "transport": given.pop("transport"),
    }
    target = ServerTarget(
        Output(given.pop("output")),
        command,
        url,
        config=given.pop("config"),
        verbose=verbose,
        trace=given.pop("trace"),
    )
    target.stdio = {name: value for name, value in stdio.items() if value}
    target.http = {name: value for name, value in http.items() if value}
    target.options = _policies(given)
    return target


def _policies(given: dict[str, Any]) -> dict[str, Any]:
    options = {name: given.pop(name) for name in ("protocol", "log", "lock")}
    seconds = given.pop("timeout")
    if seconds is not None:
        from holdfast.policies import Timeouts

        total = max(seconds, Timeouts().total)
        options["timeouts"] = Timeouts(request=seconds, handshake=seconds, total=total)
    return {name: value for name, value in options.items() if value is not None}


def _show_logs(verbose: bool) -> None:
    """Show the library's log with ``--verbose``; else only what the verb writes."""
    import logging

    logger = logging.getLogger("holdfast")
    if verbose:
        shown, plain = logging.StreamHandler(), logging.Formatter("%(name)s: %(message)s")
        # Messages may quote a server: they are shown as its stderr is.
        shown.format = partial(_safe_line, plain)  # type: ignore[method-assign]
        logging.basicConfig(handlers=[shown])
        logger.setLevel(logging.DEBUG)
    elif not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _safe_line(plain: Any, record: Any) -> str:
    from holdfast._core.redact import redact_text

    return visible_lines(redact_text(plain.format(record)))
