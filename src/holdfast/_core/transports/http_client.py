"""The HTTP client of one link: one session, one place where requests are sent and judged.

Credentials stay with the origin they were given for: redirects are followed only within it.
Bodies are decompressed here, so that a small one cannot become a large one unnoticed.
"""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from holdfast._core.boundary import Meaning, Refused
from holdfast._core.callbacks import ends_task
from holdfast._core.text import hide
from holdfast._core.transports import http_errors
from holdfast._core.transports.http_connections import (
    READ,
    HttpConnector,
    HttpSettings,
    SmallPost,
    proxy_for,
    tls_context,
)
from holdfast._core.transports.http_errors import SESSION, UNAUTHORIZED
from holdfast._core.transports.inflate import CODINGS, BadBody, Inflater
from holdfast._core.wire.framing import FrameTooLarge, join
from holdfast._core.wire.jsonrpc import snippet
from holdfast.errors import AuthError, ProtocolError, TransportError, ValidationError

if TYPE_CHECKING:
    from holdfast._core.auth.as_client import Peers
    from holdfast._core.transports.authorization import Held, Permit

HeaderValues: TypeAlias = "Mapping[str, str] | Iterable[tuple[str, str]]"
Headers: TypeAlias = "HeaderValues | Callable[[], HeaderValues | Awaitable[HeaderValues]]"

_REDIRECTS: Final = frozenset({301, 302, 307, 308})
"""The redirects that repeat the request; 303 means that it was processed."""
_REFUSALS: Final = frozenset({401, 403})
_MAX_REDIRECTS: Final = 5
_ERROR_BODY: Final = 64 * 1024
_LARGE: Final = 1024 * 1024
_GOOD: Final = 300
PIECE: Final = 16 * 1024
"""Bytes of a flood of tiny lines, or of tiny gzip members, that are read before other tasks run."""
JSON, EVENTS = "application/json", "text/event-stream"
BROKEN: Final = (aiohttp.ClientError, OSError, TimeoutError)
"""The exceptions that may end a connection at any moment."""
LINGER: Final = 2.0
"""Seconds for a response to end after its use, so that its connection can be used again."""
BASIC_HEADERS: Final = {
    "Accept": f"{JSON}, {EVENTS}",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": JSON,
    "User-Agent": "holdfast",
}


class HttpClient:
    """Sends the requests of one link and reads their responses."""

    def __init__(self, settings: HttpSettings, limit: int) -> None:
        self.url: URL = URL(settings.url)
        self.origin: str = str(self.url.origin())
        self.limit = limit
        self.settings = settings
        self._proxy = proxy_for(settings, self.url)
        self._tls = tls_context(settings) if self.url.scheme == "https" else None
        self._peers: Peers | None = None
        self._permit: Callable[[Any, Held | None], Permit]
        if settings.authorizer is not None:
            from holdfast._core.auth.as_client import Peers
            from holdfast._core.transports.authorization import Permit

            peers = self._peers = Peers(self.url.host or "", proxied=self._proxy is not None)
            self._permit = lambda authorizer, held: Permit(authorizer, peers, held)
        own = settings.headers
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=settings.connect_timeout)
        self._connector = HttpConnector(
            limit=0,
            socket_factory=None if self._peers is None else self._peers.socket,
            ssl=True if self._tls is None else self._tls,
        )
        merged = CIMultiDict(BASIC_HEADERS)
        merged.update({} if own is None or callable(own) else own)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=self._timeout,
            auto_decompress=False,
            headers=merged,
            read_bufsize=READ,
        )
        self._post: SmallPost | None = None
        """What small POSTs are copies of, while there is nothing that needs a session."""
        is_plain = self._proxy is None and self.url.raw_user is self.url.raw_password is None
        if is_plain and SmallPost.FAMILIAR:
            loop = asyncio.get_running_loop()
            self._post = SmallPost(
                "POST", self.url, headers=merged, loop=loop, session=self._session
            )

    async def close(self) -> None:
        await self._session.close()

    def drop(self) -> None:
        """Close every connection at once, without waiting."""
        self._connector._close(abort_ssl=True)
        self._session.detach()

    # Requests

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        url: URL | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give a response whose status is good; raise `Refused` for every other outcome."""
        response = await self.open(method, headers, body, url)
        try:
            yield response
        except BROKEN as error:
            raise self.broken(error, fresh=False) from error
        finally:
            response.release()

    async def open(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        url: URL | None = None,
        held: Held | None = None,
    ) -> aiohttp.ClientResponse:
        """Do the same, but leave it to the caller to read and to release the response.

        The request is sent again with other credentials after a 401, and along redirects.
        """
        own, authorizer = self.settings.headers, self.settings.authorizer
        fresh, hops, place = callable(own), 0, url or self.url
        permit: Permit | None = None
        try:
            while True:
                sent = headers if not callable(own) else await self._with_own(own, headers)
                if authorizer is not None:
                    found = authorizer.ready()
                    if found is None:
                        permit = permit or self._permit(authorizer, held)
                        found = await permit.headers(method, str(place))
                    if found:
                        # The names of headers have no case: a dictionary would keep both spellings.
                        sent = CIMultiDict(sent)
                        sent.update(found)
                response = await self._send(method, place, sent, body)
                if response.status < _GOOD:
                    return response
                if response.status == UNAUTHORIZED and fresh:
                    fresh = False
                elif authorizer is not None and response.status in _REFUSALS:
                    permit = permit or self._permit(authorizer, held)
                    if not await permit.answered(response, sent, body):
                        break
                elif response.status in _REDIRECTS and "Location" in response.headers:
                    hops += 1
                    place = self._redirect(place, response, hops)
                else:
                    break
                response.release()
            try:
                start = _without_credentials(await self._beginning(response), response)
            finally:
                response.release()
        except BROKEN as error:
            raise await self._failed(error) from error
        named, path = SESSION in headers, (url or self.url).path
        raise http_errors.refusal(self.origin, response, start, named=named, path=path)

    async def _send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        try:
            small = body is not None and len(body) <= SmallPost.LARGEST
            if small and self._post is not None and url is self.url and not self._connector.closed:
                post = self._post.copied(headers, body or b"")
                response = await self._connector.post(post, self._timeout)
                if "Set-Cookie" in response.headers:
                    # From now on each request carries cookies, which is the work of a session.
                    self._post = None
                    cookies = response.headers.getall("Set-Cookie")
                    self._session.cookie_jar.update_cookies_from_headers(cookies, url)
                return response
            # A large body is handed over as a file: it is written piece by piece.
            data = io.BytesIO(body) if body is not None and len(body) > _LARGE else body
            return await self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy
            )
        except aiohttp.ClientError:
            raise
        except (ValueError, TypeError) as error:
            text = f"the request to {self.origin} cannot be made: {error}"
            raise Refused(ValidationError(text), Meaning.NOT_SENT, processed=False) from error

    async def _with_own(
        self, own: Callable[..., object], headers: Mapping[str, str]
    ) -> CIMultiDict[str]:
        """Add the protocol's headers to those that the application gives for this request."""
        try:
            found = own()
            merged = CIMultiDict(await found if inspect.isawaitable(found) else found)  # type: ignore[arg-type]
        except BaseException as error:
            if ends_task(error):
                raise
            text = f"no headers for {self.origin}: headers() failed: {error!r}"
            raise Refused(AuthError(text), Meaning.NOT_SENT, processed=False) from error
        merged.update(headers)
        return merged

    def _redirect(self, url: URL, response: aiohttp.ClientResponse, hops: int) -> URL:
        target = joined(url, response.headers["Location"])
        if target is None or target.origin() != self.url.origin():
            where = response.headers["Location"] if target is None else target.origin()
            text = (
                f"{self.origin} redirects to {where}, which is not followed because "
                f"credentials would go along; connect to {target or 'it'} if you trust it"
            )
            raise Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
        if hops > _MAX_REDIRECTS:
            text = f"{self.origin} redirects more than {_MAX_REDIRECTS} times"
            raise Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
        return target

    # Bodies

    async def read(self, response: aiohttp.ClientResponse, limit: int | None = None) -> bytes:
        """Read a whole body, within the limit."""
        most = self.limit if limit is None else limit
        read = self.reader(response)
        pieces = [await read()]
        size = len(pieces[0])
        while size <= most and (piece := await read()):
            join(pieces, piece)
            size += len(piece)
        if size > most:
            raise self.too_large(FrameTooLarge(size, most))
        return b"".join(pieces)

    async def skip(self, response: aiohttp.ClientResponse) -> None:
        """Read past a body of no interest, so that its connection can be used again."""
        if not response.content.at_eof():
            async with asyncio.timeout(LINGER):
                await self.read(response, _ERROR_BODY)

    def reader(self, response: aiohttp.ClientResponse) -> Callable[[], Awaitable[bytes]]:
        """Return a function that reads a body as it comes, decompressed; empty at its end.

        RFC 9110 §8.4: the header may be repeated and may list several codings. One that we did not
        offer, or one inside another, is not taken apart: nesting multiplies what a body expands to.
        """
        if "Content-Encoding" not in response.headers:
            return response.content.readany
        listed = ",".join(response.headers.getall("Content-Encoding")).lower().split(",")
        coding = ", ".join(name for one in listed if (name := one.strip()) not in ("", "identity"))
        if not coding:
            return response.content.readany
        if coding not in CODINGS:
            raise self._unreadable(coding, "it was not asked for")
        return partial(anext, self._inflated(response, coding), b"")

    async def _inflated(
        self, response: aiohttp.ClientResponse, coding: str
    ) -> AsyncIterator[bytes]:
        inflater = Inflater(coding)
        try:
            while chunk := await response.content.readany():
                for start in range(0, len(chunk), PIECE):
                    for data in inflater.feed(chunk[start : start + PIECE]):
                        yield data
                    await asyncio.sleep(0)
            inflater.close()
        except BadBody as error:
            raise self._unreadable(coding, str(error)) from None

    async def _beginning(self, response: aiohttp.ClientResponse) -> bytes:
        """Read as much of an error's body as there is soon, and as is worth reading."""
        found = b""
        try:
            async with asyncio.timeout(LINGER):
                read = self.reader(response)
                while len(found) <= _ERROR_BODY and (chunk := await read()):
                    found += chunk
        except (Refused, *BROKEN):
            pass
        return found

    # Failures

    async def _failed(self, error: BaseException) -> Refused:
        """Return the meaning of a connection that failed before the response."""
        found = self.broken(error)
        direct = self._tls is not None and self._proxy is None and not self.settings.cert
        if found.meaning is Meaning.BROKEN and direct and await self._is_hung_up_on():
            text = (
                f"{self.origin} ends TLS connections after the handshake, before any request: "
                "does it demand a client certificate (cert=…)?"
            )
            return Refused(TransportError(text), Meaning.NOT_SENT, processed=False)
        return found

    async def _is_hung_up_on(self) -> bool:
        """Return True if the server ends a TLS connection on which nothing is sent.

        A server that demands a certificate ends the connection while the request is on its way.
        The reset that follows may destroy the alert, and then looks like a server that died of
        the request. Without a request there is no such race.
        """
        host, port = self.url.host, self.url.port
        try:
            async with asyncio.timeout(LINGER):
                reader, writer = await asyncio.open_connection(host, port, ssl=self._tls)
                try:
                    return not await reader.read(1)
                except OSError:
                    return True
                finally:
                    writer.transport.abort()
        except (TimeoutError, OSError):
            return False

    def refused(self, error: BaseException, *, sent: bool = True) -> Refused:
        """Return the end of a request whose task has failed, in whatever way."""
        if isinstance(error, Refused):
            return error
        text = f"the request to {self.origin} failed: {error!r}"
        return Refused(TransportError(text), Meaning.BROKEN, processed=sent)

    def broken(self, error: BaseException, *, fresh: bool = True) -> Refused:
        """Return the meaning of a connection that failed, before or within the response."""
        proxy = None if self._proxy is None else URL(self._proxy).host
        return http_errors.broken(self.origin, error, proxy, fresh=fresh)

    def too_large(self, error: FrameTooLarge) -> Refused:
        hint = "Limits(frame_bytes=…) sets this"
        found = TransportError(f"{self.origin} sent {error}", hint=hint)
        return Refused(found, Meaning.UNREADABLE, frame_size=error.size)

    def wrong_content(self, response: aiohttp.ClientResponse, body: bytes) -> Refused:
        kind = response.headers.get("Content-Type", "no content type")
        text = f"{self.origin} answered with {kind}, not JSON or events: {snippet(body.strip())}"
        return Refused(ProtocolError(text), Meaning.UNREADABLE)

    def _unreadable(self, coding: str, why: str) -> Refused:
        text = f"{self.origin} answered in {coding!r}: {why}"
        return Refused(ProtocolError(text), Meaning.UNREADABLE)


def content_type(response: aiohttp.ClientResponse) -> str:
    """Return the media type of a response, without its parameters."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def joined(base: URL, where: str) -> URL | None:
    """Return an address that a server names relative to another; None if it is none."""
    try:
        target = base.join(URL(where))
        target.origin()
    except ValueError:
        return None
    return target


def _without_credentials(body: bytes, response: aiohttp.ClientResponse) -> bytes:
    """Hide the credentials of the request, which a server or a proxy may repeat in its error."""
    text = body.decode("utf-8", "surrogateescape")
    sent = (
        (name, value.rpartition(" ")[2]) for name, value in response.request_info.headers.items()
    )
    repeated = {name: value for name, value in sent if value in text}
    if not repeated:
        return body
    from holdfast._core.redact import default_redactor

    is_secret = default_redactor().is_secret
    secrets = [value for name, value in repeated.items() if is_secret(name)]
    return hide(text, secrets).encode("utf-8", "surrogateescape")
