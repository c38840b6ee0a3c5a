"""The OS keyring, by the extra ``holdfast[auth]``: it holds one key, which seals the stored logins.

One key rather than the tokens themselves: Windows keeps at most 2,560 bytes, and a service with
many accounts would fill the user's keyring.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Final

from holdfast._core import files
from holdfast.errors import AuthError
from holdfast.stores.base import LOCK_TTL, Store

log: logging.Logger = logging.getLogger("holdfast")

SERVICE, NAME = "holdfast", "auth-store-key"
PATIENCE: Final = 10.0
"""Seconds for the keyring to answer; a locked one waits forever for a person to unlock it."""
_MAGIC: Final = b"holdfast-sealed-1\n"


class Cipher:
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


class SealedStore:
    """A store whose entries are sealed. Keys, ends and locks are those of the store behind it.

    Args:
        store: The store that keeps what is sealed.
        cipher: Called in a thread when there is an entry to seal or to open; it may block, and
            return None if entries are not sealed.
    """

    def __init__(self, store: Store, cipher: Callable[[], Cipher | None]) -> None:
        self._store = store
        self._cipher = cipher

    def __repr__(self) -> str:
        return f"<SealedStore in {self._store!r}>"

    async def get(self, key: str) -> bytes | None:
        """Return an entry; None if it is not sealed with this key, or was another's."""
        data = await self._store.get(key)
        if data is None:
            return None
        cipher = await asyncio.to_thread(self._cipher)
        return data if cipher is None else cipher.open(key, data)

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        """Seal an entry and put it."""
        cipher = await asyncio.to_thread(self._cipher)
        await self._store.put(key, data if cipher is None else cipher.seal(key, data), ttl)

    def lacks(self, key: str) -> bool:
        """Return True if the store can tell at once that there is no such entry."""
        lacks = getattr(self._store, "lacks", None)
        return lacks is not None and bool(lacks(key))

    async def delete(self, key: str) -> None:
        """Delete an entry."""
        await self._store.delete(key)

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix."""
        return await self._store.keys(prefix)

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        """Seal an entry and put it, if what is sealed there is still ``old``."""
        sealed, cipher = await self._store.get(key), await asyncio.to_thread(self._cipher)
        if cipher is None:
            return await self._store.swap(key, old, new, ttl)
        if (None if sealed is None else cipher.open(key, sealed)) != old:
            return False
        return await self._store.swap(
            key, sealed, None if new is None else cipher.seal(key, new), ttl
        )

    def lock(self, name: str, ttl: float = LOCK_TTL) -> AbstractAsyncContextManager[int]:
        """Hold a lock of the store."""
        return self._store.lock(name, ttl)


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
        self._fetched: Future[bytes] | None = None

    def cipher(self, folder: Path, *, required: bool = False) -> Cipher | None:
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
        cipher = None
        try:
            cipher = Cipher(self._key())
        except KeyringUnusable as error:
            if required or chosen == "keyring":
                raise AuthError(
                    f"the keyring cannot be used: {error}; set the variable HOLDFAST_AUTH_STORE "
                    f"to 'file' to keep logins in {folder} instead"
                ) from None
            text = "logins are kept in %s, readable by you alone, because there is no keyring (%s)"
            log.warning(text, folder, error)
        choice = "file" if cipher is None else "keyring"
        if chosen != choice:
            with suppress(OSError):
                files.make_private_folder(folder)
                files.write_atomic(marker, f"{choice}\n".encode(), private=True)
        return cipher

    def _key(self) -> bytes:
        """Return the key; a keyring that hangs is not asked a second time."""
        with self._lock:
            if self._fetched is None or (self._fetched.done() and self._fetched.exception()):
                self._fetched = Future()
                threading.Thread(target=self._ask, args=(self._fetched,), daemon=True).start()
            fetched = self._fetched
        try:
            return fetched.result(self._patience)
        except TimeoutError:
            raise KeyringUnusable("it did not answer") from None
        except Exception as error:
            raise KeyringUnusable(str(error) or type(error).__name__) from None

    def _ask(self, fetched: Future[bytes]) -> None:
        try:
            fetched.set_result(self._fetch())
        except Exception as error:
            fetched.set_exception(error)


def default_folder() -> Path:
    """Return the user's folder for logins."""
    return files.xdg_folder("data") / "holdfast" / "auth"


def _fetch() -> bytes:
    try:
        import cryptography  # noqa: F401
        import keyring
        import keyring.backends.fail
    except ImportError:
        raise KeyringUnusable("pip install 'holdfast[auth]' adds it") from None
    if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
        raise KeyringUnusable("none was found")
    folder = default_folder()
    files.make_private_folder(folder)
    # If two processes find no key, only one creates it.
    with files.locked(folder / "keyring.lock"):
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


def sealing_cipher(key: bytes | None) -> Cipher:
    """Return the cipher for logins in a store that others run.

    Without a key of the application's, it is that of this user: from the keyring, else from a
    private file. Logins are never put there in the clear.
    """
    try:
        if key is not None:
            return Cipher(key)
        try:
            return Cipher(KEYRING._key())
        except KeyringUnusable:
            return Cipher(_file_key(default_folder()))
    except ImportError:
        raise AuthError("sealing logins needs: pip install 'holdfast[auth]'") from None


def _file_key(folder: Path) -> bytes:
    """Return the key of a private file; make it if there is none."""
    path = folder / "login.key"
    try:
        files.make_private_folder(folder)
        with files.locked(folder / "keyring.lock"):
            if not os.path.lexists(path):
                files.write_atomic(path, os.urandom(32), private=True)
            key = files.read_bytes(path, 100, owned=True, links=False)
    except OSError as error:
        raise AuthError(f"logins cannot be sealed: {path}: {files.reason(error)}") from None
    if len(key) != 32:
        raise AuthError(f"logins cannot be sealed: {path} does not hold a key")
    return key
