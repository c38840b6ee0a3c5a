"""The authorization of one server, as its transport sees it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from holdfast._core.auth import urls
from holdfast._core.auth.account import Account
from holdfast._core.auth.as_client import Reach
from holdfast._core.auth.options import DPOP_EXTENSION, EXTENSIONS, Bearer, Machine, OAuth
from holdfast._core.auth.runner import supplied
from holdfast._core.auth.store import LoginStore, default_store
from holdfast.errors import AuthError

MAX_ACCOUNTS: Final = 1000


class Authorizer:
    """The authorization of one server: its accounts, and how their tokens are come by."""

    def __init__(
        self,
        server: str,
        options: OAuth | Machine,
        *,
        reach: Reach | None = None,
        name: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server: str = urls.canonical(server)
        self.options = options
        self.name: str = name or self.server
        self.reach: Reach = reach or Reach()
        self.clock = clock
        self.on_event: Callable[[str, dict[str, Any]], None] = lambda kind, facts: None
        self.on_change: Callable[[], None] = lambda: None
        """Called when another person is logged in than before."""
        self.network: str | None = None
        self.nonces: dict[str, str] = {}
        self._store: LoginStore | None = options.store if isinstance(options, OAuth) else None
        self._accounts: dict[str, Account] = {}
        self._only: Account | None = None
        """The account, if no function gives it for each request."""

    def __repr__(self) -> str:
        return f"<Authorizer {self.server} {type(self.options).__name__}>"

    @property
    def personal(self) -> bool:
        """Whether a function says for each request whose it is."""
        return isinstance(self.options, OAuth) and callable(self.options.account)

    def allow_login(self, **settings: Any) -> None:
        """Let a login be started, with other settings than those that were given."""
        if isinstance(self.options, OAuth):
            self.options = replace(self.options, interactive=True, **settings)
            self._only = None

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions of authorization in use, by their names in ``capabilities``."""
        found = [name for kind, name in EXTENSIONS.items() if isinstance(self.options, kind)]
        if getattr(self.options, "dpop", False) is True:
            found.append(DPOP_EXTENSION)
        return tuple(found)

    @property
    def store(self) -> LoginStore:
        if self._store is None:
            self._store = default_store()
        return self._store

    @property
    def account(self) -> Account:
        """The account; that of the caller, where a function gives it."""
        if self._only is not None:
            return self._only
        name = self.account_name()
        if self.personal:
            found = self._accounts.setdefault(name, Account(self, name))
            if len(self._accounts) > MAX_ACCOUNTS:
                self._accounts.pop(next(iter(self._accounts)))
            return found
        self._only = self._accounts[name] = Account(self, name)
        return self._only

    def account_name(self) -> str:
        """Return the name of the account, in the caller's context."""
        source = self.options.account if isinstance(self.options, OAuth) else "default"
        name = source() if callable(source) else source
        if name == "default":
            name = os.environ.get("HOLDFAST_ACCOUNT") or name
        if not name or not isinstance(name, str):
            raise AuthError("account=…: must give the name of an account")
        return name

    def fixed(self, name: str) -> Authorizer:
        """Return an authorizer of one account alone, which shares the store."""
        assert isinstance(self.options, OAuth)
        options = replace(self.options, account=name, store=self.store)
        return Authorizer(self.server, options, reach=self.reach, name=self.name, clock=self.clock)

    async def close(self) -> None:
        """End logins, and let renewals come to their end: a rotated token must be saved."""
        for account in list(self._accounts.values()):
            await account.close()


def bearer_headers(options: Bearer, own: Any) -> Any:
    """Return the headers that carry a given token: a function, where it comes from one."""
    source = options.token
    if isinstance(source, str):
        return {**(own or {}), "Authorization": f"Bearer {source}"}

    async def headers() -> dict[str, str]:
        return {**(own or {}), "Authorization": f"Bearer {await supplied(source)}"}

    return headers
