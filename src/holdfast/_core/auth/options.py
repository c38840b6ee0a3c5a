"""The kinds of authorization that ``connect(auth=…)`` takes."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import structs

from holdfast._core import files
from holdfast._core.auth import urls
from holdfast._core.auth.credentials import ENDPOINTS, Secretive, split_scope
from holdfast.errors import AuthError, ValidationError
from holdfast.policies import one_of, refused
from holdfast.stores.base import Store

TokenSource: TypeAlias = "str | Callable[[], str | Awaitable[str]]"
AccountSource: TypeAlias = "str | Callable[[], str]"
Scopes: TypeAlias = "str | Iterable[str] | None"
_TYPES: Final[dict[str, tuple[Any, str]]] = {
    "str": (str, "a string"),
    "str | None": (str | None, "a string"),
    "bool": (bool, "True or False"),
    "float": (int | float, "a number"),
    "TokenSource": (str | Callable, "a string or a function"),
    "AccountSource": (str | Callable, "a string or a function"),
}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\x21\x22\x24-\x7e]{1,2000}")


class _Options(Secretive, frozen=True, kw_only=True):
    """The options that every grant has."""

    scopes: Scopes = None
    issuer: str | None = None
    resource: str | Literal[False] | None = None
    insecure: bool = False
    store: Store | None = None

    extension: ClassVar[str | None] = None
    """Its name in ``capabilities``."""

    def __post_init__(self) -> None:
        for kind in type(self).__mro__:
            for name, annotation in getattr(kind, "__annotations__", {}).items():
                expected, words = _TYPES.get(annotation, (object, ""))
                if not isinstance(getattr(self, name), expected):
                    raise _wrong_type(self, name, words)
        if self.scopes is not None:
            try:
                text = self.scopes if isinstance(self.scopes, str) else " ".join(self.scopes)
            except TypeError:
                raise refused(self, "scopes", "a string or a list of them") from None
            structs.force_setattr(self, "scopes", split_scope(text))
        for name in ("issuer", "metadata_url", "idp_issuer"):
            _check_url(name, getattr(self, name, None), self.insecure)
        if isinstance(self.resource, str) and not _URI.fullmatch(self.resource):
            raise ValidationError("resource: must be an absolute URI without a fragment")

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions in use, by their names in ``capabilities``."""
        bound = DPOP_EXTENSION if getattr(self, "dpop", False) is True else None
        return tuple(name for name in (self.extension, bound) if name is not None)

    async def assertion(self) -> str | None:
        """Return the JWT or ID token that the grant is requested with, if it needs one."""
        return None

    @property
    def chosen_scopes(self) -> tuple[str, ...] | None:
        """The scopes that the user chose; None: those that the server names."""
        return self.scopes  # type: ignore[return-value]


class OAuth(_Options, frozen=True, kw_only=True):
    """Log in as a person, by the authorization code grant with PKCE.

    Example:
        ``holdfast.connect(url, auth=OAuth(scopes=["files:read"], account="work"))``

    Args:
        scopes: The scopes to ask for; None asks for those that the server names.
        client_id: A client that you have registered yourself.
        client_secret: Its secret, if it has one.
        client_metadata_url: The https URL of a client metadata document that you host.
        redirect_uri: Where the browser comes back to; by default a free port on 127.0.0.1.
        account: A name for this login, or a function that gives one for each call.
        issuer: The authorization server to use, as its metadata names itself.
        resource: Replace the ``resource`` parameter; False leaves it out.
        metadata_url: Read the authorization server's metadata here instead of discovering it.
        endpoints: Endpoints that replace those of the metadata, by their names there, such as
            ``token_endpoint``; with an ``authorization_endpoint`` as well no metadata is read.
        pkce: ``"assume"`` goes on with a server that does not say that it has PKCE.
        dpop: Bind tokens to a key: when the server wants it, always, or never.
        store: Where tokens are kept; by default the user's own store.
        insecure: Allow an authorization server without TLS.
        device: Use the device grant: a code to type in on another device.
        timeout: Seconds that a person has for the login.
    """

    client_id: str | None = None
    client_secret: str | None = None
    client_metadata_url: str | None = None
    redirect_uri: str | None = None
    account: AccountSource = "default"
    metadata_url: str | None = None
    endpoints: Mapping[str, str] | None = None
    pkce: Literal["require", "assume"] = "require"
    dpop: Literal["auto"] | bool = "auto"
    device: bool = False
    timeout: float = 300.0
    interactive: bool = True
    """A login may be started; otherwise only a stored login is used."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("pkce", self.pkce, ("require", "assume"))
        if self.dpop not in ("auto", True, False):
            raise refused(self, "dpop", "'auto', True or False")
        if self.client_secret is not None and self.client_id is None:
            raise ValidationError("client_secret=… needs client_id=…")
        _check_url("redirect_uri", self.redirect_uri)
        for name, url in (self.endpoints or {}).items():
            if name not in ENDPOINTS:
                raise ValidationError(f"endpoints: {name!r} is not one of {', '.join(ENDPOINTS)}")
            _check_url(name, url, self.insecure)
        _check_url("client_metadata_url", self.client_metadata_url, check=urls.check_client_id_url)

    def client_metadata(self, name: str = "Holdfast") -> dict[str, Any]:
        """Return the client metadata document to host at ``client_metadata_url``.

        Example:
            ``json.dumps(OAuth(client_metadata_url="https://example.org/mcp.json").client_metadata())``

        Raises:
            ValidationError: ``client_metadata_url`` is not given.
        """
        from holdfast._core.auth.registration import client_metadata

        if self.client_metadata_url is None:
            raise ValidationError("client_metadata() needs client_metadata_url=…")
        loopback = [f"http://{host}/callback" for host in ("127.0.0.1", "localhost")]
        redirects = [self.redirect_uri] if self.redirect_uri is not None else loopback
        return {
            "client_id": self.client_metadata_url,
            **client_metadata(self, redirects[0], None),
            "client_name": name,
            "redirect_uris": redirects,
            "token_endpoint_auth_method": "none",
        }


class Bearer(Secretive, frozen=True):
    """Send a token that you have already.

    Args:
        token: The token, or a function, sync or async, that gives it; the function is asked
            again when the server refuses the token.
    """

    token: TokenSource

    def __post_init__(self) -> None:
        if isinstance(self.token, str):
            check_token(self.token)
        elif not callable(self.token):
            raise _wrong_type(self, "token", "a string or a function")


class ClientCredentials(_Options, frozen=True, kw_only=True):
    """Authorize as a service: the client credentials grant, without a person.

    Args:
        client_id: The client, registered beforehand.
        client_secret: Its secret; or ``private_key`` as PEM, which signs an assertion.
        algorithm: The algorithm of that key: ``ES256``, ``RS256`` or ``EdDSA``.
        key_id: The key's id, where the server wants one.
        issuer: The authorization server that the credentials belong to. Without it they are bound
            to the first one that the server names, and a later change is an error.
        store: Where that first one is remembered; by default the user's own store.
    """

    client_id: str
    client_secret: str | None = None
    private_key: str | None = None
    algorithm: str = "ES256"
    key_id: str | None = None

    extension: ClassVar[str | None] = "io.modelcontextprotocol/oauth-client-credentials"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.client_secret is None) == (self.private_key is None):
            raise ValidationError("ClientCredentials: give client_secret=… or private_key=…")


class WorkloadIdentity(_Options, frozen=True, kw_only=True):
    """Authorize by the platform's own JWT (RFC 7523 §2.1), as CI systems and clouds give one.

    Args:
        client_id: The client at the authorization server.
        token: A function that gives the JWT, or the path of a file that is read anew each time.
        issuer: The authorization server that it is for; see `ClientCredentials`.
    """

    client_id: str
    token: Callable[[], str | Awaitable[str]] | os.PathLike[str] | str

    extension: ClassVar[str | None] = "io.modelcontextprotocol/auth/wif"

    async def assertion(self) -> str | None:
        return await supplied(self.token, file=True)


class EnterpriseManaged(_Options, frozen=True, kw_only=True):
    """Authorize by the company's identity provider; the user never sees the server's own.

    Args:
        idp_issuer: The identity provider.
        idp_client_id: The client there.
        idp_client_secret: Its secret, if it has one.
        id_token: The user's ID token, or a function that gives it: that of one user, for the
            access token is used for all calls of the client.
        client_id: The client at the server's authorization server.
        client_secret: Its secret, if it has one.
        issuer: The server's authorization server; see `ClientCredentials`.
    """

    idp_issuer: str
    idp_client_id: str
    id_token: TokenSource
    client_id: str
    idp_client_secret: str | None = None
    client_secret: str | None = None

    extension: ClassVar[str | None] = "io.modelcontextprotocol/enterprise-managed-authorization"

    async def assertion(self) -> str | None:
        return await supplied(self.id_token)


Machine: TypeAlias = ClientCredentials | WorkloadIdentity | EnterpriseManaged
Auth: TypeAlias = Literal["auto", "oauth"] | OAuth | Bearer | Machine | None

DPOP_EXTENSION = "io.modelcontextprotocol/auth/dpop"


def options_for(auth: Any) -> OAuth | Bearer | Machine | None:
    """Return the options for ``auth=…``; the error does not repeat an unknown string."""
    if auth is None or isinstance(auth, OAuth | Bearer | Machine):
        return auth
    if isinstance(auth, str) and auth in KEYWORDS:
        return KEYWORDS[auth]
    raise ValidationError(
        "auth=…: must be 'auto', 'oauth', None, or one of OAuth, Bearer, ClientCredentials, "
        "WorkloadIdentity, EnterpriseManaged (a token goes in Bearer(token))"
    )


def account_name(options: OAuth | Machine, server: str) -> str:
    """Return the account to use: from the function if it is one, for the current caller."""
    name = source = getattr(options, "account", "default")
    if callable(source):
        try:
            name = source()
        except Exception as error:
            raise AuthError(f"{server}: account() failed: {error!r}") from error
    elif source == "default":
        name = os.environ.get("HOLDFAST_ACCOUNT") or source
    if not name or not isinstance(name, str):
        raise AuthError("account=…: must give the name of an account")
    return name


def check_token(token: object) -> str:
    """Return a token that is valid in a header; the error does not quote an invalid one."""
    if isinstance(token, str) and token and all("\x21" <= letter <= "\x7e" for letter in token):
        return token
    raise ValidationError("the token is empty or has characters that cannot be in a header")


async def supplied(source: Any, *, file: bool = False) -> str:
    """Return a token: from a function, from a file that is read each time, or as given."""
    token = source() if callable(source) else source
    token = await token if inspect.isawaitable(token) else token
    if file and not callable(source):
        try:
            data = await asyncio.to_thread(files.read_bytes, source, 65536)
        except OSError as error:
            raise AuthError(f"the token file cannot be read: {files.reason(error)}") from None
        token = data.decode("ascii", "replace")
    return check_token(token.strip() if isinstance(token, str) else token)


def bearer_headers(options: Bearer, user_headers: Any) -> Any:
    """Return headers with the token; a function of headers if the token is from a function."""
    if isinstance(options.token, str) and not callable(user_headers):
        return {**(user_headers or {}), "Authorization": f"Bearer {options.token}"}

    async def headers() -> dict[str, str]:
        fields = user_headers() if callable(user_headers) else user_headers or {}
        fields = dict(await fields if inspect.isawaitable(fields) else fields)
        rest = {name: value for name, value in fields.items() if name.lower() != "authorization"}
        return {**rest, "Authorization": f"Bearer {await supplied(options.token)}"}

    return headers


def _wrong_type(options: Any, name: str, expected: str) -> ValidationError:
    """Return the error for an option; its value may be a secret and is not shown."""
    owner, kind = type(options).__name__, type(getattr(options, name)).__name__
    return ValidationError(f"{owner}({name}=…): must be {expected}, not {kind}")


def _check_url(
    name: str, url: str | None, insecure: bool = False, check: Callable[..., Any] = urls.checked
) -> None:
    try:
        if url is not None:
            check(url, insecure=insecure)
    except urls.BadUrl as error:
        raise ValidationError(f"{name}: {error}") from None


class LoginRequest(Secretive, frozen=True, kw_only=True):
    """A request to a login handler: send a person to ``url``.

    The handler may return the URL that the browser was sent back to; else the loopback
    listener receives it. ``check(url)`` says what is wrong with such a URL, as text, so that the
    handler can ask for another one. With ``user_code`` the person types that code in there.
    """

    url: str
    server: str
    issuer: str
    scopes: tuple[str, ...] = ()
    account: str = "default"
    user_code: str | None = None
    redirect_uri: str | None = None
    check: Callable[[str], str] = lambda url: ""


KEYWORDS: Final = {"auto": OAuth(interactive=False), "oauth": OAuth()}
