"""Keep a renewed login, also in a store that goes down while it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from holdfast._core.auth.credentials import Login, decode
from holdfast._core.auth.logins import LoginChanged, LoginSlot, is_of_store
from holdfast.errors import AuthError

SAVING_PAUSE: Final = 0.2
"""Seconds between attempts to write a renewed login."""


class LoginSaver:
    """Writes the renewed logins of one account."""

    def __init__(self) -> None:
        self._saving: asyncio.Task[None] | None = None
        """Writes a login to a store that was down when it came."""

    async def save(
        self, slot: LoginSlot, renewed: Login, is_newer: Callable[[Login], bool]
    ) -> Login:
        """Store a renewed login; return it, or the newer one that another process has stored."""
        data = msgspec.json.encode(renewed)
        try:
            await slot.write(data)
        except LoginChanged:
            stored = decode(await slot.read(), Login)
            if stored is None or not is_newer(stored):
                raise
            return stored
        except AuthError as error:
            if not is_of_store(error):
                raise
            # The store went down in between. The old token is used up: this process holds the
            # only new one, and writes it as soon as it can, before others use the old one.
            self._saving = asyncio.create_task(_save_later(slot, data))
        return renewed

    async def close(self, timeout: float) -> None:
        """Wait for a login that has yet to be written."""
        if self._saving is not None:
            await asyncio.wait((self._saving,), timeout=timeout)
            self._saving.cancel()


async def _save_later(slot: LoginSlot, data: bytes) -> None:
    while True:
        try:
            await slot.write(data)
            return
        except LoginChanged:
            return
        except AuthError:
            await asyncio.sleep(SAVING_PAUSE)


def is_needed_now(login: Login, now: float, error: Exception) -> bool:
    """Return whether a renewal that failed ends the request: the token has expired.

    Without the store nobody renews, since another process could be doing it: then the server
    says whether it still takes the token.
    """
    return login.expired(now) and not is_of_store(error)
