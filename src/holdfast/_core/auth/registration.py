"""The client that a login uses at an authorization server: given, by document, or registered."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast._core.auth import grants, urls
from holdfast._core.auth.credentials import AuthServer, Method, Registration, entry_key, split_scope
from holdfast._core.auth.options import OAuth
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Listen, Read, Write
from holdfast.errors import DiscoveryError, GrantError, Hint, LoginFailed

if TYPE_CHECKING:
    from holdfast._core.auth.login import LoginAttempt

# Registrations are the part of OAuth that servers agree on least. What was met with:
#
# - Servers that keep the scopes of each client and refuse all others (the routes of the Python
#   SDKs), or fill in scopes of their own where none are asked for. So they are registered, and
#   the answer is read.
# - Servers that answer with another way to authenticate than was asked for, or with none at all.
# - Servers that refuse ``application_type`` "native", and those that refuse anything else for
#   a loopback redirect. The other one is tried.
# - Servers that lose their registrations when they start again, and say so only on the page that a
#   person sees. A stored client is tried by a request of our own before a person is sent there.


METHODS: Final[tuple[Method, ...]] = ("none", "client_secret_post", "client_secret_basic")
"""Ways to authenticate at a token endpoint, in the order in which they are asked for.

A native application cannot keep a secret (RFC 8252 §8.4), so none is best. Of the other two the
form is read by every server; the SDKs' own routes look for the id there, and fail at Basic.
"""
_REPAIRABLE: Final = ("invalid_redirect_uri", "invalid_client_metadata", "invalid_scope")
"""Errors of a registration (RFC 7591 §3.2.2) after which another document may be accepted."""


def identify(attempt: LoginAttempt) -> Conversation[Registration]:
    """Return the client to use at this server, and listen on its redirect URI.

    Client Registration, priority order: given, then metadata document, then registration. A given
    client is not shown to another issuer than its own (Authorization Server Binding).
    """
    server, options, bound = attempt.login.auth_server, attempt.options, attempt.bound
    if options.client_id is not None:
        if bound is not None and not urls.same_issuer(bound, server.issuer):
            raise DiscoveryError(
                f"client_id belongs to {bound}, but the server now names {server.issuer}",
                hints=(
                    Hint("auth.client_id", "gives the one for it"),
                    Hint("auth.issuer", "confirms it"),
                ),
            )
        redirect = yield Listen(options.redirect_uri, "/callback", fixed=True)
        return Registration(
            client_id=options.client_id,
            client_secret=options.client_secret,
            redirect_uri=redirect,
        )
    document = options.client_metadata_url
    if document is not None and server.takes_documents:
        redirect = yield Listen(options.redirect_uri, "/callback")
        return Registration(client_id=document, redirect_uri=redirect, how="document")
    if server.registration_endpoint is None:
        raise DiscoveryError(
            f"{server.issuer} does not register clients",
            hints=(Hint("auth.client_id", "gives one that you register there yourself"),),
        )
    return (yield from _registered(attempt))


def _registered(attempt: LoginAttempt) -> Conversation[Registration]:
    """Use the stored registration if it fits, else register and store that."""
    server, options = attempt.login.auth_server, attempt.options
    key = stored_key(server, options)
    stored: Registration | None = None
    if not attempt.fresh:
        stored = yield Read(key, Registration)
    if stored is not None and not _fits(stored, attempt):
        stored = None
    preferred = options.redirect_uri or (None if stored is None else stored.redirect_uri)
    redirect = yield Listen(preferred, callback_path(server.issuer))
    if stored is not None and stored.redirect_uri == redirect:
        usable: Registration = replace(stored, how="stored")
        return usable
    client = yield from _register(attempt, redirect)
    yield Write(key, client)
    return client


def _fits(stored: Registration, attempt: LoginAttempt) -> bool:
    """Return whether a registration has not expired, and may ask for the scopes of this login.

    A server that answers with the client's scopes refuses all others later. One that narrowed them
    would do so again: what counts is what it was asked for, or every login would register anew.
    """
    if (stored.expires_at or float("inf")) <= attempt.now:
        return False
    return stored.scopes is None or set(attempt.scopes) <= {
        *stored.scopes,
        *stored.requested_scopes,
    }


def stored_key(server: AuthServer, options: OAuth) -> str:
    """Return where the registration is stored: by issuer and kind of redirect."""
    kind = "device" if options.device else "loopback"
    return entry_key("client", server.issuer, options.redirect_uri or kind)


def callback_path(issuer: str) -> str:
    """Return a redirect path that differs for each issuer (mix-up attack, RFC 9700 §4.4.2)."""
    return "/callback/" + sha256(issuer.encode()).hexdigest()[:16]


def _register(attempt: LoginAttempt, redirect: str) -> Conversation[Registration]:
    server = attempt.login.auth_server
    assert server.registration_endpoint is not None
    metadata = client_metadata(attempt.options, redirect, server, attempt.scopes)
    refusal: GrantError | None = None
    for document in _documents(metadata, server):
        ask = Ask(url=server.registration_endpoint, json=document, pinned=server.pinned)
        answer = grants.reached((yield ask), server.issuer)
        fields = answer.document() or {}
        if answer.status in (200, 201) and grants.identifier(fields.get("client_id")) is not None:
            return _client(server, document, fields, redirect)
        error = grants.error_in(fields, server.issuer)
        # The first refusal is about what we really want; the others are about our attempts.
        refusal = refusal or error
        if error is None or error.error not in _REPAIRABLE:
            break
    raise _not_registered(server, answer, refusal)


def _not_registered(server: AuthServer, answer: Fetched, refusal: GrantError | None) -> LoginFailed:
    reason = f"HTTP status {answer.status}" if refusal is None else refusal.message
    return LoginFailed(
        f"{server.issuer} did not register a client: {reason}",
        hints=(Hint("auth.client_id", "gives one of your own"),),
    )


def _documents(metadata: dict[str, Any], server: AuthServer) -> Iterator[dict[str, Any]]:
    """Yield the metadata, and then each change by which some servers can be pleased.

    As the other kind of application (SEP-837: ``native`` is unknown to some, or the default
    ``web`` has no loopback redirects); without scopes; with the next way to authenticate.
    """
    yield metadata
    is_native = metadata["application_type"] == "native"
    yield {**metadata, "application_type": "web" if is_native else "native"}
    if "scope" in metadata:
        yield {name: value for name, value in metadata.items() if name != "scope"}
    method = metadata["token_endpoint_auth_method"]
    later = METHODS[METHODS.index(method) + 1 :]
    yield from (
        {**metadata, "token_endpoint_auth_method": other_method}
        for other_method in later
        if other_method in server.auth_methods
    )


def _client(
    server: AuthServer, document: dict[str, Any], fields: dict[str, Any], redirect: str
) -> Registration:
    """Read what was registered; the server may have changed it (RFC 7591 §3.2.1)."""
    method, uris = fields.get("token_endpoint_auth_method"), fields.get("redirect_uris")
    if isinstance(uris, list) and uris and redirect not in uris:
        raise LoginFailed(f"{server.issuer} registered another redirect URI than was asked for")
    if method not in METHODS:
        method = document["token_endpoint_auth_method"]
        method = None if method == "none" else method
    scope = fields.get("scope")
    secret = None if method == "none" else grants.identifier(fields.get("client_secret"))
    return Registration(
        client_id=fields["client_id"],
        client_secret=secret,
        method=method,
        redirect_uri=redirect,
        how="registered",
        expires_at=grants.seconds(fields.get("client_secret_expires_at"), 1e11),
        scopes=split_scope(grants.scope_text(scope) or "") or None,
        requested_scopes=split_scope(document.get("scope", "")),
    )


def client_metadata(
    options: OAuth, redirect: str, server: AuthServer | None, scopes: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the metadata to register with (RFC 7591 §2), or to host as a document."""
    native = urls.is_loopback(urlsplit(redirect).hostname or "")
    offered = METHODS if server is None or not server.auth_methods else server.auth_methods
    metadata: dict[str, Any] = {
        "client_name": "Holdfast",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native" if native else "web",
        "token_endpoint_auth_method": next((way for way in METHODS if way in offered), "none"),
    }
    if options.device:
        metadata["grant_types"].append(grants.DEVICE_CODE)
    # A server that keeps scopes by client gives the others to nobody, and a login that asks for
    # one of them is refused: those that will be asked for are registered.
    scopes = scopes or options.chosen_scopes or ()
    return {**metadata, "scope": " ".join(scopes)} if scopes else metadata
