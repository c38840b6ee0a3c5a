"""A client for many users of one server: each account has its own session, tools and cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from holdfast._core.engine.state import State
from holdfast.client import Client
from holdfast.errors import StateError
from holdfast.policies import Policy

MAX_SESSIONS: Final = 1000
"""Sessions that are open at once; the one used least recently is closed for another."""


class AccountsClient(Client):
    """A `Client` whose account is a function: every verb uses the session of the caller's account.

    It has none of the parts of a client itself; those of the account are looked up instead.
    """

    def __init__(
        self, transport: Any, policy: Policy, make: Callable[[Any], Client], name: str | None
    ) -> None:
        self.name = transport.name if name is None else name
        self._transport = transport
        self._policy = policy
        self._make = make
        """Makes the client of one account, from its transport."""
        self._clients: dict[str, Client] = {}
        self._closed = False
        self._leaving: set[asyncio.Task[bool]] = set()

    def __repr__(self) -> str:
        return f"<Client {self.name} {len(self._clients)} accounts>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _PARTS:
                return getattr(self._mine(), name)
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _mine(self) -> Client:
        """Return the client of the caller's account."""
        if self._closed:
            raise StateError(f"{self.name}: the client is closed", state=State.CLOSED)
        account = self._transport.authorizer.account
        found = self._clients.pop(account, None) or self._make(self._transport.for_account(account))
        self._clients[account] = found
        if len(self._clients) > MAX_SESSIONS:
            oldest = self._clients.pop(next(iter(self._clients)))
            self._leave(oldest)
        return found

    def _leave(self, client: Client) -> None:
        task = asyncio.get_running_loop().create_task(client.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> bool:
        """End the sessions of all accounts."""
        first, self._closed = not self._closed, True
        for client in self._clients.values():
            self._leave(client)
        self._clients.clear()
        if self._leaving:
            await asyncio.wait(self._leaving)
        return first


_PARTS: Final = frozenset(
    {"_cached", "_channel", "_inbound", "_inputs", "_logins", "_observers", "_pipeline", "_tools"}
)
