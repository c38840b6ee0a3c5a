"""Authorize without a person: client credentials, workload identity, enterprise-managed."""

from __future__ import annotations

from holdfast._core.auth import grants
from holdfast._core.auth.credentials import Login, Registration
from holdfast._core.auth.discovery import Wanted, find_server
from holdfast._core.auth.flow import Case, Need, endpoint_for, granted, joined
from holdfast._core.auth.grants import Endpoint
from holdfast._core.auth.options import (
    ClientCredentials,
    EnterpriseManaged,
    OAuth,
    WorkloadIdentity,
)
from holdfast._core.auth.steps import Conversation


def by_machine(
    case: Case, need: Need, assertion: str | None, dpop_key: str | None
) -> Conversation[Login]:
    """Authorize without a person, by the grant that the options name."""
    options, server = case.options, need.found.server
    assert not isinstance(options, OAuth)
    client = Registration(
        issuer=server.issuer,
        client_id=options.client_id,
        client_secret=getattr(options, "client_secret", None),
        private_key=getattr(options, "private_key", None),
        algorithm=getattr(options, "algorithm", "ES256"),
        key_id=getattr(options, "key_id", None),
    )
    fields: dict[str, str | None] = {"scope": joined(need.scopes), "resource": need.found.resource}
    if isinstance(options, ClientCredentials):
        fields["grant_type"] = "client_credentials"
    elif isinstance(options, WorkloadIdentity):
        fields |= {"grant_type": grants.JWT_BEARER, "assertion": assertion}
    else:
        assert assertion is not None
        jag = yield from _exchange(options, need, assertion)
        fields |= {"grant_type": grants.JWT_BEARER, "assertion": jag}
    endpoint = endpoint_for(server, options)
    tokens = yield from grants.request(endpoint, client, fields, proof=dpop_key)
    return granted(case, need, client, tokens, asked=need.scopes, dpop_key=dpop_key)


def _exchange(options: EnterpriseManaged, need: Need, id_token: str) -> Conversation[str]:
    """Exchange the ID token for a grant (RFC 8693; Enterprise-Managed Authorization §4)."""
    issuer = options.idp_issuer or options.idp_token_endpoint or ""
    url = options.idp_token_endpoint
    methods: tuple[str, ...] = ()
    if url is None:
        wanted = Wanted(issuer=issuer, insecure=options.insecure)
        found = yield from find_server(issuer, None, wanted)
        url, methods = found.server.token_endpoint, found.server.auth_methods
    client = Registration(
        issuer=issuer, client_id=options.idp_client_id, client_secret=options.idp_client_secret
    )
    fields = {
        "grant_type": grants.TOKEN_EXCHANGE,
        "requested_token_type": grants.ID_JAG,
        "audience": need.found.server.issuer,
        "resource": need.found.resource,
        "scope": joined(need.scopes),
        "subject_token": id_token,
        "subject_token_type": grants.ID_TOKEN,
    }
    endpoint = Endpoint(url=url, issuer=issuer, auth_methods=methods, pinned=True)
    tokens = yield from grants.request(endpoint, client, fields)
    return tokens.access_token
