"""A server that the daemon runs for all who want it; where there is no daemon, one of our own."""

# What a client of a shared server sees should be what it sees of one of its own: the same states,
# the same errors, the same restarts. So this is a transport like the others, under an engine like
# all others, and the daemon passes on what happened to the server instead of mending it:
#
#   client                          daemon                          server
#   hello: the definition ────────▶ starts it, or finds it running
#   ◀────────── welcome: pid, fingerprint
#   ◀────────── !starting           while it downloads ────────────▶
#   ◀────────── !ready              once it has answered the handshake
#   the messages of MCP ◀─────────▶ one relay for each client ◀────▶ one session
#   ◀────────── !stderr             what it writes there, if wanted
#   ◀────────── !lost               how it ended, with its exit code
#
# After ``!lost`` the link is lost, as if the process had been ours: calls under way fail with
# ``outcome_unknown``, there is a pause, and a new link says hello again. Whichever client comes
# first has the daemon start the server; the others find it. A daemon that dies is the end of the
# socket, and the next link goes where a link without a daemon goes: to a server of our own.
#
# Invariants:
#
# - A link is one of two, decided before anything is sent: the daemon's, or our own server's. A
#   daemon that does not answer in time is left alone; nobody may end a process that others use.
# - Nothing of the definition leaves before the other end is known to be this user's process.
# - A link that is closed before it was decided opens nothing.

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from holdfast._core import boundary as b
from holdfast._core.transports.daemon_link import DaemonLink
from holdfast._core.transports.daemon_socket import (
    FINGERPRINT,
    Definition,
    Hello,
    Unavailable,
    greet,
)
from holdfast._core.transports.stderr import Sink, Stderr
from holdfast.errors import HoldfastError
from holdfast.policies import Limits

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer
    from holdfast._core.transports.stdio import Stdio

log: logging.Logger = logging.getLogger("holdfast")


def project_of(folder: str) -> str:
    """Return the project that a folder belongs to: its repository, or the folder alone.

    The home folder is nobody's project, though its settings may be kept in a repository.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    above = folder
    while above != home:
        if os.path.lexists(os.path.join(above, ".git")):
            return above
        above, below = os.path.dirname(above), above
        if above == below:
            break
    return folder


class Shared:
    """The transport to a server that the daemon runs, or to the same server of our own.

    Args:
        server: How the server is started.

    Attributes:
        capabilities: Returns what the client declares to servers.
        protocol: The revision that the client insists on.
        daemon: The process id of the daemon that the last link went to; None: to our own server.
        fell_back: Called with a sentence and whether no daemon runs at all, when our own server is
            used instead.
    """

    def __init__(self, server: Stdio) -> None:
        self._server = server
        self.name: str = server.name
        self.key: Hashable = server.key
        self.traits: b.Traits = server.traits
        self.authorizer: Authorizer | None = None
        self.capabilities: Callable[[], dict[str, Any]] = dict
        self.protocol: str | None = None
        self.daemon: int | None = None
        self.fell_back: Callable[[str, bool], object] = _log_own
        self._watchers: tuple[Callable[[str], object], ...] = ()

    def __repr__(self) -> str:
        return f"Shared({self._server!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._server, name)

    def open(
        self,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        variant: str | None = None,
    ) -> SharedLink:
        """Start a link; for the driver."""
        return SharedLink(self, generation, limits, report)

    def open_own(
        self, generation: b.Generation, limits: Limits, report: Callable[[b.Report], None]
    ) -> b.Link:
        """Start a link to a server of our own."""
        return self._server.open(generation, limits, report)

    def hello(self, limits: Limits) -> Hello:
        """Return what the daemon is told. Raises Unavailable."""
        server = self._server
        try:
            here = os.getcwd()
        except OSError as error:
            raise Unavailable(f"the current folder is gone: {error.strerror}") from None
        definition = Definition(
            name=self.name,
            command=server.command,
            cwd=os.path.abspath(os.path.join(here, server.cwd or "")),
            project=project_of(here),
            environ=server.environment(),
            env=server.env,
            inherit_env=server.inherit_env,
            grace=server.grace,
            startup=server.startup,
            shutdown_request=server.shutdown_request,
            protocol=self.protocol,
            limits=limits,
        )
        wants_stderr = server.stderr is not None or bool(self._watchers)
        capabilities = self.capabilities()
        return Hello(definition=definition, capabilities=capabilities, stderr=wants_stderr)

    def stderr(self, limits: Limits) -> Stderr:
        """Return what takes the stderr of a server that the daemon runs."""
        sink = self._server.stderr
        own: Sink = _to_our_stderr if isinstance(sink, str) else sink
        return Stderr(self.name, own, limits.stderr_bytes, self._watchers)

    def watch_stderr(self, receive: Callable[[str], object]) -> None:
        """Give the lines of the server's stderr to one more function; for traces."""
        self._watchers += (receive,)
        self._server.watch_stderr(receive)


def _to_our_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _log_own(sentence: str, is_absent: bool) -> None:
    log.log(logging.INFO if is_absent else logging.WARNING, "%s", sentence)


class SharedLink:
    """A link to the daemon or, if there is none that answers, to a server of our own."""

    def __init__(
        self,
        shared: Shared,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
    ) -> None:
        self._shared = shared
        self._generation = generation
        self._limits = limits
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._link: b.Link | None = None
        """The one that it was decided for."""
        self._closed = False
        self._choice = self._loop.create_task(self._choose())

    def __repr__(self) -> str:
        return f"<SharedLink #{self._generation} {self._link!r}>"

    async def _choose(self) -> None:
        link: b.Link | None
        try:
            link = await self._reach()
        except Unavailable as why:
            link = self._own(why)
        if link is not None:
            self._link = link
            # Called as often as messages are sent.
            self.send = link.send  # type: ignore[method-assign]

    async def _reach(self) -> b.Link:
        hello = self._shared.hello(self._limits)
        connection, welcome, rest = await greet(hello)
        if welcome.holdfast != FINGERPRINT:
            connection.close()
            version = welcome.version or "another version"
            text = f"the daemon (pid {welcome.pid}) runs holdfast {version}: start it anew"
            raise Unavailable(text)
        if welcome.refused:
            connection.close()
            raise Unavailable(f"the daemon (pid {welcome.pid}) refused: {welcome.refused}")
        self._shared.daemon = welcome.pid
        log.info("%s: shared, by the daemon (pid %d)", self._shared.name, welcome.pid)
        stderr = self._shared.stderr(self._limits)
        link = DaemonLink(
            connection,
            self._generation,
            self._limits,
            self._report,
            pid=welcome.pid,
            stderr=stderr,
        )
        # Not now: what it reports is about this link, which has yet to know it.
        self._loop.call_soon(link.feed, rest)
        return link

    def _own(self, why: Unavailable) -> b.Link | None:
        self._shared.daemon = None
        sentence = f"{self._shared.name}: not shared, a server of its own is started: {why}"
        self._shared.fell_back(sentence, why.is_absent)
        try:
            return self._shared.open_own(self._generation, self._limits, self._report)
        except HoldfastError as error:
            lost = b.Lost(self._generation, error.with_traceback(None))
            self._loop.call_soon(self._report, lost)
            return None

    # What the driver asks for; most of it of the link that it was decided for.

    def send(
        self, frame: bytes, wire_id: b.WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        return self._link is not None and self._link.send(frame, wire_id, options)

    def withdraw(self, wire_id: b.WireId) -> bool:
        return self._link is not None and self._link.withdraw(wire_id)

    def unsent(self) -> frozenset[b.WireId]:
        return frozenset() if self._link is None else self._link.unsent()

    def unread(self) -> bool:
        return self._link is not None and self._link.unread()

    def received(self) -> None:
        """All that is read is reported at once."""

    def agreed(self) -> None:
        if self._link is not None:
            self._link.agreed()

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: b.StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        if self._closed:
            return
        self._closed = True
        self._choice.cancel()
        if self._link is not None:
            self._link.close(farewell)
        else:
            self._loop.call_soon(self._report, b.Drained(self._generation))

    def kill(self) -> None:
        self._closed = True
        with contextlib.suppress(RuntimeError):
            self._choice.cancel()
        if self._link is not None:
            self._link.kill()
