"""Entries in one SQLite file, for many processes of one machine."""

# Every statement runs in one thread of the store's own, in the order in which it was submitted.
# That order is what makes a lock safe against cancellation: whoever is cancelled while it acquires
# a lease cannot know whether the statement has run, so it always submits the release, which then
# runs after it. What was submitted runs, also if its caller is cancelled before its turn has come:
# a release that did not run would leave a lock to nobody.
#
# A lease is a row with an owner and an end, and the end is moved on while the holder lives. A
# process that is killed leaves its row behind; others take it over when its time is past, by one
# statement, so that only one of them can. The number of the row is the fencing number: with
# AUTOINCREMENT, SQLite never gives one twice, however many rows were deleted. The clock is the
# machine's: a SQLite file is shared by processes of one machine (its locks do not hold on network
# file systems).
#
# ``synchronous=FULL`` with WAL: an entry is on the disk when `put` returns. With NORMAL a power cut
# could bring back a refresh token that was used up.
#
# A file that is deleted or replaced while it is open can still be written to, and nobody else would
# read it: two processes would claim one key, each in a file of its own. So every use looks whether
# the file at the path is the one that was opened. It is not opened anew by itself: closing the old
# one would delete the log that by now belongs to the new one, whose name is the same.
#
# A forked process has neither the thread nor SQLite's locks, but SQLite's own notes in its memory
# that it holds them: a connection of its own would then write into a log that another process is
# free to delete. So all files are closed before a fork, and each side opens them when it next uses
# them.

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from holdfast._core import files
from holdfast.stores.base import (
    LOCK_TTL,
    StoreError,
    TaskLocks,
    give_back,
    poll,
    renewed,
    require_entry,
    require_swap,
)

if TYPE_CHECKING:
    import sqlite3
    from concurrent.futures import ThreadPoolExecutor

BUSY: Final = 5.0
"""Seconds for which a statement waits for other processes."""
SWEEP: Final = 100
"""Entries that are put until those past their time are deleted."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, data BLOB NOT NULL, until REAL);
CREATE INDEX IF NOT EXISTS ends ON entries (until);
CREATE TABLE IF NOT EXISTS leases (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE NOT NULL, owner TEXT NOT NULL, until REAL NOT NULL
);
"""
_GET: Final = "SELECT data FROM entries WHERE key = ? AND (until IS NULL OR until > ?)"
_PUT: Final = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)"
_DELETE: Final = "DELETE FROM entries WHERE key = ?"
_EXPIRE: Final = "DELETE FROM entries WHERE until <= ?"
_KEYS: Final = """
SELECT key FROM entries
WHERE substr(key, 1, ?) = ? AND (until IS NULL OR until > ?) ORDER BY key
"""
_PUT_NEW: Final = """
INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE
SET data = excluded.data, until = excluded.until WHERE until <= ?
"""
_REPLACE: Final = """
UPDATE entries SET data = ?, until = ?
WHERE key = ? AND data = ? AND (until IS NULL OR until > ?)
"""
_DELETE_OLD: Final = """
DELETE FROM entries WHERE key = ? AND data = ? AND (until IS NULL OR until > ?)
"""
_ACQUIRE: Final = """
INSERT OR REPLACE INTO leases (name, owner, until) SELECT ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM leases WHERE name = ? AND until > ?) RETURNING number
"""
_RENEW: Final = "UPDATE leases SET until = ? WHERE name = ? AND owner = ?"
_RELEASE: Final = "DELETE FROM leases WHERE name = ? AND owner = ?"


class SqliteStore:
    """Keep entries in a SQLite file that only its owner can read.

    Args:
        path: The file. It is created when it is first used; its folder must be there. Not on a
            network file system, where SQLite's locks do not hold.
        clock: Returns the time in seconds since the epoch.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path: str = os.fspath(path)
        self._clock = clock
        self._tasks = TaskLocks()
        self._database: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._puts = 0
        self._identity: tuple[int, int] | None = None
        """Which file was opened."""

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}>"

    async def get(self, key: str) -> bytes | None:
        """Return an entry."""
        row = await self._run(lambda sql: sql.execute(_GET, (key, self._clock())).fetchone())
        return None if row is None else bytes(row[0])

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        """Replace an entry; it is on the disk before this returns."""
        require_entry(key, data)
        now = self._clock()
        if ttl is not None and ttl <= 0:
            await self.delete(key)
            return
        until = None if ttl is None else now + ttl
        await self._change(_PUT, key, data, until)
        self._puts += 1
        if self._puts % SWEEP == 0:
            await self._change(_EXPIRE, now)

    async def delete(self, key: str) -> None:
        """Delete an entry."""
        await self._change(_DELETE, key)

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        """Replace an entry if it is still ``old``, by one statement."""
        require_swap(key, old, new)
        now = self._clock()
        until = None if ttl is None else now + ttl
        if new is None or (ttl is not None and ttl <= 0):
            if old is None:
                return await self.get(key) is None
            return await self._change(_DELETE_OLD, key, old, now) == 1
        if old is None:
            return await self._change(_PUT_NEW, key, new, until, now) == 1
        return await self._change(_REPLACE, new, until, key, old, now) == 1

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix."""
        values = (len(prefix), prefix, self._clock())
        rows = await self._run(lambda sql: sql.execute(_KEYS, values).fetchall())
        return [row[0] for row in rows]

    @asynccontextmanager
    async def lock(self, name: str, ttl: float = LOCK_TTL) -> AsyncIterator[int]:
        """Hold a lease between tasks and processes; it is renewed while it is held."""
        owner = secrets.token_hex(16)

        async def attempt() -> int | None:
            now = self._clock()
            values = (name, owner, now + ttl, name, now)
            rows = await self._run(lambda sql: sql.execute(_ACQUIRE, values).fetchall())
            return int(rows[0][0]) if rows else None

        async def renew() -> bool:
            return await self._change(_RENEW, self._clock() + ttl, name, owner) > 0

        async def release() -> None:
            await self._change(_RELEASE, name, owner)

        async with self._tasks.hold(name):
            try:
                number = await poll(attempt)
                async with renewed(self, name, ttl, renew):
                    yield number
            finally:
                await give_back(release, ttl, lambda: self._thread is not None)

    @property
    def is_open(self) -> bool:
        """True while the file is open."""
        return self._database is not None

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            # Before a fork nothing can be submitted any more.
            thread.shutdown()
            self._close()

    async def _change(self, statement: str, *values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return int(await self._run(lambda sql: sql.execute(statement, values).rowcount))

    def _run(self, work: Callable[[sqlite3.Connection], Any]) -> asyncio.Future[Any]:
        """Submit work to the store's thread at once, so that its order is that of the calls."""
        # Without the shield, cancelling the caller would take the work out of the queue.
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(1, "holdfast-sqlite")
            _USED.add(self)
        future = asyncio.wrap_future(self._thread.submit(self._perform, work))
        future.add_done_callback(_look_at)  # whoever is cancelled meanwhile does not
        return asyncio.shield(future)

    def _perform(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        import sqlite3

        try:
            if self._database is None:
                with _OPENING:
                    self._database = self._open()
            elif self._identity != self._identity_at_path():
                reason = "was deleted or replaced while it was open; start this process again"
                raise StoreError(f"{self.path}: {reason}")
            return work(self._database)
        except (sqlite3.Error, OSError) as error:
            reason = files.reason(error) if isinstance(error, OSError) else str(error)
            raise StoreError(f"{self.path}: {reason}") from error

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        # SQLite would create it readable for others; -wal and -shm get the same permissions.
        os.close(files.open_for_append(self.path))
        database = sqlite3.connect(
            self.path, timeout=BUSY, isolation_level=None, check_same_thread=False
        )
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.executescript(_TABLES)
        self._identity = self._identity_at_path()
        return database

    def _identity_at_path(self) -> tuple[int, int] | None:
        if os.name != "posix":  # the system keeps an open file from being deleted
            return None
        try:
            facts = os.stat(self.path)
        except FileNotFoundError:
            return None
        return facts.st_dev, facts.st_ino

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def begin_in_fork(self) -> None:
        """Have a thread of this process."""
        self._thread = self._database = None


def _look_at(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


_USED: Final[WeakSet[SqliteStore]] = WeakSet()
"""The stores of this process that have a thread."""
_OPENING: Final = threading.Lock()
"""Held while a file is opened, and during a fork."""


def _close_before_fork() -> None:
    while True:
        for store in tuple(_USED):
            store.close()
        _OPENING.acquire()
        # Another thread may have used one meanwhile.
        if not any(store.is_open for store in tuple(_USED)):
            return
        _OPENING.release()


def _begin_in_fork() -> None:
    for store in tuple(_USED):
        store.begin_in_fork()
    _OPENING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_close_before_fork,
        after_in_parent=_OPENING.release,
        after_in_child=_begin_in_fork,
    )
