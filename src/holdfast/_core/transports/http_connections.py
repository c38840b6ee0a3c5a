"""The connections of the HTTP client: how the server is reached, by which proxy, trusting whom."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
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


def proxy_for(settings: HttpSettings, url: URL) -> str | None:
    """Return the proxy to use, looked up once for all requests."""
    if settings.proxy is not None or not settings.trust_env:
        return settings.proxy
    found = urllib.request.getproxies().get(url.scheme)
    if found is None or url.host is None or urllib.request.proxy_bypass(url.host):
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
