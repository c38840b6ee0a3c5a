"""Requests to token endpoints, and the reading of their answers."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from msgspec.structs import replace

from holdfast._core.auth.credentials import LONGEST_LIFE, Login, Method, Registration, split_scope
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Sign, Unreachable
from holdfast._core.text import hide, one_line
from holdfast.errors import GrantError, TransportError

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
DEVICE_CODE: Final = "urn:ietf:params:oauth:grant-type:device_code"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

ENDS_LOGIN: Final = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client"}
    | {"invalid_refresh_token", "expired_refresh_token", "token_expired"}
)
"""Errors after which a refresh token is of no use; every other one keeps the login (B5)."""
PASSING: Final = ("server_error", "temporarily_unavailable")
"""Errors after which another attempt may succeed, whatever the status is."""
LATER: Final = (408, 425, 429)
"""Statuses below 500 that mean the same."""
MAX_WAIT: Final = 60.0
"""The longest Retry-After that is respected, in seconds."""
SECRETS: Final = frozenset(
    {"code", "code_verifier", "refresh_token", "token", "device_code", "client_secret"}
    | {"client_assertion", "assertion", "subject_token"}
)
"""Parameters that are redacted in errors, since a server may repeat them in its own."""

_TEXT = re.compile(r"[\x20-\x7e]{1,4096}")
_CODE = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,100}")


def joined(scopes: tuple[str, ...]) -> str | None:
    """Return scopes as a parameter; None leaves it out."""
    return " ".join(scopes) if scopes else None


def obtain(login: Login, fields: Mapping[str, str | None], now: float) -> Conversation[Login]:
    """Send a grant to the token endpoint; return the login with the tokens of the answer."""
    response, method = yield from _authenticated(login, fields)
    issuer, dpop = login.issuer, login.dpop_key is not None
    answer = token_answer(response, issuer)
    # In any case of letters (RFC 6750 §4, RFC 9449 §5).
    kind = str(answer.get("token_type", "Bearer")).lower()
    if dpop and kind == "bearer":
        raise GrantError(f"{issuer} gave a Bearer token, but a DPoP-bound one was asked for")
    if kind != ("dpop" if dpop else "bearer"):
        raise GrantError(f"{issuer} gave a token of a type that cannot be used")
    refresh, scope = answer.get("refresh_token"), scope_text(answer.get("scope"))
    life = seconds(answer.get("expires_in"))
    return replace(
        login,
        client=replace(login.client, method=method),
        access_token=answer["access_token"],
        token_type="DPoP" if dpop else "Bearer",
        # No new refresh token in the answer: the old one stays valid.
        refresh_token=refresh if _is_token(refresh) else login.refresh_token,
        issued_at=now,
        expires_at=None if life is None else now + life,
        # No scope: those that were asked for (RFC 6749 §5.1).
        granted=login.granted if scope is None else split_scope(scope),
        skew=response.skew,
        subject=_subject(answer.get("id_token")) or login.subject,
    )


def scope_text(scope: object) -> str | None:
    """Return the scope of an answer as text: some servers send a list; None if there is none."""
    if isinstance(scope, list):
        scope = " ".join(name for name in scope if isinstance(name, str))
    return scope if isinstance(scope, str) and scope.strip() else None


def token_answer(answer: Fetched, issuer: str) -> dict[str, Any]:
    """Return the fields of a token answer (RFC 6749 §5.1), with an access token among them."""
    fields = answer.fields()
    if fields is None or not 200 <= answer.status < 300:
        text = f"{issuer} answered the token request with HTTP status {answer.status}"
        raise GrantError(f"{text} and nothing that can be read")
    if not _is_token(fields.get("access_token")):
        raise GrantError(f"{issuer} gave no access token that can be used")
    return fields


def _is_token(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[\x21-\x7e]{1,65536}", value) is not None


def post(
    login: Login, fields: Mapping[str, str | None], url: str | None = None
) -> Conversation[Fetched]:
    """Send a form with the client's authentication (OAuth 2.1 §2.4, RFC 6749 §2.3.1, 7523 §2.2).

    It goes to the token endpoint, with a proof if the tokens are bound, or to ``url``.

    Raises:
        GrantError: The answer is an error; it counts in any status (RFC 6749 §5.2).
        TransportError: Another attempt may succeed.
    """
    response, _ = yield from _authenticated(login, fields, url)
    return response


def _secrets_sent(client: Registration, ask: Ask) -> set[str]:
    """Return what a server may repeat in its answer, and nobody may read there."""
    secret, form = client.client_secret or "", ask.form or {}
    return {secret, quote_plus(secret), *(form[name] for name in form.keys() & SECRETS)}


def _authenticated(
    login: Login, fields: Mapping[str, str | None], url: str | None = None
) -> Conversation[tuple[Fetched, Method]]:
    """Send a form; if the client is refused, once more with the next way to authenticate.

    Nothing of a grant is used up by a request whose client was refused (RFC 6749 §3.2.1: the
    server authenticates the client first), so a code may be sent twice.
    """
    server, client = login.auth_server, login.client
    methods = methods_for(client, server.auth_methods)
    for method in methods:
        ask = yield from _request(login, fields, method, url)
        response = reached((yield ask), server.issuer)
        error = error_in(response.fields() or {}, server.issuer, _secrets_sent(client, ask))
        # Some servers call it by another name, but 401 means nothing else (RFC 6749 §5.2).
        is_client_refused = response.status == 401 or (error and error.error == "invalid_client")
        if not is_client_refused or method == methods[-1]:
            break
    if error is not None:
        raise error
    return response, method


def _request(
    login: Login, fields: Mapping[str, str | None], method: Method, url: str | None
) -> Conversation[Ask]:
    server, client, proof = login.auth_server, login.client, login.dpop_key if url is None else None
    form = {name: value for name, value in fields.items() if value is not None}
    headers: dict[str, str] = {}
    if method == "private_key_jwt":
        form["client_assertion_type"] = CLIENT_ASSERTION
        form["client_assertion"] = yield Sign(client, server.issuer)
    elif method == "client_secret_basic":
        # Without client_id in the form: a client uses one way in a request (RFC 6749 §2.3), and
        # some servers refuse two.
        form.pop("client_id", None)
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client.client_id
        if method == "client_secret_post":
            form["client_secret"] = client.client_secret or ""
    place = url or server.token_endpoint
    return Ask(url=place, form=form, headers=headers, proof=proof, pinned=server.pinned)


def reached(answer: Any, issuer: str) -> Fetched:
    """Return the answer; raise ``TransportError`` if another attempt may succeed."""
    if isinstance(answer, Unreachable):
        raise TransportError(f"{issuer} cannot be asked: {answer.reason}")
    assert isinstance(answer, Fetched)
    passing = (answer.fields() or {}).get("error") in PASSING
    if answer.status >= 500 or answer.status in LATER or passing:
        wait = min(answer.retry_after or 0.0, MAX_WAIT)
        when = f"in {wait:g} s" if wait else "later"
        text = f"{issuer} answered with HTTP status {answer.status}; try again {when}"
        raise TransportError(text, data={"retry_after": wait})
    return answer


def methods_for(client: Registration, offered: tuple[str, ...]) -> tuple[Method, ...]:
    """Return the ways to authenticate: as registered or as the metadata lists, and the next one."""
    if client.private_key is not None:
        return ("private_key_jwt",)
    if client.client_secret is None:
        return ("none",)
    by_secret: tuple[Method, ...] = ("client_secret_post", "client_secret_basic")
    usable = [method for method in by_secret if method in offered]
    if not usable and "none" in offered:
        return ("none",)
    # Basic is what a server without a list has (RFC 8414 §2).
    usable = usable or list(reversed(by_secret))
    if client.method in by_secret:
        usable.insert(0, client.method)
    return tuple(dict.fromkeys(usable))


def error_in(
    fields: Mapping[str, Any], issuer: str, secrets: Iterable[str] = ()
) -> GrantError | None:
    """Return the OAuth error that an answer carries, without the secrets that were sent."""
    error = fields.get("error")
    if not error:
        return None
    code = error if isinstance(error, str) and _CODE.fullmatch(error) else "unreadable error"
    code, text = hide(code, secrets), plain(fields.get("error_description"), secrets=secrets)
    message = f"{issuer} refused: {code}" + (f" ({text})" if text else "")
    if "AADSTS9010010" in text:
        # Entra refuses a resource beside scopes that name another (B17).
        message += "; resource=False leaves the resource parameter out"
    return GrantError(message, error=code, description=text)


def identifier(value: object) -> str | None:
    """Return an identifier from a server if it is valid (RFC 6749 Appendix A), else None."""
    return value if isinstance(value, str) and _TEXT.fullmatch(value) else None


def plain(value: object, limit: int = 200, secrets: Iterable[str] = ()) -> str:
    """Return a server's text on one line, truncated, redacted, invisible characters escaped."""
    return one_line(hide(value, secrets), limit) if isinstance(value, str) else ""


def seconds(value: object, most: float = LONGEST_LIFE) -> float | None:
    """Return a number of seconds, at most ``most``; None if it is missing or invalid."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,20}(\.[0-9]{1,9})?", value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(min(value, most))


def _subject(token: object) -> str | None:
    """Return who logged in, by an ID token that came straight from the token endpoint.

    For display only, so its signature is not checked (OpenID Connect Core §3.1.3.7, 6).
    """
    if not isinstance(token, str) or token.count(".") != 2 or len(token) > 65536:
        return None
    body = token.split(".")[1]
    try:
        claims = Fetched(200, base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).document()
    except ValueError:
        return None
    names = map((claims or {}).get, ("email", "preferred_username", "sub"))
    return next((text for name in names if (text := plain(name, 100))), None)
