"""The server of a command line: a name from the configuration, a URL, a script or a command.

Every verb about a server is a `ServerVerb`, and takes it in the same ways with the same options.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import click

from holdfast._core.text import did_you_mean
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.cli import tool_cache
from holdfast.cli.app import (
    COMMON,
    EVERYTHING,
    OPTIONS,
    SERVER_OPTIONS,
    CommandLine,
    ServerCommand,
    pairs,
)
from holdfast.cli.approvals import approve_in_place
from holdfast.cli.arguments import suggestion
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.elicitation import offer_login
from holdfast.cli.main import SHELL_VERBS, VARIABLE
from holdfast.cli.output import Output, message_trace, show_stderr
from holdfast.cli.progress import status
from holdfast.cli.prompts import ask_input, is_interactive
from holdfast.cli.sharing import say_fallback, use_daemon
from holdfast.errors import HandshakeRefused, RpcError, ValidationError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from holdfast import Client, Tool
    from holdfast.config import Configuration, InputPrompt, ResolvedServer, ServerEntry
    from holdfast.policies import Timeouts

NO_SERVER = "No server is configured. Add one: holdfast add NAME -- COMMAND, or NAME URL."

T = TypeVar("T")
MakeLoop: TypeAlias = "Callable[[], AbstractEventLoop]"


# Which word is the server
#
# A command line names its server in one of six ways, and people mix them up. They are tried in this
# order, and the first that fits is the server:
#
#   the shell's connection     in a line of ``holdfast shell``, which takes no server at all
#   words after ``--``         a command; `split` takes them off before click sees the rest
#   ``--url``                  an address
#   the first word             a configured name, a URL, or a script that is there
#   ``name.`` of a word        for verbs about a tool or a prompt: ``git.git_log``; of two names
#                              that fit ("a" and "a.b") the longer one
#   ``MCP_SERVER_URL``         for all that name none
#
# A configured name counts for more than a file of the same name in the folder: what runs must not
# depend on where one stands. A name never becomes a program. With the variable set, the first word
# is a server only if one more word follows than the verb takes, because ``read x`` then means the
# resource ``x``.
#
# Naming a server starts nothing and asks nothing. Both happen in `client`, in this order: the
# approval of an entry of a project's file, the inputs that the entry leaves to its user, and only
# then a transport. So a verb may look at names, caches and hints of servers that nobody approved.


class ServerTarget:
    """The server of one command line, and the options to reach it, as `OPTIONS` names them."""

    def __init__(
        self,
        output: Output,
        command: list[str] | None = None,
        open_client: Client | None = None,
        *,
        url: str | None = None,
        header: tuple[str, ...] = (),
        env: tuple[str, ...] = (),
        inherit_env: str | None = None,
        config: str | None = None,
        timeout: float | None = None,
        concurrent: int | None = None,
        rate: str | None = None,
        verbose: bool = False,
        trace: str | None = None,
        trace_file: str | None = None,
        **options: Any,
    ) -> None:
        if url is not None and command is not None:
            raise click.UsageError("Give --url or a command after --, not both.")
        if url is not None and not is_url(url):
            raise click.UsageError(f"--url {url!r}: a URL begins with http:// or https://.")
        if command is not None and not command:
            raise click.UsageError("There is no command after --.")
        self.output = output
        self.open_client = open_client
        """The connection of a shell, if this is a line of one. It stays open after the line."""
        self.command, self.url, self.config = command, url, config
        self.verbose, self.trace = verbose, trace
        self.server: str | None = None
        """The word for it: a name, a URL or a script. None if it is given otherwise."""
        self.is_given = command is not None or url is not None or open_client is not None
        """True if an option or a command gives the server, so that no word names it."""
        self.variable = os.environ.get(VARIABLE)
        self.is_open = not (self.is_given or self.variable)
        """True if no server is given, so that all of them may be meant."""
        self.is_login = False
        """True if the command is a login: it starts without a question."""
        self.options = {name: value for name, value in options.items() if value is not None}
        """Options of ``holdfast.connect``: as given, and those that a verb sets."""
        self.options |= _command_options(env, inherit_env)
        if trace_file is not None:
            self.options["trace"] = trace_file
        if header:
            self.options["headers"] = pairs("--header", header, ":")
        if timeout is not None:
            self.options["timeouts"] = _timeouts(timeout)
        self.limits = _limits(concurrent=concurrent, rate=rate)
        """Fields of `holdfast.Limits` that replace those of the configuration."""
        self.usual_limits: dict[str, Any] = {}
        """Those of a server for which none are configured, if not the library's."""

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration, read at the first use."""
        from holdfast.config import load

        return load(self.config)

    def at(self, server: str | None, **options: Any) -> ServerTarget:
        """Return a copy for another server, or with more options."""
        target = copy.copy(self)
        target.server, target.options = server, {**self.options, **options}
        return target

    # Which one it is

    def take(self, words: tuple[str, ...], *names: str) -> list[str]:
        """Take the server off ``[SERVER] names…``, unless given otherwise; return the rest."""
        rest = list(words)
        is_longer = len(rest) > len(names)
        if not self.is_given and (not self.variable or (is_longer and self.is_server(rest[0]))):
            if not rest or not (is_longer or self.is_server(rest[0])):
                raise click.UsageError(f"Which server? {self.hint()}")
            self.server = rest.pop(0)
        self._check_count(rest, names)
        return rest

    def _check_count(self, rest: list[str], names: tuple[str, ...]) -> None:
        if len(rest) < len(names):
            raise click.UsageError(f"Missing: {' '.join(names[len(rest) :])}.")
        if len(rest) > len(names):
            extra = " ".join(rest[len(names) :])
            already = " (the server is given already)" if self.server is None else ""
            raise click.UsageError(f"Not understood: {extra}{already}.")

    def named(self, word: str, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Take the server off ``server.name …`` or ``server name …``; return name and rest."""
        if self.is_given:
            return word, words
        servers = self.configuration.servers
        is_followed = bool(words) and words[0][:1] not in "-{" and "=" not in words[0]
        if is_followed and self.is_server(word):
            self.server = word
            return words[0], words[1:]
        dotted = [name for name in servers if word.startswith(f"{name}.")]
        longest = max(dotted, key=len, default=None)  # of "a" and "a.b"
        if longest is not None and len(word) > len(longest) + 1:
            self.server = longest
            return word[len(longest) + 1 :], words
        if self.variable and not (is_url(word) or is_script(word)):
            return word, words
        if self.is_server(word.rstrip(".")):
            raise click.UsageError(f"Which one of {word.rstrip('.')!r}? Write its name after it.")
        server, *tool = re.split("[/:]", word, maxsplit=1)
        hint = f"Did you mean {f'{server}.{tool[0]}'!r}?" if tool and server in servers else ""
        hint = hint or tool_cache.seen_with(servers, word) or self.hint(word)
        raise ValidationError(f"{word!r} names no configured server: write SERVER.NAME. {hint}")

    def is_server(self, word: str) -> bool:
        """Return whether a word is a server: a name, a URL, or a script."""
        return word in self.configuration.servers or is_url(word) or is_script(word)

    @property
    def entry(self) -> ServerEntry | None:
        """The configured server; None if it is a URL, a script or a command.

        Raises ValidationError if the word for it is none of these.
        """
        word = self.server
        if word is None or is_url(word):
            return None
        entry = self.configuration.servers.get(word)
        if entry is None and not is_script(word):
            raise ValidationError(f"There is no server {word!r}. {self.hint(word)}")
        return entry

    def hint(self, word: str = "") -> str:
        """Return what ``word`` may mean, or else the configured servers."""
        if re.match(r"[\w.-]+:\d+(/|$)", word):
            return f"A URL begins with http:// or https://: is it http://{word}?"
        if _has_script_suffix(word):
            return "There is no such file either."
        names = list(self.configuration.servers)
        if hint := did_you_mean(word.partition(".")[0], names):
            return f"D{hint[1:]}"
        if names:
            return f"Configured: {', '.join(names)}. Or give --url URL, or -- COMMAND."
        return (
            "No server is configured: give --url URL, or a command after --, "
            f"set {VARIABLE}, or see 'holdfast add --help'."
        )

    def server_arguments(self) -> str:
        """Return the arguments of a command that lead to the same server, quoted for a shell."""
        if self.open_client is not None:
            return ""
        from holdfast.lock.commands import server_arguments

        names = [name for options in _OPTIONS_FOR.values() for name in options] + ["protocol"]
        options = {name: self.options[name] for name in names if name in self.options}
        return server_arguments(self.command or self.url, config=self.config, **options)

    # Its client

    def client(self, *, ask: bool = True) -> Any:
        """Return a client, not connected yet; ``ask`` a person for what is missing."""
        if self.open_client is not None:
            return nullcontext(self.open_client)
        _set_up_logging(self.output, self.verbose)
        can_ask = ask and not self.output.json and is_interactive()
        address = self._locate(can_ask, ask_input if ask else None)
        options = self._client_options(address, can_ask)
        asked = options.get("shared", address.shared)
        if not address.is_url:
            use_daemon(options, asked)
        self._limit(options, address)
        client = address.connect(options)
        say_fallback(client, self.output, is_asked_for=bool(asked))
        if self.trace:
            from holdfast._core.tap import watcher

            client._attach_tap(watcher(message_trace(self.trace)))
        if ask and status.begin(f"connecting to {client.name}"):
            status.follow(client)
        return client

    def _limit(self, options: dict[str, Any], address: ServerAddress) -> None:
        """Set the limits that are configured, or those of the verb."""
        if self.usual_limits:
            from holdfast.policies import Limits

            configured = {} if address.resolved is None else address.resolved.options
            usual = configured.get("limits") or Limits(**self.usual_limits)
            options.setdefault("limits", usual)

    def _locate(self, can_ask: bool, prompt: InputPrompt | None) -> ServerAddress:
        """Return where the server is; a configured one needs its approval, and its inputs."""
        entry = self.entry
        if entry is None:
            word = self.server
            if word is not None and not is_url(word):
                # A script, as a path: the word is no name of this configuration.
                word = os.path.join(os.curdir, word)
            return ServerAddress(self.command or self.url or word or self.variable or "")
        from holdfast.config.resolution import admit

        if can_ask:
            approve_in_place(self.configuration, entry.name)
        resolved = admit(entry, prompt=prompt)
        return ServerAddress(resolved.url or list(resolved.command), resolved)

    def _client_options(self, address: ServerAddress, can_ask: bool) -> dict[str, Any]:
        """Return the options of ``holdfast.connect``, for a server of this kind."""
        options = dict(self.options)
        if self.limits:
            from msgspec.structs import replace

            from holdfast.policies import Limits

            configured = {} if address.resolved is None else address.resolved.options
            options["limits"] = replace(configured.get("limits") or Limits(), **self.limits)
        kind, unfit = ("a URL", "a command") if address.is_url else ("a command", "a URL")
        for name, option in _OPTIONS_FOR[unfit].items():
            if name in options:
                raise ValidationError(f"{option} is for {unfit}, and the server is {kind}")
        stderr = options.pop("stderr", show_stderr if self.verbose else None)
        if not address.is_url:
            return options if stderr is None else {**options, "stderr": stderr}
        # Without a person, a missing login is an error.
        if can_ask and not os.environ.get("HOLDFAST_NO_BROWSER"):
            return self._with_login(options)
        return options

    def _with_login(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a URL with a login by the person at the terminal."""
        from msgspec.structs import replace

        from holdfast import Handlers
        from holdfast._core.auth.browser import browser_login

        login = browser_login if self.is_login else offer_login
        handlers = replace(options.get("handlers") or Handlers(), login=login)
        return {"auth": "oauth", **options, "handlers": handlers}

    # Its tools

    def key(self) -> str:
        """Return the key that the server's tools are stored under."""
        if self.command is not None:
            return shlex.join(self.command)
        server = self.server
        # Names need no configuration here: what was seen is shown without it.
        if server is not None and is_script(server) and self.entry is None:
            server = os.path.abspath(server)
        return self.url or server or self.variable or ""

    async def list_tools(self, client: Client) -> Sequence[Tool] | None:
        """Return the tools of the server; None if it has none.

        They are stored for completion and ``--offline``, once in a shell.
        """
        # A cache that lives as long as one command would answer nobody.
        tools = await or_none(client.list_tools(cache="bypass"))
        if tools is not None and self.open_client is None:
            entry = self.entry
            key, source = (self.key(), "") if entry is None else (entry.name, entry.source.file)
            tool_cache.save(key, tools, source)
        return tools

    def pick(self, tools: Iterable[Tool], name: str) -> Tool:
        """Return the tool of that name. Raises ValidationError with near names."""
        by_name = {tool.name: tool for tool in tools}
        if name in by_name:
            return by_name[name]
        elsewhere = ""
        if not self.is_given and not did_you_mean(name, by_name):
            elsewhere = tool_cache.seen_with(self.configuration.servers, name)
        where = f"{self.server} has" if elsewhere and self.server else "There is"
        verbs = SHELL_VERBS if self.open_client is not None else ()  # typed in a tool's place
        hint = suggestion(name, by_name, "The server has no tools at all.", verbs)
        raise ValidationError(f"{where} no tool {name!r}. {elsewhere or hint}")


class ServerAddress(NamedTuple):
    """Where a server is: a command or a URL, and the configured entry that says so, if any."""

    target: str | list[str]
    resolved: ResolvedServer | None = None

    @property
    def is_url(self) -> bool:
        """True if it is reached by HTTP."""
        return isinstance(self.target, str) and is_url(self.target)

    @property
    def shared(self) -> bool | None:
        """Whether its entry says that it is shared; None: it does not say."""
        return None if self.resolved is None else self.resolved.options.get("shared")

    def connect(self, options: dict[str, Any]) -> Client:
        """Return a client; options are added to those of the configuration, and win."""
        import holdfast

        if self.resolved is None:
            return holdfast.connect(self.target, **options)
        from holdfast.config.resolution import client_for

        return client_for(self.resolved, options)


def _command_options(env: tuple[str, ...], inherit_env: str | None) -> dict[str, Any]:
    """Return the variables that a command gets by ``--env`` and ``--inherit-env``."""
    options: dict[str, Any] = {}
    assignments = []
    for variable in env:
        if "=" not in variable and variable not in os.environ:
            text = f"--env {variable}: it is not set here; give --env {variable}=VALUE."
            raise click.UsageError(text)
        is_whole = "=" in variable
        assignments.append(variable if is_whole else f"{variable}={os.environ[variable]}")
    if assignments:
        options["env"] = pairs("--env", tuple(assignments))
    if inherit_env:
        names = tuple(filter(None, inherit_env.split(",")))
        options["inherit_env"] = True if inherit_env == EVERYTHING else names
    return options


def _limits(**limits: Any) -> dict[str, Any]:
    """Return the limits of ``--concurrent`` and ``--rate`` that were given."""
    limits = {name: value for name, value in limits.items() if value is not None}
    if limits:
        from holdfast.policies import Limits

        for name, value in limits.items():
            try:
                Limits(**{name: value})
            except ValidationError as error:
                reason = error.message.rpartition(": ")[2]
                raise click.UsageError(f"--{name} {value}: {reason}.") from None
    return limits


def _timeouts(seconds: float) -> Timeouts:
    """Return the policy for ``--timeout``."""
    from holdfast.policies import Timeouts

    if not 0 < seconds < float("inf"):
        raise click.UsageError(f"--timeout {seconds:g}: must be more than 0, and finite.")
    return Timeouts(request=seconds, handshake=seconds)


_OPTIONS_FOR: Final = {
    "a command": {"env": "--env", "inherit_env": "--inherit-env", "cwd": "--cwd"},
    "a URL": {"headers": "--header", "transport": "--transport"},
}
"""Options of ``holdfast.connect`` for one kind of server, and what they are called here."""


async def or_none(listing: Awaitable[Sequence[T]]) -> Sequence[T] | None:
    """Return a list; None if the server does not know the method."""
    try:
        return await listing
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND or isinstance(error, HandshakeRefused):
            raise
        return None


def is_url(text: str) -> bool:
    """Return whether a word is a URL."""
    return text.lower().startswith(("http://", "https://"))


def is_script(text: str) -> bool:
    """Return whether a word is a script that is there, to be run as a server."""
    return "." in text and os.path.isfile(text) and _has_script_suffix(text)


def _has_script_suffix(text: str) -> bool:
    from holdfast._core.targets import SCRIPTS

    return os.path.splitext(text)[1].lower() in SCRIPTS


class ServerVerb(ServerCommand):
    """A verb with the common options; it gets them as a `ServerTarget`, its first argument.

    The verb may be a coroutine; it returns the exit code. What it ``takes`` after the server,
    such as ``"URI"``, follows as arguments; None if it reads its words itself. With ``or_all``
    the server may be left out. ``loop`` returns what makes its event loop; None: asyncio does.
    """

    def __init__(
        self,
        *,
        takes: str | None = None,
        or_all: bool = False,
        loop: Callable[[], MakeLoop | None] = lambda: None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.takes = None if takes is None else takes.split()
        self.or_all = or_all
        self._loop = loop
        if takes is not None:
            form = f"[SERVER] {takes}".rstrip()
            words = click.Argument(
                ["words"], nargs=-1, metavar=form, shell_complete=suggest_servers
            )
            self.params.insert(0, words)
        self.params += OPTIONS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's own options; of the common ones, where they are explained."""
        options = (part for part in self.get_params(ctx) if isinstance(part, click.Option))
        records = (option.get_help_record(ctx) for option in options if option.name not in COMMON)
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text(SERVER_OPTIONS)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        assert self.callback is not None
        line: CommandLine = ctx.obj
        parameters = ctx.params
        output = parameters.pop("output")
        options = {name: parameters.pop(name) for name in COMMON}
        if line.open_client is not None and any(options.values()):
            raise click.UsageError("Server options are given to the shell, not to a line of it.")
        target = ServerTarget(output, line.command, line.open_client, **options)
        arguments: list[str] = []
        if self.takes is not None:
            words = parameters.pop("words")
            if words or not (self.or_all and target.is_open):
                arguments = target.take(words, *self.takes)
        result = self.callback(target, *arguments, **parameters)
        if not inspect.iscoroutine(result):
            return result
        try:
            return _run_verb(result, self._loop(), in_shell=line.open_client is not None)
        finally:
            status.end()


def _run_verb(verb: Coroutine[Any, Any, T], make_loop: MakeLoop | None, *, in_shell: bool) -> T:
    """Run a verb in the event loop of the shell's connection, or in one of its own."""
    if in_shell:
        from holdfast.sync.portal import portal

        return portal().run(verb)
    import asyncio

    # A loop of its own: Ctrl-C cancels calls and closes servers.
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(verb)


def _set_up_logging(output: Output, is_shown: bool) -> None:
    """Show the library's log, or only what of a trace or a call log could not be written."""
    import logging

    logger = logging.getLogger("holdfast")
    if not is_shown:

        class LossHandler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if getattr(record, "is_loss", False):
                    output.note(f"holdfast: {record.getMessage()}")

        if not logger.handlers:
            logger.addHandler(LossHandler())
        return

    class StderrHandler(logging.Handler):
        """Shows a record as the server's stderr is shown: it may quote the server."""

        def emit(self, record: logging.LogRecord) -> None:
            show_stderr(self.format(record))

    logging.basicConfig(handlers=[StderrHandler()], format="%(name)s: %(message)s")
    logger.setLevel(logging.DEBUG)
