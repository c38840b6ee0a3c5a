"""Where logins are kept: a folder of private files with locks between processes, or memory."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from holdfast._core import files
from holdfast.errors import AuthError

if TYPE_CHECKING:
    from holdfast._core.auth.keyring import Sealed

MAX_ENTRY: Final = 256 * 1024
LOCK_TIMEOUT: Final = 30.0
"""Seconds to wait for another process that holds an entry; a refresh takes less."""
_KEY = re.compile(r"[a-z]+-[0-9a-f]{8,64}")


class LoginSlot(Protocol):
    """One entry, held by one task of one process at a time."""

    async def read(self) -> bytes | None:
        """Return the entry as it is now; None if there is none."""

    async def write(self, data: bytes | None) -> None:
        """Replace the entry, durably before this returns; None deletes it."""


class LoginStore(Protocol):
    """Keeps entries by key. A service may keep them in its database."""

    def hold(self, key: str) -> AbstractAsyncContextManager[LoginSlot]:
        """Hold one entry: nobody else reads or writes it meanwhile."""

    async def read(self, key: str) -> bytes | None:
        """Return an entry without holding it."""

    async def keys(self) -> list[str]:
        """Return the keys of all entries."""


class _Slot(Struct):
    """An entry that is held, read and written by functions of its store."""

    read: Callable[[], Coroutine[Any, Any, bytes | None]]
    write: Callable[[bytes | None], Coroutine[Any, Any, None]]


class MemoryLogins:
    """Keep entries for as long as this object lives."""

    def __init__(self) -> None:
        self._entries: dict[str, bytes] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"<MemoryLogins {len(self._entries)} entries>"

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[LoginSlot]:
        async with self._locks.setdefault(key, asyncio.Lock()):
            yield _Slot(partial(self.read, key), partial(self._write, key))

    async def read(self, key: str) -> bytes | None:
        return self._entries.get(key)

    async def keys(self) -> list[str]:
        return list(self._entries)

    async def _write(self, key: str, data: bytes | None) -> None:
        if data is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = data


class FileLogins:
    """Keep entries as files that only their owner can read (0600 in a folder of 0700).

    Writing is atomic and synced; a lock file per entry orders processes. A symbolic link in
    the place of an entry is not followed.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, seal: Callable[[], Sealed | None] | None = None
    ) -> None:
        self.path: Path = Path(path)
        self._seal = seal or (lambda: None)
        """Asked in a thread, when there is something to open or to seal."""
        self._locks: dict[str, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"<FileLogins {self.path}>"

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[LoginSlot]:
        name = _checked(key)
        # Tasks of this process first: flock on two descriptors would block them both.
        async with self._locks.setdefault(name, asyncio.Lock()):
            descriptor = await asyncio.to_thread(self._open_lock, name)
            try:
                await _lock(descriptor)
                yield _Slot(
                    partial(self.read, name), lambda data: asyncio.to_thread(self.save, name, data)
                )
            finally:
                os.close(descriptor)

    async def read(self, key: str) -> bytes | None:
        return await asyncio.to_thread(self.load, _checked(key))

    async def keys(self) -> list[str]:
        found = await asyncio.to_thread(lambda: sorted(self.path.glob("*.json")))
        return [one.stem for one in found if _KEY.fullmatch(one.stem)]

    def _open_lock(self, name: str) -> int:
        try:
            files.make_private_folder(self.path)
            flags = os.O_RDWR | os.O_CREAT
            return files.open_without_links(self.path / f"{name}.lock", flags)
        except OSError as error:
            raise self._unusable(error) from error

    def load(self, name: str) -> bytes | None:
        try:
            path = self.path / f"{name}.json"
            data = files.read_bytes(path, MAX_ENTRY, owned=True, links=False)
        except OSError:
            return None
        seal = self._seal()
        return data if seal is None else seal.open(name, data)

    def save(self, name: str, data: bytes | None) -> None:
        target = self.path / f"{name}.json"
        try:
            if data is None:
                target.unlink(missing_ok=True)
                return
            seal = self._seal()
            sealed = data if seal is None else seal.seal(name, data)
            files.write_atomic(target, sealed, private=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> AuthError:
        return AuthError(f"logins cannot be kept in {self.path}: {files.reason(error)}")


def _checked(key: str) -> str:
    """A key becomes a file name: nothing else may."""
    if not _KEY.fullmatch(key):
        raise ValueError("not a key of an entry")
    return key


async def _lock(descriptor: int) -> None:
    """Lock a file without blocking the loop; the lock ends with the descriptor."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + LOCK_TIMEOUT, 0.005
    while not files.try_lock(descriptor):
        if loop.time() >= until:
            raise AuthError("another process has held the stored login for too long; try again")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def default_folder() -> Path:
    """Return the user's folder for logins."""
    return files.xdg_folder("data") / "holdfast" / "auth"


def default_store() -> LoginStore:
    """Return the store that ``HOLDFAST_AUTH_STORE`` names: auto, keyring, file, memory, a folder.

    ``auto`` is the OS keyring where it works, else the file; the choice is remembered.
    """
    wanted = os.environ.get("HOLDFAST_AUTH_STORE", "") or "auto"
    if wanted == "memory":
        return MemoryLogins()
    if wanted == "file":
        return FileLogins(default_folder())
    if wanted in ("auto", "keyring"):
        from holdfast._core.auth.keyring import KEYRING

        required = wanted == "keyring"
        seal = partial(KEYRING.seal_for, default_folder(), required=required)
        return FileLogins(default_folder(), seal=seal)
    if os.path.isabs(wanted):
        return FileLogins(wanted)
    raise AuthError("HOLDFAST_AUTH_STORE: must be auto, keyring, file, memory, or a folder")
