"""Carry conversations out: requests, proofs, signatures and stored entries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from holdfast._core.auth import jws, urls
from holdfast._core.auth.as_client import AsClient, Reach
from holdfast._core.auth.browser import Person
from holdfast._core.auth.credentials import Login, decode
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
from holdfast.errors import TransportError

T = TypeVar("T")
Watch: TypeAlias = "Callable[[Ask, Fetched | Unreachable], None]"

MACHINE_TIME: Final = 25.0
"""Seconds for a conversation without a person, less than others wait for a lock that it holds."""
MAX_ORIGINS: Final = 16
"""Origins whose nonces and clocks are remembered: a server may name ever new ones."""
_NONCE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}")


class Executor:
    """Carries out the steps of conversations for one server."""

    def __init__(self, reach: Reach, clock: Callable[[], float], store: LoginStore | None) -> None:
        self.clock = clock
        self.network: str | None = None
        """The kind of network that the server is in: now, or when its login was made."""
        self.nonces: dict[str, str] = {}
        self.skews: dict[str, float] = {}
        """By how much the clock of an origin is ahead of ours."""
        self._reach = reach
        self._store = store

    @property
    def store(self) -> LoginStore:
        if self._store is None:
            self._store = default_store()
        return self._store

    async def run(
        self,
        conversation: Conversation[T],
        person: Person | None = None,
        watch: Watch | None = None,
    ) -> T:
        """Carry a conversation out to its end; ``watch`` sees each request and its answer."""
        try:
            async with (
                AsClient(self._reach, self.network or "global", clock=self.clock) as client,
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
            text = f"no authorization within {MACHINE_TIME:g} s; try again later"
            raise TransportError(text) from None

    async def _perform(self, step: Step, client: AsClient, person: Person | None) -> Any:
        match step:
            case Ask():
                return await self._ask(step, client)
            case Sign(key, algorithm, key_id, claims):
                now = self._time_at(claims["aud"])
                return jws.assertion(key, claims, algorithm=algorithm, key_id=key_id, now=now)
            case Read(key, kind):
                return decode(await self.store.read(key), kind)
            case Write(key, value):
                return await self.write(key, value)
        assert person is not None
        return await person.perform(step)

    async def write(self, key: str, entry: msgspec.Struct | None) -> None:
        """Store an entry; None deletes it."""
        async with self.store.hold(key) as slot:
            await slot.write(None if entry is None else msgspec.json.encode(entry))

    async def _ask(self, ask: Ask, client: AsClient) -> Fetched | Unreachable:
        """Send a request; where the server wants a nonce in the proof, once more with it."""
        for again in (True, False):
            proof = None if ask.proof is None else self.proof(ask.proof, ask.method, ask.url)
            answer = await client.ask(ask, proof)
            if isinstance(answer, Unreachable):
                break
            noted = self.note_nonce(ask.url, answer.nonce)
            _remember(self.skews, ask.url, answer.skew)
            wanted = (answer.document() or {}).get("error") == "use_dpop_nonce"
            if proof is None or not (again and noted and wanted):
                break
        return answer

    def note_nonce(self, url: str, nonce: str | None) -> bool:
        """Remember the nonce of an origin (RFC 9449 §8.1), if it can be one."""
        if nonce is None or not _NONCE.fullmatch(nonce):
            return False
        _remember(self.nonces, url, nonce)
        return True

    def note_skew(self, login: Login) -> None:
        """Take over what a login knows of the clocks of its servers."""
        for url in (login.at.token_endpoint, login.server):
            _remember(self.skews, url, login.skew)

    def proof(self, key: str, method: str, url: str, token: str | None = None) -> str:
        """Return a DPoP proof for one request, bound to the token that goes with it."""
        nonce, now = self.nonces.get(urls.origin(url)), self._time_at(url)
        return jws.proof(key, method=method, url=url, now=now, nonce=nonce, token=token)

    def _time_at(self, url: str) -> float:
        return self.clock() + self.skews.get(urls.origin(url), 0.0)


def _remember(known: dict[str, T], url: str, value: T) -> None:
    known.pop(urls.origin(url), None)
    known[urls.origin(url)] = value
    if len(known) > MAX_ORIGINS:
        del known[next(iter(known))]
