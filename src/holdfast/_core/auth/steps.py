"""The steps that conversations yield, and the answers that are sent back."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct

from holdfast._core.auth.credentials import Registration, Secretive

T = TypeVar("T")


class Ask(Secretive, frozen=True, kw_only=True):
    """Send one request to an authorization server, or for metadata."""

    url: str
    form: Mapping[str, str] | None = None
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = {}
    proof: str | None = None
    """Send a DPoP proof by this key."""
    pinned: bool = False
    follow: bool = True
    """Follow redirects of a GET; nothing else is redirected (A32)."""

    @property
    def method(self) -> Literal["GET", "POST"]:
        return "GET" if self.form is None and self.json is None else "POST"


class Fetched(Secretive, frozen=True):
    """An answer: its status and its bounded body."""

    status: int
    body: bytes = b""
    skew: float = 0.0
    """Seconds by which the sender's clock is ahead of ours."""
    retry_after: float | None = None
    nonce: str | None = None
    """For DPoP proofs (RFC 9449 §8)."""
    location: str | None = None
    """Where a redirect that was not followed leads to."""

    def document(self) -> dict[str, Any] | None:
        """Return the body if it is a JSON object."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def fields(self) -> dict[str, Any] | None:
        """Return the body as an object, or as a form: some servers answer with one."""
        if (document := self.document()) is not None:
            return document
        try:
            text = self.body.decode("ascii")
            return dict(parse_qsl(text, strict_parsing=True, max_num_fields=100))
        except ValueError:
            return None


class Unreachable(Struct, frozen=True):
    """No answer came."""

    reason: str
    forbidden: bool = False
    """The address is one that must not be asked (A31)."""


class Sign(Secretive, frozen=True):
    """Sign an assertion of who the client is, with its private key."""

    client: Registration
    audience: str


class Read(Struct, frozen=True):
    """Read a stored entry; answered with it, or with None."""

    key: str
    kind: type[Struct]


class Write(Struct, frozen=True):
    """Store an entry; None deletes it."""

    key: str
    value: Struct | None


class Listen(Struct, frozen=True):
    """Listen for the browser's redirect; answered with the redirect URI to use."""

    preferred: str | None
    """The URI registered earlier: its port is tried first."""
    path: str
    fixed: bool = False
    """Use no other port: the client is registered for this one."""


class Visit(Secretive, frozen=True, kw_only=True):
    """Send a person to a URL.

    With a ``state``, wait for the redirect; answered with its parameters. With a ``user_code``
    (RFC 8628), show it and wait for nothing.
    """

    url: str
    issuer: str
    scopes: tuple[str, ...]
    state: str | None = None
    user_code: str | None = None


class Pause(Struct, frozen=True):
    """Wait some seconds."""

    seconds: float


Step: TypeAlias = Ask | Sign | Read | Write | Listen | Visit | Pause
Conversation: TypeAlias = Generator[Step, Any, T]
