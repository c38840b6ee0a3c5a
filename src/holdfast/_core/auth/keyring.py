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
from pathlib import Path
from typing import Final

from holdfast._core.auth.store import Seal
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

    def __repr__(self) -> str:
        return "<Sealed>"

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
        self._key: bytes | None = None

    def __repr__(self) -> str:
        return "<Keyring>"

    def seal_for(self, folder: Path, *, required: bool = False) -> Seal | None:
        """Return what seals the entries of a folder; None: nothing does.

        The choice is remembered in the folder: a keyring that fails later is an error and not
        a silent change to plain files.
        """
        marker = folder / "store"
        chosen = _remembered(marker)
        if chosen == "file" and not required:
            return None
        try:
            found = Sealed(self._once())
        except KeyringUnusable as error:
            if required or chosen == "keyring":
                raise AuthError(
                    f"the keyring cannot be used: {error}; set the variable HOLDFAST_AUTH_STORE "
                    f"to 'file' to keep logins in {folder} instead"
                ) from None
            _remember(marker, "file")
            log.warning(
                "logins are kept in %s, readable by you alone, because there is no keyring (%s)",
                folder,
                error,
            )
            return None
        _remember(marker, "keyring")
        return found

    def _once(self) -> bytes:
        with self._lock:
            if self._key is None:
                self._key = self._within(self._patience)
            return self._key

    def _within(self, seconds: float) -> bytes:
        result: list[bytes | Exception] = []

        def run() -> None:
            try:
                result.append(self._fetch())
            except Exception as error:
                result.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
        if not result:
            raise KeyringUnusable("it did not answer")
        if isinstance(result[0], Exception):
            raise KeyringUnusable(str(result[0]) or type(result[0]).__name__) from None
        return result[0]


def _fetch() -> bytes:
    try:
        import cryptography  # noqa: F401
        import keyring
        import keyring.backends.fail
    except ImportError:
        raise KeyringUnusable("pip install 'holdfast[auth]' adds it") from None
    if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
        raise KeyringUnusable("none was found")
    text = keyring.get_password(SERVICE, NAME)
    if text is None:
        text = base64.b64encode(os.urandom(32)).decode("ascii")
        keyring.set_password(SERVICE, NAME, text)
        text = keyring.get_password(SERVICE, NAME)
    key = base64.b64decode(text or "")
    if len(key) != 32:
        raise KeyringUnusable("it does not return what was stored")
    return key


def _remembered(marker: Path) -> str | None:
    try:
        return marker.read_text("ascii").strip()[:20]
    except (OSError, ValueError):
        return None


def _remember(marker: Path, choice: str) -> None:
    if _remembered(marker) == choice:
        return
    try:
        marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.write_text(choice + "\n", "ascii")
    except OSError:
        pass


KEYRING: Final = Keyring()
