"""Accepts the clients of one user, and gives each the server that it wants."""

# Who ends what, and when
#
#   a client    leaves when it likes; it is never sent away but for a stop, or with its server
#   a server    ends when it dies, or `idle` seconds after its last client; never under one
#   the daemon  ends when it is asked to, or `linger` seconds after its last server
#
# A client that is slow, hangs, or says nothing costs a descriptor and a bounded buffer. One that
# does not say hello in time is dropped. Nobody can have another client's server ended, and nobody
# ends the daemon but its user: what is asked for by ``stop`` comes by the same socket.
#
# One timer serves all of this. `_settle` is called after every change, and sets it to the time when
# the next thing will be due if nothing else happens.

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from holdfast._core.transports.daemon_socket import (
    FINGERPRINT,
    LONGEST_HELLO,
    Definition,
    Hello,
    Welcome,
    decode_hello,
    encode_line,
    is_ours,
    read_line,
)
from holdfast._version import __version__
from holdfast.daemon.shared_server import SharedServer, differences, sharing_key
from holdfast.errors import TransportError, ValidationError

log: logging.Logger = logging.getLogger("holdfast")

IDLE: Final = 600.0
"""Seconds that a server runs on without a client."""
LINGER: Final = 1800.0
"""Seconds that the daemon runs on without a server."""
HELLO_WAIT: Final = 10.0
"""Seconds for a client to say what it wants."""
STOP_WAIT: Final = 5.0
"""Seconds for calls under way when the daemon is stopped."""
MOST_CLIENTS: Final = 2000
MOST_SERVERS: Final = 200
SPARE: Final = 32
"""Descriptors that must be left for a client to join: its server needs some, and so does `stop`."""
ACCEPTS: Final = 64
"""Clients accepted in one turn of the loop."""


class Daemon:
    """The servers of one user, and their clients.

    Args:
        listener: The socket, bound and listening.
        idle: Seconds that a server runs on without a client.
        linger: Seconds that the daemon runs on without a server.
    """

    def __init__(
        self, listener: socket.socket, *, idle: float = IDLE, linger: float = LINGER
    ) -> None:
        self._listener = listener
        self._idle = idle
        self._linger = linger
        self._loop = asyncio.get_running_loop()
        self._began = time.time()
        self._servers: dict[str, SharedServer] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[bool]] = set()
        """Servers on their way out."""
        self._empty_since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Daemon {len(self._servers)} servers, {len(self._connections)} connections>"

    async def run(self, unlink: Callable[[], object] = lambda: None) -> None:
        """Serve until `stop`, or until nobody has wanted anything for long.

        Args:
            unlink: Removes the socket's file, before anything else ends.
        """
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)
        self._settle()
        try:
            await self._stopping.wait()
        finally:
            self._loop.remove_reader(self._listener.fileno())
            with suppress(OSError):
                unlink()
            self._listener.close()
            await self._end_all()

    def stop(self) -> None:
        """Have `run` end everything and return."""
        self._stopping.set()

    async def _end_all(self) -> None:
        """Let calls under way finish, for a while; then end servers and clients."""
        until = self._loop.time() + STOP_WAIT
        # Nothing tells when the last of all calls is over; this is the end, and it is bounded.
        while any(server.calls for server in self._servers.values()):
            if self._loop.time() > until:
                break
            await asyncio.sleep(0.02)
        error = TransportError("the daemon was stopped")
        await asyncio.gather(*(server.close(error) for server in list(self._servers.values())))
        if self._ending:
            await asyncio.wait(self._ending)
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=1.0)

    # Clients

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # No descriptors are left: those who wait try again, or start their own.
                log.warning("a client could not be accepted: %s", error)
                self._loop.remove_reader(self._listener.fileno())
                self._loop.call_later(0.2, self._accept_again)
                return
            connection.setblocking(False)
            self._spawn(self._attend(connection))

    def _accept_again(self) -> None:
        if not self._stopping.is_set():
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._connections.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a client could not be served", exc_info=task.exception())
        self._settle()

    async def _attend(self, connection: socket.socket) -> None:
        """Serve one connection from its first line to its end."""
        with connection:
            if not is_ours(connection):
                log.warning("a process of another user was refused")
                return
            with suppress(OSError, EOFError):
                try:
                    async with asyncio.timeout(HELLO_WAIT):
                        line, _ = await read_line(connection, LONGEST_HELLO)
                        hello = decode_hello(line)
                except ValueError as error:
                    await self._answer(connection, refused=str(error))
                    return
                await self._obey(connection, hello)

    async def _obey(self, connection: socket.socket, hello: Hello) -> None:
        if hello.verb == "status":
            await self._answer(connection, status=self.status())
        elif hello.verb == "stop":
            await self._answer(connection, status=self.status())
            log.info("asked to stop")
            self.stop()
            # Its other end sees this process end: the descriptor stays open until then.
            os.dup(connection.fileno())
        elif refused := self._refusal(hello):
            await self._answer(connection, refused=refused)
        else:
            try:
                await self._join(connection, hello)
            except ValidationError as error:
                # Before it was answered: the definition is of no server.
                await self._answer(connection, refused=error.redacted)

    async def _answer(self, connection: socket.socket, **fields: Any) -> None:
        pid = os.getpid()
        welcome = Welcome(holdfast=FINGERPRINT, pid=pid, version=__version__, **fields)
        await self._loop.sock_sendall(connection, encode_line(welcome))

    def _refusal(self, hello: Hello) -> str:
        """Return why a client cannot be served; empty if it can."""
        if hello.holdfast != FINGERPRINT:
            return "the client is of another version of holdfast"
        if self._stopping.is_set():
            return "it is stopping"
        if hello.definition is None:
            return "no server was asked for"
        if len(self._connections) > MOST_CLIENTS:
            return f"it has {MOST_CLIENTS} clients already"
        if not self._has_descriptors():
            return "it has too few descriptors left (ulimit -n)"
        return ""

    def _has_descriptors(self) -> bool:
        """Return whether a client and its server may be had: the system tells by refusing one."""
        copies: list[int] = []
        try:
            while len(copies) < SPARE:
                copies.append(os.dup(self._listener.fileno()))
        except OSError:
            return False
        finally:
            for copy in copies:
                os.close(copy)
        return True

    async def _join(self, connection: socket.socket, hello: Hello) -> None:
        assert hello.definition is not None
        key = sharing_key(hello.definition)
        if key not in self._servers and len(self._servers) >= MOST_SERVERS:
            await self._answer(connection, refused=f"it runs {MOST_SERVERS} servers already")
            return
        await self._answer(connection)
        # Nothing is awaited from here to where the server counts its client.
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = SharedServer(hello.definition, self._ended)
            log.info("%s: wanted, in %s", server.name, server.project)
        await server.serve(connection, hello)

    # What is left behind

    def _ended(self, server: SharedServer) -> None:
        """Forget a server that is ending; new clients get another one."""
        for key in [key for key, other in self._servers.items() if other is server]:
            del self._servers[key]
        task = server.end()
        self._ending.add(task)
        task.add_done_callback(self._gone)
        self._settle()

    def _gone(self, task: asyncio.Task[bool]) -> None:
        self._ending.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a server could not be ended", exc_info=task.exception())
        self._settle()

    def _settle(self) -> None:
        """Wait for what is due next, if nothing else happens."""
        now = self._loop.time()
        if self._servers or self._ending:
            self._empty_since = now
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ends = [
            server.idle_since + self._idle
            for server in self._servers.values()
            if server.idle_since is not None
        ]
        if not self._servers and not self._ending:
            ends.append(self._empty_since + self._linger)
        if ends and not self._stopping.is_set():
            self._timer = self._loop.call_at(min(ends), self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._loop.time()
        for server in list(self._servers.values()):
            if server.idle_since is not None and server.idle_since + self._idle <= now:
                log.info("%s: idle for %.0f s", server.name, now - server.idle_since)
                server.end()
        if not self._servers and not self._ending and self._empty_since + self._linger <= now:
            log.info("nothing to do for %.0f s", now - self._empty_since)
            self.stop()
        else:
            self._settle()

    def status(self) -> dict[str, Any]:
        """Return what the user may want to know."""
        servers: list[dict[str, Any]] = []
        firsts: dict[tuple[str, ...], Definition] = {}
        for server in self._servers.values():
            definition = server.definition
            first = firsts.setdefault(definition.command, definition)
            servers.append({**server.status(), "apart": differences(first, definition)})
        return {
            "since": self._began,
            "clients": sum(server["clients"] for server in servers),
            "servers": servers,
        }
