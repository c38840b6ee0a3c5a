"""Run conversations: requests to authorization servers, DPoP proofs, stored entries.

Each request has its own session, is bounded in time and size, and goes only to allowed addresses.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from holdfast._core.auth import jws, urls
from holdfast._core.auth.browser import InteractiveLogin
from holdfast._core.auth.credentials import E, Login, decode
from holdfast._core.auth.logins import Logins, default_store
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
from holdfast._core.wire.http_dates import retry_after, timestamp
from holdfast.errors import TransportError
from holdfast.stores.base import Store

T = TypeVar("T")
AddressInfo: TypeAlias = tuple[Any, ...]
"""As ``socket.getaddrinfo`` returns it: family, type, protocol, name, address."""
Watch: TypeAlias = "Callable[[Ask, Fetched | Unreachable], None]"

TIMEOUT: Final = 10.0
MACHINE_TIME: Final = 25.0
"""Seconds for a conversation without a person; other processes wait longer for its lock."""
MAX_BODY: Final = 256 * 1024
MAX_REDIRECTS: Final = 3
MAX_ORIGINS: Final = 16
"""Origins whose nonces and clocks are remembered, the oldest dropped first."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NONCE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}")
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "holdfast",
}


@asynccontextmanager
async def time_limit(seconds: float | None = MACHINE_TIME) -> AsyncIterator[asyncio.Timeout]:
    """Limit the time of work that needs no person: requests, and a store that may be a database."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield limit
    except TimeoutError:
        if not limit.expired():
            raise  # by the store
        text = f"no authorization within {MACHINE_TIME:g} s; try again later"
        raise TransportError(text) from None


async def _default_context() -> ssl.SSLContext:
    return await asyncio.to_thread(ssl.create_default_context)


class NetworkSettings(Struct, frozen=True):
    """The TLS settings and proxy of the server, used for its authorization servers too (B21)."""

    tls: Callable[[], Awaitable[ssl.SSLContext]] = _default_context
    """Called for https only; it makes one context for all requests."""
    proxy: Callable[[str], str | None] = lambda url: None


class StepRunner:
    """Runs the steps of conversations for one server."""

    def __init__(
        self,
        settings: NetworkSettings,
        clock: Callable[[], float],
        store: Store | None,
    ) -> None:
        self.clock = clock
        self.network: str | None = None
        """The kind of network that the server is in: now, or when its login was made."""
        self.nonces: dict[str, str] = {}
        self.skews: dict[str, float] = {}
        """Seconds by which the clock of an origin is ahead of ours."""
        self.timeout = TIMEOUT
        self._settings = settings
        self._store = store

    @cached_property
    def store(self) -> Logins:
        # A store of the application's may have a length, and be empty.
        return Logins(default_store() if self._store is None else self._store)

    async def run(
        self,
        conversation: Conversation[T],
        interaction: InteractiveLogin | None = None,
        watch: Watch | None = None,
    ) -> T:
        """Run a conversation to its end; ``watch`` is called with each request and its answer."""
        async with time_limit(MACHINE_TIME if interaction is None else None):
            answer: Any = None
            while True:
                try:
                    step = conversation.send(answer)
                except StopIteration as done:
                    value: T = done.value
                    return value
                answer = await self._perform(step, interaction)
                if watch is not None and isinstance(step, Ask):
                    watch(step, answer)

    async def _perform(self, step: Step, interaction: InteractiveLogin | None) -> Any:
        match step:
            case Ask():
                return await self._ask(step)
            case Sign(signer, audience):
                return jws.assertion(signer, audience, self._time_at(audience))
            case Read(key, kind):
                return await self.read(key, kind)
            case Write(key, value):
                return await self.write(key, value)
        assert interaction is not None
        return await interaction.perform(step)

    async def read(self, key: str, kind: type[E]) -> E | None:
        """Return a stored entry; None if it is missing or unreadable."""
        return decode(await self.store.read(key), kind)

    async def write(self, key: str, entry: Struct | None) -> None:
        """Store an entry; None deletes it."""
        async with self.store.hold(key) as slot:
            await slot.write(None if entry is None else msgspec.json.encode(entry))

    async def _ask(self, ask: Ask) -> Fetched | Unreachable:
        """Send a request; repeat it once if the server wants a nonce in the proof."""
        for again in (True, False):
            proof = None if ask.proof is None else self.proof(ask.proof, ask.method, ask.url)
            answer = await self.fetch(ask, proof)
            if isinstance(answer, Unreachable):
                break
            noted = self.note_nonce(ask.url, answer.nonce)
            _remember(self.skews, ask.url, answer.skew)
            wants_nonce = (answer.document() or {}).get("error") == "use_dpop_nonce"
            if proof is None or not (again and noted and wants_nonce):
                break
        return answer

    def note_nonce(self, url: str, nonce: str | None) -> bool:
        """Remember the nonce of an origin (RFC 9449 §8.1), if it is valid."""
        if nonce is None or not _NONCE.fullmatch(nonce):
            return False
        _remember(self.nonces, url, nonce)
        return True

    def note_login(self, login: Login) -> None:
        """Take the network and the clock skew of the servers from a login."""
        self.network = self.network or login.network
        for url in (login.auth_server.token_endpoint, login.server):
            _remember(self.skews, url, login.skew)

    def proof(self, key: str, method: str, url: str, token: str | None = None) -> str:
        """Return a DPoP proof for one request, bound to the token that goes with it."""
        nonce, now = self.nonces.get(urls.origin(url)), self._time_at(url)
        return jws.proof(key, method=method, url=url, now=now, nonce=nonce, token=token)

    def _time_at(self, url: str) -> float:
        return self.clock() + self.skews.get(urls.origin(url), 0.0)

    # Requests

    async def fetch(self, ask: Ask, proof: str | None = None) -> Fetched | Unreachable:
        """Send one request, with a DPoP proof if given; return the answer or why there is none."""
        address_check, headers = (
            AddressCheck(),
            {**_HEADERS, **ask.headers, **({"DPoP": proof} if proof else {})},
        )
        try:
            # No keep-alive: the address of a reused connection would not be checked again.
            factory = address_check.socket
            async with aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(socket_factory=factory, force_close=True),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self.timeout),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session:
                return await self._follow(ask, session, address_check)
        except TimeoutError:
            return Unreachable(f"no answer within {self.timeout:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            forbidden = address_check.refused or isinstance(error, urls.BadUrl | _Unreadable)
            if address_check.refused:
                reason = "its address is in a private network, where the server is not"
            elif forbidden:
                reason = str(error)
            elif isinstance(error, aiohttp.ClientSSLError):
                reason = "its TLS certificate cannot be verified; the option ca adds a trusted CA"
            elif isinstance(error, aiohttp.ClientConnectorError):
                cause = error.os_error.strerror or type(error.os_error).__name__
                reason = f"cannot connect ({cause})"
            else:
                reason = f"the connection failed ({type(error).__name__})"
            return Unreachable(reason, forbidden)

    async def _follow(
        self, ask: Ask, session: aiohttp.ClientSession, address_check: AddressCheck
    ) -> Fetched:
        url, allowed = ask.url, frozenset({"global", self.network or "global"})
        for _ in range(MAX_REDIRECTS + 1):
            proxy = self._settings.proxy(url)
            # A URL that the user named may be in a private network, but not where it redirects to.
            pinned = ask.pinned and urls.origin(url) == urls.origin(ask.url)
            address_check.allowed = None if pinned or proxy is not None else allowed
            # A proxy resolves the name itself, so only a literal address can be checked here.
            network = urls.network_of_name(URL(url).host or "")
            if proxy is not None and not pinned and network not in (None, *allowed):
                address_check.refuse()
            is_secure = "https" in (URL(url).scheme, URL(proxy or "").scheme)
            async with session.request(
                ask.method,
                URL(url, encoded=True),
                data=None if ask.form is None else dict(ask.form),
                json=ask.json,
                allow_redirects=False,
                proxy=proxy,
                ssl=await self._settings.tls() if is_secure else True,
            ) as response:
                target = response.headers.get("Location")
                moved = response.status in _REDIRECTS and target is not None
                if not moved or ask.method != "GET" or not ask.follow:
                    return await _fetched(response, self.clock())
                url = str(URL(url, encoded=True).join(URL(target or "", encoded=True)))
                # The same rules for every hop; a redirect must not lead to plain http.
                urls.checked(url)
        raise _Unreadable(f"more than {MAX_REDIRECTS} redirects")


def _remember(by_origin: dict[str, T], url: str, value: T) -> None:
    by_origin.pop(urls.origin(url), None)
    by_origin[urls.origin(url)] = value
    if len(by_origin) > MAX_ORIGINS:
        del by_origin[next(iter(by_origin))]


class _Unreadable(ValueError):  # noqa: N818
    """An answer whose body is too large or cannot be decoded."""


async def _fetched(response: aiohttp.ClientResponse, now: float) -> Fetched:
    """Read an answer; a compressed body is bounded before and after decompression."""
    headers, received = response.headers, bytearray()
    too_large = _Unreadable(f"the answer is larger than {MAX_BODY} bytes")
    server_time = timestamp(headers.get("Date", "")) or now
    # Our clock may be wrong. Dates have whole seconds, so a small difference is no skew.
    skew = server_time - now if abs(server_time - now) > 5 else 0.0
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > MAX_BODY:
            raise too_large
    body = bytes(received)
    coding = headers.get("Content-Encoding", "").strip().lower()
    if coding in ("gzip", "x-gzip", "deflate"):
        try:
            body = zlib.decompressobj(47).decompress(body, MAX_BODY + 1)
        except zlib.error:
            raise _Unreadable("the answer cannot be unpacked") from None
    elif coding not in ("", "identity"):
        raise _Unreadable("the answer is in a coding that was not asked for")
    if len(body) > MAX_BODY:
        raise too_large
    wait = retry_after(headers.get("Retry-After", ""), server_time)
    nonce, location = headers.get("DPoP-Nonce"), headers.get("Location")
    return Fetched(response.status, body, skew, wait, nonce, location)


class AddressCheck:
    """Makes sockets for allowed addresses, and remembers the kinds of networks they are in.

    Checked when a connection is made: the owner of a name can change what it resolves to. Through
    a proxy only literal addresses and ``localhost`` are known.
    """

    def __init__(self, host: str = "", *, proxied: bool = False) -> None:
        self.allowed: frozenset[str] | None = None
        """The kinds of networks that may be connected to (A31); None: any."""
        self.refused = False
        self._proxied = proxied
        self._kinds = {urls.network_of_name(host) or "global"} if proxied else set()

    def socket(self, info: AddressInfo) -> socket.socket:
        """Make a socket, as ``TCPConnector(socket_factory=…)`` wants it."""
        kind = urls.network(str(info[4][0]))
        if self.allowed is not None and kind not in self.allowed:
            self.refuse()
        if not self._proxied:
            self._kinds.add(kind)
        return socket.socket(*info[:3])

    def refuse(self) -> NoReturn:
        self.refused = True
        raise OSError("forbidden address")

    @property
    def network(self) -> str | None:
        """The kind of network, if all connections agree; a mixture counts as the internet."""
        if len(self._kinds) > 1:
            return "global"
        return next(iter(self._kinds), None)
