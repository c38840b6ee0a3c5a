"""Find the authorization server of a resource: two conversations that yield requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from holdfast._core.auth import urls
from holdfast._core.auth.credentials import ENDPOINTS, AuthServer
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Unreachable
from holdfast._core.text import visible
from holdfast.errors import DiscoveryError, TransportError

MAX_SERVERS: Final = 5
"""Authorization servers of one resource that are tried."""
MAX_LISTED: Final = 200


class ProtectedResource(Struct, frozen=True):
    """Protected resource metadata (RFC 9728)."""

    resource: str
    servers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None
    dpop_required: bool = False


class Found(Struct, frozen=True, kw_only=True):
    """The server to authorize at, and the resource to ask for; None: none is sent."""

    server: AuthServer
    resource: str | None


class Wanted(Struct, frozen=True, kw_only=True):
    """The user's settings for the discovery."""

    issuer: str | None = None
    metadata_url: str | None = None
    """Read the authorization server's metadata here; nothing else is looked for."""
    endpoints: Mapping[str, str] = {}
    """Endpoints that replace those of the metadata, by their names there."""
    resource: str | bool | None = None
    """A replacement; False: sent nowhere."""
    insecure: bool = False
    version_header: Mapping[str, str] = {}
    prefer: tuple[str, ...] = ()
    """Issuers with a login, tried first."""


class Trail:
    """The URLs that were tried, and why each was of no use."""

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
    A resource that does not name this server ends the discovery (RFC 9728 §3.3).
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
            trail.add(url, "its resource is another server")
            raise DiscoveryError(
                f"{urls.origin(server)}: the protected resource metadata is for another resource "
                "than this server; nothing was sent to an authorization server",
                tried=tuple(trail.tried),
            )
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
    if trail.unreachable or any(why.startswith("the document") for _, why in trail.tried):
        raise trail.error(f"{urls.origin(server)}: no protected resource metadata can be read")
    return None


def find_server(
    server: str, resource: ProtectedResource | None, wanted: Wanted
) -> Conversation[Found]:
    """Return the authorization server to use: pinned, then one with a login, then the first."""
    trail = Trail()
    told = _configured(wanted)
    if told is not None:
        return Found(server=told, resource=_resource_of(server, resource, wanted))
    for issuer, expected in _candidates(server, resource, wanted):
        found = yield from _metadata(issuer, expected, wanted, trail)
        if found is not None:
            return Found(server=found, resource=_resource_of(server, resource, wanted))
    pinned = wanted.issuer or wanted.metadata_url
    if resource is None and pinned is None and not trail.unreachable:
        return Found(server=_defaults(server), resource=None)
    named = "" if pinned is None else f" with the issuer {pinned}"
    raise trail.error(f"{urls.origin(server)}: no usable authorization server{named} was found")


def _candidates(
    server: str, resource: ProtectedResource | None, wanted: Wanted
) -> list[tuple[str, str]]:
    """Return pairs: the issuer to build URLs from, and the issuer that the document must name.

    A pinned issuer that the resource does not list may be the one that a listed address names
    in its document: the user has vouched for it, so it is accepted there.
    """
    if resource is None or wanted.metadata_url is not None:
        home = wanted.issuer or urls.origin(server)
        return [(home, home)]
    listed = resource.servers
    if wanted.issuer is not None:
        same = [one for one in listed if urls.same_issuer(wanted.issuer, one)]
        return [(one, one) for one in same[:1]] or [(one, wanted.issuer) for one in listed]
    return [(one, one) for one in sorted(listed, key=lambda one: one not in wanted.prefer)]


def _resource_of(server: str, resource: ProtectedResource | None, wanted: Wanted) -> str | None:
    """Return the ``resource`` parameter: byte for byte as published (RFC 8707 §2)."""
    if isinstance(wanted.resource, str):
        return wanted.resource
    if wanted.resource is False:
        return None
    if resource is not None:
        return resource.resource
    pinned = wanted.issuer or wanted.metadata_url or wanted.endpoints
    return urls.canonical(server) if pinned else None


def _metadata(
    issuer: str, expected: str, wanted: Wanted, trail: Trail
) -> Conversation[AuthServer | None]:
    """Read an issuer's metadata. One that names another issuer is not used (RFC 8414 §3.3)."""
    try:
        urls.checked(issuer, insecure=wanted.insecure)
    except urls.BadUrl as error:
        trail.add(issuer, str(error))
        return None
    own = wanted.metadata_url
    for url in urls.server_metadata_urls(issuer) if own is None else [own]:
        pinned = own is not None or issuer == wanted.issuer
        document = yield from _fetch(url, wanted, trail, pinned=pinned)
        if document is None:
            continue
        named = document.get("issuer")
        # A document that the user named may name its issuer itself.
        known = named if own is not None and wanted.issuer is None else expected
        if not isinstance(known, str) or not urls.same_issuer(known, named):
            trail.add(url, "its issuer is another one; issuer=… accepts it if you trust it")
            continue
        found = _read({**document, **wanted.endpoints}, wanted, url, trail)
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


def _read(document: Mapping[str, Any], wanted: Wanted, url: str, trail: Trail) -> AuthServer | None:
    endpoints: dict[str, Any] = {name: document.get(name) for name in ENDPOINTS}
    for name, value in endpoints.items():
        try:
            if value is not None:
                urls.checked(value, insecure=wanted.insecure)
        except urls.BadUrl as error:
            trail.add(url, f"{name}: {error}")
            return None
    if endpoints["token_endpoint"] is None:
        trail.add(url, "no token_endpoint")
        return None
    methods = document.get("code_challenge_methods_supported")
    return AuthServer(
        issuer=document["issuer"],
        scopes=_strings(document.get("scopes_supported")),
        auth_methods=_strings(document.get("token_endpoint_auth_methods_supported")),
        pkce_methods=_strings(methods) if isinstance(methods, list) else None,
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=document.get("client_id_metadata_document_supported") is True,
        pinned=wanted.issuer is not None or wanted.metadata_url is not None,
        **endpoints,
    )


def _configured(wanted: Wanted) -> AuthServer | None:
    """Return the server that the user's own endpoints make, where they are complete."""
    given: Mapping[str, Any] = wanted.endpoints
    if wanted.metadata_url is not None or not {*ENDPOINTS[:2]} <= given.keys():
        return None
    issuer = wanted.issuer or urls.origin(given["token_endpoint"])
    return AuthServer(issuer=issuer, pkce_methods=("S256",), pinned=True, **given)


def _defaults(server: str) -> AuthServer:
    """Return the endpoints of Fallbacks for Servers without Metadata Discovery."""
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
