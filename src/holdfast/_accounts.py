"""A client for many users of one server: each account has its own session, tools and cache."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from holdfast._core.engine.state import State
from holdfast.client import Client
from holdfast.errors import AuthError, StateError
from holdfast.policies import Policy

MAX_SESSIONS: Final = 1000
"""Sessions that are open at once; the one used least recently is closed for another. Those with
calls under way are not."""


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
        self._clients: OrderedDict[str, Client] = OrderedDict()
        """The clients by account, the one used least recently first."""
        self._contexts: WeakKeyDictionary[Client, Context] = WeakKeyDictionary()
        """Whom each was made for: headers from a function must be theirs at the end, too."""
        self._closed = False
        self._leaving: set[asyncio.Task[bool]] = set()

    def __repr__(self) -> str:
        return f"<Client {self.name} {len(self._clients)} accounts>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _PARTS:
                return getattr(self._mine(), name)
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def state(self) -> State:
        """The state of the connection of the caller's account."""
        return State.CLOSED if self._closed else super().state

    def _mine(self) -> Client:
        """Return the client of the caller's account."""
        if self._closed:
            raise StateError(f"{self.name}: the client is closed", state=State.CLOSED)
        account = self._transport.authorizer.account
        found = self._clients.get(account)
        if found is None:
            # The properties of the synchronous face are read in other threads: one client wins,
            # and only the loop closes others.
            made = self._make(self._transport.for_account(account))
            found = self._clients.setdefault(account, made)
            self._contexts[found] = copy_context()
            with suppress(RuntimeError):
                asyncio.get_running_loop()
                self._close_idle(found)
        with suppress(KeyError):
            self._clients.move_to_end(account)
        return found

    def _close_idle(self, new: Client) -> None:
        """Close the sessions that are too many, the one used least recently first."""
        excess = max(0, len(self._clients) - MAX_SESSIONS)
        clients = self._clients.items()
        idle = (name for name, one in clients if one is not new and not one._requester.is_busy)
        for name in list(islice(idle, excess)):
            self._leave(self._clients.pop(name))

    def _leave(self, client: Client) -> None:
        context = self._contexts.get(client)
        task = asyncio.get_running_loop().create_task(client.close(), context=context)
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


def own_client(client: Client) -> Client:
    """Return the client of the caller's account; a client of one account itself."""
    return client._mine() if isinstance(client, AccountsClient) else client


def account_of(client: Client | None) -> str:
    """Return the caller's account at a client of many; "" at others, and where none is named."""
    with suppress(AuthError):
        if isinstance(client, AccountsClient):
            return str(client.transport.authorizer.account)
    return ""


_PARTS: Final = frozenset(
    {
        "_cached",
        "_requester",
        "_unsolicited",
        "_inputs",
        "_logins",
        "_observers",
        "_pipeline",
        "_tools",
    }
)
