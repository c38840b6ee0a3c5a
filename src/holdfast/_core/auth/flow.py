"""Read a refusal (RFC 9110 §11.6.1), and decide what it asks for: a renewal, or a new login."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.auth import grants, jws, urls
from holdfast._core.auth.credentials import (
    Login,
    Pointer,
    Secretive,
    login_key,
    pointer_key,
    split_scope,
)
from holdfast._core.auth.discovery import Discovery, ProtectedResource
from holdfast._core.auth.options import Machine, OAuth
from holdfast._core.auth.steps import Conversation, Read, Write
from holdfast.errors import AuthError, Hint, LoginRequired, ScopeError, TransportError

MAX_HEADER: Final = 16 * 1024
"""Characters of a response's challenges that are read; real ones are far shorter."""
MAX_STEP_UPS: Final = 2
"""New authorizations for more scopes, for one operation."""

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_QUOTED = r'"((?:[^"\\]|\\.)*+)"'
_PART: Final = re.compile(
    rf"[ \t,]*+(?:(?P<scheme>{_TOKEN})(?![ \t]*=)"
    rf'|(?P<name>{_TOKEN})[ \t]*=[ \t]*(?:{_QUOTED}|(?P<bare>[^\s,="][^\s,]*))'
    # Anything else up to the next comma outside quotes; an open quote hides all that follows.
    r'|(?:[^",]++|"(?:[^"\\]|\\.)*+")*+(?:".*)?)',
    re.S,
)


class Challenge(Struct, frozen=True):
    """The credentials that a server wants, as a refusal names them."""

    schemes: frozenset[str] = frozenset()
    """Those of ``bearer`` and ``dpop`` that were offered."""
    resource_metadata: str | None = None
    scope: tuple[str, ...] | None = None
    error: str | None = None
    error_description: str | None = None


class Refusal(Secretive, frozen=True, kw_only=True):
    """A 401 or 403, as the HTTP client saw it."""

    status: int = 401
    challenge: Challenge = Challenge()
    token: str | None = None
    operation: str = ""
    nonce: str | None = None
    network: str | None = None
    version_header: Mapping[str, str] = {}


class Attempts(Struct):
    """The attempts already made for one request."""

    count: int = 0
    nonce: bool = False
    renewed: bool = False


def read_challenge(headers: Iterable[str]) -> Challenge:
    """Merge the Bearer and DPoP challenges of a response (RFC 6750 §3, 9449 §7.1, 9728 §5.1)."""
    ours = [(scheme, params) for scheme, params in parse(headers) if scheme in ("bearer", "dpop")]
    # A parameter comes from the first of them that has it.
    merged = {name: value for _, params in reversed(ours) for name, value in params.items()}
    return Challenge(
        frozenset(scheme for scheme, _ in ours),
        merged.get("resource_metadata"),
        split_scope(merged["scope"]) if "scope" in merged else None,
        merged.get("error"),
        merged.get("error_description"),
    )


def parse(headers: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Return every challenge as its lower-case scheme and its parameters; never raise."""
    challenges: list[tuple[str, dict[str, str]]] = []
    room = MAX_HEADER
    for header in headers:
        text, room = header[:room], max(0, room - len(header))
        params: dict[str, str] | None = None
        for scheme, name, quoted, bare in _PART.findall(text):
            if scheme:
                params = {}
                challenges.append((scheme.lower(), params))
            elif name and params is not None:
                value = bare or re.sub(r"\\(.)", r"\1", quoted, flags=re.S)
                params.setdefault(name.lower(), value)
    return challenges


# Decisions


class RefusedRequest(Struct, frozen=True, kw_only=True):
    """A refused request, and what is known at that moment."""

    server: str
    account: str
    options: OAuth | Machine
    now: float
    refusal: Refusal = Refusal()
    login: Login | None = None
    renewed: bool = False
    """This request was already repeated with a renewed token."""
    step_ups: int = 0
    """New authorizations for more scopes that this operation has had."""
    network: str = "global"


class AuthorizationNeed(Struct, frozen=True, kw_only=True):
    """A new authorization is needed, for a login that has no client and no tokens yet."""

    login: Login
    dpop: bool = False
    step_up_for: str | None = None
    """The operation that was refused because scopes are missing."""

    def with_dpop_key(self) -> Login:
        """Return the login, with a new DPoP key if its tokens are to be bound to one."""
        return replace(self.login, dpop_key=jws.new_key()) if self.dpop else self.login


def answer(request: RefusedRequest) -> Conversation[Login | AuthorizationNeed]:
    """Decide what a 401 or 403 asks for: a login to renew, or a new authorization."""
    if request.refusal.status == 403:
        return (yield from _step_up(request))
    renewable = request.login is not None and request.login.refresh_token is not None
    login = request.login if renewable and not request.renewed else None
    if login is not None and login.due(request.now):
        return login
    try:
        need = yield from discover(request)
    except TransportError:
        if login is None:
            raise
        return login
    stored = yield Read(need.login.key, Login)
    if stored is not None and (request.login is None or stored.key != request.login.key):
        login = stored if stored.refresh_token is not None and not request.renewed else None
    # A refresh token is sent only to the issuer that gave it (A13).
    if login is not None and login.issuer == need.login.issuer:
        return login
    return _widened(need, request)


def _issuers_with_login(
    request: RefusedRequest, resource: ProtectedResource
) -> Conversation[set[str]]:
    issuers = set()
    for issuer in resource.servers:
        place = login_key(issuer, resource.resource, request.server, request.account)
        if (yield Read(place, Login)) is not None:
            issuers.add(issuer)
    return issuers


def discover(request: RefusedRequest) -> Conversation[AuthorizationNeed]:
    """Find the authorization server, and decide what to ask of it."""
    options, challenge = request.options, request.refusal.challenge
    search = Discovery(request.server, options, request.refusal.version_header)
    resource = yield from search.find_resource(challenge.resource_metadata)
    prefer: set[str] = set()
    if resource is not None and len(resource.servers) > 1:
        prefer = yield from _issuers_with_login(request, resource)
    server = yield from search.find_server(resource, prefer)
    dpop = getattr(options, "dpop", "auto")
    if dpop == "auto":
        dpop = challenge.schemes == {"dpop"} or (resource is not None and resource.dpop_required)
    # Scope Selection Strategy: the user's own, the challenge's, the resource's.
    scopes = options.chosen_scopes if options.chosen_scopes is not None else challenge.scope
    if scopes is None and resource is not None:
        scopes = resource.scopes
    login = Login(
        server=request.server,
        account=request.account,
        auth_server=server,
        resource=search.resource_parameter(resource),
        requested_scopes=scopes or (),
        network=request.network,
    )
    return AuthorizationNeed(login=login, dpop=bool(dpop))


def _step_up(request: RefusedRequest) -> Conversation[AuthorizationNeed]:
    """Ask for more scopes (Step-Up Authorization Flow): a new authorization, not a refresh."""
    missing = request.refusal.challenge.scope or ()
    if not missing:
        raise ScopeError("the server wants more scopes and does not say which")
    text = None
    if request.login is not None and set(missing) <= set(request.login.granted):
        text = "the server refuses a token that has its scopes"
    elif request.step_ups >= MAX_STEP_UPS:
        text = f"the server still wants scopes after {request.step_ups} new authorizations"
    if text is not None:
        raise ScopeError(f"{text}: {' '.join(missing)}", scopes=missing)
    need = _widened((yield from discover(request)), request, missing)
    return replace(need, step_up_for=request.refusal.operation)


def _widened(
    need: AuthorizationNeed, request: RefusedRequest, missing: tuple[str, ...] = ()
) -> AuthorizationNeed:
    """Add the scopes that are missing, and those of the previous login at this issuer.

    Otherwise its permissions would be lost (Scope Selection Strategy). On a 401, scopes that the
    user chose stay unchanged.
    """
    login = request.login
    is_chosen = request.options.chosen_scopes is not None and request.refusal.status == 401
    is_same = login is not None and login.issuer == need.login.issuer
    earlier = login.scopes if login is not None and is_same and not is_chosen else ()
    union = (*earlier, *need.login.requested_scopes, *missing)
    return replace(need, login=replace(need.login, requested_scopes=tuple(dict.fromkeys(union))))


def login_required(name: str, account: str, need: AuthorizationNeed) -> LoginRequired:
    """Return the error that asks for a login, with the command to run."""
    words, text, scopes = (
        ["holdfast", "login", name],
        "the server wants a login",
        need.login.requested_scopes,
    )
    if account != "default":
        words += ["--account", account]
    if need.step_up_for is not None:
        # The command gets no 403: without --scope it would request the old scopes again.
        words += [f"--scope={scope}" for scope in scopes]
        text += " for more scopes"
    # Names may come from a project's file: quote them, or they could add a command.
    command = shlex.join(words)
    return LoginRequired(text, command=command, scopes=scopes, hints=(Hint("", f"run: {command}"),))


def refused(name: str, text: str, refusal: Refusal) -> AuthError:
    """Return the error for a token that the server does not take, with the server's reason."""
    reason = refusal.challenge.error_description or refusal.challenge.error
    suffix = f": {grants.plain(reason, secrets=[refusal.token or ''])}" if reason else ""
    return AuthError(f"{name}: {text}{suffix}", code=refusal.status)


def renew(login: Login, now: float) -> Conversation[Login]:
    """Use the refresh token at the issuer that gave it (RFC 6749 §6)."""
    fields = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
    fields["resource"] = login.resource
    return (yield from grants.obtain(login, fields, now))


def revoke(login: Login) -> Conversation[str | None]:
    """Revoke the tokens (RFC 7009), the refresh token first; return why one was not revoked.

    A server that has no such endpoint revokes nothing, and one that cannot revoke access tokens
    says so (§2.2.1): both are as it was made to be.
    """
    url, problem = login.auth_server.revocation_endpoint, None
    for kind in ("refresh_token", "access_token") if url is not None else ():
        if (token := getattr(login, kind)) is None:
            continue
        fields = {"token": token, "token_type_hint": kind}
        try:
            response = yield from grants.post(login, fields, url)
        except (TransportError, AuthError) as error:
            if getattr(error, "error", "") != "unsupported_token_type":
                problem = problem or error.message
        else:
            if response.status >= 300:
                text = f"{login.issuer} answered the revocation with HTTP status {response.status}"
                problem = problem or text
    return problem


def stored(request: RefusedRequest) -> Conversation[Login | None]:
    """Read the login, if it is for this server and for the issuer that is pinned."""
    pinned = request.options.issuer
    pointer = yield Read(pointer_key(request.server, request.account), Pointer)
    if pointer is None or not urls.same_issuer(pinned or pointer.issuer, pointer.issuer):
        return None
    login = yield Read(
        login_key(pointer.issuer, pointer.resource, request.server, request.account), Login
    )
    return login if login is not None and login.server == request.server else None


def keep(login: Login, metadata_url: str | None) -> Conversation[None]:
    """Store a login, and the pointer to it."""
    who = login.client.client_id
    pointer = Pointer(login.issuer, login.resource, client_id=who, metadata_url=metadata_url)
    yield Write(login.key, login)
    yield Write(pointer_key(login.server, login.account), pointer)
