"""The connections of the HTTP client: how the server is reached, by which proxy, trusting whom."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final
from urllib.request import getproxies, getproxies_environment, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_writer import StreamWriter
from msgspec import Struct
from yarl import URL


class HttpSettings(Struct, frozen=True, kw_only=True):
    """The options of `holdfast.Http` that concern single requests."""

    url: str
    headers: dict[str, str] | Callable[..., object] | None = None
    ca: str | None = None
    cert: tuple[str, ...] | None = None
    context: ssl.SSLContext | None = None
    proxy: str | None = None
    trust_env: bool = True
    connections: int = 100
    connect_timeout: float = 30.0
    message_timeout: float = 30.0
    authorizer: Any = None
    """An `Authorizer`, which is loaded only where it is used."""


READ: Final = 256 * 1024
"""Bytes of a response that are kept before reading pauses."""

CONNECTED: ContextVar[Callable[[], None] | None] = ContextVar("connected", default=None)
"""Called when a request of this task has a connection: before that, no byte of it has left."""


class _Protocol(ResponseHandler):
    """Does not wait, when it is closed, for a server that reads nothing."""

    def close(self) -> None:
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.abort()
        else:
            super().close()


class HttpConnector(aiohttp.TCPConnector):
    """Tells a request when it has its connection."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Any = partial(_Protocol, loop=self._loop)
        self._factory = make

    async def connect(self, *args: Any, **kwargs: Any) -> Any:
        connection = await super().connect(*args, **kwargs)
        connected = CONNECTED.get()
        if connected is not None:
            connected()
        return connection

    async def post(self, post: SmallPost, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send a request as a session does, but for what does not apply to it."""
        try:
            connection = await self.connect(post, [], timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("timeout") from error
        try:
            protocol = connection.protocol
            protocol.set_response_params(
                read_until_eof=True, auto_decompress=False, read_bufsize=READ
            )
            writer = StreamWriter(protocol, post.loop)
            await writer.write_headers(f"POST {post.url.raw_path_qs} HTTP/1.1", post.headers)
            await writer.write(post.small, drain=False)
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
            try:
                return await response.start(connection)
            except BaseException:
                response.close()
                raise
        except BaseException:
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
    """The inner parts of aiohttp that are used here are those of this version."""
    small: bytes = b""

    @property
    def connection_key(self) -> ConnectionKey:
        if "_key" not in self.__dict__:
            self._key = super().connection_key
        return self._key

    def copied(self, headers: Mapping[str, str], body: bytes) -> SmallPost:
        """Return a request to send."""
        found = object.__new__(SmallPost)
        found.__dict__.update(self.__dict__)
        found.headers = merged = self.headers.copy()
        merged.update(headers)
        merged["Content-Length"] = str(len(body))
        found.small = body
        return found


def proxy_for(settings: HttpSettings, url: URL) -> str | None:
    """Return the proxy to use, looked up once for all requests."""
    if settings.proxy is not None or not settings.trust_env:
        return settings.proxy
    names = f"{url.scheme}_proxy", f"{url.scheme}_PROXY".upper()
    if getproxies is getproxies_environment and not any(name in os.environ for name in names):
        # Reading all of a large environment takes longer than all the rest of opening a link.
        return None
    found = getproxies().get(url.scheme)
    if found is None or url.host is None or proxy_bypass(url.host):
        return None
    return found if "://" in found else f"http://{found}"


def tls_context(settings: HttpSettings) -> ssl.SSLContext:
    if settings.context is not None:
        return settings.context
    context = ssl.create_default_context()
    if settings.ca is not None:
        context.load_verify_locations(settings.ca)
    if settings.cert is not None:
        context.load_cert_chain(*settings.cert)
    return context
