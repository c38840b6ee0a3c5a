"""Clients by server and user: made when they are wanted, closed when they are not."""

# Who may be given which client.
#
# A client is a session, and a session is somebody: it has been authorized with their token, the
# server may keep their state in it, its tools and cached responses are theirs, and what the server
# asks goes to their handlers. To hand one user's client to another is to let the second act as
# the first. It has happened in other pools by keys that were too small: by the URL alone (users
# shared a session), and without the folder (a server that was started for one project answered
# for another).
#
# So the key is made of everything that decides what the other end sees:
#
#   definition   the command with its environment, inherited variables and folder; or the URL
#                with its certificates and proxy; the headers and credentials; the project
#   account      the name of the user, as the application says it for this very call
#
# The definition is a digest, because it contains secrets and keys are shown in logs. What cannot
# be compared is equal to nothing: a server in memory, credentials from a function, an SSL context
# of the application's. Such a client belongs to whoever made it.
#
# The account is asked for at every use and never remembered: a task that serves one user after
# another must not keep the client of the first. For the same reason a client runs its own end in
# the context in which it was made. A function of the application that names the user (for a header)
# would otherwise name the one whose arrival made it close.
#
# A client ends if there are too many, the one used least recently first, or if it has not been
# used for a while; never with a call under way. Between the look at it and its end nothing is
# awaited, so no call can begin meanwhile; one that comes later finds a new client.
#
# Threads: properties of the synchronous face read the pool from theirs. A client is inserted by
# `setdefault`, so that two threads get the same one, and only the loop closes any.

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import Context, copy_context
from hashlib import sha256
from itertools import islice
from secrets import token_hex
from typing import Any, Final, NamedTuple

from holdfast.client import Client

log: logging.Logger = logging.getLogger("holdfast")

MAX_CLIENTS: Final = 1000
"""Clients that are open at once. Those with calls under way are not closed for others."""
_SETTINGS: Final = ("inherit_env", "ca", "cert", "proxy", "trust_env")
"""What a transport is given besides its key, and shows the server or decides what it reaches."""


class SharingKey(NamedTuple):
    """Whose client it is, and of which server."""

    definition: str
    account: str = ""


def definition_of(transport: Any, *, project: str = "") -> str:
    """Return a digest that is equal for transports that may share a client, without secrets.

    Args:
        transport: How the server is started or reached, and with which credentials.
        project: The folder that is worked in, if a server is one project's.
    """
    credentials = transport.traits.credentials
    if transport.key is None or credentials is None or getattr(transport, "ssl", None) is not None:
        return token_hex(16)
    settings = [getattr(transport, name, None) for name in _SETTINGS]
    parts = (transport.key, credentials, settings, project)
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


class _Pooled:
    """A client, with what its end needs."""

    __slots__ = ("client", "context", "used")

    def __init__(self, client: Client) -> None:
        self.client = client
        self.context: Context = copy_context()
        self.used = 0.0
        """When it was obtained last, or seen busy, on the loop's clock."""


class ClientPool:
    """Clients by key, bounded in number and in idle time.

    Args:
        idle: Seconds without use after which a client is closed; None: never for that reason.
        most: Clients that are open at once; by default `MAX_CLIENTS`.
    """

    def __init__(self, *, idle: float | None = None, most: int | None = None) -> None:
        self._idle = idle
        self._most = most
        self._entries: OrderedDict[SharingKey, _Pooled] = OrderedDict()
        """The one used least recently first."""
        self._leaving: dict[asyncio.Task[bool], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        """True while `close` waits for the ends, whose errors it raises."""

    def __repr__(self) -> str:
        return f"<ClientPool {len(self)} clients>"

    def __len__(self) -> int:
        return len(self._entries)

    def obtain(self, key: SharingKey, make: Callable[[], Client]) -> Client:
        """Return the client of a key, made by ``make`` if there is none; it is not started."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries.setdefault(key, _Pooled(make()))
            self._look_for_room(entry)
        with suppress(KeyError):
            self._entries.move_to_end(key)
        if self._idle is not None:
            with suppress(RuntimeError):
                entry.used = asyncio.get_running_loop().time()
        return entry.client

    def _look_for_room(self, newest: _Pooled) -> None:
        with suppress(RuntimeError):  # in a thread without a loop
            loop = asyncio.get_running_loop()
            if self._idle is not None and self._timer is None:
                self._timer = loop.call_later(self._idle, self._end_idle)
            excess = len(self._entries) - (MAX_CLIENTS if self._most is None else self._most)
            if excess > 0:
                unused = (
                    key
                    for key, entry in self._entries.items()
                    if entry is not newest and not entry.client._is_busy
                )
                for key in list(islice(unused, excess)):
                    self._leave(self._entries.pop(key))

    def _end_idle(self) -> None:
        assert self._idle is not None
        loop = asyncio.get_running_loop()
        self._timer, now = None, loop.time()
        due = self.end_idle(now)
        if due is not None:
            self._timer = loop.call_at(due, self._end_idle)

    def end_idle(self, now: float) -> float | None:
        """Close the clients that have not been used for long enough; return when to look again."""
        if self._idle is None:
            return None
        for key, entry in list(self._entries.items()):
            if entry.client._is_busy:
                entry.used = now
            elif entry.used + self._idle <= now:
                self._leave(self._entries.pop(key))
        return min((entry.used + self._idle for entry in self._entries.values()), default=None)

    def _leave(self, entry: _Pooled) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(entry.client.close(), context=entry.context)
        self._leaving[task] = None
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[bool]) -> None:
        self._leaving.pop(task, None)
        if not self._closing and not task.cancelled() and task.exception() is not None:
            log.warning("closing a client that was not in use failed: %r", task.exception())

    async def close(self) -> None:
        """End all clients. If that of one fails, the others are ended first."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._entries:
            self._leave(self._entries.popitem(last=False)[1])
        leaving = list(self._leaving)
        self._closing = True
        try:
            if leaving:
                # Not gather: a caller that is cancelled must not leave sessions half closed.
                await asyncio.wait(leaving)
        finally:
            self._closing = False
        raise_first(task.exception() for task in leaving if not task.cancelled())


def raise_first(errors: Iterable[BaseException | None]) -> None:
    """Raise the first of the errors of things that were ended together; log the others."""
    failures = [error for error in errors if error is not None]
    for error in failures[1:]:
        log.warning("closing failed: %r", error)
    for error in failures[:1]:
        raise error
