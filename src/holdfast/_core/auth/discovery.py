"""Find the authorization server of a resource: two conversations that yield requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from holdfast._core.auth import urls
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Unreachable
from holdfast._core.text import visible
from holdfast.errors import DiscoveryError, TransportError

MAX_SERVERS: Final = 5
"""Authorization servers of one resource that are tried."""
MAX_LISTED: Final = 200


class ProtectedResource(Struct, frozen=True):
    """What protected resource metadata says (RFC 9728)."""

    resource: str
    servers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None
    dpop_required: bool = False


class AuthServer(Struct, frozen=True, kw_only=True):
    """What an authorization server says of itself (RFC 8414, OpenID Connect Discovery)."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_endpoint: str | None = None
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ()
    grant_types: tuple[str, ...] = ()
    pkce_methods: tuple[str, ...] | None = None
    sends_iss: bool = False
    takes_documents: bool = False
    """Client ID metadata documents are supported."""
    assumed: bool = False
    """There was no metadata: these are the default endpoints of the first revision."""


class Found(Struct, frozen=True, kw_only=True):
    """The server to authorize at, and the resource to ask for; None: none is named."""

    server: AuthServer
    resource: str | None
    metadata: ProtectedResource | None = None


class Wanted(Struct, frozen=True, kw_only=True):
    """What the user settled beforehand."""

    issuer: str | None = None
    resource: str | bool | None = None
    """A replacement; False: sent nowhere."""
    insecure: bool = False
    version_header: Mapping[str, str] = {}
    prefer: tuple[str, ...] = ()
    """Issuers with a login, tried first."""


class Trail:
    """The URLs that were tried and why each was of no use."""

    def __init__(self) -> None:
        self.tried: list[tuple[str, str]] = []
        self.unreachable: bool = False

    def add(self, url: str, why: str, *, unreachable: bool = False) -> None:
        self.tried.append((visible(url, 200), why))
        self.unreachable = self.unreachable or unreachable

    def error(self, text: str) -> DiscoveryError | TransportError:
        story = "; ".join(f"{url}: {why}" for url, why in self.tried[-8:])
        message = f"{text} ({story})" if story else text
        if self.unreachable:
            return TransportError(message)
        return DiscoveryError(message, tried=tuple(self.tried))


def find_resource(
    server: str, advertised: str | None, wanted: Wanted
) -> Conversation[ProtectedResource | None]:
    """Return the resource metadata of a server; None if it publishes none.

    Protected Resource Metadata Discovery: the URL of the challenge, else the well-known ones.
    A resource that does not name this server ends everything (RFC 9728 §3.3).
    """
    trail = Trail()
    places = [*([advertised] if advertised else []), *urls.resource_metadata_urls(server)]
    for url in dict.fromkeys(places):
        document = yield from _fetch(url, wanted, trail)
        if document is None:
            continue
        if not isinstance(document.get("resource"), str):
            trail.add(url, "the document has no resource")
            continue
        if not urls.covers(document["resource"], server):
            trail.tried.append((url, "its resource is another server"))
            raise DiscoveryError(
                f"{urls.origin(server)}: the protected resource metadata is for another resource "
                "than this server; nothing was sent to an authorization server",
                tried=tuple(trail.tried),
            )
        return _resource(document, url, trail)
    if trail.unreachable or any(why.startswith("the document") for _, why in trail.tried):
        raise trail.error(f"{urls.origin(server)}: no protected resource metadata can be read")
    return None


def _resource(document: dict[str, Any], url: str, trail: Trail) -> ProtectedResource:
    servers = _strings(document.get("authorization_servers"))
    if not servers:
        trail.add(url, "no authorization_servers")
        raise trail.error("the protected resource metadata names no authorization server")
    scopes = document.get("scopes_supported")
    return ProtectedResource(
        document["resource"],
        servers[:MAX_SERVERS],
        _strings(scopes) if isinstance(scopes, list) else None,
        document.get("dpop_bound_access_tokens_required") is True,
    )


def find_server(
    server: str, resource: ProtectedResource | None, wanted: Wanted
) -> Conversation[Found]:
    """Return the authorization server to use: pinned, then one with a login, then the first."""
    trail = Trail()
    for issuer, expected in _candidates(server, resource, wanted):
        found = yield from _metadata(issuer, expected, wanted, trail)
        if found is not None:
            return Found(
                server=found, resource=_resource_of(server, resource, wanted), metadata=resource
            )
    if resource is None and wanted.issuer is None and not trail.unreachable:
        return Found(server=_defaults(server), resource=None)
    named = "" if wanted.issuer is None else f" with the issuer {wanted.issuer}"
    raise trail.error(f"{urls.origin(server)}: no usable authorization server{named} was found")


def _candidates(
    server: str, resource: ProtectedResource | None, wanted: Wanted
) -> list[tuple[str, str]]:
    """Return pairs: the issuer to build URLs from, and the issuer that the document must name.

    A pinned issuer that the resource does not list may be the one that a listed address names
    in its document: the user has vouched for it, so it is accepted there.
    """
    if resource is None:
        home = wanted.issuer or urls.origin(server)
        return [(home, home)]
    listed = resource.servers
    if wanted.issuer is not None:
        same = [one for one in listed if urls.same_issuer(wanted.issuer, one)]
        if same:
            return [(one, one) for one in same[:1]]
        return [(one, wanted.issuer) for one in listed]
    ordered = sorted(listed, key=lambda one: one not in wanted.prefer)
    return [(one, one) for one in ordered]


def _resource_of(server: str, resource: ProtectedResource | None, wanted: Wanted) -> str | None:
    """Return what ``resource`` is to be sent as: byte for byte as published (RFC 8707 §2)."""
    if isinstance(wanted.resource, str):
        return wanted.resource
    if wanted.resource is False:
        return None
    if resource is not None:
        return resource.resource
    return None if wanted.issuer is None else urls.canonical(server)


def _metadata(
    issuer: str, expected: str, wanted: Wanted, trail: Trail
) -> Conversation[AuthServer | None]:
    """Read an issuer's metadata. One that names another issuer is not used (RFC 8414 §3.3)."""
    try:
        urls.checked(issuer, insecure=wanted.insecure)
    except urls.BadUrl as error:
        trail.add(issuer, str(error))
        return None
    for url in urls.server_metadata_urls(issuer):
        document = yield from _fetch(url, wanted, trail, pinned=issuer == wanted.issuer)
        if document is None:
            continue
        if not urls.same_issuer(expected, document.get("issuer")):
            trail.add(url, "its issuer is another one; issuer=… accepts it if you trust it")
            continue
        found = _server(document, wanted, url, trail)
        if found is not None:
            return found
    return None


def _fetch(
    url: str, wanted: Wanted, trail: Trail, *, pinned: bool = False
) -> Conversation[dict[str, Any] | None]:
    try:
        urls.checked(url, insecure=wanted.insecure)
    except urls.BadUrl as error:
        trail.add(url, str(error))
        return None
    answer = yield Ask(url=url, headers=wanted.version_header, pinned=pinned)
    if isinstance(answer, Unreachable):
        trail.add(url, answer.reason, unreachable=not answer.forbidden)
        return None
    assert isinstance(answer, Fetched)
    if answer.status != 200:
        trail.add(url, f"HTTP status {answer.status}", unreachable=answer.status >= 500)
        return None
    document = answer.document()
    if document is None:
        trail.add(url, "not a JSON object")
    return document


def _server(document: dict[str, Any], wanted: Wanted, url: str, trail: Trail) -> AuthServer | None:
    endpoints: dict[str, str | None] = {}
    for name in _ENDPOINTS:
        value = document.get(name)
        try:
            found = None if value is None else urls.checked(value, insecure=wanted.insecure)
        except urls.BadUrl as error:
            trail.add(url, f"{name}: {error}")
            return None
        endpoints[name] = None if found is None else value
    token = endpoints["token_endpoint"]
    if token is None:
        trail.add(url, "no token_endpoint")
        return None
    methods = document.get("code_challenge_methods_supported")
    return AuthServer(
        issuer=document["issuer"],
        authorization_endpoint=endpoints["authorization_endpoint"],
        token_endpoint=token,
        registration_endpoint=endpoints["registration_endpoint"],
        revocation_endpoint=endpoints["revocation_endpoint"],
        device_endpoint=endpoints["device_authorization_endpoint"],
        scopes=_strings(document.get("scopes_supported")),
        auth_methods=_strings(document.get("token_endpoint_auth_methods_supported")),
        grant_types=_strings(document.get("grant_types_supported")),
        pkce_methods=_strings(methods) if isinstance(methods, list) else None,
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=document.get("client_id_metadata_document_supported") is True,
    )


_ENDPOINTS: Final = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "device_authorization_endpoint",
)


def _defaults(server: str) -> AuthServer:
    """Return the endpoints that the first revision falls back to (Fallbacks for Servers
    without Metadata Discovery): at the server's own origin."""
    base = urls.origin(server)
    return AuthServer(
        issuer=base,
        authorization_endpoint=f"{base}/authorize",
        token_endpoint=f"{base}/token",
        registration_endpoint=f"{base}/register",
        assumed=True,
    )


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())[:MAX_LISTED]
    items: Iterable[object] = value if isinstance(value, list) else ()
    return tuple(one for one in items if isinstance(one, str))[:MAX_LISTED]
