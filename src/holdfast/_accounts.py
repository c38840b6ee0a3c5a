"""A client for many users of one server: each account has its own session, tools and cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast._core.engine.state import State
from holdfast._pool import ClientPool, SharingKey, definition_of
from holdfast.client import Client
from holdfast.errors import AuthError, StateError
from holdfast.policies import Policy


class _OfCaller:
    """A part of a client that is looked up at each use, in the client of the caller's account."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, client: AccountsClient | None, owner: type) -> Any:
        return self if client is None else getattr(client.of_caller(), self._name)


class AccountsClient(Client):
    """A `Client` whose account is a function: every verb uses the session of the caller's account.

    It has no connection itself. The verbs are those of `Client`, on the parts of the client of
    whoever calls; which parts those are is listed here, and a test compares the list.
    """

    _budget: Any = _OfCaller()
    _cached: Any = _OfCaller()
    _inputs: Any = _OfCaller()
    _logins: Any = _OfCaller()
    _observers: Any = _OfCaller()
    _pipeline: Any = _OfCaller()
    _requester: Any = _OfCaller()
    _tools: Any = _OfCaller()
    _unsolicited: Any = _OfCaller()

    def __init__(
        self, transport: Any, policy: Policy, make: Callable[[Any], Client], name: str | None
    ) -> None:
        self.name = transport.name if name is None else name
        self._transport = transport
        self._of_many: Any = transport
        """The same: an `Http` that has a login for each account."""
        self._policy = policy
        self._make = make
        """Makes the client of one account, from its transport."""
        self._definition = definition_of(transport)
        self._pool = ClientPool()
        self._closed = False

    def __repr__(self) -> str:
        return f"<Client {self.name} {len(self._pool)} accounts>"

    @property
    def state(self) -> State:
        """The state of the connection of the caller's account."""
        return State.CLOSED if self._closed else super().state

    def of_caller(self) -> Client:
        """Return the client of the caller's account."""
        if self._closed:
            raise StateError(f"{self.name}: the client is closed", state=State.CLOSED)
        account = self._of_many.authorizer.account
        key = SharingKey(self._definition, account)
        return self._pool.obtain(key, lambda: self._make(self._of_many.for_account(account)))

    async def close(self) -> bool:
        """End the sessions of all accounts."""
        first, self._closed = not self._closed, True
        await self._pool.close()
        return first


def own_client(client: Client) -> Client:
    """Return the client of the caller's account; a client of one account itself."""
    return client.of_caller() if isinstance(client, AccountsClient) else client


def account_of(client: Client | None) -> str:
    """Return the caller's account at a client of many; "" at others, and where none is named."""
    with suppress(AuthError):
        if isinstance(client, AccountsClient):
            return str(client.transport.authorizer.account)
    return ""
