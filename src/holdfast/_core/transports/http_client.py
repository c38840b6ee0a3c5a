"""HTTP as both URL transports use it: one session, our own headers, errors in our words.

Credentials stay with the origin they were given for: redirects are followed only within it.
Bodies are decompressed here, so that a small one cannot become a large one unnoticed.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import os
import ssl
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import aiohttp
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from holdfast._core.boundary import Meaning, Refused
from holdfast._core.transports.http_errors import fault_in, retry_after
from holdfast._core.transports.inflate import CODINGS, BadBody, Inflater
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._core.wire.framing import FrameTooLarge
from holdfast._core.wire.jsonrpc import ErrorObject, snippet
from holdfast.errors import (
    AuthError,
    HoldfastError,
    ProtocolError,
    TransportError,
    ValidationError,
)

Headers: TypeAlias = (
    "Mapping[str, str] | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]"
)

_REDIRECTS: Final = frozenset({301, 302, 307, 308})
"""Where the same request is to be sent again; 303 means that it was processed."""
_MOST_REDIRECTS: Final = 5
_ERROR_BODY: Final = 64 * 1024
_LARGE: Final = 1024 * 1024
_BAD_REQUEST, _NOT_FOUND, _PROXY_LOGIN = 400, 404, 407
_UNAUTHORIZED, _FORBIDDEN, _TOO_MANY, _UNAVAILABLE = 401, 403, 429, 503
_MAYBE_RUN: Final = frozenset({303, 408})
_TURNED_AWAY: Final = frozenset({408, 425, 429, 503})
_WRONG_ADDRESS: Final = frozenset({400, 404, 405, 501})
JSON, EVENTS = "application/json", "text/event-stream"
SESSION: Final = "Mcp-Session-Id"


class Settings(Struct, frozen=True, kw_only=True):
    """How a URL is reached."""

    url: str
    headers: Headers | None = None
    ca: str | None = None
    cert: str | tuple[str, str] | None = None
    proxy: str | None = None
    trust_env: bool = True
    connections: int = 100


class Web:
    """The HTTP side of one link."""

    def __init__(self, settings: Settings, limit: int) -> None:
        self.url: URL = URL(settings.url)
        self.limit = limit
        self.slots: asyncio.Semaphore = asyncio.Semaphore(settings.connections)
        """Requests at once. What answers the server needs no slot: they may all wait for it."""
        self._settings = settings
        self._proxy = _proxy(settings, self.url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ssl=_tls(settings) if self.url.scheme == "https" else True,
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            auto_decompress=False,
            headers={**BASIC} if callable(settings.headers) else _merged(settings.headers),
            read_bufsize=256 * 1024,
        )

    @property
    def origin(self) -> str:
        return str(self.url.origin())

    async def close(self) -> None:
        await self._session.close()

    def drop(self) -> None:
        """Close every connection here and now."""
        connector = self._session.connector
        if connector is not None:
            connector._close(abort_ssl=True)
        self._session.detach()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        url: URL | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response whose status is good; ``Refused`` for every other ending."""
        response = await self.open(method, headers, body, url)
        try:
            yield response
        except BROKEN as error:
            raise self.broken(error) from error
        finally:
            response.release()

    async def open(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        url: URL | None = None,
    ) -> aiohttp.ClientResponse:
        """The same without its end: the caller reads, and releases it."""
        try:
            response = await self._follow(method, url or self.url, headers, body)
            if response.status < 300:
                return response
            try:
                raise await self._refusal(response, SESSION in headers)
            finally:
                response.release()
        except BROKEN as error:
            raise self.broken(error) from error

    async def _follow(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """Send, again with fresh credentials if refused once, and along redirects at home."""
        fresh = callable(self._settings.headers)
        hops = 0
        while True:
            sent = headers
            if callable(self._settings.headers):
                sent = CIMultiDict(await self._own_headers())
                sent.update(headers)
            response = await self._send(method, url, sent, body)
            if response.status == _UNAUTHORIZED and fresh:
                fresh = False
            elif response.status in _REDIRECTS and "Location" in response.headers:
                hops += 1
                url = self._redirect(url, response, hops)
            else:
                return response
            response.release()

    async def _send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        try:
            # A large body is handed over as a file: it is written bit by bit.
            data = io.BytesIO(body) if body is not None and len(body) > _LARGE else body
            return await self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy
            )
        except aiohttp.ClientError:
            raise
        except (ValueError, TypeError) as error:
            text = f"the request to {self.origin} cannot be made: {error}"
            raise Refused(ValidationError(text), Meaning.NOT_SENT, processed=False) from error

    async def _own_headers(self) -> Mapping[str, str]:
        own = self._settings.headers
        assert callable(own)
        try:
            found = own()
            return dict(await found if inspect.isawaitable(found) else found)
        except Exception as error:
            text = f"no headers for {self.origin}: headers() failed: {error!r}"
            raise Refused(AuthError(text), Meaning.NOT_SENT, processed=False) from error

    def _redirect(self, url: URL, response: aiohttp.ClientResponse, hops: int) -> URL:
        target = joined(url, response.headers["Location"])
        if target is None or target.origin() != self.url.origin():
            where = response.headers["Location"] if target is None else target.origin()
            text = (
                f"{self.origin} redirects to {where}, which is not followed because "
                f"credentials would go along; connect to {target or 'it'} if you trust it"
            )
            raise Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
        if hops > _MOST_REDIRECTS:
            text = f"{self.origin} redirects more than {_MOST_REDIRECTS} times"
            raise Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
        return target

    # Bodies

    async def read(self, response: aiohttp.ClientResponse, limit: int | None = None) -> bytes:
        """A whole body, within the limit."""
        most = self.limit if limit is None else limit
        if "Content-Encoding" not in response.headers:
            return await self._read_plain(response, most)
        chunks, size = [], 0
        async for chunk in self.chunks(response):
            size += len(chunk)
            if size > most:
                raise Refused(self.too_large(FrameTooLarge(size, most)), Meaning.UNREADABLE)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _read_plain(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        """The same, without the detour: nearly every body is plain, and in one piece."""
        try:
            body = await response.content.readany()
            size = len(body)
            if response.content.at_eof() and size <= most:
                return body
            chunks = [body]
            while size <= most and (chunk := await response.content.readany()):
                chunks.append(chunk)
                size += len(chunk)
        except BROKEN as error:
            raise self.broken(error) from error
        if size > most:
            raise Refused(self.too_large(FrameTooLarge(size, most)), Meaning.UNREADABLE)
        return b"".join(chunks)

    async def skip(self, response: aiohttp.ClientResponse) -> None:
        """Read past a body that says nothing, so that its connection can be used again."""
        async with asyncio.timeout(LINGER):
            await self.read(response, _ERROR_BODY)

    async def chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """A body as it comes, decompressed."""
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding in ("", "identity"):
            readany = response.content.readany
            while chunk := await readany():
                yield chunk
            return
        if coding not in CODINGS:
            raise self._unreadable(coding, "it was not asked for")
        inflater = Inflater(coding)
        try:
            async for chunk in response.content.iter_any():
                for data in inflater.feed(chunk):
                    yield data
            inflater.close()
        except BadBody as error:
            raise self._unreadable(coding, str(error)) from None

    def _unreadable(self, coding: str, why: str) -> Refused:
        text = f"{self.origin} answered in {coding!r}: {why}"
        return Refused(ProtocolError(text), Meaning.UNREADABLE)

    # Errors

    async def _refusal(self, response: aiohttp.ClientResponse, named: bool) -> Refused:
        """Return the meaning of a status outside 2xx; ``named``: the request named a session."""
        status = response.status
        body = await self._beginning(response)
        fault = fault_in(body)
        said = (fault.message if fault else None) or snippet(body.strip()) or response.reason or ""
        text = f"{self.origin} answered with HTTP status {status}: {said}"
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            hint = "check the credentials (headers=…)"
            error: HoldfastError = AuthError(f"{text}; {hint}", code=status)
            meaning = Meaning.UNAUTHORIZED if status == _UNAUTHORIZED else Meaning.FORBIDDEN
            return Refused(error, meaning, processed=False)
        error = TransportError(text, code=status)
        turned_away = status in (_TOO_MANY, _UNAVAILABLE)
        retry = retry_after(response.headers) if turned_away else None
        processed = status in _MAYBE_RUN or (status >= 500 and not turned_away)
        meaning = _meaning(status, fault, named=named)
        return Refused(error, meaning, fault=fault, processed=processed, retry_after=retry)

    async def _beginning(self, response: aiohttp.ClientResponse) -> bytes:
        """As much of an error's body as there is, and as is worth reading."""
        found = b""
        try:
            async for chunk in self.chunks(response):
                found += chunk
                if len(found) > _ERROR_BODY:
                    break
        except (Refused, aiohttp.ClientError, OSError):
            pass
        return found

    def broken(self, error: BaseException) -> Refused:
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
            text = f"cannot connect to {self.origin}: TLS: {error}; ca=… adds a trusted CA"
            return Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
        if isinstance(error, aiohttp.ClientConnectorError):
            return self._unreached(_errno_words(error.os_error), error)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return self._unreached("timeout", error)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return self._unreached(f"the proxy answered {error.status}: {error.message}", error)
        words = str(error) or type(error).__name__
        text = f"the connection to {self.origin} broke: {words}"
        return Refused(TransportError(text), Meaning.BROKEN)

    def _unreached(self, words: str, error: BaseException) -> Refused:
        proxied = isinstance(error, aiohttp.ClientProxyConnectionError)
        through = f" through the proxy {URL(self._proxy or '').host}" if proxied else ""
        text = f"cannot connect to {self.origin}{through}: {words}"
        return Refused(TransportError(text), Meaning.UNREACHABLE, processed=False)

    def too_large(self, error: FrameTooLarge) -> HoldfastError:
        return TransportError(f"{self.origin} sent {error}; Limits(frame_bytes=…) sets this")

    def wrong_content(self, response: aiohttp.ClientResponse, body: bytes) -> Refused:
        kind = response.headers.get("Content-Type", "no content type")
        text = f"{self.origin} answered with {kind}, not JSON or events: {snippet(body.strip())}"
        return Refused(ProtocolError(text), Meaning.UNREADABLE)


def _meaning(status: int, fault: ErrorObject | None, *, named: bool) -> Meaning:
    """Return the meaning of an error status other than 401 and 403."""
    if named and _no_such_session(status, fault):
        return Meaning.NO_SUCH_SESSION
    if status in _WRONG_ADDRESS:
        return Meaning.NOT_UNDERSTOOD
    if status in _TURNED_AWAY:
        return Meaning.BUSY
    if status == _PROXY_LOGIN:
        return Meaning.FORBIDDEN
    if status < _BAD_REQUEST:
        return Meaning.UNREADABLE
    return Meaning.REJECTED if status < 500 else Meaning.CRASHED


def _no_such_session(status: int, fault: ErrorObject | None) -> bool:
    """Return True if a refusal says that the server does not know the session named."""
    if status == _BAD_REQUEST:
        # The specification says 404 (basic/transports, Session Management); many servers do this.
        return fault is not None and "session" in (fault.message or "").lower()
    return status == _NOT_FOUND and (fault is None or fault.code != METHOD_NOT_FOUND)


BROKEN: Final = (aiohttp.ClientError, OSError, TimeoutError)
"""What a connection may end in at any moment."""
LINGER: Final = 2.0
"""Seconds for a response to end by itself after its use, so that its connection is used again."""
BASIC: Final = {
    "Accept": f"{JSON}, {EVENTS}",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": JSON,
    "User-Agent": "holdfast",
}


def _merged(own: Mapping[str, str] | None) -> CIMultiDict[str]:
    merged = CIMultiDict(BASIC)
    merged.update(own or {})
    return merged


def _proxy(settings: Settings, url: URL) -> str | None:
    """The proxy on the way, looked up once: the environment does not change with each request."""
    if settings.proxy is not None or not settings.trust_env:
        return settings.proxy
    if url.host is None or urllib.request.proxy_bypass(url.host):
        return None
    found = urllib.request.getproxies().get(url.scheme)
    return found if found is None or "://" in found else f"http://{found}"


def joined(base: URL, where: str) -> URL | None:
    """An address as a server names it; None if it is none."""
    try:
        target = base.join(URL(where))
        target.origin()
    except ValueError:
        return None
    return target


def _tls(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.ca is not None:
        context.load_verify_locations(settings.ca)
    if settings.cert is not None:
        pair = (settings.cert,) if isinstance(settings.cert, str) else settings.cert
        context.load_cert_chain(*pair)
    return context


def _errno_words(error: OSError) -> str:
    number = error.errno
    return os.strerror(number) if number and number > 0 else str(error)


def content_type(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
