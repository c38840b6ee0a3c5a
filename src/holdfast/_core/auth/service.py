"""Authorize as a service, without a person: by a secret, a key, or an assertion."""

from __future__ import annotations

import logging

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.auth import grants, urls
from holdfast._core.auth.auth_server import StepRunner
from holdfast._core.auth.credentials import Login, Registration, entry_key
from holdfast._core.auth.discovery import Discovery
from holdfast._core.auth.options import EnterpriseManaged, Machine, OAuth
from holdfast._core.auth.steps import Conversation, Read, Write
from holdfast._core.redact.known import KNOWN
from holdfast.errors import DiscoveryError, GrantError, Hint, HoldfastError

log: logging.Logger = logging.getLogger("holdfast")


class IssuerBinding(Struct, frozen=True):
    """The issuer that a service's credentials were first used at, for one server."""

    issuer: str
    server: str
    client_id: str


def binding_key(options: Machine, server: str) -> str:
    """Return where the issuer is remembered: by server, kind of grant and client."""
    return entry_key("issuer", server, type(options).__name__, options.client_id)


def check_issuer(options: Machine, login: Login, first_used: str | None) -> Conversation[None]:
    """Refuse to send credentials to another issuer than the one that they were first used at.

    The server names its authorization server, so whoever takes the server over could name one of
    his own and be sent the secret. Without a pinned issuer the first one is trusted, as an SSH
    client trusts a host's first key, and a change is for the user to confirm.
    """
    if options.issuer is not None:
        return
    if first_used is None:
        binding = yield Read(binding_key(options, login.server), IssuerBinding)
        first_used = None if binding is None else binding.issuer
    if first_used is not None and not urls.same_issuer(first_used, login.issuer):
        raise DiscoveryError(
            f"the credentials of {options.client_id!r} belong to {first_used}, but the server now "
            f"names {login.issuer}; nothing was sent there",
            hints=(Hint("auth.issuer", "confirms another one"),),
        )


def remember_issuer(options: Machine, login: Login) -> Conversation[None]:
    """Store the issuer that gave a token, unless the user pinned one."""
    if options.issuer is None:
        binding = IssuerBinding(login.issuer, login.server, options.client_id)
        yield Write(binding_key(options, login.server), binding)


class ServiceLogin:
    """The credentials of a service: gets tokens, and remembers the issuer that they belong to."""

    def __init__(self, options: Machine, runner: StepRunner, name: str) -> None:
        self._options = options
        self._runner = runner
        self._name = name
        self._first_issuer: str | None = None
        """The issuer that gave the first token of this process."""

    async def log_in(self, login: Login) -> Login:
        """Return the login with a token, from the issuer that the credentials belong to."""
        options, runner = self._options, self._runner
        await runner.run(check_issuer(options, login, self._first_issuer))
        assertion = await options.assertion()
        if assertion is not None:
            KNOWN.note(assertion)
        login = await runner.run(by_machine(options, login, assertion, runner.clock()))
        if self._first_issuer is None:
            self._first_issuer = login.issuer
            try:
                await runner.run(remember_issuer(options, login))
            except (HoldfastError, OSError) as error:
                # A service may have no place to write. It is bound for as long as it runs.
                text = "%s: the issuer of the credentials is not remembered (%s); issuer=… pins it"
                log.warning(text, self._name, error)
        return login

    async def forget(self, server: str) -> None:
        """Forget the issuer."""
        self._first_issuer = None
        await self._runner.write(binding_key(self._options, server), None)


def by_machine(
    options: Machine, login: Login, assertion: str | None, now: float
) -> Conversation[Login]:
    """Authorize by the grant that the options name."""
    names = ("client_id", "client_secret", "private_key", "algorithm", "key_id")
    client = Registration(
        **{name: getattr(options, name) for name in names if hasattr(options, name)}
    )
    if isinstance(options, EnterpriseManaged):
        assertion = yield from _exchange(options, login, assertion)
    fields = {
        "grant_type": "client_credentials" if assertion is None else grants.JWT_BEARER,
        "assertion": assertion,
        "scope": grants.joined(login.requested_scopes),
        "resource": login.resource,
    }
    login = replace(login, client=client, granted=login.requested_scopes)
    return (yield from grants.obtain(login, fields, now))


def _exchange(options: EnterpriseManaged, login: Login, id_token: str | None) -> Conversation[str]:
    """Exchange the ID token for a grant (RFC 8693; Enterprise-Managed Authorization §4)."""
    pinned = OAuth(issuer=options.idp_issuer, insecure=options.insecure)
    provider = yield from Discovery(options.idp_issuer, pinned).find_server(None)
    client = Registration(client_id=options.idp_client_id, client_secret=options.idp_client_secret)
    exchange = Login(
        server=login.server, account=login.account, auth_server=provider, client=client
    )
    fields = {
        "grant_type": grants.TOKEN_EXCHANGE,
        "requested_token_type": grants.ID_JAG,
        "audience": login.issuer,
        "resource": login.resource,
        "scope": grants.joined(login.requested_scopes),
        "subject_token": id_token,
        "subject_token_type": grants.ID_TOKEN,
    }
    response = yield from grants.post(exchange, fields)
    answer = grants.token_answer(response, provider.issuer)
    # Never forward the user's own access token of the provider: a grant says that it is one, and
    # that it is no access token (RFC 8693 §2.2.1).
    kind = answer.get("issued_token_type", None if answer.get("token_type") == "N_A" else "")
    if kind not in (None, grants.ID_JAG):
        raise GrantError(f"{provider.issuer} gave no grant, but a token of another kind")
    return str(answer["access_token"])
