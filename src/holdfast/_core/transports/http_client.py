"""The HTTP client of one link: one session, one place where requests are sent and judged.

Credentials stay with the origin they were given for: redirects are followed only within it.
Bodies are decompressed here, so that a small one cannot become a large one unnoticed.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias
from urllib.request import getproxies, getproxies_environment, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict
from yarl import URL

from holdfast._core.boundary import RefusalReason, Refused
from holdfast._core.callbacks import call_plain, ends_task
from holdfast._core.redact.known import KNOWN, Holder, secrets_of
from holdfast._core.transports import http_responses
from holdfast._core.transports.http_responses import (
    BROKEN,
    CLIENT_CERTIFICATE,
    LINGER,
    SESSION,
    UNREADABLE,
    not_sent,
    read_start,
)
from holdfast._core.wire.jsonrpc import snippet
from holdfast.errors import AuthError, ProtocolError, TransportError, ValidationError

if TYPE_CHECKING:
    from holdfast._core.auth.auth_server import AddressCheck
    from holdfast._core.auth.authorizer import Authorizer
    from holdfast._core.transports.authorization import Held, Permit
    from holdfast._core.transports.http import Http

HeaderValues: TypeAlias = "Mapping[str, str] | Iterable[tuple[str, str]]"
Headers: TypeAlias = "HeaderValues | Callable[[], HeaderValues | Awaitable[HeaderValues]]"

_REDIRECTS: Final = frozenset({301, 302, 307, 308})
"""The redirects that repeat the request; 303 means that it was processed."""
_MAX_REDIRECTS: Final = 5
_LARGE: Final = 1024 * 1024
"""Bytes of a body that is written piece by piece."""
JSON, EVENTS = "application/json", "text/event-stream"
BASIC_HEADERS: Final = {
    "Accept": f"{JSON}, {EVENTS}",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": JSON,
    "User-Agent": "holdfast",
}


READ: Final = 256 * 1024
"""Bytes of a response that are kept before reading pauses."""

CONNECTED: ContextVar[Callable[[], None] | None] = ContextVar("connected", default=None)
"""Called when a request of this task has a connection: before that, no byte of it has left."""


class HttpNote(NamedTuple):
    """The head of a response, or a step of a login, for whoever watches a transport."""

    kind: Literal["http", "login"]
    method: str = ""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    why: str = ""
    request: bytes | None = None
    """The message that the response is to."""


Watcher: TypeAlias = Callable[[HttpNote], None]


class _Protocol(ResponseHandler):
    """Counts what it reads; aborts on close if unsent bytes are left, which nobody may read."""

    received: ClassVar[int] = 0
    """Reads of all connections of the process."""

    def data_received(self, data: bytes) -> None:
        _Protocol.received += 1
        super().data_received(data)

    def close(self) -> None:
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.abort()
        else:
            super().close()


class HttpConnector(aiohttp.TCPConnector):
    """Calls `CONNECTED` when a request has its connection."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Any = partial(_Protocol, loop=self._loop)
        self._factory = make

    def trust(self, context: ssl.SSLContext) -> None:
        """Use a context for the connections that are made from now on."""
        self._ssl = context

    async def connect(self, *args: Any, **kwargs: Any) -> Any:
        connection = await super().connect(*args, **kwargs)
        connected = CONNECTED.get()
        if connected is not None:
            connected()
        return connection

    async def post(
        self,
        template: SmallPost,
        headers: Mapping[str, str],
        body: bytes,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send a copy of a request as a session does, without cookies, redirects and traces."""
        post = object.__new__(SmallPost)
        post.__dict__.update(template.__dict__)
        post.headers = template.headers.copy()
        post.headers.update(headers)
        post.headers["Content-Length"] = str(len(body))
        try:
            connection = await self.connect(post, [], timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("timeout") from error
        response: aiohttp.ClientResponse | None = None
        protocol = connection.protocol
        try:
            protocol.set_response_params(
                read_until_eof=True, auto_decompress=False, read_bufsize=READ
            )
            writer = StreamWriter(protocol, post.loop)
            await writer.write_headers(f"POST {post.url.raw_path_qs} HTTP/1.1", post.headers)
            await writer.write(body, drain=False)
            response = aiohttp.ClientResponse(
                "POST",
                post.url,
                writer=None,
                continue100=None,
                timer=post._timer,
                request_info=post.request_info,
                traces=[],
                loop=post.loop,
                session=post.session,
                stream_writer=writer,
            )
            return await response.start(connection)
        except BaseException:
            if response is not None:
                response.close()
            connection.close()
            raise


class SmallPost(aiohttp.ClientRequest):
    """A POST whose body leaves together with its head, in one write and without a task.

    A session of aiohttp makes each request anew: URL, proxy, cookies, timers, a payload and, before
    Python 3.12, a task to write it. That costs more than all the rest of a call, so here one
    request is made for each link, and its copies are sent with headers and bodies of their own.
    """

    LARGEST: Final = 32 * 1024
    """Bytes of a body: a write of more may have to wait for the server to read."""
    FAMILIAR: bool = aiohttp.__version__.startswith("3.14.")
    """The internals of aiohttp that are used here are those of this version."""
    connection_key: ConnectionKey = None  # type: ignore[assignment]
    """Computed once for all copies."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.connection_key = super().connection_key


class HttpClient:
    """Sends the requests of one link and reads their responses."""

    def __init__(self, http: Http, limit: int) -> None:
        self.url = http.url
        self.origin: str = str(self.url.origin())
        self.limit = limit
        self.http = http
        self._proxy = proxy_for(http, self.url)
        self._held_proxy: Holder | None = None
        if self._proxy is not None and "@" in self._proxy:
            # It may be the environment's, which the transport does not know.
            self._held_proxy = KNOWN.held(secrets_of("url", self._proxy))
        self.secure: bool = self.url.scheme == "https"
        """Its connections take time to close."""
        self._tls = http.tls.ready if self.secure else None
        """None until the first request: a context is made in a thread."""
        self._address_check: AddressCheck | None = None
        if http.authorizer is not None:
            from holdfast._core.auth.auth_server import AddressCheck

            self._address_check = AddressCheck(self.url.host or "", proxied=self._proxy is not None)
        factory = None if self._address_check is None else self._address_check.socket
        self._connector = HttpConnector(limit=0, socket_factory=factory, ssl=self._tls or True)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=http.connect_timeout)
        merged = CIMultiDict(BASIC_HEADERS)
        merged.update(http.headers if isinstance(http.headers, dict) else {})
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=self._timeout,
            auto_decompress=False,
            headers=merged,
            read_bufsize=READ,
        )
        self._send = self._transmit if http.watcher is None else self._watched
        self._last_headers: CIMultiDict[str] | None = None
        """Of those that a function gives for each request."""
        self._held: Holder | None = None
        self._post: SmallPost | None = None
        """The template of small POSTs; None if every request needs a session."""
        is_plain = self._proxy is None and self.url.raw_user is self.url.raw_password is None
        if is_plain and SmallPost.FAMILIAR:
            loop, session = asyncio.get_running_loop(), self._session
            self._post = SmallPost("POST", self.url, headers=merged, loop=loop, session=session)

    @property
    def received(self) -> int:
        return _Protocol.received

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
        """Yield a response with a 2xx status; raise `Refused` for every other outcome."""
        response = await self.open(method, headers, body, url)
        try:
            yield response
        except (*BROKEN, *UNREADABLE) as error:
            raise self.refused(error) from error
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
        """Return a 2xx response, which the caller releases; raise `Refused` otherwise.

        The request is sent again with other credentials after a 401, and along redirects.
        """
        custom, authorizer = self.http.headers, self.http.authorizer
        fresh, hops, place = callable(custom), 0, url or self.url
        permit: Permit | None = None
        try:
            while True:
                sent = headers if not callable(custom) else await self._with_own(custom, headers)
                if authorizer is not None:
                    credentials: Mapping[str, str] | None = authorizer.ready()
                    if credentials is None:
                        permit = permit or self._permit(authorizer, held)
                        credentials = await permit.headers(method, str(place))
                    if credentials:
                        # The names of headers have no case: a dictionary would keep both spellings.
                        sent = CIMultiDict(sent)
                        sent.update(credentials)
                response = await self._send(method, place, sent, body)
                if response.status < 300:
                    return response if permit is None else permit.accepted(response, sent)
                if response.status == 401 and fresh:
                    fresh = False
                elif authorizer is not None and response.status in (401, 403):
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
                start = await read_start(response)
            finally:
                response.release()
        except BROKEN as error:
            raise await self._failed(error) from error
        in_session, path = SESSION in headers, (url or self.url).path
        raise http_responses.refusal(self.origin, response, start, in_session=in_session, path=path)

    def _permit(self, authorizer: Authorizer, held: Held | None) -> Permit:
        from holdfast._core.transports.authorization import Permit

        assert self._address_check is not None
        return Permit(authorizer, self._address_check, held, self.http.watcher)

    async def _watched(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """Send a request, and show the head of its response to the transport's watcher."""
        response = await self._transmit(method, url, headers, body)
        assert self.http.watcher is not None
        heads = (*response.headers.items(),)
        self.http.watcher(HttpNote("http", method, response.status, heads, "", body))
        return response

    async def _transmit(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        if self.secure and self._tls is None:
            await self._load_tls()
        try:
            small = body is not None and len(body) <= SmallPost.LARGEST
            if small and self._post is not None and url is self.url and not self._connector.closed:
                response = await self._connector.post(
                    self._post, headers, body or b"", self._timeout
                )
                if "Set-Cookie" in response.headers:
                    # From now on each request carries cookies, which a session adds.
                    self._post = None
                    cookies = response.headers.getall("Set-Cookie")
                    self._session.cookie_jar.update_cookies_from_headers(cookies, url)
                return response
            data = io.BytesIO(body) if body is not None and len(body) > _LARGE else body
            return await self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy
            )
        except aiohttp.ClientError:
            raise
        except (ValueError, TypeError) as error:
            text = f"the request to {self.origin} cannot be made: {error}"
            raise not_sent(ValidationError(text)) from error

    async def _load_tls(self) -> None:
        try:
            self._tls = await self.http.tls.context()
        except OSError as error:
            text = f"the TLS settings cannot be used: {error}"
            raise not_sent(TransportError(text)) from error
        self._connector.trust(self._tls)

    async def _with_own(
        self, make: Callable[..., object], headers: Mapping[str, str]
    ) -> CIMultiDict[str]:
        """Add the protocol's headers to those that the application gives for this request."""
        try:
            values = call_plain(make)
            if inspect.isawaitable(values):
                values = await values
            merged = CIMultiDict(values)
            if merged != self._last_headers:
                self._last_headers = merged.copy()
                self._held = KNOWN.held(secrets_of("headers", self._last_headers))
        except BaseException as error:
            if ends_task(error):
                raise
            text = f"no headers for {self.origin}: headers() failed: {error!r}"
            raise not_sent(AuthError(text)) from error
        merged.update(headers)
        return merged

    def _redirect(self, url: URL, response: aiohttp.ClientResponse, hops: int) -> URL:
        where = response.headers["Location"]
        target = self.joined(url, where)
        if target is None or hops > _MAX_REDIRECTS:
            text = f"{self.origin} redirects more than {_MAX_REDIRECTS} times"
            if target is None:
                text = (
                    f"{self.origin} redirects to {where}, which is not followed because "
                    "credentials would go along; connect to it if you trust it"
                )
            raise not_sent(TransportError(text))
        return target

    def joined(self, base: URL, where: str) -> URL | None:
        """Return a URL that the server names; None if it is invalid or of another origin."""
        try:
            target = base.join(URL(where))
            return target if target.origin() == self.url.origin() else None
        except ValueError:
            return None

    # Failures

    async def _failed(self, error: BaseException) -> Refused:
        """Return the refusal for a connection that failed before the response."""
        refusal = self.refused(error, fresh=True)
        direct = self.secure and self._proxy is None and not self.http.cert
        if refusal.reason is RefusalReason.BROKEN and direct and await self._is_hung_up_on():
            text = (
                f"{self.origin} ends TLS connections after the handshake, before any request: "
                "does it demand a client certificate?"
            )
            return not_sent(TransportError(text, hints=(CLIENT_CERTIFICATE,)))
        return refusal

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

    def refused(self, error: BaseException, *, sent: bool = True, fresh: bool = False) -> Refused:
        """Return the `Refused` for an exception, raised before or within a response."""
        proxy = None if self._proxy is None else URL(self._proxy).host
        return http_responses.failure(self.origin, error, proxy, sent=sent, fresh=fresh)

    def wrong_content(self, response: aiohttp.ClientResponse, body: bytes) -> Refused:
        kind = response.headers.get("Content-Type", "no content type")
        text = f"{self.origin} answered with {kind}, not JSON or events: {snippet(body.strip())}"
        return Refused(ProtocolError(text), RefusalReason.UNREADABLE)


def proxy_for(http: Http, url: URL) -> str | None:
    """Return the proxy to use; looked up once for each link."""
    if http.proxy is not None or not http.trust_env:
        return http.proxy
    names = f"{url.scheme}_proxy", f"{url.scheme}_PROXY".upper()
    if getproxies is getproxies_environment and not any(name in os.environ for name in names):
        # Reading all of a large environment takes longer than all the rest of opening a link.
        return None
    proxy = getproxies().get(url.scheme)
    if proxy is None or url.host is None or proxy_bypass(url.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
