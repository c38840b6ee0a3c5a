"""The OS keyring, by the extra ``holdfast[auth]``: it holds one key, which seals the files.

One key rather than the tokens themselves: Windows keeps at most 2,560 bytes, and a service
with many accounts would fill the user's keyring.
"""

from __future__ import annotations

import base64
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast._core import files
from holdfast._core.auth.store import default_folder
from holdfast.errors import AuthError

log: logging.Logger = logging.getLogger("holdfast")

SERVICE: Final = "holdfast"
NAME: Final = "auth-store-key"
PATIENCE: Final = 10.0
"""Seconds for a keyring that asks nobody; one that is locked waits for a person forever."""
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

        if not data.startswith(_MAGIC):
            return None
        nonce = data[len(_MAGIC) : len(_MAGIC) + 12]
        try:
            return self._cipher.decrypt(nonce, data[len(_MAGIC) + 12 :], key.encode())
        except (InvalidTag, ValueError):
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
        """Return what seals the entries of a folder; None: nothing does.

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
            log.warning(
                "logins are kept in %s, readable by you alone, because there is no keyring (%s)",
                folder,
                error,
            )
        choice = "file" if found is None else "keyring"
        if chosen != choice:
            with suppress(OSError):
                files.make_private_folder(folder)
                files.write_atomic(marker, f"{choice}\n".encode(), private=True)
        return found

    def _key(self) -> bytes:
        """Return the key; while a keyring hangs, nobody asks it a second time."""
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
    # Of two processes that find no key, one makes it.
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
