"""Connections to Redis: one command on one connection, within a time."""

# Why not `Redis.execute_command`: of the 40 µs of processor time that it takes, less than half are
# spent on the command. The rest records metrics, asks for retries (which are off here, see
# `redis.py`) and keeps a pool that guards itself against what a loop's own tasks cannot do. So the
# connections are redis-py's, with its logins, TLS and parsers, and the list of them is ours.
#
# A connection is in the list only between two commands that were answered. Whatever else ends a
# command (a cancellation, an end of the patience, a lost link) closes its connection: an answer
# that comes late must not be taken for that of the next command. Where none came, the others that
# rest are closed too: a network that forgot them does not say so, and each would be an outage.

from __future__ import annotations

import asyncio
from typing import Any, Final

from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AskError, ClusterDownError, NoScriptError, RedisError, ResponseError
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as Late

__all__ = ["NO_ANSWER", "NoScriptError", "Pool", "RedisError", "reason_of"]

CONNECTIONS: Final = 32
"""The most connections of one event loop."""
NO_ANSWER: Final = (Unreachable, Late, TimeoutError, OSError)
"""What a command ends with that Redis did not answer."""
_GRACE: Final = 0.01
"""Seconds in which a loop that was blocked can read what has arrived meanwhile."""


def reason_of(error: RedisError) -> str:
    """Return what Redis answered, for people."""
    if isinstance(error, AskError | ClusterDownError):  # a MOVED is an ASK too
        return f"it is a node of a Redis Cluster, which is not supported: {error}"
    return str(error)


def check_url(url: str) -> None:
    """Raise `TypeError` or `ValueError` for a URL with an option that there is not."""
    _maker_of(url).make_connection()


def _maker_of(url: str) -> Any:
    """Return what makes the connections of a URL."""
    maker: Any = ConnectionPool.from_url(url)
    # redis-py 8 has each connection tell its pool that a server moves. There is no such pool here,
    # and without hiredis a connection in RESP 2 is not even made.
    for option in [name for name in maker.connection_kwargs if "maint_notifications" in name]:
        del maker.connection_kwargs[option]
    return maker


class Pool:
    """The connections of one event loop."""

    def __init__(self, url: str, patience: float) -> None:
        self._maker = _maker_of(url)
        # After the URL's own options, which could make texts of answers, or repeat a command.
        self._maker.connection_kwargs.update(
            socket_connect_timeout=patience,
            # redis-py 8 gives up by itself after five seconds; only the patience bounds a command.
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
            protocol=2,
        )
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._idle: list[Any] = []
        self._open: set[Any] = set()
        self.places = asyncio.Semaphore(CONNECTIONS)
        """Whoever runs a command holds one; waiting for it is not the fault of Redis."""

    async def run(self, words: tuple[Any, ...]) -> Any:
        """Run a command within the patience; return its answer.

        Raises:
            RedisError: Redis answered with an error.
            TimeoutError: It did not answer in time.
        """
        try:
            async with _Patience(self._loop, self._patience):
                return await self._run(words)
        except NO_ANSWER:
            await self._close_idle()
            raise

    async def _run(self, words: tuple[Any, ...]) -> Any:
        connection = self._idle.pop() if self._idle else self._maker.make_connection()
        self._open.add(connection)
        try:
            await _make_ready(connection)
            await connection.send_packed_command(packed(words), check_health=False)
            answer = await connection.read_response()
        except ResponseError:
            self._idle.append(connection)
            raise
        except BaseException:
            self._open.discard(connection)
            await connection.disconnect(nowait=True)
            raise
        self._idle.append(connection)
        return answer

    async def _close_idle(self) -> None:
        while self._idle:
            connection = self._idle.pop()
            self._open.discard(connection)
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Close all connections; a command under way fails."""
        self._idle.clear()
        while self._open:
            await self._open.pop().disconnect()


async def _make_ready(connection: Any) -> None:
    """Connect; again, if Redis has closed the connection while it rested."""
    if connection.is_connected:
        try:
            if not await _has_data(connection):
                return
        except NO_ANSWER:
            pass
        await connection.disconnect(nowait=True)
    await connection.connect()


def _has_data(connection: Any) -> Any:
    """Ask for the end of the stream, or for bytes that nobody waits for."""
    ask = getattr(connection, "can_read", None)
    return connection.can_read_destructive() if ask is None else ask()


def packed(words: tuple[Any, ...]) -> bytes:
    """Return a command as Redis reads it (RESP 2)."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if type(word) is bytes else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


class _Patience:
    """Bound what is inside, but read what has arrived before it is given up."""

    __slots__ = ("_limit", "_loop", "_seconds", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop, self._seconds = loop, seconds
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._timer = self._loop.call_later(self._seconds, self._read_first)

    async def __aexit__(self, *error: Any) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(*error)

    def _read_first(self) -> None:
        self._timer = self._loop.call_later(_GRACE, self._give_up)

    def _give_up(self) -> None:
        self._limit.reschedule(self._loop.time())
