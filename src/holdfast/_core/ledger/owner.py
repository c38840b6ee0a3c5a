"""Who works on records in this process, and whether the owner of a record lives."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import suppress
from functools import cache
from secrets import token_hex
from typing import Final

from msgspec import Struct, field

from holdfast._core.ledger.record import Record
from holdfast.stores.base import Store, StoreError

RENEWALS: Final = 3
"""How often a lease is renewed within its time."""
DOUBT: Final = 60.0
"""Seconds for which a write of unknown fate is tried to be undone: it may be done late."""
MOST_UNWRITTEN: Final = 10_000


class Unwritten(Struct):
    """A record that could not be written, with all that the store may hold in its place."""

    possible: list[bytes | None]
    data: bytes | None
    since: float = field(default_factory=time.monotonic)
    is_doubtful: bool = False
    """A write before it may still be done: not finding it does not end it."""


class Owner:
    """The calls of one process and loop. One lease in the store covers all of them.

    A lease per record would be one more write for each call, and one renewal for each that runs.
    """

    def __init__(self, store: Store, lease: float) -> None:
        self.id: str = f"{token_hex(8)}@{_place()}:{os.getpid()}"
        self.host: str = f"{socket.gethostname()} (process {os.getpid()})"
        self.pid: int = os.getpid()
        self.running: set[str] = set()
        """The keys, in the store, of the records that it works on."""
        self.unwritten: dict[str, Unwritten] = {}
        self._store = store
        self._lease = lease
        self._renewed = float("-inf")
        self._renewing: asyncio.Task[None] | None = None

    async def ensure_lease(self) -> None:
        """Hold the lease before the first record is written; keep it while there is work."""
        if time.monotonic() - self._renewed > self._lease / RENEWALS:
            await self._renew()
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._keep())

    async def _renew(self) -> None:
        began = time.monotonic()
        await self._store.put(lease_key(self.id), b"1", self._lease)
        self._renewed = began

    async def _keep(self) -> None:
        while self.running or self.unwritten:
            await asyncio.sleep(min(self._lease / RENEWALS, 1.0 if self.unwritten else 1e9))
            with suppress(StoreError):
                await self._renew()
                for key in tuple(self.unwritten):
                    await self.flush(key)

    def write_later(self, key: str, unwritten: Unwritten) -> None:
        """Write a record when the store is back; until then the lease says that this lives."""
        if len(self.unwritten) < MOST_UNWRITTEN:
            self.unwritten[key] = unwritten
        if self._renewing is not None:
            # It sleeps for as long as a lease allows; others wait for this record.
            self._renewing.cancel()
            self._renewing = asyncio.create_task(self._keep())

    async def flush(self, key: str) -> None:
        """Write what could not be written; raise `StoreError` if it still cannot."""
        unwritten = self.unwritten.get(key)
        if unwritten is None:
            return
        for old in unwritten.possible:
            if await self._store.swap(key, old, unwritten.data):
                self.unwritten.pop(key, None)
                return
        if not unwritten.is_doubtful or time.monotonic() - unwritten.since > DOUBT:
            self.unwritten.pop(key, None)

    async def lives(self, key: str, record: Record) -> bool:
        """Return whether the owner of a record still works on it, as far as can be known."""
        if record.owner == self.id:
            return key in self.running
        place, _, pid = record.owner.partition("@")[2].rpartition(":")
        if place and place == _place() and pid.isdigit() and not _process_lives(int(pid)):
            return False
        return await self._store.get(lease_key(record.owner)) is not None


def lease_key(owner: str) -> str:
    return f"once-owner {owner}"


def _process_lives(pid: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Return True for a process that has ended, and whose parent has not asked how."""
    with suppress(OSError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            # proc(5): the name in parentheses may hold anything; the state comes after it.
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    return False


@cache
def _place() -> str:
    """Return what two processes have in common that see each other's numbers; "" if unknown."""
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    return ""
