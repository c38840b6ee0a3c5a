"""Requests to authorization servers: a session of their own, bounded, to allowed addresses."""

from __future__ import annotations

import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NoReturn

import aiohttp
from msgspec import Struct
from yarl import URL

from holdfast._core.auth import urls
from holdfast._core.auth.steps import Ask, Fetched, Unreachable
from holdfast._core.wire.http_dates import retry_after, timestamp

TIMEOUT: Final = 10.0
MAX_BODY: Final = 256 * 1024
MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "holdfast",
}


class Reach(Struct, frozen=True):
    """The way to the server; it holds for its authorization servers too (B21)."""

    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    proxy: Callable[[str], str | None] = lambda url: None


class AsClient(AbstractAsyncContextManager["AsClient"]):
    """Carries out ``Ask``. ``home`` is the kind of network that the MCP server is in."""

    def __init__(
        self,
        reach: Reach,
        home: str,
        *,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reach = reach
        self._clock = clock
        self._timeout = timeout
        self._allowed = frozenset({"global", home})
        self._session: aiohttp.ClientSession | None = None
        self._rule: frozenset[str] | None = None
        """The networks that the request under way may go to; None: any."""
        self._stopped = False

    async def __aexit__(self, *error: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, ask: Ask, proof: str | None = None) -> Fetched | Unreachable:
        """Send one request, with a DPoP proof if there is one; return what came of it."""
        self._stopped = False
        try:
            return await self._follow(ask, {**ask.headers, **({"DPoP": proof} if proof else {})})
        except TimeoutError:
            return Unreachable(f"no answer within {self._timeout:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if self._stopped:
                text = "its address is in a private network, where the server is not"
                return Unreachable(text, forbidden=True)
            if isinstance(error, urls.BadUrl | _Unreadable):
                return Unreachable(str(error), forbidden=True)
            return Unreachable(_words(error))

    async def _follow(self, ask: Ask, headers: Mapping[str, str]) -> Fetched:
        url = ask.url
        for _ in range(MAX_REDIRECTS + 1):
            # What the user named may be in a private network, and nothing that it leads to.
            pinned = ask.pinned and urls.origin(url) == urls.origin(ask.url)
            async with await self._send(ask, url, headers, pinned) as response:
                target = response.headers.get("Location")
                moved = response.status in _REDIRECTS and target is not None
                if not moved or ask.method != "GET" or not ask.follow:
                    return await _fetched(response, self._clock())
                url = str(URL(url, encoded=True).join(URL(target or "", encoded=True)))
                # Every hop by the same rules; a redirect must not lead to plain http.
                urls.checked(url)
        raise _Unreadable(f"more than {MAX_REDIRECTS} redirects")

    async def _send(
        self, ask: Ask, url: str, headers: Mapping[str, str], pinned: bool
    ) -> aiohttp.ClientResponse:
        proxy = self._reach.proxy(url)
        self._rule = None if pinned or proxy is not None else self._allowed
        # Through a proxy the address is the proxy's to find, unless the name gives it away.
        known = urls.network_of_name(URL(url).host or "")
        if proxy is not None and not pinned and known not in (None, *self._allowed):
            self._refuse()
        return await self._open().request(
            ask.method,
            URL(url, encoded=True),
            data=None if ask.form is None else dict(ask.form),
            json=ask.json,
            headers={**_HEADERS, **headers},
            allow_redirects=False,
            proxy=proxy,
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._reach.tls(),
                socket_factory=self._socket,
                # A connection that is used again would not be checked again.
                force_close=True,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Make a socket for an address that was resolved, if it may be connected to (A31)."""
        family, kind, protocol, _, address = info
        if self._rule is not None and urls.network(str(address[0])) not in self._rule:
            self._refuse()
        return socket.socket(family=family, type=kind, proto=protocol)

    def _refuse(self) -> NoReturn:
        self._stopped = True
        raise OSError("forbidden address")


class _Unreadable(ValueError):  # noqa: N818
    """An answer that is not read to its end."""


async def _fetched(response: aiohttp.ClientResponse, now: float) -> Fetched:
    headers = response.headers
    there = timestamp(headers.get("Date", "")) or now
    # Our clock may be the wrong one; that the date has whole seconds makes no skew.
    skew = there - now if abs(there - now) > 5 else 0.0
    wait = retry_after(headers.get("Retry-After", ""), there)
    body = await _body(response)
    return Fetched(response.status, body, skew, wait, headers.get("DPoP-Nonce"))


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Read a bounded body; a compressed one is bounded once more when it is unpacked."""
    pieces, size = [], 0
    async for chunk in response.content.iter_any():
        pieces.append(chunk)
        size = _bounded(size + len(chunk))
    body = b"".join(pieces)
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise _Unreadable("the answer is in a coding that was not asked for")
    try:
        plain = zlib.decompressobj(47).decompress(body, MAX_BODY + 1)
    except zlib.error:
        raise _Unreadable("the answer cannot be unpacked") from None
    _bounded(len(plain))
    return plain


def _bounded(size: int) -> int:
    if size > MAX_BODY:
        raise _Unreadable(f"the answer is larger than {MAX_BODY} bytes")
    return size


def _words(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its TLS certificate cannot be verified; ca=… adds a trusted CA"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect ({error.os_error.strerror or type(error.os_error).__name__})"
    return f"the connection failed ({type(error).__name__})"


class Peers:
    """Remembers the kinds of networks that a session has connected to.

    What the server's name resolves to now may differ from where it was: DNS is its owner's.
    Through a proxy only a name that gives its address away is known.
    """

    def __init__(self, host: str, *, proxied: bool) -> None:
        self._proxied = proxied
        self._kinds = {urls.network_of_name(host) or "global"} if proxied else set()

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Make a socket, as ``TCPConnector(socket_factory=…)`` wants it."""
        family, kind, protocol, _, address = info
        if not self._proxied:
            self._kinds.add(urls.network(str(address[0])))
        return socket.socket(family=family, type=kind, proto=protocol)

    @property
    def network(self) -> str | None:
        """The kind of network, if all connections agree; a mixture counts as the internet."""
        if not self._kinds:
            return None
        return next(iter(self._kinds)) if len(self._kinds) == 1 else "global"
