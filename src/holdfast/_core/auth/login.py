"""Log in with a person: the authorization code grant with PKCE, or the device grant."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.auth import grants, urls
from holdfast._core.auth.credentials import Login, Registration
from holdfast._core.auth.discovery import AuthServer
from holdfast._core.auth.flow import Case, Need, endpoint_for, granted, joined
from holdfast._core.auth.grants import Endpoint, Tokens
from holdfast._core.auth.options import OAuth
from holdfast._core.auth.registration import identify, redirect_form
from holdfast._core.auth.steps import Ask, Browse, Conversation, Fetched, Keep, Pause, ShowCode
from holdfast.errors import DiscoveryError, GrantError, LoginFailed, TransportError

DEVICE_INTERVAL: Final = 5.0
MAX_DEVICE_INTERVAL: Final = 60.0


class Attempt(Struct, frozen=True, kw_only=True):
    """One login of a person: what is fresh for it, drawn before it begins."""

    case: Case
    need: Need
    verifier: str
    state: str
    dpop_key: str | None = None
    bound: str | None = None
    """The issuer that a given client id is known to belong to."""
    proven: Container[str] = frozenset()
    """Clients that worked in this process: they need no trial."""
    fresh: bool = False

    @property
    def options(self) -> OAuth:
        assert isinstance(self.case.options, OAuth)
        return self.case.options


def log_in(attempt: Attempt) -> Conversation[Login]:
    """Authorize with a person; a registration that the server forgot is made anew, once."""
    grant = _device if attempt.options.device else _code
    try:
        return (yield from grant(attempt))
    except GrantError as error:
        forgotten = error.error == "invalid_client" and attempt.options.client_id is None
        if not forgotten or attempt.fresh:
            raise LoginFailed(error.message) from error
    yield Keep(attempt.need.found.server.issuer, redirect_form(attempt.options), None)
    try:
        return (yield from grant(replace(attempt, fresh=True)))
    except GrantError as error:
        raise LoginFailed(error.message) from error


def _code(attempt: Attempt) -> Conversation[Login]:
    """The authorization code grant with PKCE (OAuth 2.1 §4.1)."""
    server, options = attempt.need.found.server, attempt.options
    check_pkce(server, options)
    scopes = with_offline_access(attempt.need.scopes, server, options)
    client = yield from _client(attempt)
    assert server.authorization_endpoint is not None
    assert client.redirect_uri is not None
    asks_offline = scopes is not None and "offline_access" in scopes
    fields = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "state": attempt.state,
        "code_challenge": grants.challenge_of(attempt.verifier),
        "code_challenge_method": "S256",
        "scope": joined(scopes),
        "resource": attempt.need.found.resource,
        "prompt": "consent" if asks_offline else None,
    }
    url = grants.authorization_url(server.authorization_endpoint, fields)
    if client.how == "stored" and client.client_id not in attempt.proven:
        # A forgotten client shows as an error page that only the person would see (B8).
        trial = yield Ask(url=url, follow=False)
        if isinstance(trial, Fetched) and 400 <= trial.status < 500:
            raise GrantError(f"{server.issuer} does not know the client", error="invalid_client")
    params = yield Browse(
        url=_openable(url, attempt),
        state=attempt.state,
        issuer=server.issuer,
        scopes=scopes or (),
        redirect_uri=client.redirect_uri,
    )
    code = read_redirect(params, server)
    tokens = yield from grants.request(
        endpoint_for(server, options),
        client,
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.redirect_uri,
            "code_verifier": attempt.verifier,
            "resource": attempt.need.found.resource,
        },
        proof=attempt.dpop_key,
    )
    return granted(
        attempt.case, attempt.need, client, tokens, asked=scopes, dpop_key=attempt.dpop_key
    )


def _openable(url: str, attempt: Attempt) -> str:
    """Return a URL that a person may be sent to."""
    try:
        return urls.check_opened(url, insecure=attempt.options.insecure)
    except urls.BadUrl as error:
        issuer = attempt.need.found.server.issuer
        raise LoginFailed(f"{issuer} names a page that is not opened: {error}") from None


def check_pkce(server: AuthServer, options: OAuth) -> None:
    """Refuse a server that does not say that it has PKCE (Authorization Code Protection)."""
    if server.authorization_endpoint is None:
        raise DiscoveryError(f"{server.issuer} has no authorization endpoint")
    if server.assumed or options.pkce == "assume":
        return
    if "S256" not in (server.pkce_methods or ()):
        raise DiscoveryError(
            f"{server.issuer} does not say that it supports PKCE with S256, which is required; "
            'pkce="assume" goes on if you know that it does'
        )


def with_offline_access(
    scopes: tuple[str, ...] | None, server: AuthServer, options: OAuth
) -> tuple[str, ...] | None:
    """Ask for a refresh token where the server lists that scope (Refresh Tokens, SEP-2207)."""
    if not scopes or options.asked is not None or "offline_access" not in server.scopes:
        return scopes
    return tuple(dict.fromkeys((*scopes, "offline_access")))


def read_redirect(params: Mapping[str, str], server: AuthServer) -> str:
    """Return the code of an authorization response (Authorization Response Validation).

    The issuer comes first: of an answer by somebody else nothing is shown or acted on.
    """
    issuer = params.get("iss")
    if issuer is None and server.sends_iss:
        raise LoginFailed(f"the answer to the login does not name its issuer ({server.issuer})")
    if issuer is not None and issuer != server.issuer:
        raise LoginFailed(f"the answer to the login is not from {server.issuer}")
    error = grants.error_in(params, server.issuer)
    if error is not None:
        raise LoginFailed(f"the login failed: {error.message}")
    code = params.get("code")
    if not code:
        raise LoginFailed(f"{server.issuer} sent the browser back without a code")
    return code


def _client(attempt: Attempt) -> Conversation[Registration]:
    return identify(
        attempt.need.found.server,
        attempt.options,
        bound=attempt.bound,
        now=attempt.case.now,
        fresh=attempt.fresh,
    )


def _device(attempt: Attempt) -> Conversation[Login]:
    """The device authorization grant (RFC 8628)."""
    server, options = attempt.need.found.server, attempt.options
    if server.device_endpoint is None:
        raise LoginFailed(f"{server.issuer} has no device login")
    scopes = with_offline_access(attempt.need.scopes, server, options)
    client = yield from _client(attempt)
    endpoint = endpoint_for(server, options)
    resource = attempt.need.found.resource
    fields = {"scope": joined(scopes), "resource": resource, "client_id": client.client_id}
    place = replace(endpoint, url=server.device_endpoint)
    begun = yield from grants.post(place, client, fields)
    said = begun.fields() or {}
    if (error := grants.error_in(said, server.issuer)) is not None:
        raise error
    url = said.get("verification_uri_complete") or said.get("verification_uri")
    code, shown = said.get("device_code"), grants.plain(said.get("user_code"), 64)
    if not isinstance(url, str) or not isinstance(code, str) or not shown:
        raise LoginFailed(f"{server.issuer} gave no device code that can be used")
    _openable(url, attempt)
    yield ShowCode(url=url, user_code=shown, issuer=server.issuer, scopes=scopes or ())
    tokens = yield from _poll(attempt, endpoint, client, code, said.get("interval"))
    return granted(
        attempt.case, attempt.need, client, tokens, asked=scopes, dpop_key=attempt.dpop_key
    )


def _poll(
    attempt: Attempt, endpoint: Endpoint, client: Registration, code: str, interval: Any
) -> Conversation[Tokens]:
    """Ask until the person is done (RFC 8628 §3.5). The login's own clock bounds it."""
    pause = DEVICE_INTERVAL
    if isinstance(interval, int | float) and interval > 0:
        pause = min(float(interval), MAX_DEVICE_INTERVAL)
    fields = {
        "grant_type": grants.DEVICE_CODE,
        "device_code": code,
        "client_id": client.client_id,
        "resource": attempt.need.found.resource,
    }
    while True:
        yield Pause(pause)
        try:
            return (yield from grants.request(endpoint, client, fields, proof=attempt.dpop_key))
        except TransportError:
            pause = min(pause * 2, MAX_DEVICE_INTERVAL)
        except GrantError as error:
            if error.error == "slow_down":
                pause = min(pause + 5, MAX_DEVICE_INTERVAL)
            elif error.error != "authorization_pending":
                raise LoginFailed(f"the login failed: {error.message}") from error
