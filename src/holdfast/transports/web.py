"""HTTP as both URL transports use it: one session, our own headers, errors in our words.

Credentials stay with the origin they were given for: redirects are followed only within it.
Bodies are decompressed here, so that a small one cannot become a large one unnoticed.
"""

from __future__ import annotations

import inspect
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import aiohttp
import msgspec
from msgspec import Raw, Struct
from yarl import URL

from holdfast.boundary import Generation, Refused, WireId
from holdfast.errors import AuthError, HoldfastError, ProtocolError, TransportError
from holdfast.wire.framing import FrameTooLarge
from holdfast.wire.jsonrpc import Fault, decode_fault, snippet

Headers: TypeAlias = (
    "Mapping[str, str] | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]"
)

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_ERROR_BODY: Final = 64 * 1024
_UNAUTHORIZED, _FORBIDDEN, _TOO_MANY, _UNAVAILABLE = 401, 403, 429, 503
JSON, EVENTS = "application/json", "text/event-stream"


class Settings(Struct, frozen=True, kw_only=True):
    """How a URL is reached."""

    url: str
    headers: Headers | None = None
    ca: str | None = None
    cert: str | tuple[str, str] | None = None
    proxy: str | None = None
    trust_env: bool = True
    connections: int = 100


class Refusal(Exception):  # noqa: N818  (a finding, reported by the link)
    """A request that was not answered with a message."""

    def __init__(
        self,
        error: HoldfastError,
        *,
        status: int | None = None,
        fault: Fault | None = None,
        processed: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = status
        self.fault = fault
        self.processed = processed
        self.retry_after = retry_after

    def report(self, generation: Generation, wire_id: WireId) -> Refused:
        return Refused(
            generation,
            wire_id,
            self.error,
            self.status,
            self.fault,
            self.processed,
            self.retry_after,
        )


class Web:
    """The HTTP side of one link."""

    def __init__(self, settings: Settings, limit: int) -> None:
        self.url = URL(settings.url)
        self.limit = limit
        self._settings = settings
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=settings.connections,
                ssl=_tls(settings) if self.url.scheme == "https" else True,
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            auto_decompress=False,
            trust_env=settings.trust_env,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
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
        """A response whose status is good; ``Refusal`` for every other ending."""
        try:
            response = await self._follow(method, url or self.url, headers, body)
            try:
                if response.status >= 300:
                    raise await self._refusal(response)
                yield response
            finally:
                response.release()
        except aiohttp.ClientError as error:
            raise self._broken(error) from error
        except (OSError, TimeoutError) as error:
            raise self._broken(error) from error

    async def _follow(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """Send, again with fresh credentials if refused once, and along redirects at home."""
        fresh = callable(self._settings.headers)
        hops = 0
        while True:
            response = await self._session.request(
                method,
                url,
                data=body,
                headers={**BASIC, **await self._own_headers(), **headers},
                allow_redirects=False,
                proxy=self._settings.proxy,
            )
            if response.status == _UNAUTHORIZED and fresh:
                fresh = False
            elif response.status in _REDIRECTS and "Location" in response.headers:
                hops += 1
                url = self._redirect(url, response, hops)
            else:
                return response
            response.release()

    async def _own_headers(self) -> Mapping[str, str]:
        own = self._settings.headers
        if own is None:
            return {}
        if not callable(own):
            return own
        found = own()
        return await found if inspect.isawaitable(found) else found

    def _redirect(self, url: URL, response: aiohttp.ClientResponse, hops: int) -> URL:
        target = url.join(URL(response.headers["Location"]))
        if target.origin() != self.url.origin():
            text = (
                f"{self.origin} redirects to {target.origin()}, which is not followed because "
                f"credentials would go along; connect to {target} if you trust it"
            )
            raise Refusal(TransportError(text), processed=False)
        if hops > _MOST_REDIRECTS:
            text = f"{self.origin} redirects more than {_MOST_REDIRECTS} times"
            raise Refusal(TransportError(text), processed=False)
        return target

    # Bodies

    async def read(self, response: aiohttp.ClientResponse, limit: int | None = None) -> bytes:
        """A whole body, within the limit."""
        most = self.limit if limit is None else limit
        chunks, size = [], 0
        async for chunk in self.chunks(response):
            size += len(chunk)
            if size > most:
                raise Refusal(self.too_large(FrameTooLarge(size, most)))
            chunks.append(chunk)
        return b"".join(chunks)

    async def chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """A body as it comes, decompressed."""
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding in ("", "identity"):
            async for chunk in response.content.iter_any():
                yield chunk
            return
        inflate = _inflater(coding)
        if inflate is None:
            raise Refusal(
                ProtocolError(f"{self.origin} answers in {coding!r}, which was not asked")
            )
        async for chunk in response.content.iter_any():
            while chunk:
                try:
                    data = inflate.decompress(chunk, CHUNK)
                except zlib.error as error:
                    raise Refusal(ProtocolError(f"{self.origin}: bad {coding}: {error}")) from None
                chunk = inflate.unconsumed_tail
                if data:
                    yield data

    # Errors

    async def _refusal(self, response: aiohttp.ClientResponse) -> Refusal:
        """What a status outside 2xx means."""
        status = response.status
        try:
            body = await self.read(response, _ERROR_BODY)
        except Refusal:
            body = b""
        fault = _fault(body)
        said = (fault.message if fault else None) or snippet(body.strip()) or response.reason or ""
        text = f"{self.origin} answered with HTTP status {status}: {said}"
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            error: HoldfastError = AuthError(f"{text}; check the credentials (headers=…)")
            return Refusal(error, status=status, processed=False)
        error = TransportError(text, code=status)
        turned_away = status in (_TOO_MANY, _UNAVAILABLE)
        retry = _retry_after(response) if turned_away else None
        processed = status >= 500 and not turned_away
        return Refusal(error, status=status, fault=fault, processed=processed, retry_after=retry)

    def _broken(self, error: BaseException) -> Refusal:
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
            text = f"cannot connect to {self.origin}: TLS: {error}; ca=… adds a trusted CA"
            return Refusal(TransportError(text), processed=False)
        if isinstance(error, aiohttp.ClientConnectorError):
            number = error.os_error.errno
            words = os.strerror(number) if number and number > 0 else str(error.os_error)
            text = f"cannot connect to {self.origin}: {words}"
            return Refusal(TransportError(text), processed=False)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Refusal(
                TransportError(f"cannot connect to {self.origin}: timeout"), processed=False
            )
        words = str(error) or type(error).__name__
        text = f"the connection to {self.origin} broke: {words}"
        return Refusal(TransportError(text))

    def too_large(self, error: FrameTooLarge) -> HoldfastError:
        return TransportError(f"{self.origin} sent {error}; Limits(frame_bytes=…) sets this")

    def wrong_content(self, response: aiohttp.ClientResponse, body: bytes) -> Refusal:
        kind = response.headers.get("Content-Type", "no content type")
        text = f"{self.origin} answered with {kind}, not JSON or events: {snippet(body.strip())}"
        return Refusal(ProtocolError(text), status=response.status)


CHUNK: Final = 256 * 1024
BASIC: Final = {
    "Accept": f"{JSON}, {EVENTS}",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": JSON,
    "User-Agent": "holdfast",
}


def _inflater(coding: str) -> Any:
    if coding in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    return zlib.decompressobj() if coding == "deflate" else None


def _tls(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.ca is not None:
        context.load_verify_locations(settings.ca)
    if settings.cert is not None:
        pair = (settings.cert,) if isinstance(settings.cert, str) else settings.cert
        context.load_cert_chain(*pair)
    return context


class _ErrorBody(Struct):
    error: Raw


_error_body = msgspec.json.Decoder(_ErrorBody)


def _fault(body: bytes) -> Fault | None:
    """The JSON-RPC error in a body, if that is what it is."""
    try:
        fault = decode_fault(_error_body.decode(body).error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fault if fault is not None and fault.code is not None else None


def _retry_after(response: aiohttp.ClientResponse) -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else 1.0


def content_type(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
