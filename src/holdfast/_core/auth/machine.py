"""Authorize without a person: client credentials, workload identity, enterprise-managed."""

from __future__ import annotations

from holdfast._core.auth import grants
from holdfast._core.auth.credentials import AuthServer, Login, Registration
from holdfast._core.auth.discovery import Wanted, find_server
from holdfast._core.auth.flow import Case, Need, granted
from holdfast._core.auth.options import ClientCredentials, EnterpriseManaged, OAuth
from holdfast._core.auth.steps import Conversation


def by_machine(
    case: Case, need: Need, assertion: str | None, dpop_key: str | None
) -> Conversation[Login]:
    """Authorize by the grant that the options name."""
    options = case.options
    assert not isinstance(options, OAuth)
    client = Registration(
        client_id=options.client_id,
        client_secret=getattr(options, "client_secret", None),
        private_key=getattr(options, "private_key", None),
        algorithm=getattr(options, "algorithm", "ES256"),
        key_id=getattr(options, "key_id", None),
    )
    if isinstance(options, EnterpriseManaged):
        assertion = yield from _exchange(options, need, assertion)
    machine = isinstance(options, ClientCredentials)
    fields = {
        "grant_type": "client_credentials" if machine else grants.JWT_BEARER,
        "assertion": assertion,
        "scope": grants.joined(need.scopes),
        "resource": need.found.resource,
    }
    tokens = yield from grants.request(need.found.server, client, fields, proof=dpop_key)
    return granted(case, need, client, tokens, asked=need.scopes, dpop_key=dpop_key)


def _exchange(options: EnterpriseManaged, need: Need, id_token: str | None) -> Conversation[str]:
    """Exchange the ID token for a grant (RFC 8693; Enterprise-Managed Authorization §4)."""
    issuer, url = options.idp_issuer, options.idp_token_endpoint
    if url is not None:
        provider = AuthServer(issuer=issuer or url, token_endpoint=url, pinned=True)
    else:
        assert issuer is not None
        wanted = Wanted(issuer=issuer, insecure=options.insecure)
        provider = (yield from find_server(issuer, None, wanted)).server
    client = Registration(client_id=options.idp_client_id, client_secret=options.idp_client_secret)
    fields = {
        "grant_type": grants.TOKEN_EXCHANGE,
        "requested_token_type": grants.ID_JAG,
        "audience": need.found.server.issuer,
        "resource": need.found.resource,
        "scope": grants.joined(need.scopes),
        "subject_token": id_token,
        "subject_token_type": grants.ID_TOKEN,
    }
    answer = yield from grants.post(provider, client, fields)
    # The type of what is exchanged is "N_A" (RFC 8693 §2.2.1): it is no access token.
    return grants.read_tokens(answer, provider.issuer, typed=False).access_token
