"""Where logins are kept: a folder of private files with locks between processes, or memory.

The OS keyring, by the extra ``holdfast[auth]``, holds one key, which seals the files. One key
rather than the tokens themselves: Windows keeps at most 2,560 bytes, and a service with many
accounts would fill the user's keyring.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from holdfast._core import files
from holdfast.errors import AuthError

log: logging.Logger = logging.getLogger("holdfast")

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
        self, path: str | os.PathLike[str], *, seal: Callable[[], Sealed | None] = lambda: None
    ) -> None:
        self.path: Path = Path(path)
        self._seal = seal
        """Called in a thread, when there is an entry to encrypt or decrypt."""
        self._locks: dict[str, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"<FileLogins {self.path}>"

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[LoginSlot]:
        _check(key)
        # First a lock between tasks: flock on two descriptors of one process would deadlock.
        async with self._locks.setdefault(key, asyncio.Lock()):
            descriptor = await asyncio.to_thread(self._open_lock, key)
            try:
                await _lock(descriptor)
                write = partial(self._write, key)
                yield _Slot(partial(self.read, key), lambda data: asyncio.to_thread(write, data))
            finally:
                os.close(descriptor)

    async def read(self, key: str) -> bytes | None:
        return None if self.lacks(key) else await asyncio.to_thread(self._read, key)

    def lacks(self, key: str) -> bool:
        """Return True if there is no such entry: most servers have no login."""
        _check(key)
        return not os.path.lexists(os.path.join(self.path, f"{key}.json"))

    async def keys(self) -> list[str]:
        found = await asyncio.to_thread(lambda: sorted(self.path.glob("*.json")))
        return [one.stem for one in found if _KEY.fullmatch(one.stem)]

    def _open_lock(self, key: str) -> int:
        try:
            files.make_private_folder(self.path)
            flags = os.O_RDWR | os.O_CREAT
            return files.open_without_links(self.path / f"{key}.lock", flags)
        except OSError as error:
            raise self._unusable(error) from error

    def _read(self, key: str) -> bytes | None:
        try:
            path = self.path / f"{key}.json"
            data = files.read_bytes(path, MAX_ENTRY, owned=True, links=False)
        except OSError:
            return None
        seal = self._seal()
        return data if seal is None else seal.open(key, data)

    def _write(self, key: str, data: bytes | None) -> None:
        target = self.path / f"{key}.json"
        try:
            if data is None:
                target.unlink(missing_ok=True)
                return
            seal = self._seal()
            sealed = data if seal is None else seal.seal(key, data)
            files.write_atomic(target, sealed, private=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> AuthError:
        return AuthError(f"logins cannot be kept in {self.path}: {files.reason(error)}")


def _check(key: str) -> None:
    """Refuse a key that is not safe as a file name."""
    if not _KEY.fullmatch(key):
        raise ValueError("not a key of an entry")


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
        folder, required = default_folder(), wanted == "keyring"
        return FileLogins(folder, seal=partial(KEYRING.seal_for, folder, required=required))
    if os.path.isabs(wanted):
        return FileLogins(wanted)
    raise AuthError("HOLDFAST_AUTH_STORE: must be auto, keyring, file, memory, or a folder")


# The keyring

SERVICE, NAME = "holdfast", "auth-store-key"
PATIENCE: Final = 10.0
"""Seconds for the keyring to answer; a locked one waits forever for a person to unlock it."""
_MAGIC: Final = b"holdfast-sealed-1\n"


class Sealed:
    """AES-GCM with the key from the keyring; an entry's name is authenticated with it."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, key: str, data: bytes) -> bytes:
        nonce = os.urandom(12)
        return _MAGIC + nonce + self._cipher.encrypt(nonce, data, key.encode())

    def open(self, key: str, data: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        head = len(_MAGIC) + 12
        with suppress(InvalidTag, ValueError):
            if data.startswith(_MAGIC):
                return self._cipher.decrypt(data[len(_MAGIC) : head], data[head:], key.encode())
        return None


class KeyringUnusable(Exception):  # noqa: N818
    """The keyring cannot be used; the text says why."""


class Keyring:
    """The keyring of this process: its key is asked for once.

    D-Bus calls block, without end if a keyring is locked: the key is fetched in a thread.
    """

    def __init__(
        self, fetch: Callable[[], bytes] | None = None, patience: float = PATIENCE
    ) -> None:
        self._fetch = fetch or _fetch
        self._patience = patience
        self._lock = threading.Lock()
        self._asked: Future[bytes] | None = None

    def seal_for(self, folder: Path, *, required: bool = False) -> Sealed | None:
        """Return the cipher for the entries of a folder; None: they are not encrypted.

        The choice is remembered in the folder: a keyring that fails later is an error and not
        a silent change to plain files.
        """
        marker, chosen = folder / "store", ""
        with suppress(OSError, ValueError):
            data = files.read_bytes(marker, 100, owned=True, links=False)
            chosen = data.decode("ascii").strip()
        if chosen == "file" and not required:
            return None
        found = None
        try:
            found = Sealed(self._key())
        except KeyringUnusable as error:
            if required or chosen == "keyring":
                raise AuthError(
                    f"the keyring cannot be used: {error}; set the variable HOLDFAST_AUTH_STORE "
                    f"to 'file' to keep logins in {folder} instead"
                ) from None
            text = "logins are kept in %s, readable by you alone, because there is no keyring (%s)"
            log.warning(text, folder, error)
        choice = "file" if found is None else "keyring"
        if chosen != choice:
            with suppress(OSError):
                files.make_private_folder(folder)
                files.write_atomic(marker, f"{choice}\n".encode(), private=True)
        return found

    def _key(self) -> bytes:
        """Return the key; a keyring that hangs is not asked a second time."""
        with self._lock:
            if self._asked is None or (self._asked.done() and self._asked.exception()):
                self._asked = Future()
                threading.Thread(target=self._ask, args=(self._asked,), daemon=True).start()
            asked = self._asked
        try:
            return asked.result(self._patience)
        except TimeoutError:
            raise KeyringUnusable("it did not answer") from None
        except Exception as error:
            raise KeyringUnusable(str(error) or type(error).__name__) from None

    def _ask(self, asked: Future[bytes]) -> None:
        try:
            asked.set_result(self._fetch())
        except Exception as error:
            asked.set_exception(error)


def _fetch() -> bytes:
    try:
        import cryptography  # noqa: F401
        import keyring
        import keyring.backends.fail
    except ImportError:
        raise KeyringUnusable("pip install 'holdfast[auth]' adds it") from None
    if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
        raise KeyringUnusable("none was found")
    files.make_private_folder(default_folder())
    # If two processes find no key, only one creates it.
    with files.locked(default_folder() / "keyring.lock"):
        text = keyring.get_password(SERVICE, NAME)
        if text is None:
            text = base64.b64encode(os.urandom(32)).decode("ascii")
            keyring.set_password(SERVICE, NAME, text)
            text = keyring.get_password(SERVICE, NAME)
    key = base64.b64decode(text or "")
    if len(key) != 32:
        raise KeyringUnusable("it does not return what was stored")
    return key


KEYRING: Final = Keyring()
