"""The client at an authorization server: given, by metadata document, or registered there."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast._core.auth import grants, urls
from holdfast._core.auth.credentials import AuthServer, Registration, entry_key
from holdfast._core.auth.options import OAuth
from holdfast._core.auth.steps import Ask, Conversation, Listen, Read, Write
from holdfast.errors import DiscoveryError, LoginFailed

METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
_OTHER_KIND: Final = ("invalid_redirect_uri", "invalid_client_metadata")


def identify(
    server: AuthServer, options: OAuth, *, bound: str | None, now: float, fresh: bool = False
) -> Conversation[Registration]:
    """Return the client to use at this server, its redirect URI being listened to.

    Client Registration, priority order: given, then metadata document, then registration.
    ``bound`` is the issuer that a given client belongs to, if known (Authorization Server
    Binding): it is not shown to another one.
    """
    if options.client_id is not None:
        if bound is not None and not urls.same_issuer(bound, server.issuer):
            raise DiscoveryError(
                f"client_id belongs to {bound}, but the server now names {server.issuer}; "
                "give the client_id for that one, or issuer=… to confirm"
            )
        redirect = yield Listen(options.redirect_uri, "/callback", fixed=True)
        return Registration(
            client_id=options.client_id, client_secret=options.client_secret, redirect_uri=redirect
        )
    if options.client_metadata_url is not None and server.takes_documents:
        redirect = yield Listen(options.redirect_uri, "/callback")
        return Registration(
            client_id=options.client_metadata_url, redirect_uri=redirect, how="document"
        )
    if server.registration_endpoint is None:
        raise DiscoveryError(
            f"{server.issuer} does not register clients; register one there yourself "
            "and give its client_id=…"
        )
    key = stored_key(server, options)
    stored = None if fresh else (yield Read(key, Registration))
    if stored is not None and stored.expires_at is not None and stored.expires_at <= now:
        stored = None
    preferred = options.redirect_uri or (None if stored is None else stored.redirect_uri)
    redirect = yield Listen(preferred, callback_path(server.issuer))
    if stored is not None and stored.redirect_uri == redirect:
        found: Registration = replace(stored, how="stored")
        return found
    made = yield from _register(server, options, redirect)
    yield Write(key, made)
    return made


def stored_key(server: AuthServer, options: OAuth) -> str:
    """Return where the registration is stored: by issuer and kind of redirect."""
    kind = "device" if options.device else "loopback"
    return entry_key("client", server.issuer, options.redirect_uri or kind)


def callback_path(issuer: str) -> str:
    """Return a redirect path for one issuer, against mix-up where ``iss`` is not sent.

    RFC 9700 §4.4.2: the answer of another issuer does not fit it.
    """
    return "/callback/" + sha256(issuer.encode()).hexdigest()[:16]


def _register(server: AuthServer, options: OAuth, redirect: str) -> Conversation[Registration]:
    assert server.registration_endpoint is not None
    metadata = client_metadata(options, redirect, server)
    kind = metadata["application_type"]
    # RFC 7591 §3.2.2 and SEP-837: once more as the other kind of application.
    for one in (kind, "web" if kind == "native" else "native"):
        document = {**metadata, "application_type": one}
        ask = Ask(url=server.registration_endpoint, json=document, pinned=server.pinned)
        answer = grants.reached((yield ask), server.issuer)
        fields = answer.document() or {}
        made = grants.identifier(fields.get("client_id")) if answer.status in (200, 201) else None
        error = grants.error_in(fields, server.issuer)
        if made is not None or error is None or error.error not in _OTHER_KIND:
            break
    if made is None:
        said = f"HTTP status {answer.status}" if error is None else error.message
        raise LoginFailed(
            f"{server.issuer} did not register a client: {said}; client_id=… gives one of your own"
        )
    # The server may have changed what was asked for (RFC 7591 §3.2.1).
    method, uris = fields.get("token_endpoint_auth_method"), fields.get("redirect_uris")
    if isinstance(uris, list) and uris and redirect not in uris:
        raise LoginFailed(f"{server.issuer} registered another redirect URI than was asked for")
    secret = None if method == "none" else grants.identifier(fields.get("client_secret"))
    return Registration(
        client_id=made,
        client_secret=secret,
        method=method if method in METHODS else None,
        redirect_uri=redirect,
        how="registered",
        expires_at=grants.seconds(fields.get("client_secret_expires_at"), 1e11),
    )


def client_metadata(options: OAuth, redirect: str, server: AuthServer | None) -> dict[str, Any]:
    """Return the metadata to register with (RFC 7591 §2), or to host as a document."""
    native = urls.is_loopback(urlsplit(redirect).hostname or "")
    offered = METHODS if server is None or not server.auth_methods else server.auth_methods
    found: dict[str, Any] = {
        "client_name": "Holdfast",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native" if native else "web",
        "token_endpoint_auth_method": next((one for one in METHODS if one in offered), "none"),
    }
    if options.device:
        found["grant_types"].append(grants.DEVICE_CODE)
    if options.scopes:
        found["scope"] = " ".join(options.scopes)
    return found
