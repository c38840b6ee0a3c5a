"""What every store does, and the parts that all of them need."""

# A store keeps bytes by key, for one process or for many. Three kinds of users stand on it, and
# they can bear different losses:
#
# - The cache may lose any entry at any time: a lost response is asked for again. It puts its
#   entries with a time to live, and that is what tells a store which entries it may drop.
# - A login that is lost sends a person to a browser, and one that is overwritten by an older one
#   ends the whole family of its refresh tokens (RFC 9700 §4.14.2). So it is put without a time
#   to live, which a store keeps until it is deleted, and it is read, renewed and written under
#   a lock.
# - The ledger must never believe that something is written that is not: `put` and `swap` return
#   when the entry is durable, or raise. It never falls back to anything.
#
# Why so small: an application brings a store of its own for the database that it has. Six
# operations are an afternoon's work in any of them. What is not here is left out on purpose:
#
# - No transactions. Whoever writes what others may have changed uses `swap`, which compares;
#   whoever does something between reading and writing that cannot be taken back, such as a
#   refresh at an authorization server, holds a lock meanwhile *and* writes by `swap`.
# - No search but by prefix, which only listings for people use.
# - No clock that is compared between machines. A time to live is a duration, and the store's own
#   clock ends it. What is no longer true is told by *versions*: a random token per subject in
#   the same store, written anew when the subject changed (see `_core/calls/cache.py`). Clocks
#   of two machines differ by more than the time between a change and the next read.
#
# Locks come in two forms. Memory and files have locks that end with their holder: a task ends,
# or the system closes the descriptors of a process that was killed. Databases have leases: a row
# with an end, which the holder moves on while it lives. A lease can be lost by a holder that was
# suspended for longer than it; then two hold it. That is why `ttl` is an argument of `lock`: it is
# how long others wait for the dead, and how long the living may sleep. It should be several
# times the longest pause of a healthy process, and above the time of the work if the loop may be
# blocked during it.
#
# No lease can prevent that two hold it for a moment; it can only be told who came later. So a
# lock yields a *fencing number*, which grows with every holder of the same name. A system that
# remembers the largest number it has seen can refuse what a holder of the past still sends. The
# stores themselves do not need it: `swap` refuses what was decided on an older entry.
#
# Inside of a process a lock is taken twice: first between the tasks of a loop, in the order of
# asking, then between loops and processes, by polling. Without the first, twenty tasks would poll
# a file against each other; and a lock of the system does not tell two tasks apart.

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

log: logging.Logger = logging.getLogger("holdfast")

LOCK_TTL: Final = 30.0
_RENEWALS: Final = 3
"""How often a lease is renewed within its time."""
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.1


class StoreError(OSError):
    """An entry cannot be stored, or its store cannot be reached. The text says why."""


class StoreUnreachable(StoreError):  # noqa: N818  (a state)
    """The store did not answer, or is not asked for a while. What was sent may have been done."""


class Watcher(Protocol):
    """Is told when a store goes down (``store.watch``)."""

    def store_down(self, store: str, reason: str) -> None:
        """Note that a store did not answer, once until it answers again."""


class Store(Protocol):
    """Keeps bytes by key, for clients of one process or of many.

    An application may pass an object with these methods instead of one of ours; `swap` is needed
    by what must not be done twice (`holdfast.Ledger`), and used for logins if it is there. Keys
    are texts of any length; they contain no secrets. Any method may raise: the cache then sends
    its request, a login falls back to the tokens that the process holds, and the ledger refuses.
    """

    async def get(self, key: str) -> bytes | None:
        """Return an entry; None if there is none, or its time is over."""

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        """Replace an entry, whole and durably before this returns.

        Args:
            key: Its name.
            data: Its content.
            ttl: Seconds for which it may be returned. It may be dropped earlier, to make room.
                None: it is kept until it is deleted.
        """

    async def delete(self, key: str) -> None:
        """Delete an entry, if there is one."""

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        """Replace an entry if it is still ``old``, durably and in one step; return whether it was.

        Of many who try it with the same ``old``, one succeeds.

        Args:
            key: Its name.
            old: The content that it must have; None: there must be none.
            new: Its content; None deletes it.
            ttl: As for `put`.
        """

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix, sorted."""

    def lock(self, name: str, ttl: float = LOCK_TTL) -> AbstractAsyncContextManager[int]:
        """Hold a lock: nobody else who uses this store holds the same name meanwhile.

        It yields a fencing number, larger than that of every earlier holder of the name.

        It waits without end; the caller bounds it by ``asyncio.timeout``. A name is not a key: an
        entry may be read and written by those who do not hold it.

        Args:
            name: Its name.
            ttl: Seconds after which the lock of a holder that died is free, where the system
                does not free it at once.
        """


def store_at(place: str) -> Store:
    """Return the store that a file or a command line names: a URL of Redis, or a SQLite file."""
    if "://" in place:
        from holdfast.stores.redis import RedisStore

        return RedisStore(place)
    from holdfast.stores.sqlite import SqliteStore

    return SqliteStore(os.path.expanduser(place))


def require_entry(key: object, *values: object) -> None:
    """Refuse what no store can return as it was put."""
    for data in values:
        if not isinstance(key, str) or not isinstance(data, bytes):
            raise TypeError(f"an entry is bytes under a text, not {type(data).__name__}")


def require_swap(key: object, old: object, new: object) -> None:
    """Refuse a swap of what cannot be an entry."""
    require_entry(key, *(data for data in (old, new) if data is not None))


class TaskLocks:
    """Locks between the tasks of a loop, by name; those of other loops are others."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        place = (id(asyncio.get_running_loop()), name)
        lock = self._locks.get(place)
        if lock is None:
            lock = self._locks[place] = asyncio.Lock()
        async with lock:
            yield


T = TypeVar("T")


async def poll(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """Repeat an attempt until it returns something else than None, with growing pauses."""
    pause = _FIRST_PAUSE
    while (value := await attempt()) is None:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return value


async def give_back(
    release: Callable[[], Awaitable[object]], ttl: float, is_open: Callable[[], bool]
) -> None:
    """Give a lock back; if the store fails, as soon as it works again, as long as it is open.

    Its lease would end by itself, but that of a login lasts a minute, in which nobody can renew it.
    """
    try:
        await release()
    except StoreError:
        task = asyncio.create_task(_give_back_later(release, ttl, is_open))
        _GIVING_BACK.add(task)
        task.add_done_callback(_GIVING_BACK.discard)


async def _give_back_later(
    release: Callable[[], Awaitable[object]], ttl: float, is_open: Callable[[], bool]
) -> None:
    async def attempt() -> bool | None:
        if is_open():
            try:
                await release()
            except StoreError:
                return None
        return True

    with suppress(TimeoutError):
        async with asyncio.timeout(ttl):
            await poll(attempt)


_GIVING_BACK: Final[set[asyncio.Task[None]]] = set()
"""Locks that are being given back; a loop holds its tasks by weak references."""


@asynccontextmanager
async def renewed(
    store: object, name: str, ttl: float, renew: Callable[[], Awaitable[bool]]
) -> AsyncIterator[None]:
    """Renew a lease while it is held. ``renew`` returns False if another has taken it over."""

    async def keep() -> None:
        while True:
            await asyncio.sleep(ttl / _RENEWALS)
            try:
                if not await renew():
                    # This process was suspended, or its loop blocked, for longer than the lease.
                    log.warning("%r: the lock %r was taken over after %g s", store, name, ttl)
                    return
            except StoreError as error:
                log.warning("%r: the lock %r was not renewed: %s", store, name, error)

    renewal = asyncio.create_task(keep())
    try:
        yield
    finally:
        renewal.cancel()
