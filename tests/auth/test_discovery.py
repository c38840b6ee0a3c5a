"""From a refusal to the authorization server, as transcripts."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.auth.credentials import ENDPOINTS
from holdfast._core.auth.discovery import Discovery
from holdfast._core.auth.flow import Challenge, discover
from holdfast._core.auth.options import OAuth
from holdfast._core.auth.steps import Fetched
from holdfast.errors import DiscoveryError, TransportError, ValidationError
from tests.auth.talk import (
    AS_DOCUMENT,
    ISSUER,
    METADATA,
    PRM,
    PRM_DOCUMENT,
    SERVER,
    Play,
    ok,
    refused_request,
    server,
    stored_login,
    unreachable,
)
from tests.rows import rows

ROOT_PRM = "https://mcp.example/.well-known/oauth-protected-resource"
OIDC = f"{ISSUER}/.well-known/openid-configuration"


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("place", "advertised"),
    [(PRM, None), (ROOT_PRM, None), ("https://mcp.example/own", "https://mcp.example/own")],
)
def test_resource_metadata_is_found_in_each_of_its_places(
    place: str, advertised: str | None
) -> None:
    play = Play({place: PRM_DOCUMENT})
    found = play.run(Discovery(SERVER, OAuth()).find_resource(advertised))
    assert found is not None
    assert found.servers == (ISSUER,)
    assert play.urls[-1] == place


@pytest.mark.req("A3")
@pytest.mark.parametrize("broken", [Fetched(200, b"<html>"), Fetched(500), unreachable()])
def test_metadata_that_fails_is_looked_for_in_the_next_place(broken: Any) -> None:
    play = Play({PRM: broken, ROOT_PRM: PRM_DOCUMENT})
    assert play.run(Discovery(SERVER, OAuth()).find_resource(None)) is not None


@pytest.mark.req("A3", "A8")
@pytest.mark.parametrize("broken", [Fetched(503), unreachable()])
def test_a_failure_is_not_taken_for_no_metadata(broken: Any) -> None:
    with pytest.raises(TransportError):
        Play({PRM: broken}).run(Discovery(SERVER, OAuth()).find_resource(None))


@pytest.mark.req("A3", "A4")
@pytest.mark.parametrize("document", [{}, {"resource": 7}, {"authorization_servers": [ISSUER]}])
def test_metadata_without_a_resource_is_not_taken_for_none(document: Any) -> None:
    play = Play({PRM: ok(document), f"{ISSUER}/.well-known/openid-configuration": AS_DOCUMENT})
    with pytest.raises(DiscoveryError, match="no resource"):
        play.run(discover(refused_request()))
    assert play.urls == [PRM, ROOT_PRM]


@pytest.mark.req("A8")
@pytest.mark.parametrize("broken", [Fetched(503), unreachable()])
def test_the_default_endpoints_are_not_used_while_the_server_is_in_trouble(broken: Any) -> None:
    play = Play({"https://mcp.example/.well-known/oauth-authorization-server": broken})
    with pytest.raises(TransportError):
        play.run(discover(refused_request()))


@pytest.mark.req("A8", "A10")
def test_the_default_endpoints_are_not_used_for_an_issuer_that_is_pinned() -> None:
    with pytest.raises(DiscoveryError, match=r"issuer https://as\.example"):
        Play({}).run(discover(refused_request(options=OAuth(issuer=ISSUER))))


@pytest.mark.req("A4")
def test_metadata_for_another_resource_ends_it_before_any_authorization_server() -> None:
    play = Play({PRM: {**PRM_DOCUMENT, "resource": "https://evil.example/mcp"}})
    with pytest.raises(DiscoveryError, match="another resource"):
        play.run(discover(refused_request()))
    assert play.urls == [PRM]


@pytest.mark.req("A4")
@pytest.mark.parametrize("servers", [[], None, "", [7]])
def test_metadata_must_name_an_authorization_server(servers: Any) -> None:
    play = Play({PRM: {**PRM_DOCUMENT, "authorization_servers": servers}})
    with pytest.raises(DiscoveryError, match="no authorization server"):
        play.run(discover(refused_request()))


@pytest.mark.req("A5")
def test_the_places_of_an_issuer_are_tried_in_order_and_never_at_the_root() -> None:
    issuer = f"{ISSUER}/tenant"
    last = f"{issuer}/.well-known/openid-configuration"
    play = Play(
        {
            PRM: {**PRM_DOCUMENT, "authorization_servers": [issuer]},
            METADATA: AS_DOCUMENT,
            last: {**AS_DOCUMENT, "issuer": issuer},
        }
    )
    assert play.run(discover(refused_request())).login.auth_server.issuer == issuer
    assert play.urls[1:] == [
        f"{METADATA}/tenant",
        f"{OIDC}/tenant",
        last,
    ]


@pytest.mark.req("A6")
@pytest.mark.parametrize("issuer", ["https://honest.example", ISSUER.upper(), f"{ISSUER}:443", 7])
def test_a_document_of_another_issuer_is_not_used(issuer: Any) -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: {**AS_DOCUMENT, "issuer": issuer}})
    with pytest.raises(DiscoveryError) as caught:
        play.run(discover(refused_request()))
    assert any(url == METADATA for url, _ in caught.value.tried)


@pytest.mark.req("B18", "A17")
def test_the_slash_of_a_bare_origin_may_differ_and_the_document_is_recorded() -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: {**AS_DOCUMENT, "issuer": f"{ISSUER}/"}})
    assert play.run(discover(refused_request())).login.auth_server.issuer == f"{ISSUER}/"


@pytest.mark.req("B18", "A10")
@pytest.mark.parametrize(
    "listed", [[ISSUER], ["https://other.example"], ["https://other.example/"]]
)
def test_an_issuer_that_the_user_pins_is_asked_at_its_own_address_alone(listed: list[str]) -> None:
    """A document elsewhere that claims its name could be anybody's."""
    other = "https://other.example"
    place = f"{other}/.well-known/oauth-authorization-server"
    claims = {**AS_DOCUMENT, "issuer": other}
    prm = {**PRM_DOCUMENT, "authorization_servers": listed}
    play = Play({PRM: prm, METADATA: claims, place: {**claims, "token_endpoint": f"{other}/token"}})
    found = play.run(discover(refused_request(options=OAuth(issuer=other))))
    assert found.login.auth_server.token_endpoint == f"{other}/token"
    assert METADATA not in play.urls
    play = Play({PRM: prm, METADATA: claims})
    with pytest.raises(DiscoveryError, match=r"other\.example"):
        play.run(discover(refused_request(options=OAuth(issuer=other))))
    assert not [url for url in play.urls if url.startswith(ISSUER)]


@pytest.mark.req("A7")
def test_an_authorization_server_with_a_login_is_preferred() -> None:
    second = "https://second.example"
    login = stored_login(auth_server=server(issuer=second))
    play = Play(
        {
            PRM: {**PRM_DOCUMENT, "authorization_servers": [ISSUER, second]},
            METADATA: AS_DOCUMENT,
            f"{second}/.well-known/oauth-authorization-server": {**AS_DOCUMENT, "issuer": second},
        },
        logins=[login],
    )
    assert play.run(discover(refused_request())).login.auth_server.issuer == second


@pytest.mark.req("A7")
def test_the_next_authorization_server_is_used_if_the_first_cannot_be() -> None:
    second = "https://second.example"
    play = Play(
        {
            PRM: {**PRM_DOCUMENT, "authorization_servers": ["http://first.example", second]},
            f"{second}/.well-known/openid-configuration": {**AS_DOCUMENT, "issuer": second},
        }
    )
    assert play.run(discover(refused_request())).login.auth_server.issuer == second


@pytest.mark.req("A8", "A15")
def test_without_resource_metadata_the_server_is_its_own_authorization_server() -> None:
    home = "https://mcp.example"
    play = Play({f"{home}/.well-known/oauth-authorization-server": {**AS_DOCUMENT, "issuer": home}})
    version = {"MCP-Protocol-Version": "the refused one"}
    found = play.run(discover(refused_request(version_header=version)))
    assert found.login.auth_server.token_endpoint == f"{ISSUER}/token"
    assert found.login.resource is None
    assert play.steps[-1].headers == version


@pytest.mark.req("A8", "A14")
def test_without_any_metadata_the_default_endpoints_are_used() -> None:
    found = Play({}).run(discover(refused_request()))
    assert found.login.auth_server.assumed
    assert found.login.auth_server.authorization_endpoint == "https://mcp.example/authorize"
    assert found.login.auth_server.registration_endpoint == "https://mcp.example/register"
    assert found.login.resource is None


@pytest.mark.req("A8", "A30")
def test_a_server_without_tls_is_no_authorization_server_by_default() -> None:
    play = Play({})
    with pytest.raises(DiscoveryError, match="https is required"):
        play.run(discover(refused_request(server="http://mcp.example/mcp")))
    assert play.steps == []
    options = OAuth(insecure=True)
    found = play.run(discover(refused_request(server="http://mcp.example/mcp", options=options)))
    assert found.login.auth_server.token_endpoint == "http://mcp.example/token"


@pytest.mark.req("A15")
def test_the_resource_is_sent_as_it_is_published() -> None:
    play = Play({PRM: {**PRM_DOCUMENT, "resource": "https://mcp.example/"}, METADATA: AS_DOCUMENT})
    assert play.run(discover(refused_request())).login.resource == "https://mcp.example/"


@pytest.mark.req("A15")
def test_a_pinned_server_without_resource_metadata_gets_the_canonical_uri() -> None:
    play = Play({METADATA: AS_DOCUMENT})
    found = play.run(
        discover(refused_request(options=OAuth(issuer=ISSUER), server="HTTPS://MCP.example/m"))
    )
    assert found.login.resource == "https://mcp.example/m"


@pytest.mark.req("B17")
@pytest.mark.parametrize(
    ("resource", "sent"),
    [("api://app", "api://app"), (False, None), ("https://x/y", "https://x/y")],
)
def test_the_resource_can_be_replaced_or_left_out(resource: Any, sent: str | None) -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    found = play.run(discover(refused_request(options=OAuth(resource=resource))))
    assert found.login.resource == sent


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("own", "challenged", "published", "asked"),
    [
        (["mine"], ("c",), ["p"], ("mine",)),
        (None, ("c",), ["p"], ("c",)),
        (None, None, ["p", "q"], ("p", "q")),
        (None, None, None, None),
    ],
)
def test_scopes_come_from_the_user_then_the_challenge_then_the_resource(
    own: Any, challenged: Any, published: Any, asked: Any
) -> None:
    document = {**PRM_DOCUMENT, **({"scopes_supported": published} if published else {})}
    play = Play({PRM: document, METADATA: {**AS_DOCUMENT, "scopes_supported": ["decoy"]}})
    challenge = Challenge(frozenset({"bearer"}), scope=challenged)
    found = play.run(discover(refused_request(options=OAuth(scopes=own), challenge=challenge)))
    assert found.login.requested_scopes == (asked or ())


@pytest.mark.req("A36", "A2")
@rows(
    ("wish", "schemes", "required", "bound"),
    [
        ("auto", {"bearer"}, False, False),
        ("auto", {"dpop"}, False, True),
        ("auto", {"bearer", "dpop"}, False, False),
        ("auto", {"bearer"}, True, True),
        (False, {"dpop"}, True, False),
        (True, {"bearer"}, False, True),
    ],
)
def test_tokens_are_bound_where_the_server_or_the_user_wants_it(
    wish: Any, schemes: set[str], required: bool, bound: bool
) -> None:
    document = {**PRM_DOCUMENT, "dpop_bound_access_tokens_required": required}
    play = Play({PRM: document, METADATA: AS_DOCUMENT})
    challenge = Challenge(frozenset(schemes))
    assert (
        play.run(discover(refused_request(options=OAuth(dpop=wish), challenge=challenge))).dpop
        is bound
    )


@pytest.mark.req("A30")
@rows("name", [*ENDPOINTS])
def test_an_endpoint_without_tls_makes_the_metadata_useless(name: str) -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: {**AS_DOCUMENT, name: "http://as.example/x"}})
    with pytest.raises(DiscoveryError, match="https is required"):
        play.run(discover(refused_request()))


@pytest.mark.req("A3")
def test_an_advertised_url_that_must_not_be_asked_is_not_asked() -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    challenge = Challenge(frozenset({"bearer"}), "http://169.254.169.254/latest")
    play.run(discover(refused_request(challenge=challenge)))
    assert all("169.254" not in url for url in play.urls)


def test_what_a_server_lists_is_bounded() -> None:
    many = [f"https://as{number}.example" for number in range(1000)]
    play = Play({PRM: {**PRM_DOCUMENT, "authorization_servers": many}})
    with pytest.raises(DiscoveryError):
        play.run(discover(refused_request()))
    assert len(play.urls) < 20


def test_a_server_that_cannot_be_reached_is_a_matter_of_transport() -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: unreachable()})
    with pytest.raises(TransportError):
        play.run(discover(refused_request()))


def test_status_401_for_the_metadata_counts_as_none() -> None:
    play = Play({PRM: ok({}, 401), ROOT_PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    assert play.run(discover(refused_request())).login.resource == SERVER


@pytest.mark.req("A10")
def test_a_metadata_document_that_the_user_names_replaces_the_discovery() -> None:
    place = "https://as.example/tenant/metadata.json"
    play = Play({PRM: PRM_DOCUMENT, place: AS_DOCUMENT})
    found = play.run(discover(refused_request(options=OAuth(metadata_url=place))))
    assert (found.login.auth_server.issuer, found.login.resource) == (ISSUER, SERVER)
    assert METADATA not in play.urls


@pytest.mark.req("A10")
def test_endpoints_of_the_user_need_no_metadata() -> None:
    ends = {"authorization_endpoint": f"{ISSUER}/a", "token_endpoint": f"{ISSUER}/t"}
    play = Play({})
    found = play.run(discover(refused_request(options=OAuth(endpoints=ends))))
    assert (found.login.auth_server.issuer, found.login.auth_server.token_endpoint) == (
        ISSUER,
        f"{ISSUER}/t",
    )
    assert found.login.resource == SERVER
    assert not [url for url in play.urls if url.startswith(ISSUER)]


@pytest.mark.req("A10")
def test_one_endpoint_of_the_user_replaces_that_of_the_metadata() -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    options = OAuth(endpoints={"token_endpoint": "https://other.example/t"})
    found = play.run(discover(refused_request(options=options))).login.auth_server
    assert found.token_endpoint == "https://other.example/t"
    assert found.authorization_endpoint == f"{ISSUER}/authorize"


@pytest.mark.parametrize("ends", [{"token": "https://a/t"}, {"token_endpoint": "http://a/t"}])
def test_endpoints_that_cannot_be_used_are_refused_at_once(ends: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="endpoint"):
        OAuth(endpoints=ends)
