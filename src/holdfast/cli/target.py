"""The server that a command line names: from the configuration, by URL, or by command.

Every verb takes it the same way, with the same options: it is a `ServerVerb`.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast._core.text import did_you_mean, visible_lines
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.cli import tool_cache
from holdfast.cli.elicitation import approve_in_place, ask_input, is_interactive, offer_login
from holdfast.cli.options import COMMON, EVERYTHING, OPTIONS, ServerCommand, pairs, variables
from holdfast.cli.output import Output, show_message, show_stderr
from holdfast.cli.progress import status
from holdfast.errors import RpcError, ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.config import Configuration, ServerEntry

VARIABLE = "MCP_SERVER_URL"
"""As `holdfast._core.targets` has it, which need not be loaded to ask whether it is set."""

NO_SERVER = "No server is configured. Add one: holdfast add NAME -- COMMAND, or NAME URL."

T = TypeVar("T")


class ServerTarget:
    """The server of one command line, and the options to reach it, as `OPTIONS` names them."""

    def __init__(
        self,
        output: Output,
        command: list[str] | None = None,
        *,
        url: str | None = None,
        header: tuple[str, ...] = (),
        transport: str | None = None,
        env: tuple[str, ...] = (),
        inherit_env: str | None = None,
        cwd: str | None = None,
        config: str | None = None,
        timeout: float | None = None,
        verbose: bool = False,
        trace: bool = False,
        **options: Any,
    ) -> None:
        if url is not None and command is not None:
            raise click.UsageError("Give --url or a command after --, not both.")
        if url is not None and not is_url(url):
            raise click.UsageError(f"--url {url!r}: a URL begins with http:// or https://.")
        if command is not None and not command:
            raise click.UsageError("There is no command after --.")
        self.output = output
        self.command = command
        self.url = url
        self.given = command is not None or url is not None
        """True if the server is a URL or a command, so that no word names it."""
        self.variable = os.environ.get(VARIABLE)
        self.is_open = not (self.given or self.variable)
        """True if no server is given, so that all of them may be meant."""
        self.config = config
        self.verbose = verbose
        self.trace = trace
        self.is_login = False
        """A login was asked for: it is not offered first."""
        self.stdio: dict[str, Any] = {"stderr": show_stderr} if verbose else {}
        """Options of ``holdfast.connect`` for a command: as given, and what verbs want."""
        if env:
            self.stdio["env"] = variables(env, os.environ)
        if inherit_env:
            names = tuple(filter(None, inherit_env.split(",")))
            self.stdio["inherit_env"] = True if inherit_env == EVERYTHING else names
        if cwd:
            self.stdio["cwd"] = cwd
        self.http: dict[str, Any] = {"transport": transport} if transport else {}
        """The same, for a URL."""
        if header:
            self.http["headers"] = pairs("--header", header, ":")
        self.options = {name: value for name, value in options.items() if value is not None}
        """The same, for any server."""
        if timeout is not None:
            from holdfast.policies import Timeouts

            total = max(timeout, Timeouts().total)
            self.options["timeouts"] = Timeouts(request=timeout, handshake=timeout, total=total)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration, read at the first use."""
        from holdfast.config import load

        return load(self.config)

    # Which one it is

    def take(self, words: tuple[str, ...], *wanted: str) -> tuple[str | None, list[str]]:
        """Return the server of ``[SERVER] wanted…``, unless given otherwise, and the rest."""
        rest = list(words)
        server = None
        is_longer = len(rest) > len(wanted)
        if not self.given and (not self.variable or (is_longer and self.is_server(rest[0]))):
            if not rest or not (is_longer or self.is_server(rest[0])):
                raise click.UsageError(f"Which server? {self.hint()}")
            server = rest.pop(0)
        if len(rest) < len(wanted):
            raise click.UsageError(f"Missing: {' '.join(wanted[len(rest) :])}.")
        if len(rest) > len(wanted):
            extra = " ".join(rest[len(wanted) :])
            already = " (the server is given already)" if server is None else ""
            raise click.UsageError(f"Not understood: {extra}{already}.")
        return server, rest

    def only(self, words: tuple[str, ...]) -> str | None:
        """Return the server, where nothing else is wanted."""
        return self.take(words)[0]

    def named(self, word: str, words: tuple[str, ...]) -> tuple[str | None, str, tuple[str, ...]]:
        """Return server, name and the rest of ``server.name …`` or ``server name …``.

        The server is None if it is given otherwise.
        """
        if self.given:
            return None, word, words
        servers = self.configuration.servers
        if is_direct(word) or word in servers:
            if words and words[0][:1] not in "-{" and "=" not in words[0]:
                return word, words[0], words[1:]
            if is_direct(word):
                raise click.UsageError(f"Which one of {word!r}? Write its name after it.")
        # The longest name is meant.
        for name in sorted(servers, key=len, reverse=True):
            if word.startswith(f"{name}.") and len(word) > len(name) + 1:
                return name, word[len(name) + 1 :], words
        if self.variable:
            return None, word, words
        if word.rstrip(".") in servers:
            raise click.UsageError(f"Which one of {word.rstrip('.')!r}? Write SERVER.NAME.")
        server, *tool = re.split("[/:]", word, maxsplit=1)
        hint = f"Did you mean {f'{server}.{tool[0]}'!r}?" if tool and server in servers else ""
        hint = hint or tool_cache.seen_with(servers, word) or self.hint(word)
        raise ValidationError(f"{word!r} begins with no configured server. {hint}")

    def is_server(self, word: str) -> bool:
        """Return whether a word is a server: a name, a URL, or a script."""
        return is_direct(word) or word in self.configuration.servers

    def entry(self, word: str | None) -> ServerEntry | None:
        """Return a configured server; None if there is no word, or it is a server itself.

        Raises:
            ValidationError: There is none of this name.
        """
        if word is None or is_url(word):
            return None
        entry = self.configuration.servers.get(word)
        if entry is None and not is_direct(word):
            raise ValidationError(f"There is no server {word!r}. {self.hint(word)}")
        return entry

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

    def reach(self) -> str:
        """Return the options that lead to the same server, quoted for a shell."""
        from holdfast.lock.commands import reach

        given = {**self.stdio, **self.http, "protocol": self.options.get("protocol")}
        given.pop("stderr", None)
        return reach(self.command or self.url, config=self.config, **given)

    # Its client

    def client(self, server: str | None = None, *, ask: bool = True) -> Client:
        """Return a client, not connected yet; ``ask`` a person for what is missing."""
        import logging

        import holdfast

        if self.verbose:
            _show_logs()
        elif not (logger := logging.getLogger("holdfast")).handlers:
            logger.addHandler(logging.NullHandler())
        is_asked = ask and not self.output.json and is_interactive()
        resolved = None
        target = self.command or self.url or server or self.variable or ""
        if (entry := self.entry(server)) is not None:
            from holdfast.config.resolution import admit, client_for

            if is_asked:
                approve_in_place(self.configuration, entry.name)
            resolved = admit(entry, prompt=ask_input if ask else None)
            target = resolved.url or list(resolved.command)
        is_web = isinstance(target, str) and is_url(target)
        own, other = (self.http, self.stdio) if is_web else (self.stdio, self.http)
        if wrong := [_SAID_AS[name] for name in other if name in _SAID_AS]:
            kinds = ("a command", "a URL") if is_web else ("a URL", "a command")
            raise ValidationError(f"{wrong[0]} is for {kinds[0]}, and the server is {kinds[1]}")
        options = {**self.options, **own}
        if is_web and is_asked and not os.environ.get("HOLDFAST_NO_BROWSER"):
            # Elsewhere a missing login is an error.
            from msgspec import structs

            login = holdfast.browser_login if self.is_login else offer_login
            handlers = options.get("handlers") or holdfast.Handlers()
            handlers = structs.replace(handlers, login=login)
            options = {"auth": "oauth", **options, "handlers": handlers}
        if resolved is not None:
            for key, said in (("env", resolved.env), ("headers", resolved.headers)):
                if key in options:
                    options[key] = {**said, **options[key]}
            client = client_for(resolved, options, _traced if self.trace else None)
        elif self.trace:
            from holdfast._connect import Options
            from holdfast._core.targets import transport_for

            keys = Options.__optional_keys__ & options.keys()
            transport = transport_for(target, {key: options.pop(key) for key in keys}, os.environ)
            client = holdfast.connect(_traced(transport), **options)
        else:
            client = holdfast.connect(target, **options)
        if ask:
            status.follow(client)
        return client

    # What was seen of it

    def key(self, server: str | None) -> str:
        """Return the key that a server's tools are stored under."""
        if self.command is not None:
            return shlex.join(self.command)
        # Names need no configuration here: what was seen is shown without it.
        if server is not None and is_direct(server) and not is_url(server):
            server = os.path.abspath(server) if self.entry(server) is None else server
        return self.url or server or self.variable or ""

    def keep(self, server: str | None, tools: list[dict[str, Any]]) -> None:
        """Store a server's tools for completion and ``--offline``."""
        entry = self.entry(server)
        tool_cache.save(self.key(server), tools, "" if entry is None else entry.source.file)

    async def list_tools(self, server: str | None, client: Client) -> list[dict[str, Any]] | None:
        """Return the tools as the server describes them, and store them; None if it has none."""
        try:
            # A cache that lives as long as one command would answer nobody.
            found = [tool.raw for tool in await client.list_tools(cache="bypass")]
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return None
        self.keep(server, found)
        return found


_SAID_AS = {
    "env": "--env",
    "inherit_env": "--inherit-env",
    "cwd": "--cwd",
    "headers": "--header",
    "transport": "--transport",
}


async def known(listing: Awaitable[Sequence[T]]) -> Sequence[T] | None:
    """Return a list; None if the server does not know the method."""
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
    return is_url(text) or ("." in text and os.path.isfile(text) and _has_script_suffix(text))


def _has_script_suffix(text: str) -> bool:
    from holdfast._core.targets import SCRIPTS

    return os.path.splitext(text)[1].lower() in SCRIPTS


class ServerVerb(ServerCommand):
    """A verb with the common options; it gets them as a `ServerTarget`, its first argument.

    The verb may be a coroutine; it returns the exit code.
    """

    def __init__(self, *, callback: Callable[..., Any], **settings: Any) -> None:
        super().__init__(callback=partial(_run, callback), **settings)
        self.params += OPTIONS


def _run(verb: Callable[..., Any], **given: Any) -> Any:
    own = {name: given.pop(name) for name in ("output", *COMMON)}
    found = verb(ServerTarget(command=click.get_current_context().obj, **own), **given)
    if not inspect.iscoroutine(found):
        return found
    import asyncio

    try:
        # A loop of its own: Ctrl-C cancels calls and closes servers.
        with asyncio.Runner() as runner:
            return runner.run(found)
    finally:
        status.end()


def _show_logs() -> None:
    """Show the library's log; messages may quote a server, and are shown as its stderr is."""
    import logging

    from holdfast._core.redact import redact_text

    class Safe(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return visible_lines(redact_text(super().format(record)))

    shown = logging.StreamHandler()
    shown.setFormatter(Safe("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[shown])
    logging.getLogger("holdfast").setLevel(logging.DEBUG)
