"""The server that a command line names: from the configuration, by URL, or by command.

Every verb takes it the same way, with the same options: it is a `ServerVerb`.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
import shlex
from collections.abc import Awaitable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from holdfast._core.text import did_you_mean, visible_lines
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.cli import tool_cache
from holdfast.cli.app import COMMON, EVERYTHING, OPTIONS, ServerCommand, pairs
from holdfast.cli.arguments import suggestion
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.elicitation import approve_in_place, ask_input, is_interactive, offer_login
from holdfast.cli.main import VARIABLE
from holdfast.cli.output import Output, show_message, show_stderr
from holdfast.cli.progress import status
from holdfast.errors import RpcError, ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.config import Configuration, ServerEntry
    from holdfast.sync.portal import Portal

NO_SERVER = "No server is configured. Add one: holdfast add NAME -- COMMAND, or NAME URL."

T = TypeVar("T")


class ServerTarget:
    """The server of one command line, and the options to reach it, as `OPTIONS` names them."""

    verbs: Sequence[str] = ()
    """What may be written in place of a tool's name, to be suggested too."""
    portal: Portal | None = None
    """The loop of a shell, which has a connection already."""

    def __init__(
        self,
        output: Output,
        command: list[str] | None = None,
        *,
        url: str | None = None,
        header: tuple[str, ...] = (),
        env: tuple[str, ...] = (),
        inherit_env: str | None = None,
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
        self.command, self.url, self.config = command, url, config
        self.verbose, self.trace = verbose, trace
        self.server: str | None = None
        """The word for it: a name, a URL or a script. None if it is given otherwise."""
        self.given = command is not None or url is not None
        """True if the server is a URL or a command, so that no word names it."""
        self.variable = os.environ.get(VARIABLE)
        self.is_open = not (self.given or self.variable)
        """True if no server is given, so that all of them may be meant."""
        self.is_login = False
        """A login was asked for: it is not offered first."""
        self.options = {name: value for name, value in options.items() if value is not None}
        """Options of ``holdfast.connect``: as given, and what verbs want."""
        for name in env:
            if "=" not in name and name not in os.environ:
                text = f"--env {name}: it is not set here; give --env {name}=VALUE."
                raise click.UsageError(text)
        if env:
            said = (one if "=" in one else f"{one}={os.environ[one]}" for one in env)
            self.options["env"] = pairs("--env", tuple(said))
        if inherit_env:
            names = tuple(filter(None, inherit_env.split(",")))
            self.options["inherit_env"] = True if inherit_env == EVERYTHING else names
        if header:
            self.options["headers"] = pairs("--header", header, ":")
        if timeout is not None:
            from holdfast.policies import Timeouts

            if not 0 < timeout < float("inf"):
                raise click.UsageError(f"--timeout {timeout:g}: must be more than 0, and finite.")
            total = max(timeout, Timeouts().total)
            self.options["timeouts"] = Timeouts(request=timeout, handshake=timeout, total=total)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration, read at the first use."""
        from holdfast.config import load

        return load(self.config)

    def at(self, server: str | None, **options: Any) -> ServerTarget:
        """Return the same for another server, or with more options."""
        found = copy.copy(self)
        found.server, found.options = server, {**self.options, **options}
        return found

    # Which one it is

    def take(self, words: tuple[str, ...], *wanted: str) -> list[str]:
        """Take the server off ``[SERVER] wanted…``, unless given otherwise; return the rest."""
        rest = list(words)
        is_longer = len(rest) > len(wanted)
        if not self.given and (not self.variable or (is_longer and self.is_server(rest[0]))):
            if not rest or not (is_longer or self.is_server(rest[0])):
                raise click.UsageError(f"Which server? {self.hint()}")
            self.server = rest.pop(0)
        if len(rest) < len(wanted):
            raise click.UsageError(f"Missing: {' '.join(wanted[len(rest) :])}.")
        if len(rest) > len(wanted):
            extra = " ".join(rest[len(wanted) :])
            already = " (the server is given already)" if self.server is None else ""
            raise click.UsageError(f"Not understood: {extra}{already}.")
        return rest

    def named(self, word: str, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Take the server off ``server.name …`` or ``server name …``; return name and rest."""
        if self.given:
            return word, words
        servers = self.configuration.servers
        if word in servers or is_direct(word):
            if words and words[0][:1] not in "-{" and "=" not in words[0]:
                self.server = word
                return words[0], words[1:]
            if word not in servers:
                raise click.UsageError(f"Which one of {word!r}? Write its name after it.")
        # The longest name is meant.
        for name in sorted(servers, key=len, reverse=True):
            if word.startswith(f"{name}.") and len(word) > len(name) + 1:
                self.server = name
                return word[len(name) + 1 :], words
        if self.variable:
            return word, words
        if word.rstrip(".") in servers:
            raise click.UsageError(f"Which one of {word.rstrip('.')!r}? Write SERVER.NAME.")
        server, *tool = re.split("[/:]", word, maxsplit=1)
        hint = f"Did you mean {f'{server}.{tool[0]}'!r}?" if tool and server in servers else ""
        hint = hint or tool_cache.seen_with(servers, word) or self.hint(word)
        raise ValidationError(f"{word!r} begins with no configured server. {hint}")

    def is_server(self, word: str) -> bool:
        """Return whether a word is a server: a name, a URL, or a script."""
        return word in self.configuration.servers or is_direct(word)

    def entry(self, word: str | None) -> ServerEntry | None:
        """Return a configured server; None if there is no word, or it is a server itself."""
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

        names = (*_OPTIONS_OF, "protocol")
        given = {name: self.options[name] for name in names if name in self.options}
        return reach(self.command or self.url, config=self.config, **given)

    # Its client

    def client(self, *, ask: bool = True) -> Client:
        """Return a client, not connected yet; ``ask`` a person for what is missing."""
        import logging

        import holdfast

        if self.verbose:
            _show_logs()
        elif not (logger := logging.getLogger("holdfast")).handlers:
            logger.addHandler(logging.NullHandler())
        is_asked = ask and not self.output.json and is_interactive()
        resolved = None
        target: Any = self.command or self.url or self.server or self.variable or ""
        if (entry := self.entry(self.server)) is not None:
            from holdfast.config.resolution import admit, client_for

            if is_asked:
                approve_in_place(self.configuration, entry.name)
            resolved = admit(entry, prompt=ask_input if ask else None)
            target = resolved.url or list(resolved.command)
        is_web = isinstance(target, str) and is_url(target)
        options = self._fitting(is_web)
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
        else:
            if self.trace:
                from holdfast._connect import Options
                from holdfast._core.targets import transport_for

                own = {key: options.pop(key) for key in Options.__optional_keys__ & options.keys()}
                target = _traced(transport_for(target, own, os.environ))
            client = holdfast.connect(target, **options)
        if ask:
            status.follow(client)
        return client

    def _fitting(self, is_web: bool) -> dict[str, Any]:
        """Return the options for a URL or a command; refuse what is given for the other."""
        kind = "a URL" if is_web else "a command"
        for name, (option, wanted) in _OPTIONS_OF.items():
            if name in self.options and wanted != kind:
                raise ValidationError(f"{option} is for {wanted}, and the server is {kind}")
        stderr = self.options.get("stderr", show_stderr if self.verbose else None)
        options = {name: value for name, value in self.options.items() if name != "stderr"}
        return options if is_web or stderr is None else {**options, "stderr": stderr}

    # Its tools

    def key(self) -> str:
        """Return the key that the server's tools are stored under."""
        if self.command is not None:
            return shlex.join(self.command)
        server = self.server
        # Names need no configuration here: what was seen is shown without it.
        if server is not None and is_direct(server) and not is_url(server):
            server = os.path.abspath(server) if self.entry(server) is None else server
        return self.url or server or self.variable or ""

    def keep(self, tools: list[dict[str, Any]]) -> None:
        """Store the server's tools for completion and ``--offline``."""
        entry = self.entry(self.server)
        tool_cache.save(self.key(), tools, "" if entry is None else entry.source.file)

    def seen(self) -> list[dict[str, Any]]:
        """Return the tools that were last seen, and say when. Raises ValidationError if never."""
        if (found := tool_cache.load(key := self.key())) is None:
            raise ValidationError(
                f"{key}: not seen yet, so nothing is known of it offline; "
                "list its tools once without --offline"
            )
        self.output.note(str(found))
        return found.tools

    async def list_tools(self, client: Client) -> list[dict[str, Any]] | None:
        """Return the tools as the server describes them, and store them; None if it has none."""
        # A cache that lives as long as one command would answer nobody.
        found = await known(client.list_tools(cache="bypass"))
        if found is None:
            return None
        raw = [tool.raw for tool in found]
        self.keep(raw)
        return raw

    def pick(self, tools: Iterable[dict[str, Any]], name: str) -> dict[str, Any]:
        """Return the tool of that name. Raises ValidationError with those that may be meant."""
        found = {tool["name"]: tool for tool in tools}
        if name in found:
            return found[name]
        elsewhere = ""
        if not self.given and not did_you_mean(name, found):
            elsewhere = tool_cache.seen_with(self.configuration.servers, name)
        where = f"{self.server} has" if elsewhere and self.server else "There is"
        hint = suggestion(name, found, "The server has no tools at all.", self.verbs)
        raise ValidationError(f"{where} no tool {name!r}. {elsewhere or hint}")


_OPTIONS_OF: Final = {
    "env": ("--env", "a command"),
    "inherit_env": ("--inherit-env", "a command"),
    "cwd": ("--cwd", "a command"),
    "headers": ("--header", "a URL"),
    "transport": ("--transport", "a URL"),
}
"""Options of ``holdfast.connect`` that only one kind of server has: as they are written here."""


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

    The verb may be a coroutine; it returns the exit code. What it ``takes`` after the server,
    such as ``"URI"``, follows as arguments; None if it reads its words itself. With ``or_all``
    the server may be left out.
    """

    def __init__(self, *, takes: str | None = None, or_all: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self.takes = None if takes is None else takes.split()
        self.or_all = or_all
        if takes is not None:
            form = f"[SERVER] {takes}".rstrip()
            words = click.Argument(
                ["words"], nargs=-1, metavar=form, shell_complete=suggest_servers
            )
            self.params.insert(0, words)
        self.params += OPTIONS

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        assert self.callback is not None
        given = ctx.params
        own = {name: given.pop(name) for name in ("output", *COMMON)}
        # A shell makes its own kind of target, which is connected.
        make = ctx.obj if callable(ctx.obj) else partial(ServerTarget, command=ctx.obj)
        target: ServerTarget = make(**own)
        taken: list[str] = []
        if self.takes is not None:
            words = given.pop("words")
            if words or not (self.or_all and target.is_open):
                taken = target.take(words, *self.takes)
        found = self.callback(target, *taken, **given)
        if not inspect.iscoroutine(found):
            return found
        import asyncio

        try:
            if target.portal is not None:
                return target.portal.run(found)
            # A loop of its own: Ctrl-C cancels calls and closes servers.
            with asyncio.Runner() as runner:
                return runner.run(found)
        finally:
            status.end()


def _show_logs() -> None:
    """Show the library's log; it may quote a server, and is shown as its stderr is."""
    import logging

    from holdfast._core.redact import redact_text

    class Safe(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return visible_lines(redact_text(super().format(record)))

    shown = logging.StreamHandler()
    shown.setFormatter(Safe("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[shown])
    logging.getLogger("holdfast").setLevel(logging.DEBUG)
