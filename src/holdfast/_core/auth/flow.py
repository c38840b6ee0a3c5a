"""What to do about a refusal: renew, grant by machine, or let a person log in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.auth import grants
from holdfast._core.auth.challenge import Challenge
from holdfast._core.auth.credentials import Login, Registration
from holdfast._core.auth.discovery import (
    AuthServer,
    Found,
    ProtectedResource,
    Wanted,
    find_resource,
    find_server,
)
from holdfast._core.auth.grants import Endpoint, Tokens
from holdfast._core.auth.options import (
    Machine,
    OAuth,
)
from holdfast._core.auth.steps import (
    Conversation,
    Recall,
)
from holdfast.errors import (
    AuthError,
    ScopeError,
    TransportError,
)

MAX_STEP_UPS: Final = 2
"""New authorizations for more scopes, for one operation."""
DEVICE_INTERVAL: Final = 5.0
MAX_DEVICE_INTERVAL: Final = 60.0


class Case(Struct, frozen=True, kw_only=True):
    """A refused request and what is known at that moment."""

    server: str
    account: str
    options: OAuth | Machine
    challenge: Challenge
    status: int
    now: float
    login: Login | None = None
    renewed: bool = False
    """This request was already repeated with a renewed token."""
    step_ups: int = 0
    """New authorizations that this operation has had."""
    version_header: Mapping[str, str] = {}
    network: str = "global"
    """The kind of network that the server is in."""


class Renew(Struct, frozen=True):
    """The stored login may be renewed without a person."""

    login: Login


class Need(Struct, frozen=True, kw_only=True):
    """A new authorization is needed: where, and for which scopes."""

    found: Found
    scopes: tuple[str, ...] | None
    dpop: bool = False
    step_up: bool = False


def answer(case: Case) -> Conversation[Renew | Need]:
    """Decide what a 401 or 403 asks for; raise if nothing can be done about it."""
    if case.status == 403:
        return (yield from _step_up(case))
    login = case.login
    may_renew = login is not None and login.refresh_token is not None and not case.renewed
    if may_renew and login is not None and login.due(case.now):
        return Renew(login)
    try:
        need = yield from discover(case)
    except TransportError:
        if may_renew and login is not None:
            return Renew(login)
        raise
    stored = yield Recall(need.found.server.issuer, need.found.resource)
    if stored is not None and (login is None or stored.key != login.key):
        login, may_renew = stored, stored.refresh_token is not None and not case.renewed
    # A refresh token is shown to the issuer that gave it and to no other (A13).
    if may_renew and login is not None and login.issuer == need.found.server.issuer:
        return Renew(login)
    return need


def discover(case: Case) -> Conversation[Need]:
    """Find the authorization server, and say what to ask of it."""
    wanted = _wanted(case)
    resource = yield from find_resource(case.server, case.challenge.resource_metadata, wanted)
    if resource is not None and len(resource.servers) > 1:
        for issuer in resource.servers:
            if (yield Recall(issuer, resource.resource)) is not None:
                wanted = replace(wanted, prefer=(*wanted.prefer, issuer))
    found = yield from find_server(case.server, resource, wanted)
    return Need(
        found=found,
        scopes=_scopes(case, resource),
        dpop=_wants_dpop(case.options, case.challenge, resource),
    )


def _wanted(case: Case) -> Wanted:
    options = case.options
    return Wanted(
        issuer=options.issuer,
        resource=options.resource,
        insecure=options.insecure,
        version_header=case.version_header,
    )


def _scopes(case: Case, resource: ProtectedResource | None) -> tuple[str, ...] | None:
    """Return the scopes to ask for (Scope Selection Strategy); None: the parameter is left out."""
    if case.options.asked is not None:
        return case.options.asked
    if case.challenge.scope is not None:
        return case.challenge.scope
    return None if resource is None else resource.scopes


def _wants_dpop(
    options: OAuth | Machine, challenge: Challenge, resource: ProtectedResource | None
) -> bool:
    setting = getattr(options, "dpop", "auto")
    if setting != "auto":
        return bool(setting)
    demanded = challenge.schemes == {"dpop"}
    return demanded or (resource is not None and resource.dpop_required)


def _step_up(case: Case) -> Conversation[Need]:
    """Ask for more scopes (Step-Up Authorization Flow): a new authorization, not a refresh."""
    challenge, login = case.challenge, case.login
    if challenge.error != "insufficient_scope":
        said = grants.plain(challenge.error_description)
        raise AuthError(f"the server forbids this{': ' + said if said else ''}", code=403)
    wanted = challenge.scope or ()
    names = " ".join(wanted)
    if not wanted:
        raise ScopeError("the server wants more scopes and does not say which")
    if login is not None and set(wanted) <= set(login.granted):
        raise ScopeError(f"the server refuses a token that has its scopes: {names}", scopes=wanted)
    if case.step_ups >= MAX_STEP_UPS:
        text = f"the server still wants scopes after {case.step_ups} new authorizations: {names}"
        raise ScopeError(text, scopes=wanted)
    need = yield from discover(case)
    earlier = () if login is None else login.scopes
    union = tuple(dict.fromkeys((*earlier, *(need.scopes or ()), *wanted)))
    return replace(need, scopes=union, step_up=True)


# Renewing.


def renew(login: Login, now: float) -> Conversation[Login]:
    """Use the refresh token at the issuer that gave it (RFC 6749 §6)."""
    assert login.refresh_token is not None
    fields = {
        "grant_type": "refresh_token",
        "refresh_token": login.refresh_token,
        "resource": login.resource,
    }
    tokens = yield from grants.request(
        _endpoint_of(login), login.client, fields, proof=login.dpop_key
    )
    kind = grants.usable_type(tokens, dpop=login.dpop_key is not None, issuer=login.issuer)
    return replace(
        login,
        access_token=tokens.access_token,
        token_type=kind,
        # No new refresh token in the answer: the old one goes on.
        refresh_token=tokens.refresh_token or login.refresh_token,
        issued_at=now,
        expires_at=_expiry(tokens, now),
        granted=login.granted if tokens.scopes is None else tokens.scopes,
        skew=tokens.skew,
    )


def revoke(login: Login) -> Conversation[bool]:
    """Tell the authorization server that the tokens are not used any more (RFC 7009)."""
    if login.revocation_endpoint is None:
        return False
    endpoint = replace(_endpoint_of(login), url=login.revocation_endpoint)
    done = True
    for token, kind in (
        (login.refresh_token, "refresh_token"),
        (login.access_token, "access_token"),
    ):
        if token is not None:
            done = (yield from grants.revocation(endpoint, login.client, token, kind)) and done
    return done


def _endpoint_of(login: Login) -> Endpoint:
    return Endpoint(
        url=login.token_endpoint,
        issuer=login.issuer,
        auth_methods=login.auth_methods,
        pinned=login.pinned,
    )


# Common to all grants.


def endpoint_for(server: AuthServer, options: OAuth | Machine) -> Endpoint:
    return Endpoint(
        url=server.token_endpoint,
        issuer=server.issuer,
        auth_methods=server.auth_methods,
        pinned=options.issuer is not None,
    )


def granted(
    case: Case,
    need: Need,
    client: Registration,
    tokens: Tokens,
    *,
    asked: tuple[str, ...] | None,
    dpop_key: str | None,
) -> Login:
    """Return the login that an answer of the token endpoint makes."""
    server = need.found.server
    kind = grants.usable_type(tokens, dpop=dpop_key is not None, issuer=server.issuer)
    return Login(
        issuer=server.issuer,
        resource=need.found.resource,
        account=case.account,
        server=case.server,
        token_endpoint=server.token_endpoint,
        client=client,
        access_token=tokens.access_token,
        token_type=kind,
        refresh_token=tokens.refresh_token,
        issued_at=case.now,
        expires_at=_expiry(tokens, case.now),
        granted=(asked or ()) if tokens.scopes is None else tokens.scopes,
        asked=asked or (),
        dpop_key=dpop_key,
        skew=tokens.skew,
        network=case.network,
        auth_methods=server.auth_methods,
        revocation_endpoint=server.revocation_endpoint,
        pinned=case.options.issuer is not None,
        subject=tokens.subject,
    )


def _expiry(tokens: Tokens, now: float) -> float | None:
    return None if tokens.expires_in is None else now + tokens.expires_in


def joined(scopes: tuple[str, ...] | None) -> str | None:
    """Return scopes as a parameter; None leaves it out."""
    return " ".join(scopes) if scopes else None
