"""`Http`: a server behind a URL, as a target and as a transport."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Sized
from copy import copy
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Literal

from yarl import URL

from holdfast._core.boundary import Generation, Link, Report, Traits
from holdfast._core.redact.known import KNOWN, secrets_of
from holdfast._core.transports import options
from holdfast._core.transports.http_client import (
    Headers,
    HttpClient,
    HttpNote,
    Watcher,
    proxy_for,
)
from holdfast._core.transports.http_streams import SseLink, StreamableLink
from holdfast._core.transports.tls import TlsSettings
from holdfast.errors import TransportError, ValidationError
from holdfast.policies import Limits, one_of

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer
    from holdfast._core.auth.options import Auth

Variant = Literal["auto", "streamable", "sse"]


class Http:
    """A server behind a URL, reached over Streamable HTTP or, for older servers, HTTP+SSE.

    A target for `holdfast.connect`, with the options that only URLs have. Headers and all
    credentials are sent to the origin of the URL alone: redirects elsewhere are not followed.

    Args:
        url: The MCP endpoint, such as ``"https://example.com/mcp"``; relative to ``base_url``
            if that is given.
        base_url: The URL that ``url``, or ``sse_endpoint``, is relative to. Default: none.
        headers: Headers for every request: a mapping, a list of pairs, or a function, sync or
            async, that returns one of these for each request; after a 401 it is called again.
        transport: ``"streamable"``, ``"sse"`` (HTTP+SSE), or ``"auto"`` to find out. Default:
            ``"auto"``.
        sse_endpoint: Where an HTTP+SSE server opens its stream, relative to the URL. Implies
            ``transport="sse"``.
        message_endpoint: Where an HTTP+SSE server takes messages, if it does not say so itself.
            Implies ``transport="sse"``.
        ca: A file of certificate authorities to trust beside those of the system.
        cert: A client certificate: a file with certificate and key, or a pair of files.
        ssl: An `ssl.SSLContext` to use instead of one made from ``ca`` and ``cert``; for the
            authorization server too, with a client certificate that it has.
        proxy: The URL of a proxy. Default: what the environment says, if ``trust_env``.
        trust_env: Read ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY``. Default: True.
        connections: Requests under way at once; more of them wait for a free place. Default:
            100.
        connect_timeout: Seconds to establish a connection. Default: 30.
        message_timeout: Seconds for the server to accept a message that has no answer (a
            notification, or our answer to a question of the server). Default: 30.
        auth: ``"auto"`` uses a stored login and renews it; ``"oauth"`` or `OAuth` may also start
            one; `Bearer`, `ClientCredentials`, `WorkloadIdentity`, `EnterpriseManaged`; None
            switches it off, as an ``Authorization`` header of your own does, and ``"auto"`` a
            function for headers. Default: ``"auto"``.

    Raises:
        ValidationError: The URL is none, or an option has the wrong type or value; the message
            names it.

    Example:
        ```python
        server = holdfast.Http("https://example.com/mcp", headers={"Authorization": token})
        async with holdfast.connect(server) as client:
            print(await client.list_tools())
        ```
    """

    watcher: Watcher | None = None
    """Takes the heads of responses, and the steps of logins; for traces."""

    def __init__(
        self,
        url: str | None = None,
        *,
        base_url: str | None = None,
        headers: Headers | None = None,
        transport: Variant = "auto",
        sse_endpoint: str | None = None,
        message_endpoint: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        cert: str | os.PathLike[str] | tuple[str, str] | None = None,
        ssl: SSLContext | None = None,
        proxy: str | None = None,
        trust_env: bool = True,
        connections: int = 100,
        connect_timeout: float = 30.0,
        message_timeout: float = 30.0,
        auth: Auth = "auto",
    ) -> None:
        one_of("transport", transport, ("auto", "streamable", "sse"))
        if base_url is None:
            endpoint = _parsed("url", url)
        else:
            endpoint = _endpoint(_parsed("base_url", base_url), "url", url)
        self.url: URL = _endpoint(endpoint, "sse_endpoint", sse_endpoint)
        self.name: str = self.url.host_port_subcomponent or ""
        """The host, with the port unless it is the usual one, for messages."""
        self.key: Hashable = ("http", str(self.url))
        """Equal for all transports to the same URL."""
        self._messages: URL | None = None
        if message_endpoint is not None:
            self._messages = _endpoint(self.url, "message_endpoint", message_endpoint)
        old = sse_endpoint is not None or message_endpoint is not None
        self._transport: Variant = "sse" if old else transport
        self.speaks: str = "HTTP"
        """The name of the transport, once it is known which one the server speaks."""
        require = options.require
        require(isinstance(ssl, SSLContext | None), "Http", "ssl", ssl, "an ssl.SSLContext")
        positive = type(connections) is int and connections > 0
        require(positive, "Http", "connections", connections, "a number, 1 or more")
        has_scheme = proxy is None or "://" in str(proxy)
        require(has_scheme, "Http", "proxy", proxy, "a URL, such as 'http://proxy:3128'")
        self.headers: dict[str, str] | Callable[..., Any] | None = None
        if headers is not None:
            self.headers = headers if callable(headers) else _pairs(headers)
        self.ca: str | None = options.path("Http", "ca", ca)
        self.cert: tuple[str, ...] | None = None
        if cert is not None:
            files = cert if isinstance(cert, tuple | list) else (cert,)
            require(len(files) in (1, 2), "Http", "cert", cert, "a file, or a pair of files")
            self.cert = options.words("Http", "cert", files)
        self.ssl = ssl
        self.tls: TlsSettings = TlsSettings(ssl, self.ca, self.cert)
        """The same for all accounts."""
        self.proxy = proxy
        self.trust_env: bool = options.flag("Http", "trust_env", trust_env)
        self.connections = connections
        self.connect_timeout: float = options.seconds("Http", "connect_timeout", connect_timeout)
        self.message_timeout: float = options.seconds("Http", "message_timeout", message_timeout)
        self.authorizer: Authorizer | None = None
        """Gets tokens for this server; None: it is given credentials in some other way."""
        # Credentials of the user's own switch OAuth off; a function may give them, unless the user
        # asks for an authorization beside it.
        custom = self.headers or {}
        names = () if callable(custom) else tuple(map(str.lower, custom))
        has_own = auth == "auto" if callable(custom) else "authorization" in names
        if auth is not None and not has_own:
            self._authorize(auth)
        urls = (url, base_url, str(self.url), sse_endpoint, message_endpoint, proxy)
        KNOWN.hold(self, secrets_of("http", urls, self.headers, auth))

    def _authorize(self, auth: Auth) -> None:
        from holdfast._core.auth.auth_server import NetworkSettings
        from holdfast._core.auth.authorizer import Authorizer
        from holdfast._core.auth.options import Bearer, bearer_headers, options_for

        chosen = options_for(auth)
        if isinstance(chosen, Bearer):
            self.headers = bearer_headers(chosen, self.headers)
        elif chosen is not None:
            # Authorization servers are reached by the same proxy, trusting the same CA; a client
            # certificate is for the server alone, but for one in an ``ssl`` context.
            trust = self.tls if self.cert is None else TlsSettings(self.ssl, self.ca, None)
            settings = NetworkSettings(trust.context, lambda url: proxy_for(self, URL(url)))
            self.authorizer = Authorizer(str(self.url), chosen, settings=settings)

    def for_account(self, name: str) -> Http:
        """Return a transport to the same server that uses one account."""
        assert self.authorizer is not None
        transport = copy(self)
        transport.authorizer = self.authorizer.for_account(name)
        return transport

    def watch_responses(self, receive: Watcher) -> None:
        """Give the heads of responses, and the steps of logins, to a function; for traces."""
        before = self.watcher

        def both(note: HttpNote) -> None:
            if before is not None:
                before(note)
            receive(note)

        self.watcher = both

    def __repr__(self) -> str:
        from holdfast._core.redact.redactor import redact_text

        return f"Http({redact_text(str(self.url.with_user(None)))!r})"

    @property
    def traits(self) -> Traits:
        """Return the properties of this transport; credentials may change with each request."""
        headers, authorizer = self.headers, self.authorizer
        extensions = () if authorizer is None else authorizer.options.extensions
        if callable(headers) or (authorizer is not None and authorizer.personal):
            return Traits(None, extensions=extensions)
        account = "" if authorizer is None else authorizer.identity
        who = repr((sorted(headers.items()) if headers else [], account))
        return Traits(who, extensions=extensions)

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> Link:
        """Start a link; for the driver."""
        if variant == "sse" and self._transport == "streamable":
            text = f"{self.name} is not tried as an HTTP+SSE server: transport='streamable'"
            raise TransportError(text)
        client = HttpClient(self, limits.frame_bytes)
        self.speaks = "HTTP+SSE" if "sse" in (variant, self._transport) else "Streamable HTTP"
        kind = SseLink if self.speaks == "HTTP+SSE" else StreamableLink
        return kind(client, generation, report, limits.backlog_bytes, self._messages)


def _parsed(name: str, text: str | None) -> URL:
    options.require(isinstance(text, str | None), "Http", name, text, "a string")
    try:
        parsed = URL(text or "")
    except ValueError as error:
        raise ValidationError(f"target {text!r}: not a URL: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValidationError(f"target {text!r}: a URL begins with http:// or https:// and a host")
    return parsed


def _endpoint(url: URL, name: str, place: str | None) -> URL:
    """Return a place at the same origin: another one would be sent our credentials."""
    options.require(isinstance(place, str | None), "Http", name, place, "a string")
    endpoint = url if place is None else url.join(URL(place))
    if endpoint.origin() != url.origin():
        raise ValidationError(f"endpoint {place!r}: must be of the same origin as {url.origin()}")
    return endpoint


def _pairs(headers: Any) -> dict[str, str]:
    """Return headers as a dictionary; refuse what cannot be sent so (RFC 9110 §5.5, §5.6.2)."""
    table = options.table("Http", "headers", headers)
    count = len(headers) if isinstance(headers, Sized) else len(table)
    if len({name.lower() for name in table}) < count:
        raise ValidationError("Http(headers=…): a header is given twice; join its values by commas")
    for name, value in table.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise ValidationError(f"Http(headers={{{name!r}: …}}): not the name of a header")
        if re.search(r"[^\t\x20-\x7e\x80-\xff]", value):
            text = f"Http(headers={{{name!r}: …}}): its value has a character that cannot be sent"
            raise ValidationError(text)
    return table
