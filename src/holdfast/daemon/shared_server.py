"""One server, and the clients that share it."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast._build import build_client
from holdfast._core import boundary as b
from holdfast._core.engine.state import State
from holdfast._core.eras.serving import begin
from holdfast._core.serve.stdio import Conversation
from holdfast._core.server.request import Handler, ServerRequest
from holdfast._core.transports.daemon_link import ServerLoss, StartReport, marked_line
from holdfast._core.transports.daemon_socket import Definition, Hello
from holdfast._core.transports.process import StdioLink
from holdfast._core.transports.stdio import Stdio
from holdfast._pool import definition_of
from holdfast.errors import HoldfastError
from holdfast.policies import Limits, Timeouts
from holdfast.relay.envelope import answered_errors
from holdfast.relay.sharing import RELAYED, SharedRelay

log: logging.Logger = logging.getLogger("holdfast")

HANDSHAKE: Final = 120.0
"""Seconds for a server to connect; each client has its own patience, and goes before that."""
_OF_A_TERMINAL: Final = frozenset(
    (
        *("TERM", "COLUMNS", "LINES", "TERM_SESSION_ID", "SHLVL", "OLDPWD", "_"),
        *("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY"),
    )
)
"""Variables that say where a program was started, and nothing to a server without a terminal.

Hosts in two windows differ in them. Those that name something to act on are not among them: the
window (``WINDOWID``), the pane (``TMUX_PANE``), the agent with the keys (``SSH_AUTH_SOCK``).
"""
_READY: Final = b"!ready\n"


def sharing_key(definition: Definition) -> str:
    """Return the same for definitions that may share a server.

    Whoever is given a server acts as the one that it was started for. So all that decides what it
    sees is in the key: the command, its folder, every variable, and the project that is worked in.
    The user is not: another one's process is not even listened to.
    """
    whole = msgspec.structs.asdict(definition)
    del whole["name"], whole["environ"], whole["env"], whole["inherit_env"]
    whole["limits"] = relayed(definition.limits)
    environ = {
        name: value for name, value in definition.environ.items() if name not in _OF_A_TERMINAL
    }
    parts = (definition_of(_transport(definition), project=definition.project), whole)
    text = repr((parts, sorted(environ.items())))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def differences(first: Definition, other: Definition) -> list[str]:
    """Return what keeps two servers of one command apart: names of settings and of variables."""
    settings = ("cwd", "project", "protocol", "grace", "startup", "shutdown_request", "inherit_env")
    names = [name for name in settings if getattr(first, name) != getattr(other, name)]
    if relayed(first.limits) != relayed(other.limits):
        names.append("limits")
    ours, theirs = first.environ, other.environ
    variables = {name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)}
    names += sorted(variables - _OF_A_TERMINAL)
    if not names and first.env != other.env:  # the same variables, of which others are secret
        names.append("env")
    return names


def relayed(limits: Limits) -> Limits:
    """Return the limits of a server for clients of which one may be a relay.

    Each client keeps to its own on its link. Those that it has set are the server's as well.
    """
    usual = Limits()
    unset = [name for name in RELAYED if getattr(limits, name) == getattr(usual, name)]
    return msgspec.structs.replace(limits, **{name: RELAYED[name] for name in unset})


def _transport(definition: Definition) -> DaemonStdio:
    return DaemonStdio(
        definition.command,
        env=definition.env,
        inherit_env=definition.inherit_env,
        cwd=definition.cwd,
        grace=definition.grace,
        startup=definition.startup,
        shutdown_request=definition.shutdown_request,
    ).with_environ(definition.environ)


class DaemonStdio(Stdio):
    """A server that is started with the environment of a client, not with ours."""

    on_starting: Callable[[b.Starting], object] = staticmethod(lambda report: None)
    """Called with each report that the server is still being started."""

    def with_environ(self, environ: dict[str, str]) -> DaemonStdio:
        """Start the server with exactly these variables."""
        self._environ = environ
        return self

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the server."""
        return self._environ

    def open(
        self,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        variant: str | None = None,
    ) -> StdioLink:
        """Start the server; for the driver."""

        def watch(message: b.Report) -> None:
            if type(message) is b.Starting:
                self.on_starting(message)
            report(message)

        return super().open(generation, limits, watch, variant)


class StateListener:
    """Listens to a driver for a client, and sees the states of its connection."""

    def __init__(self, listener: b.DriverListener, moved: Callable[[b.Moved], object]) -> None:
        self._listener = listener
        self._moved = moved
        self.notified: Callable[[str, int], None] = listener.notified
        self.noticed: Callable[[str, Raw | None], None] = listener.noticed
        self.asked: Callable[[b.Asked], None] = listener.asked
        self.dismissed: Callable[[b.Dismissed], None] = listener.dismissed
        self.starting: Callable[[b.Starting], None] = listener.starting
        self.violated: Callable[[b.Violated], None] = listener.violated

    def moved(self, moved: b.Moved) -> None:
        self._listener.moved(moved)
        self._moved(moved)


class SharedServer:
    """A running server, from the first client that wants it to its end.

    It is not started again when it dies: its clients are told, and the first of them that comes
    back has another one started.

    Args:
        definition: How it is started.
        ended: Called once when it is of no use to new clients.
    """

    def __init__(self, definition: Definition, ended: Callable[[SharedServer], object]) -> None:
        self.definition: Definition = definition
        self.name: str = definition.name
        self.project: str = definition.project
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        transport = _transport(definition)
        transport.on_starting = self._starting
        transport.watch_stderr(self._wrote)
        self._client = build_client(
            transport,
            transport,
            {},
            name=definition.name,
            protocol=definition.protocol,
            limits=relayed(definition.limits),
            timeouts=Timeouts(handshake=HANDSHAKE, total=math.inf),
        )
        # Not by its events: with a subscriber, every request is made known to it.
        opener = self._client._requester.opener
        assert opener.listener is not None
        listener: Any = StateListener(opener.listener, self._moved)
        opener.listener = listener
        self._relay = SharedRelay(self._client)
        self._conversations: dict[Conversation, bool] = {}
        """The clients, and whether each wants the server's stderr."""
        self._waiting: set[Conversation] = set()
        """Clients that wait for it to be ready."""
        self._closing: asyncio.Task[bool] | None = None
        self.idle_since: float | None = self._loop.time()
        """When the last client left, on the loop's clock; None while there is one."""

    def __repr__(self) -> str:
        return f"<SharedServer {self.name} {self._client.state} {len(self._conversations)} clients>"

    @property
    def clients(self) -> int:
        """The number of clients that are connected."""
        return len(self._conversations)

    @property
    def calls(self) -> int:
        """The number of requests that are under way."""
        return sum(host.open_calls for host in self._relay.hosts)

    def status(self) -> dict[str, Any]:
        """Return what may be shown of it."""
        idle = None if self.idle_since is None else self._loop.time() - self.idle_since
        return {
            "name": self.name,
            "state": str(self._client.state),
            "project": self.project,
            "clients": self.clients,
            "calls": self.calls,
            "idle": idle,
        }

    # Clients

    async def serve(self, connection: socket.socket, hello: Hello) -> None:
        """Serve one client until it leaves, or the server ends."""
        host = self._relay.join()
        host.capabilities = hello.capabilities
        self._relay.declare()
        self._speak_as_server(host.server.handlers)
        conversation = Conversation(host.server, connection, connection)
        self._conversations[conversation] = hello.stderr
        self._waiting.add(conversation)
        self.idle_since = None
        opening = self._loop.create_task(self._open(conversation))
        try:
            await conversation.serve()
        finally:
            opening.cancel()
            del self._conversations[conversation]
            self._waiting.discard(conversation)
            self._relay.leave_soon(host)
            self._left()

    async def _open(self, conversation: Conversation) -> None:
        """Tell a client when the server is ready."""
        try:
            await self._client.open()
        except HoldfastError as error:
            self._lose(error)  # unless the transition has said so already
        else:
            self._waiting.discard(conversation)
            conversation.write(_READY)

    def _left(self) -> None:
        if not self._conversations:
            self.idle_since = self._loop.time()
            if self._client.state is not State.READY:
                # Nobody waits for it any more: the next client is not to find it hanging.
                self.end()

    def _speak_as_server(self, handlers: dict[str, Handler]) -> None:
        """Agree with clients on the revision of the server, and on no newer one.

        A client should see what it would see without the daemon; and where both ends speak the
        same revision, nothing is translated.
        """
        discover, initialize = handlers["server/discover"], handlers["initialize"]

        async def discovered(request: ServerRequest) -> Any:
            return {**await discover(request), "supportedVersions": [self._client.protocol_version]}

        async def initialized(request: ServerRequest) -> Any:
            with answered_errors():
                await self._client.open()
            version = self._client.protocol_version
            assert version is not None
            begin(request.params, (version,))  # it may have come back as one without sessions
            return {**await initialize(request), "protocolVersion": version}

        handlers["server/discover"] = discovered
        handlers["initialize"] = initialized
        # It asks whether the server is well, not whether we are.
        handlers.pop("ping", None)

    # What happens to the server

    def _starting(self, report: b.Starting) -> None:
        line = marked_line("starting", StartReport(report.elapsed, report.again, report.busy))
        for conversation in self._waiting:
            conversation.write(line)

    def _wrote(self, line: str) -> None:
        log.info("%s: stderr: %s", self.name, line)
        for conversation, wants_stderr in self._conversations.items():
            if wants_stderr and not conversation.is_behind:
                conversation.write(marked_line("stderr", line))

    def _moved(self, moved: b.Moved) -> None:
        if moved.new in (State.BACKOFF, State.CLOSED) and moved.reason is not None:
            self._lose(moved.reason)

    def _lose(self, error: HoldfastError) -> None:
        """Tell the clients that the server is gone, and how."""
        if self._closing is None:
            log.info("%s: ended: %s", self.name, error)
            line = marked_line("lost", ServerLoss.of(error))
            for conversation in list(self._conversations):
                conversation.end(line)
            self.end()

    def end(self) -> asyncio.Task[bool]:
        """End the server; return the task that does."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._client.close())
            self._ended(self)
        return self._closing

    async def close(self, error: HoldfastError) -> None:
        """End the server; its clients are told why."""
        self._lose(error)
        await self.end()
