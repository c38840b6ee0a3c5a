"""Wait for a person's login where a call needs one, and then send the call again.

The machine's part of authorization takes seconds and happens in the transport, within the
call's idle time. A person takes minutes: that is waited for here, within what is left of the
call's whole time. Nothing of the call had run, so it can be sent again.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from holdfast._core.boundary import Transport
from holdfast.errors import AuthError, Hint, LoginPending, LoginRequired

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer
    from holdfast._core.auth.credentials import Login

MAX_LOGINS: Final = 3
"""For one call: a login, and two new authorizations for more scopes."""


class CallLogins:
    """Logs in where a call needs it, with the handler of the application."""

    __slots__ = ("_authorizer", "_handler", "_name")

    def __init__(self, name: str, transport: Transport, handler: Any) -> None:
        self._name = name
        self._authorizer: Authorizer | None = transport.authorizer
        self._handler = handler

    def watch(
        self,
        *,
        events: Callable[[str, dict[str, Any]], None] | None = None,
        change: Callable[[], None] | None = None,
    ) -> None:
        """Call ``events`` with each event, ``change`` when the person who is logged in changes."""
        if self._authorizer is not None:
            self._authorizer.on_event = events or self._authorizer.on_event
            self._authorizer.on_change = change or self._authorizer.on_change

    @property
    def authorizer(self) -> Authorizer:
        """The authorizer of the server.

        Raises:
            AuthError: There is no login for this kind of server.
        """
        if self._authorizer is None:
            text = f"{self._name}: there is nothing to log in to: it needs a URL"
            raise AuthError(text, hints=(Hint("auth", "says how"),))
        return self._authorizer

    @property
    def is_busy(self) -> bool:
        """True while a token is renewed or a person logs in."""
        return self._authorizer is not None and self._authorizer.is_busy

    async def recover(
        self, error: LoginRequired, logins: int, until: float, idle: float | None = None
    ) -> None:
        """Log in before ``until``, so that the call that failed with ``error`` can be repeated.

        ``logins`` counts the logins of this call, including this one. A person has all of that
        time; what needs none (discovery, registration, the exchange of the code) has ``idle``
        seconds each time. Nobody is asked if there is a newer login by now. If no login is allowed,
        or nobody is there to log in, raise ``error`` again.
        """
        authorizer = self._authorizer
        if authorizer is None or logins > MAX_LOGINS:
            raise error
        if await authorizer.finds_newer_login():
            return
        if not authorizer.interactive or (self._handler is None and not _somebody_there()):
            raise error
        from holdfast._core.auth.browser import browser_login

        handler = self._handler or browser_login
        login = asyncio.create_task(authorizer.log_in(handler))
        try:
            await self._wait(authorizer, login, until, idle)
            if not login.done():
                raise LoginPending(
                    f"{self._name}: the login was not completed in the time of the call; it goes "
                    "on, and the next call uses it; nothing was sent"
                )
            login.result()
        finally:
            # The login itself runs in a task of the authorizer's own.
            login.cancel()

    async def _wait(
        self, authorizer: Authorizer, login: asyncio.Task[Login], until: float, idle: float | None
    ) -> None:
        """Wait for a login; return when it has ended, or the time is over."""
        loop = asyncio.get_running_loop()
        while not login.done():
            end = until
            if idle is not None and not authorizer.phase.person_asked:
                end = min(until, loop.time() + idle)
            phase = asyncio.create_task(authorizer.phase.next())
            timeout = None if end == math.inf else max(0.0, end - loop.time())
            try:
                done, _ = await asyncio.wait(
                    (login, phase), timeout=timeout, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                phase.cancel()
            if not done:
                return

    async def log_in(self, *, fresh: bool = False) -> None:
        """Log in now, by the application's handler or at a terminal; ``fresh`` registers anew."""
        from holdfast._core.auth.browser import browser_login

        await self.authorizer.log_in(self._handler or browser_login, fresh=fresh)

    async def close(self) -> None:
        if self._authorizer is not None:
            await self._authorizer.close()


def _somebody_there() -> bool:
    if os.environ.get("HOLDFAST_NO_BROWSER"):
        return False
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
