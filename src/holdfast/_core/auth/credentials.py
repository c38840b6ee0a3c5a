"""Stored credentials: tokens, the client, the authorization server, and when they expire."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

EARLY: Final = 60.0
"""Seconds before its expiry at which a token is renewed; a tenth of a short life."""
MAX_SCOPES: Final = 200
LONGEST_LIFE: Final = 10 * 365 * 86400.0

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
E = TypeVar("E", bound=Struct)
ENDPOINTS: Final = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "device_authorization_endpoint",
)


SHOWN: Final = frozenset(
    {"account", "algorithm", "challenge", "client_id", "expires_at", "fresh", "granted", "how"}
    | {"issuer", "resource", "scopes", "server", "status", "token_type"}
)


class Secretive(Struct, frozen=True):
    """A value whose repr has only the fields in `SHOWN`: any other may hold a secret."""

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({parts})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name in SHOWN]


class AuthServer(Struct, frozen=True, kw_only=True):
    """The metadata of an authorization server (RFC 8414, OpenID Connect Discovery)."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ()
    pkce_methods: tuple[str, ...] | None = None
    sends_iss: bool = False
    takes_documents: bool = False
    """Client ID metadata documents are supported."""
    assumed: bool = False
    """There was no metadata: these are the default endpoints of the first revision."""
    pinned: bool = False
    """The user named it: it may be in a private network."""


class Registration(Secretive, frozen=True, kw_only=True):
    """A client of one authorization server."""

    client_id: str
    client_secret: str | None = None
    method: Method | None = None
    """How it authenticates at the token endpoint; None: as the metadata says."""
    redirect_uri: str | None = None
    how: Literal["given", "document", "registered", "stored"] = "given"
    """``stored``: registered earlier, so the server may have forgotten it."""
    expires_at: float | None = None
    private_key: str | None = None
    algorithm: str = "ES256"
    key_id: str | None = None
    scopes: tuple[str, ...] | None = None
    """Those that it was registered with, if the server says so: it refuses all others."""
    requested_scopes: tuple[str, ...] = ()
    """Those that the server was asked to register."""


class Login(Secretive, frozen=True, kw_only=True):
    """Tokens for one server and account, with all that is needed to renew them."""

    server: str
    account: str
    auth_server: AuthServer
    resource: str | None = None
    """The ``resource`` to ask for; None: none is sent."""
    client: Registration = Registration(client_id="")
    access_token: str = ""
    token_type: Literal["Bearer", "DPoP"] = "Bearer"
    refresh_token: str | None = None
    issued_at: float = 0.0
    expires_at: float | None = None
    granted: tuple[str, ...] = ()
    requested_scopes: tuple[str, ...] = ()
    dpop_key: str | None = None
    skew: float = 0.0
    network: str = "global"
    """The kind of network that the server was in: a token endpoint may be in the same kind."""
    subject: str | None = None
    """The person, as far as the server names one."""

    @property
    def issuer(self) -> str:
        return self.auth_server.issuer

    @property
    def key(self) -> str:
        return login_key(self.issuer, self.resource, self.server, self.account)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Every scope that was asked for or granted: the next authorization keeps them.

        But for ``offline_access``, which is asked for where the server lists it.
        """
        scopes = dict.fromkeys((*self.requested_scopes, *self.granted))
        return tuple(scope for scope in scopes if scope != "offline_access")

    def due(self, now: float, jitter: float = 0.0) -> bool:
        """Return whether the token should be renewed; ``jitter`` (0 to 1) spreads processes."""
        return now >= self.renew_at(jitter)

    def renew_at(self, jitter: float = 0.0) -> float:
        if self.expires_at is None:
            return float("inf")
        early = min(EARLY, (self.expires_at - self.issued_at) / 10)
        return self.expires_at - early * (1 + jitter / 10)

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at


class Pointer(Struct, frozen=True):
    """Refers from a server's URL to its login, so that a new process finds it at once."""

    issuer: str
    resource: str | None
    client_id: str | None = None
    metadata_url: str | None = None
    """Where the server said that its resource metadata is, if it did."""


def split_scope(text: str) -> tuple[str, ...]:
    """Return the scopes in a space-separated list (RFC 6749 §3.3), each once, in order."""
    usable = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
    scopes = dict.fromkeys(scope for scope in text.split() if usable.fullmatch(scope))
    return tuple(scopes)[:MAX_SCOPES]


def entry_key(kind: Literal["login", "server", "client", "issuer"], *parts: str | None) -> str:
    """Return where an entry is stored."""
    text = msgspec.json.encode([part or "" for part in parts])
    return f"{kind}-{sha256(text).hexdigest()[:40]}"


def login_key(issuer: str, resource: str | None, server: str, account: str) -> str:
    """Return where a login is stored; by server too, for several may share a resource."""
    return entry_key("login", issuer, resource, server, account)


def pointer_key(server: str, account: str) -> str:
    return entry_key("server", server, account)


def decode(data: bytes | None, kind: type[E]) -> E | None:
    """Decode an entry; one that cannot be read counts as none, and is not quoted."""
    try:
        return msgspec.json.decode(data, type=kind) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
