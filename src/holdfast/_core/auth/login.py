"""Authorize with a person: by the code grant with PKCE, or by the device grant."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from msgspec.structs import replace

from holdfast._core.auth import grants, jws, urls
from holdfast._core.auth.credentials import AuthServer, Login, Registration, Secretive
from holdfast._core.auth.options import OAuth
from holdfast._core.auth.registration import identify, stored_key
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Pause, Visit, Write
from holdfast.errors import DiscoveryError, GrantError, Hint, LoginFailed, TransportError

INTERVAL: Final = 5.0
"""Seconds between two requests of the device grant, if the server names none."""
MIN_INTERVAL: Final = 1.0
"""Whatever the server names: a poll without a pause is an attack on it."""
MAX_INTERVAL: Final = 60.0
UNKNOWN_CLIENT: Final = (400, 401, 404, 422)
"""Statuses of an authorization page for a client that it does not know."""
FORGOTTEN: Final = ("invalid_client", "unauthorized_client")
"""Errors of a server that does not know a client which it registered earlier."""


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
    """Clients that the server knew a moment ago: a request to try them would be one too many."""
    fresh: bool = False
    """Register anew, whatever is stored."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes; a refresh token is asked for where that is listed (SEP-2207)."""
        scopes = self.login.requested_scopes
        if not scopes or self.options.chosen_scopes is not None:
            return scopes
        offline = ["offline_access"] if "offline_access" in self.login.auth_server.scopes else []
        return tuple(dict.fromkeys((*scopes, *offline)))


def log_in(attempt: LoginAttempt) -> Conversation[Login]:
    """Authorize with a person; if the server forgot the registration, register again, once.

    Only a registration of an earlier login can have been forgotten. A client that was registered
    a moment ago, or that the user has given, would be refused again after another page.
    """
    _check_server(attempt.login.auth_server, attempt.options)
    try:
        client = yield from identify(attempt)
        try:
            return (yield from _grant(attempt, client))
        except GrantError as error:
            if client.how != "stored" or error.error not in FORGOTTEN:
                raise
        client = yield from identify(replace(attempt, fresh=True))
        return (yield from _grant(attempt, client))
    except GrantError as error:
        raise LoginFailed(error.message) from error


def _check_server(server: AuthServer, options: OAuth) -> None:
    """Refuse a server that cannot do what the login needs, before a client is made there."""
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


def _grant(attempt: LoginAttempt, client: Registration) -> Conversation[Login]:
    """Get tokens for the client; remember the way in which it authenticated."""
    options, scopes = attempt.options, _allowed_scopes(attempt, client)
    login = replace(attempt.login, client=client, requested_scopes=scopes, granted=scopes)
    login = yield from (_device if options.device else _code)(attempt, login)
    if client.how in ("registered", "stored") and login.client.method != client.method:
        yield Write(stored_key(login.auth_server, options), login.client)
    return login


def _allowed_scopes(attempt: LoginAttempt, client: Registration) -> tuple[str, ...]:
    """Return the scopes to ask for: without those that the client was not registered with.

    They would be refused with ``invalid_scope``, and the login with them (RFC 6749 §4.1.2.1). Those
    that the user chose are asked for all the same: the server's own refusal says more than silence.
    """
    if client.scopes is None or attempt.options.chosen_scopes is not None:
        return attempt.scopes
    registered = frozenset(client.scopes)
    return tuple(scope for scope in attempt.scopes if scope in registered) or attempt.scopes


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
        if isinstance(trial, Fetched) and _is_unknown_client(trial):
            raise GrantError(f"{server.issuer} does not know the client", error="invalid_client")
    params = yield _visit(attempt, url, state=attempt.state)
    fields = {
        "grant_type": "authorization_code",
        "code": read_redirect(params, server),
        "code_verifier": attempt.verifier,
        **shared,
    }
    return (yield from grants.obtain(login, fields, attempt.now))


def _is_unknown_client(trial: Fetched) -> bool:
    """Return whether an authorization endpoint refuses the client, by its page or by a redirect."""
    errors = parse_qs((trial.location or "").partition("?")[2]).get("error", [""])
    return trial.status in UNKNOWN_CLIENT or errors[0] in FORGOTTEN


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
    response = yield from grants.post(login, fields, server.device_authorization_endpoint)
    answer = response.fields() or {}
    url = answer.get("verification_uri_complete") or answer.get("verification_uri")
    code, user_code = answer.get("device_code"), grants.plain(answer.get("user_code"), 64)
    if not isinstance(url, str) or grants.identifier(code) is None or not user_code:
        raise LoginFailed(f"{server.issuer} gave no device code that can be used")
    yield _visit(attempt, url, user_code=user_code)
    fields = {"grant_type": grants.DEVICE_CODE, "device_code": code, **shared}
    return (yield from _poll(attempt, login, fields, answer))


def _poll(
    attempt: LoginAttempt,
    login: Login,
    fields: Mapping[str, str | None],
    answer: Mapping[str, Any],
) -> Conversation[Login]:
    """Ask for the token until the person has entered the code, or it has expired."""
    # RFC 8628 §3.5; the login's own clock bounds it too.
    pause = max(MIN_INTERVAL, grants.seconds(answer.get("interval")) or INTERVAL)
    remaining = grants.seconds(answer.get("expires_in")) or float("inf")
    while (remaining := remaining - min(pause, MAX_INTERVAL)) > 0:
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
    raise LoginFailed(
        f"the code of {login.auth_server.issuer} has expired; log in again for another"
    )
