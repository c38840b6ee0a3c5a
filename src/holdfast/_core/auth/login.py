"""Authorize: with a person (code grant with PKCE, device grant), or by machine."""

from __future__ import annotations

from collections.abc import Container, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from msgspec.structs import replace

from holdfast._core.auth import grants, jws, urls
from holdfast._core.auth.credentials import AuthServer, Login, Registration, Secretive, entry_key
from holdfast._core.auth.discovery import Discovery
from holdfast._core.auth.options import EnterpriseManaged, Machine, OAuth
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Listen, Pause, Read, Visit, Write
from holdfast.errors import DiscoveryError, GrantError, Hint, LoginFailed, TransportError

INTERVAL: Final = 5.0
"""Seconds between two requests of the device grant, if the server names none."""
MAX_INTERVAL: Final = 60.0
UNKNOWN_CLIENT: Final = (400, 401, 404, 422)
"""Statuses of an authorization page for a client that it does not know."""
METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
_OTHER_KIND: Final = ("invalid_redirect_uri", "invalid_client_metadata")
"""Errors of a registration after which the other kind of application is tried."""


class LoginAttempt(Secretive, frozen=True, kw_only=True):
    """One login of a person, with the random values that were made for it."""

    options: OAuth
    now: float
    login: Login
    """The login to complete: it has no client and no tokens yet."""
    verifier: str
    state: str
    bound: str | None = None
    """The issuer that a given client id is known to belong to."""
    proven: Container[str] = frozenset()
    """Clients that worked in this process: they are not tried first."""
    fresh: bool = False

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes; a refresh token is asked for where that is listed (SEP-2207)."""
        scopes = self.login.requested_scopes
        if not scopes or self.options.chosen_scopes is not None:
            return scopes
        offline = ["offline_access"] if "offline_access" in self.login.auth_server.scopes else []
        return tuple(dict.fromkeys((*scopes, *offline)))


def log_in(attempt: LoginAttempt) -> Conversation[Login]:
    """Authorize with a person; if the server forgot the registration, register again, once."""
    try:
        try:
            return (yield from _grant(attempt))
        except GrantError as error:
            forgotten = error.error == "invalid_client" and attempt.options.client_id is None
            if not forgotten or attempt.fresh:
                raise
        yield Write(stored_key(attempt.login.auth_server, attempt.options), None)
        return (yield from _grant(replace(attempt, fresh=True)))
    except GrantError as error:
        raise LoginFailed(error.message) from error


def _grant(attempt: LoginAttempt) -> Conversation[Login]:
    server, options = attempt.login.auth_server, attempt.options
    if options.device:
        if server.device_authorization_endpoint is None:
            raise LoginFailed(f"{server.issuer} has no device login")
    elif server.authorization_endpoint is None:
        raise DiscoveryError(f"{server.issuer} has no authorization endpoint")
    # Authorization Code Protection: a server must say that it has PKCE.
    elif not (server.assumed or options.pkce == "assume" or "S256" in (server.pkce_methods or ())):
        raise DiscoveryError(
            f"{server.issuer} does not say that it supports PKCE with S256, which is required; "
            'pkce="assume" goes on if you know that it does'
        )
    client = yield from identify(attempt)
    scopes = attempt.scopes
    login = replace(attempt.login, client=client, requested_scopes=scopes, granted=scopes)
    return (yield from (_device if options.device else _code)(attempt, login))


def _code(attempt: LoginAttempt, login: Login) -> Conversation[Login]:
    """Use the authorization code grant with PKCE (OAuth 2.1 §4.1)."""
    server, client, scopes = login.auth_server, login.client, login.requested_scopes
    shared = {"redirect_uri": client.redirect_uri, "resource": login.resource}
    fields = {
        "response_type": "code",
        "client_id": client.client_id,
        "state": attempt.state,
        "code_challenge": jws.digest(attempt.verifier),
        "code_challenge_method": "S256",
        "scope": grants.joined(scopes),
        "prompt": "consent" if "offline_access" in scopes else None,
        **shared,
    }
    endpoint = server.authorization_endpoint or ""
    query = urlencode({name: value for name, value in fields.items() if value is not None})
    url = f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"
    if client.how == "stored" and client.client_id not in attempt.proven:
        # A forgotten client shows as an error page that only the person would see (B8).
        trial = yield Ask(url=url, follow=False, pinned=server.pinned)
        if isinstance(trial, Fetched) and trial.status in UNKNOWN_CLIENT:
            raise GrantError(f"{server.issuer} does not know the client", error="invalid_client")
    params = yield _visit(attempt, url, state=attempt.state)
    fields = {
        "grant_type": "authorization_code",
        "code": read_redirect(params, server),
        "code_verifier": attempt.verifier,
        **shared,
    }
    return (yield from grants.obtain(login, fields, attempt.now))


def _visit(attempt: LoginAttempt, url: str, **how: str) -> Visit:
    """Return the step that sends a person to a URL; refuse an unsafe URL."""
    issuer, insecure = attempt.login.auth_server.issuer, attempt.options.insecure
    try:
        urls.checked(url, insecure=insecure, limit=urls.MAX_OPENED)
    except urls.BadUrl as error:
        raise LoginFailed(f"{issuer} names a page that is not opened: {error}") from None
    return Visit(url=url, issuer=issuer, scopes=attempt.scopes, **how)


def read_redirect(params: Mapping[str, str], server: AuthServer) -> str:
    """Return the code of an authorization response (Authorization Response Validation)."""
    # Check the issuer first: nothing of an answer from another issuer is shown or used.
    issuer = params.get("iss")
    if issuer is None and server.sends_iss:
        raise LoginFailed(f"the answer to the login does not name its issuer ({server.issuer})")
    if issuer is not None and issuer != server.issuer:
        hints = (Hint("auth.issuer", "names the right one"),) if server.pinned else ()
        raise LoginFailed(f"the answer to the login is not from {server.issuer}", hints=hints)
    if error := grants.error_in(params, server.issuer, [params.get("state", "")]):
        raise LoginFailed(f"the login failed: {error.message}")
    if not params.get("code"):
        raise LoginFailed(f"{server.issuer} sent the browser back without a code")
    return params["code"]


def _device(attempt: LoginAttempt, login: Login) -> Conversation[Login]:
    """Use the device authorization grant (RFC 8628)."""
    server, client = login.auth_server, login.client
    shared = {"client_id": client.client_id, "resource": login.resource}
    fields = {"scope": grants.joined(login.requested_scopes), **shared}
    begun = yield from grants.post(login, fields, server.device_authorization_endpoint)
    said = begun.fields() or {}
    url = said.get("verification_uri_complete") or said.get("verification_uri")
    code, shown = said.get("device_code"), grants.plain(said.get("user_code"), 64)
    if not isinstance(url, str) or grants.identifier(code) is None or not shown:
        raise LoginFailed(f"{server.issuer} gave no device code that can be used")
    yield _visit(attempt, url, user_code=shown)
    fields = {"grant_type": grants.DEVICE_CODE, "device_code": code, **shared}
    pause = grants.seconds(said.get("interval"), MAX_INTERVAL) or INTERVAL
    left = grants.seconds(said.get("expires_in")) or float("inf")
    # RFC 8628 §3.5; the login's own clock bounds it too.
    while (left := left - min(pause, MAX_INTERVAL)) > 0:
        yield Pause(min(pause, MAX_INTERVAL))
        try:
            return (yield from grants.obtain(login, fields, attempt.now))
        except TransportError:
            pause *= 2
        except GrantError as refusal:
            if refusal.error == "slow_down":
                pause += 5
            elif refusal.error != "authorization_pending":
                raise LoginFailed(f"the login failed: {refusal.message}") from refusal
    raise LoginFailed(f"the code of {server.issuer} has expired; log in again for another")


def by_machine(
    options: Machine, login: Login, assertion: str | None, now: float
) -> Conversation[Login]:
    """Authorize by the grant that the options name."""
    names = ("client_id", "client_secret", "private_key", "algorithm", "key_id")
    client = Registration(**{one: getattr(options, one) for one in names if hasattr(options, one)})
    if isinstance(options, EnterpriseManaged):
        assertion = yield from _exchange(options, login, assertion)
    fields = {
        "grant_type": "client_credentials" if assertion is None else grants.JWT_BEARER,
        "assertion": assertion,
        "scope": grants.joined(login.requested_scopes),
        "resource": login.resource,
    }
    login = replace(login, client=client, granted=login.requested_scopes)
    return (yield from grants.obtain(login, fields, now))


def _exchange(options: EnterpriseManaged, login: Login, id_token: str | None) -> Conversation[str]:
    """Exchange the ID token for a grant (RFC 8693; Enterprise-Managed Authorization §4)."""
    pinned = OAuth(issuer=options.idp_issuer, insecure=options.insecure)
    provider = yield from Discovery(options.idp_issuer, pinned).find_server(None)
    client = Registration(client_id=options.idp_client_id, client_secret=options.idp_client_secret)
    there = Login(server=login.server, account=login.account, auth_server=provider, client=client)
    fields = {
        "grant_type": grants.TOKEN_EXCHANGE,
        "requested_token_type": grants.ID_JAG,
        "audience": login.issuer,
        "resource": login.resource,
        "scope": grants.joined(login.requested_scopes),
        "subject_token": id_token,
        "subject_token_type": grants.ID_TOKEN,
    }
    answer = yield from grants.post(there, fields)
    said = grants.token_answer(answer, provider.issuer)
    # Never forward the user's own access token of the provider: a grant says that it is one, and
    # that it is no access token (RFC 8693 §2.2.1).
    kind = said.get("issued_token_type", None if said.get("token_type") == "N_A" else "")
    if kind not in (None, grants.ID_JAG):
        raise GrantError(f"{provider.issuer} gave no grant, but a token of another kind")
    return str(said["access_token"])


# The client at the server: given, by metadata document, or registered there


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
        own, secret = options.client_id, options.client_secret
        return Registration(client_id=own, client_secret=secret, redirect_uri=redirect)
    document = options.client_metadata_url
    if document is not None and server.takes_documents:
        redirect = yield Listen(options.redirect_uri, "/callback")
        return Registration(client_id=document, redirect_uri=redirect, how="document")
    if server.registration_endpoint is None:
        raise DiscoveryError(
            f"{server.issuer} does not register clients",
            hints=(Hint("auth.client_id", "gives one that you register there yourself"),),
        )
    key = stored_key(server, options)
    stored = None if attempt.fresh else (yield Read(key, Registration))
    if stored is not None and (stored.expires_at or float("inf")) <= attempt.now:
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
    """Return a redirect path that differs for each issuer (mix-up attack, RFC 9700 §4.4.2)."""
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
            f"{server.issuer} did not register a client: {said}",
            hints=(Hint("auth.client_id", "gives one of your own"),),
        )
    # The server may have changed what was asked for (RFC 7591 §3.2.1).
    method, uris = fields.get("token_endpoint_auth_method"), fields.get("redirect_uris")
    if isinstance(uris, list) and uris and redirect not in uris:
        raise LoginFailed(f"{server.issuer} registered another redirect URI than was asked for")
    return Registration(
        client_id=made,
        client_secret=None if method == "none" else grants.identifier(fields.get("client_secret")),
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
    return {**found, "scope": " ".join(options.scopes)} if options.scopes else found
