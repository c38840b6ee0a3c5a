"""Find the authorization server of a resource: conversations that yield requests."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct

from holdfast._core.auth import urls
from holdfast._core.auth.credentials import ENDPOINTS, AuthServer, split_scope
from holdfast._core.auth.options import Machine, OAuth
from holdfast._core.auth.steps import Ask, Conversation, Unreachable
from holdfast._core.text import visible
from holdfast.errors import DiscoveryError, TransportError

MAX_SERVERS: Final = 5
"""Authorization servers of one resource that are tried."""
MAX_LISTED: Final = 200
OF_THE_REQUEST: Final = frozenset(
    {"response_type", "response_mode", "client_id", "redirect_uri", "scope", "state", "resource"}
    | {"prompt", "request", "request_uri", "code_challenge", "code_challenge_method"}
)
"""Parameters that an endpoint must not contain: of duplicates, servers use either one."""


class NoAuthorizationServer(DiscoveryError):  # noqa: N818  (says what is missing)
    """Nothing says that the server uses OAuth at all: it wants credentials of another kind."""


class ProtectedResource(Struct, frozen=True):
    """Protected resource metadata (RFC 9728)."""

    resource: str
    servers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None
    dpop_required: bool = False


class Discovery:
    """One search; it records the URLs that were tried and why each failed."""

    def __init__(
        self, server: str, options: OAuth | Machine, version_header: Mapping[str, str] | None = None
    ) -> None:
        self._server = server
        self._options = options
        self._metadata_url: str | None = getattr(options, "metadata_url", None)
        self._endpoints: Mapping[str, Any] = getattr(options, "endpoints", None) or {}
        self._version_header = version_header or {}
        self._pinned = options.issuer or self._metadata_url
        self._tried: list[tuple[str, str]] = []
        self._unreachable = False

    def find_resource(self, advertised: str | None) -> Conversation[ProtectedResource | None]:
        """Return the resource metadata of the server; None if it publishes none.

        Protected Resource Metadata Discovery: the URL of the challenge, else the well-known
        ones. A resource that does not name this server ends the discovery (RFC 9728 §3.3).
        """
        nameless = False
        places = [advertised] if advertised else []
        for url in dict.fromkeys([*places, *urls.resource_metadata_urls(self._server)]):
            document = yield from self._fetch(url)
            if document is None:
                continue
            resource = document.get("resource")
            if not isinstance(resource, str):
                nameless = True
                self._note(url, "the document has no resource")
                continue
            return self._read_resource(resource, document, url)
        if self._unreachable or nameless:
            raise self._error("no protected resource metadata can be read")
        return None

    def _read_resource(
        self, resource: str, document: Mapping[str, Any], url: str
    ) -> ProtectedResource:
        if not urls.covers(resource, self._server):
            self._note(url, "its resource is another server")
            raise self._error(
                "the protected resource metadata is for another resource than this server: "
                f"for {visible(resource, 200)}, not for {self._server}; connect to that "
                "address if you mean it; nothing was sent to an authorization server",
                final=True,
            )
        servers = _strings(document.get("authorization_servers"))
        if not servers:
            raise self._error(
                "the protected resource metadata names no authorization server", final=True
            )
        listed = document.get("scopes_supported")
        scopes = tuple(scope for scope in _strings(listed) if split_scope(scope) == (scope,))
        return ProtectedResource(
            resource,
            servers[:MAX_SERVERS],
            scopes if isinstance(listed, list) else None,
            document.get("dpop_bound_access_tokens_required") is True,
        )

    def find_server(
        self, resource: ProtectedResource | None, prefer: Container[str] = ()
    ) -> Conversation[AuthServer]:
        """Return the server to use: pinned, then one with a login (``prefer``), then the first."""
        if self._metadata_url is None and {*ENDPOINTS[:2]} <= self._endpoints.keys():
            return self._pinned_server()
        self._unreachable = False
        for candidate in self._candidates(resource, prefer):
            server = yield from self._metadata(candidate)
            if server is not None:
                return server
        missing = resource is None and self._pinned is None
        base = urls.origin(self._server)
        if missing and not self._unreachable and self._usable(base, base):
            return _assumed_server(base)
        raise self._no_server(NoAuthorizationServer if missing else DiscoveryError)

    def _no_server(self, kind: type[DiscoveryError]) -> DiscoveryError | TransportError:
        which = "" if self._pinned is None else f" with the issuer {self._pinned}"
        return self._error(f"no usable authorization server{which} was found", kind=kind)

    def _pinned_server(self) -> AuthServer:
        issuer = self._options.issuer or urls.origin(self._endpoints["token_endpoint"])
        return AuthServer(issuer=issuer, pkce_methods=("S256",), pinned=True, **self._endpoints)

    def resource_parameter(self, resource: ProtectedResource | None) -> str | None:
        """Return the ``resource`` parameter: byte for byte as published (RFC 8707 §2)."""
        chosen = self._options.resource
        if chosen is not None:
            return chosen or None
        if resource is not None:
            return resource.resource
        return urls.canonical(self._server) if self._pinned or self._endpoints else None

    def _candidates(self, resource: ProtectedResource | None, prefer: Container[str]) -> list[str]:
        """Return the issuers whose metadata is read, the best first.

        An issuer that the user pinned is asked at its own address alone, whatever the resource
        lists. At any other address a document that claims to be of that issuer proves nothing:
        whoever runs the resource could write it, and would be sent the secrets, codes and
        assertions that were meant for the pinned one.
        """
        pinned = self._options.issuer
        if pinned is not None:
            return [pinned]
        if resource is None or self._metadata_url is not None:
            return [urls.origin(self._server)]
        return sorted(resource.servers, key=lambda issuer: issuer not in prefer)

    def _metadata(self, issuer: str) -> Conversation[AuthServer | None]:
        """Read an issuer's metadata. One that names another issuer is not used (RFC 8414 §3.3)."""
        metadata_url, pinned = self._metadata_url, self._options.issuer
        if not self._usable(issuer, issuer, issuer=True):
            return None
        places = urls.server_metadata_urls(issuer) if metadata_url is None else [metadata_url]
        is_pinned = metadata_url is not None or pinned is not None
        for url in places:
            document = yield from self._fetch(url, pinned=is_pinned)
            if document is None:
                continue
            # A document that the user named may name its issuer itself.
            names_itself = metadata_url is not None and pinned is None
            expected = document.get("issuer") if names_itself else issuer
            server = self._read_server(expected, document, url)
            if server is not None:
                return server
        return None

    def _read_server(
        self, expected: object, document: Mapping[str, Any], url: str
    ) -> AuthServer | None:
        claimed = document.get("issuer")
        if not isinstance(expected, str) or not urls.same_issuer(expected, claimed):
            self._note(url, "its issuer is another one; name it as the issuer if you trust it")
            return None
        if not self._usable(url, claimed, issuer=True):
            return None
        return self._read({**document, **self._endpoints}, url)

    def _read(self, document: Mapping[str, Any], url: str) -> AuthServer | None:
        endpoints: dict[str, Any] = {name: document.get(name) for name in ENDPOINTS}
        for name, value in endpoints.items():
            if value is not None and not self._usable(url, value, name):
                return None
        if endpoints["token_endpoint"] is None:
            self._note(url, "no token_endpoint")
            return None
        methods = document.get("code_challenge_methods_supported")
        return AuthServer(
            issuer=document["issuer"],
            scopes=_strings(document.get("scopes_supported")),
            auth_methods=_auth_methods(document),
            pkce_methods=_strings(methods) if isinstance(methods, list) else None,
            sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
            takes_documents=document.get("client_id_metadata_document_supported") is True,
            pinned=self._pinned is not None,
            **endpoints,
        )

    def _fetch(self, url: str, *, pinned: bool = False) -> Conversation[dict[str, Any] | None]:
        if not self._usable(url, url):
            return None
        answer = yield Ask(url=url, headers=self._version_header, pinned=pinned)
        if isinstance(answer, Unreachable):
            self._note(url, answer.reason, unreachable=not answer.forbidden)
            return None
        if answer.status != 200:
            self._note(url, f"HTTP status {answer.status}", unreachable=answer.status >= 500)
            return None
        document: dict[str, Any] | None = answer.document()
        if document is None:
            self._note(url, "not a JSON object")
        return document

    def _usable(self, at: str, url: object, name: str = "", *, issuer: bool = False) -> bool:
        """Return whether a URL may be used; if not, record why, under the URL that named it."""
        try:
            parts = urls.checked(url, insecure=self._options.insecure)
            # An issuer has no query and no fragment (RFC 8414 §2), an endpoint no fragment.
            if "#" in str(url) or (issuer and "?" in str(url)):
                raise urls.BadUrl("a query or a fragment is not allowed")
            parameters = {key for key, _ in parse_qsl(parts.query, keep_blank_values=True)}
            if name == "authorization_endpoint" and parameters & OF_THE_REQUEST:
                raise urls.BadUrl("it contains parameters of the authorization request")
        except urls.BadUrl as error:
            self._note(at, f"{name}: {error}" if name else str(error))
            return False
        return True

    def _note(self, url: str, why: str, *, unreachable: bool = False) -> None:
        self._tried.append((visible(url, 200), why))
        self._unreachable = self._unreachable or unreachable

    def _error(
        self, text: str, *, final: bool = False, kind: type[DiscoveryError] = DiscoveryError
    ) -> DiscoveryError | TransportError:
        story = "; ".join(f"{url}: {why}" for url, why in self._tried[-8:])
        message = f"{urls.origin(self._server)}: {text}" + (f" ({story})" if story else "")
        if self._unreachable and not final:
            return TransportError(message)
        return kind(message, tried=tuple(self._tried))


def _assumed_server(base: str) -> AuthServer:
    """Return the server of the Fallbacks for Servers without Metadata Discovery."""
    return AuthServer(
        issuer=base,
        authorization_endpoint=f"{base}/authorize",
        token_endpoint=f"{base}/token",
        registration_endpoint=f"{base}/register",
        assumed=True,
    )


def _auth_methods(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ways in which clients authenticate at the token endpoint.

    A client is registered with one way, for revocation as well (RFC 8414 §2 lists those apart):
    where that endpoint takes some of them only, a client by another way could not log out.
    """
    methods = _strings(document.get("token_endpoint_auth_methods_supported"))
    revoking = _strings(document.get("revocation_endpoint_auth_methods_supported"))
    return tuple(method for method in methods if method in revoking) or methods


def _strings(value: object) -> tuple[str, ...]:
    items = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str))[:MAX_LISTED]
