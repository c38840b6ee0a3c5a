"""The steps that conversations yield, and what they are sent back."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct

from holdfast._core.auth.credentials import Registration, Secretive

T = TypeVar("T")


class Ask(Secretive, frozen=True, kw_only=True):
    """Send one request to an authorization server, or for metadata.

    Metadata may be redirected a few times; nothing else is (A32). ``proof`` asks for a DPoP
    proof by that key.
    """

    url: str
    form: Mapping[str, str] | None = None
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = {}
    proof: str | None = None
    pinned: bool = False
    """The user named this place: it may be in a private network."""
    follow: bool = True
    """Metadata may be redirected; a page that a person will see is not followed."""

    shown: ClassVar[tuple[str, ...]] = ("url",)

    @property
    def method(self) -> Literal["GET", "POST"]:
        return "GET" if self.form is None and self.json is None else "POST"


class Fetched(Secretive, frozen=True):
    """An answer: its status and its bounded body."""

    status: int
    body: bytes = b""
    url: str = ""
    skew: float = 0.0
    """Seconds by which the sender's clock is ahead of ours."""

    shown: ClassVar[tuple[str, ...]] = ("status",)

    def document(self) -> dict[str, Any] | None:
        """Return the body if it is a JSON object."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def fields(self) -> dict[str, Any] | None:
        """Return the body as an object, or as a form: some servers answer like that."""
        found = self.document()
        if found is not None:
            return found
        try:
            pairs = parse_qsl(self.body.decode("ascii"), strict_parsing=True, max_num_fields=100)
        except ValueError:
            return None
        return dict(pairs)


class Unreachable(Struct, frozen=True):
    """No answer came."""

    reason: str
    forbidden: bool = False
    """The address is one that must not be asked (A31)."""


class Sign(Secretive, frozen=True):
    """Sign a JSON Web Token: issuer, subject and audience are given, times and ``jti`` added."""

    key: str
    algorithm: str
    key_id: str | None
    claims: Mapping[str, str]

    shown: ClassVar[tuple[str, ...]] = ("algorithm",)


class Recall(Struct, frozen=True):
    """Read the stored login at an issuer, for a resource."""

    issuer: str
    resource: str | None


class Load(Struct, frozen=True):
    """Read the stored registration at an issuer, for a kind of redirect."""

    issuer: str
    redirect: str


class Keep(Struct, frozen=True):
    """LoginStore a registration, or forget it (None)."""

    issuer: str
    redirect: str
    registration: Registration | None


class Listen(Struct, frozen=True):
    """Prepare to receive the browser; answered with the redirect URI to use."""

    preferred: str | None
    """The URI registered earlier: its port is tried first."""
    path: str
    fixed: bool = False
    """No other port will do: the client is registered for this one alone."""


class Browse(Secretive, frozen=True, kw_only=True):
    """Send a person to a URL and wait for the redirect; answered with its parameters."""

    url: str
    state: str
    issuer: str
    scopes: tuple[str, ...]
    redirect_uri: str

    shown: ClassVar[tuple[str, ...]] = ("issuer", "scopes")


class ShowCode(Secretive, frozen=True, kw_only=True):
    """Show a person the code of a device grant; the answer is not waited for."""

    url: str
    user_code: str
    issuer: str
    scopes: tuple[str, ...]

    shown: ClassVar[tuple[str, ...]] = ("issuer", "scopes")


class Pause(Struct, frozen=True):
    """Wait some seconds."""

    seconds: float


Step: TypeAlias = Ask | Sign | Recall | Load | Keep | Listen | Browse | ShowCode | Pause
Conversation: TypeAlias = Generator[Step, Any, T]
