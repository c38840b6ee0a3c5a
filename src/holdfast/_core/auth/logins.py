"""Stored logins: entries of a store, each read and renewed by one holder at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from holdfast._core.auth.keyring import KEYRING, SealedStore, default_folder, sealing_cipher
from holdfast.errors import AuthError
from holdfast.stores.base import Store, StoreError
from holdfast.stores.files import FileStore
from holdfast.stores.memory import MemoryStore

LOCK_TIMEOUT: Final = 30.0
"""Seconds to wait for another process that holds a login; a refresh takes less."""
LOCK_TTL: Final = 60.0
"""Seconds until the lock of a process that died is free: more than any refresh takes."""


class Logins:
    """The logins in a store. They have no time to live, so that a store never drops one."""

    def __init__(self, store: Store) -> None:
        if getattr(store, "seals_logins", False):
            store = SealedStore(store, partial(sealing_cipher, getattr(store, "login_key", None)))
        self.store = store

    def __repr__(self) -> str:
        return f"<Logins in {self.store!r}>"

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[LoginSlot]:
        """Hold one login: nobody else who holds it reads or writes it meanwhile."""
        async with AsyncExitStack() as stack:
            limit = asyncio.timeout(LOCK_TIMEOUT)
            try:
                async with limit:
                    with _explained():
                        await stack.enter_async_context(self.store.lock(key, LOCK_TTL))
            except TimeoutError:
                if not limit.expired():
                    raise  # by the store
                text = "another process has held the stored login for too long; try again"
                raise AuthError(text) from None
            yield LoginSlot(self.store, key)

    async def read(self, key: str) -> bytes | None:
        """Return a login without holding it."""
        with _explained("logins cannot be read"):
            return await self.store.get(key)

    def lacks(self, key: str) -> bool:
        """Return True if the store can tell at once that there is no such login."""
        lacks = getattr(self.store, "lacks", None)
        return lacks is not None and bool(lacks(key))

    async def keys(self) -> list[str]:
        """Return the keys of all logins."""
        return await self.store.keys("login-")


class LoginChanged(AuthError):  # noqa: N818  (named like LoginFailed)
    """Another process has written the login that this one held: its lease had ended."""


class LoginSlot(Struct):
    """One login, held by one task of one process at a time."""

    store: Store
    key: str
    _seen: bytes | None | UnsetType = UNSET
    """What was read or written last; UNSET: nothing yet."""

    async def read(self) -> bytes | None:
        """Return the login as it is now; None if there is none."""
        with _explained("logins cannot be read"):
            self._seen = await self.store.get(self.key)
        return self._seen

    async def write(self, data: bytes | None) -> None:
        """Replace the login, durably before this returns; None deletes it.

        Raises:
            LoginChanged: It is no longer what was read. A lease can end while its holder is
                suspended; what the next holder has written must not be overwritten.
        """
        with _explained():
            # A store of the application's own may have no swap.
            if self._seen is not UNSET and (swap := getattr(self.store, "swap", None)) is not None:
                if not await swap(self.key, self._seen, data):
                    raise LoginChanged("another process has changed the stored login; try again")
            elif data is None:
                await self.store.delete(self.key)
            else:
                await self.store.put(self.key, data)
        self._seen = data


@contextmanager
def _explained(problem: str = "logins cannot be kept") -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise AuthError(f"{problem}: {error}") from error


def is_of_store(error: BaseException) -> bool:
    """Return True for an error of the store of logins, not of a server."""
    return isinstance(error, StoreError) or isinstance(error.__cause__, StoreError)


def default_store() -> Store:
    """Return the store that ``HOLDFAST_AUTH_STORE`` names: auto, keyring, file, memory, a folder.

    ``auto`` is the OS keyring where it works, else the file; the choice is remembered.
    """
    name = os.environ.get("HOLDFAST_AUTH_STORE", "") or "auto"
    if name == "memory":
        return MemoryStore()
    if name == "file":
        return FileStore(default_folder())
    if name in ("auto", "keyring"):
        folder, required = default_folder(), name == "keyring"
        return SealedStore(FileStore(folder), partial(KEYRING.cipher, folder, required=required))
    if os.path.isabs(name):
        return FileStore(name)
    raise AuthError("HOLDFAST_AUTH_STORE: must be auto, keyring, file, memory, or a folder")
