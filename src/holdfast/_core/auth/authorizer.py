"""The authorization of one server, as its transport sees it."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._core.auth import jws, urls
from holdfast._core.auth.account import Account
from holdfast._core.auth.as_client import AsClient, Reach
from holdfast._core.auth.browser import Person
from holdfast._core.auth.credentials import Login, decode
from holdfast._core.auth.options import (
    DPOP_EXTENSION,
    Bearer,
    Machine,
    OAuth,
    supplied,
)
from holdfast._core.auth.steps import (
    Ask,
    Conversation,
    Fetched,
    Read,
    Sign,
    Step,
    Unreachable,
    Write,
)
from holdfast._core.auth.store import LoginStore, default_store
from holdfast.errors import AuthError, TransportError

T = TypeVar("T")
Watch: TypeAlias = "Callable[[Ask, Fetched | Unreachable], None]"

MAX_ACCOUNTS: Final = 1000
MACHINE_TIME: Final = 25.0
"""Seconds for a conversation without a person, less than others wait for a lock that it holds."""
_NONCE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}")


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
        """The kind of network that the server is in: now, or when its login was made."""
        self.nonces: dict[str, str] = {}
        self._store: LoginStore | None = options.store if isinstance(options, OAuth) else None
        self._accounts: dict[str, Account] = {}
        self._only: Account | None = None
        """The account, if no function gives it for each request."""

    def __repr__(self) -> str:
        return f"<Authorizer {self.server} {type(self.options).__name__}>"

    @property
    def personal(self) -> bool:
        """True if a function names the user of each request."""
        return isinstance(self.options, OAuth) and callable(self.options.account)

    def allow_login(self, **settings: Any) -> None:
        """Let a login be started, with other settings than those that were given."""
        if isinstance(self.options, OAuth):
            self.options = replace(self.options, interactive=True, **settings)
            self._only = None

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions of authorization in use, by their names in ``capabilities``."""
        own = self.options.extension
        dpop = DPOP_EXTENSION if getattr(self.options, "dpop", False) is True else None
        return tuple(one for one in (own, dpop) if one is not None)

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

    # Conversations

    async def run(
        self,
        conversation: Conversation[T],
        person: Person | None = None,
        watch: Watch | None = None,
    ) -> T:
        """Carry a conversation out to its end.

        Args:
            conversation: The steps to take.
            person: Performs the steps that need one, on a clock of its own.
            watch: Called with each request and its answer.
        """
        try:
            async with (
                AsClient(self.reach, self.network or "global") as client,
                asyncio.timeout(MACHINE_TIME if person is None else None),
            ):
                answer: Any = None
                while True:
                    try:
                        step = conversation.send(answer)
                    except StopIteration as done:
                        value: T = done.value
                        return value
                    answer = await self._perform(step, client, person)
                    if watch is not None and isinstance(step, Ask):
                        watch(step, answer)
        except TimeoutError:
            text = f"{self.name}: no authorization within {MACHINE_TIME:g} s; try again later"
            raise TransportError(text) from None

    async def _perform(self, step: Step, client: AsClient, person: Person | None) -> Any:
        match step:
            case Ask():
                return await self._ask(step, client)
            case Sign(key, algorithm, key_id, claims):
                now = self.clock()
                return jws.assertion(key, claims, algorithm=algorithm, key_id=key_id, now=now)
            case Read(key, kind):
                return decode(await self.store.read(key), kind)
            case Write(key, value):
                async with self.store.hold(key) as slot:
                    return await slot.write(None if value is None else msgspec.json.encode(value))
        assert person is not None
        return await person.perform(step)

    async def _ask(self, ask: Ask, client: AsClient) -> Fetched | Unreachable:
        """Send a request; where the server wants a nonce in the proof, once more with it."""
        again = False
        while True:
            more = {}
            if ask.proof is not None:
                more["DPoP"] = self.proof(ask.proof, ask.method, ask.url)
            answer, headers = await client.ask(ask, more)
            known = self.note_nonce(ask.url, headers.get("DPoP-Nonce"))
            if again or not known or ask.proof is None or not isinstance(answer, Fetched):
                return answer
            again = (answer.document() or {}).get("error") == "use_dpop_nonce"
            if not again:
                return answer

    def note_nonce(self, url: str, nonce: str | None) -> bool:
        """Remember the nonce of an origin (RFC 9449 §8.1), if it can be one."""
        usable = nonce is not None and _NONCE.fullmatch(nonce) is not None
        if usable and nonce is not None:
            self.nonces[urls.origin(url)] = nonce
        return usable

    def proof(self, key: str, method: str, url: str, login: Login | None = None) -> str:
        """Return a DPoP proof for one request, bound to the token of a login."""
        return jws.proof(
            key,
            method=method,
            url=url,
            now=self.clock() + (login.skew if login is not None else 0.0),
            nonce=self.nonces.get(urls.origin(url)),
            token=None if login is None else login.access_token,
        )

    async def close(self) -> None:
        """End logins, and let renewals come to their end: a rotated token must be saved."""
        for account in list(self._accounts.values()):
            await account.close()


def bearer_headers(options: Bearer, own: Any) -> Any:
    """Return the headers that carry a given token: a function, where it comes from one."""
    source = options.token
    if isinstance(source, str) and not callable(own):
        return {**(own or {}), "Authorization": f"Bearer {source}"}

    async def headers() -> dict[str, str]:
        given = own() if callable(own) else own or {}
        given = dict(await given if inspect.isawaitable(given) else given)
        others = {name: value for name, value in given.items() if name.lower() != "authorization"}
        return {**others, "Authorization": f"Bearer {await supplied(source)}"}

    return headers
