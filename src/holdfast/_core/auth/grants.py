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
    answer = yield from post(login, fields)
    issuer, dpop = login.issuer, login.dpop_key is not None
    said = token_answer(answer, issuer)
    # In any case of letters (RFC 6750 §4, RFC 9449 §5).
    kind = str(said.get("token_type", "Bearer")).lower()
    if dpop and kind == "bearer":
        raise GrantError(f"{issuer} gave a Bearer token, but a DPoP-bound one was asked for")
    if kind != ("dpop" if dpop else "bearer"):
        raise GrantError(f"{issuer} gave a token of a type that cannot be used")
    refresh, scope = said.get("refresh_token"), said.get("scope")
    if isinstance(scope, list):
        scope = " ".join(one for one in scope if isinstance(one, str))
    life = seconds(said.get("expires_in"))
    return replace(
        login,
        access_token=said["access_token"],
        token_type="DPoP" if dpop else "Bearer",
        # No new refresh token in the answer: the old one stays valid.
        refresh_token=refresh if _is_token(refresh) else login.refresh_token,
        issued_at=now,
        expires_at=None if life is None else now + life,
        # No scope: those that were asked for (RFC 6749 §5.1).
        granted=split_scope(scope) if isinstance(scope, str) and scope.strip() else login.granted,
        skew=answer.skew,
        subject=_subject(said.get("id_token")) or login.subject,
    )


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
    server, client, proof = login.auth_server, login.client, login.dpop_key if url is None else None
    form = {name: value for name, value in fields.items() if value is not None}
    headers: dict[str, str] = {}
    method = method_for(client, server.auth_methods)
    if method == "private_key_jwt":
        form["client_assertion_type"] = CLIENT_ASSERTION
        form["client_assertion"] = yield Sign(client, server.issuer)
    elif method == "client_secret_basic":
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client.client_id
        if method == "client_secret_post":
            form["client_secret"] = client.client_secret or ""
    place = url or server.token_endpoint
    answer = yield Ask(url=place, form=form, headers=headers, proof=proof, pinned=server.pinned)
    found = reached(answer, server.issuer)
    secret = client.client_secret or ""
    secrets = {secret, quote_plus(secret), *(form[name] for name in form.keys() & SECRETS)}
    if (error := error_in(found.fields() or {}, server.issuer, secrets)) is not None:
        raise error
    return found


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


def method_for(client: Registration, offered: tuple[str, ...]) -> Method:
    """Return how to authenticate: as registered, else as the metadata lists, else basic."""
    if client.private_key is not None:
        return "private_key_jwt"
    if client.client_secret is None:
        return "none"
    if client.method in ("client_secret_basic", "client_secret_post"):
        return client.method
    known: tuple[Method, ...] = ("client_secret_basic", "client_secret_post", "none")
    return next((method for method in known if method in offered), "client_secret_basic")


def error_in(
    fields: Mapping[str, Any], issuer: str, secrets: Iterable[str] = ()
) -> GrantError | None:
    """Return the OAuth error that an answer carries, without the secrets that were sent."""
    error = fields.get("error")
    if not error:
        return None
    code = error if isinstance(error, str) and _CODE.fullmatch(error) else "unreadable error"
    code, said = hide(code, secrets), plain(fields.get("error_description"), secrets=secrets)
    message = f"{issuer} refused: {code}" + (f" ({said})" if said else "")
    if "AADSTS9010010" in said:
        # Entra refuses a resource beside scopes that name another (B17).
        message += "; resource=False leaves the resource parameter out"
    return GrantError(message, error=code, description=said)


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
    said = map((claims or {}).get, ("email", "preferred_username", "sub"))
    return next((name for one in said if (name := plain(one, 100))), None)
