"""The keys by which other products configure logins, as one setting of ours."""

from __future__ import annotations

from typing import Any, Final

from holdfast.config.dialects.fields import EntryFields

_NO_EFFECT: Final = (
    "authServerMetadataUrl",
    "authorizationUrl",
    "tokenUrl",
    "registrationUrl",
    "audiences",
)
"""They replace what is discovered; ``holdfast.oauth.issuer`` pins an issuer instead."""


def login_settings(fields: EntryFields, *, loopback: str = "localhost") -> dict[str, Any]:
    """Return the setting ``oauth`` of an entry, from whichever keys its product has.

    ``loopback`` is the host in the redirect URI of a product that names only a port.
    """
    found: dict[str, str] = {}
    if fields.take("oauth") is False:
        return {"oauth": {"enabled": "false"}}
    inner = fields.inner("oauth")
    if inner is not None:
        _read(inner, found, loopback)
    if not isinstance(fields.take("auth"), str):
        cursor = fields.inner("auth")
        if cursor is not None:
            _read(cursor, found, loopback)
    return {"oauth": found} if found else {}


def _read(fields: EntryFields, found: dict[str, str], loopback: str) -> None:
    named = {
        "client_id": fields.text("clientId", "client_id", "CLIENT_ID"),
        "client_secret": fields.text("clientSecret", "client_secret", "CLIENT_SECRET"),
        "redirect_uri": fields.text("redirectUri", "callback_url"),
        "issuer": fields.text("authorization_server_issuer", "issuer"),
        "scopes": scopes(fields, "scopes") or scopes(fields, "scope"),
    }
    found.update({name: value for name, value in named.items() if value})
    port = _port(fields)
    if port is not None and "redirect_uri" not in found:
        found["redirect_uri"] = f"http://{loopback}:{port}/callback"
    if fields.flag("enabled") is False:
        found["enabled"] = "false"
    if "tokenParamName" in fields:
        fields.take("tokenParamName")
        # OAuth 2.1 §5.1.1: a token in a URL ends up in logs and in other people's hands.
        fields.fault("tokenParamName", "is not taken: a token is never sent in a URL")
    fields.without_effect(_NO_EFFECT)
    fields.rest()


def scopes(fields: EntryFields, name: str) -> str | None:
    """Return scopes, which some products write as a list and some as one string."""
    value = fields.take(name)
    if value is None or isinstance(value, str):
        return value or None
    return " ".join(fields.texts(name) or ()) or None


def _port(fields: EntryFields) -> int | None:
    for name in ("callbackPort", "callback_port"):
        value = fields.take(name)
        if value is None:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65536:
            return value
        fields.fault(name, "must be the number of a port")
    return None
