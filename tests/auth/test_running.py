"""What goes over the wire in whole logins, as the authorization server sees it."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
import pytest

import holdfast
from holdfast import Handlers, OAuth
from holdfast._core.auth import grants, jws
from holdfast.auth import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from holdfast.errors import LoginFailed
from holdfast.stores import MemoryStore
from tests.auth.world import VERSION, World, world
from tests.http.test_tls import Authority


async def log_in(here: World, auth: Any = None) -> None:
    async with here.connect(auth=auth) as client:
        assert (await client.call_tool("hello")).text == "hello"


@pytest.mark.req("A17")
@pytest.mark.parametrize("promised", [True, False])
async def test_an_answer_without_an_issuer_is_refused_where_one_was_promised(
    promised: bool,
) -> None:
    async with world() as here:
        here.iss = None
        here.metadata["authorization_response_iss_parameter_supported"] = promised
        if not promised:
            return await log_in(here)
        with pytest.raises(LoginFailed, match="does not name its issuer"):
            await log_in(here)
        assert here.asked("/authorize")
        assert not here.asked("/token")


@pytest.mark.req("A18")
async def test_the_redirect_is_registered_and_the_same_in_both_requests() -> None:
    async with world() as here:
        await log_in(here)
        (registered,), (query,), (form,) = map(here.asked, ("/register", "/authorize", "/token"))
    assert registered["redirect_uris"] == [query["redirect_uri"]] == [form["redirect_uri"]]
    assert urlsplit(query["redirect_uri"]).hostname == "127.0.0.1"


@pytest.mark.req("A18")
@pytest.mark.parametrize("uri", ["http://example.com/callback", "app://callback", "//127.0.0.1/"])
def test_a_redirect_elsewhere_needs_tls(uri: str) -> None:
    with pytest.raises(holdfast.ValidationError, match="redirect_uri"):
        OAuth(redirect_uri=uri)


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("own", "challenge", "resource", "sent"),
    [
        (["mine"], 'scope="a b", ', ["c"], "mine"),
        (None, 'scope="a b", ', ["c"], "a b"),
        (None, "", ["c", "d"], "c d"),
        (None, "", None, None),
    ],
)
async def test_the_scopes_of_a_login(
    own: Any, challenge: str, resource: Any, sent: str | None
) -> None:
    async with world() as here:
        here.challenge = challenge
        here.metadata["scopes_supported"] = ["everything"]
        here.resource = {} if resource is None else {"scopes_supported": resource}
        await log_in(here, OAuth(store=MemoryStore(), scopes=own))
        assert here.asked("/authorize")[0].get("scope") == sent


@pytest.mark.req("A21")
@pytest.mark.parametrize("listed", [True, False])
async def test_offline_access_is_asked_for_where_the_authorization_server_lists_it(
    listed: bool,
) -> None:
    async with world() as here:
        here.challenge = 'scope="a", '
        here.metadata["scopes_supported"] = ["a", *(["offline_access"] if listed else [])]
        # A refresh token is not counted on.
        here.changes["refresh_token"] = None
        await log_in(here)
        (query,) = here.asked("/authorize")
    assert query["scope"] == ("a offline_access" if listed else "a")
    assert query.get("prompt") == ("consent" if listed else None)


@pytest.mark.req("A22")
@pytest.mark.parametrize(
    ("offered", "registered", "used"),
    [
        (["none"], {}, "none"),
        (["client_secret_post"], {}, "post"),
        (["client_secret_basic"], {}, "basic"),
        # What the server has registered counts, not what was asked for.
        (
            ["client_secret_basic", "client_secret_post"],
            {"token_endpoint_auth_method": "client_secret_post"},
            "post",
        ),
        (None, {"token_endpoint_auth_method": None}, "basic"),
    ],
)
async def test_a_registered_client_authenticates_as_it_is_registered(
    offered: Any, registered: Any, used: str
) -> None:
    async with world() as here:
        here.metadata["token_endpoint_auth_methods_supported"] = offered
        here.registration = {"client_secret": "a b:%", **registered}
        await log_in(here)
        (form,) = here.asked("/token")
    assert here.basic == (["client-1:a+b%3A%25"] if used == "basic" else [])
    assert form.get("client_secret") == ("a b:%" if used == "post" else None)
    assert form.get("client_id") == (None if used == "basic" else "client-1")


@pytest.mark.req("A22")
@pytest.mark.parametrize(
    ("revoking", "method"),
    [
        (["client_secret_basic"], "client_secret_basic"),
        (["client_secret_post", "client_secret_basic"], "client_secret_post"),
        (["private_key_jwt"], "none"),
        (None, "none"),
    ],
)
async def test_a_client_registers_by_a_way_that_can_be_revoked_too(
    revoking: Any, method: str
) -> None:
    async with world() as here:
        ways = ["none", "client_secret_post", "client_secret_basic"]
        here.metadata["token_endpoint_auth_methods_supported"] = ways
        here.metadata["revocation_endpoint_auth_methods_supported"] = revoking
        await log_in(here)
        (registered,) = here.asked("/register")
    assert registered["token_endpoint_auth_method"] == method


@pytest.mark.req("A22", "A33")
async def test_a_client_with_a_key_signs_for_the_issuer() -> None:
    key = jws.new_key()
    public = jws._load(key).public_key()
    async with world() as here:
        here.issuer = here.url.replace("127.0.0.1", "localhost")
        await log_in(here, ClientCredentials(client_id="svc", private_key=key, scopes="a"))
        (form,) = here.asked("/token")
    claims = jwt.decode(
        form["client_assertion"], public, algorithms=["ES256"], audience=here.issuer
    )
    assert (claims["iss"], claims["sub"]) == ("svc", "svc")
    assert claims["exp"] - claims["iat"] <= 300
    assert "client_secret" not in form
    assert not here.asked("/register")


@pytest.mark.req("A24", "A15", "A22", "B6")
async def test_a_refresh_after_a_restart_goes_to_the_stored_endpoint() -> None:
    store = MemoryStore()
    async with world() as here:
        method = "client_secret_basic"
        here.registration = {"client_secret": "S", "token_endpoint_auth_method": method}
        here.life = 1e-9
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.login()
        here.metadata["token_endpoint"] = f"{here.url}/elsewhere"
        # Without a new refresh token in the answer the old one is kept.
        here.changes["refresh_token"], here.life = None, 3600
        await log_in(here, OAuth(store=store, interactive=False))
        _, form = here.asked("/token")
    assert form["grant_type"] == "refresh_token"
    assert form["resource"] == f"{here.url}/mcp"
    assert here.basic == ["client-1:S"] * 2
    (kept,) = [await store.get(key) or b"" for key in await store.keys() if "login" in key]
    assert form["refresh_token"].encode() in kept


@pytest.mark.req("A34")
async def test_a_company_s_grant_is_made_for_the_authorization_server_of_the_resource() -> None:
    async with world() as here, world() as provider:
        provider.changes = {
            "access_token": "GRANT",
            "token_type": "N_A",
            "issued_token_type": grants.ID_JAG,
        }
        auth = EnterpriseManaged(
            idp_issuer=provider.url,
            idp_client_id="sso",
            idp_client_secret="S1",
            id_token=lambda: "ID-TOKEN",
            client_id="me",
            client_secret="S2",
        )
        await log_in(here, auth)
        (exchange,), (grant,) = provider.asked("/token"), here.asked("/token")
        assert (exchange["audience"], exchange["resource"]) == (here.url, f"{here.url}/mcp")
        assert exchange["requested_token_type"] == grants.ID_JAG
        assert exchange["subject_token"] == "ID-TOKEN"
        assert exchange["subject_token_type"] == grants.ID_TOKEN
        assert (grant["grant_type"], grant["assertion"]) == (grants.JWT_BEARER, "GRANT")
        assert (provider.basic, here.basic) == (["sso:S1"], ["me:S2"])
        # The user never sees either of them.
        assert not here.asked("/authorize") + provider.asked("/authorize")


@pytest.mark.req("A35")
async def test_a_workload_s_token_is_read_anew_each_time_and_nothing_else_is_tried(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    async with world() as here:
        file.write_text("JWT-1\n")
        auth = WorkloadIdentity(client_id="job", token=file)
        async with here.connect(auth=auth) as client:
            await client.list_tools()
            file.write_text("JWT-2\n")
            here.tokens.clear()
            await client.call_tool("hello")
            here.tokens.clear()
            here.odd = {"error": "invalid_grant"}
            with pytest.raises(holdfast.errors.GrantError):
                await client.call_tool("hello")
        forms = here.asked("/token")
        assert [form["assertion"] for form in forms] == ["JWT-1", "JWT-2", "JWT-2"]
        assert {(form["grant_type"], form["client_id"]) for form in forms} == {
            (grants.JWT_BEARER, "job")
        }
        assert not here.asked("/register") + here.asked("/authorize")


@pytest.mark.req("A36")
async def test_nonces_are_kept_by_origin() -> None:
    async with world() as here:
        here.dpop, here.issuer = True, here.url.replace("127.0.0.1", "localhost")
        async with here.connect() as client:
            for _ in range(3):
                assert (await client.call_tool("hello")).text == "hello"
            asked = len(here.seen)
            here.tokens.clear()
            assert (await client.call_tool("hello")).text == "hello"
        # Each origin has told its nonce once: one refusal there, and none after that.
        assert len(here.asked("/token")) == 3
        assert len([one for one in here.seen[asked:] if one[0] == "POST"]) == 2
        assert not here.faults


@pytest.mark.req("B8")
async def test_a_registration_that_was_forgotten_is_made_anew_before_a_person_sees_it() -> None:
    store = MemoryStore()
    async with world() as here:
        for forgotten in (False, True):
            if forgotten:
                here.clients.clear()
            async with here.connect(auth=OAuth(store=store)) as client:
                await client.login()
        assert here.count["asked"] == 2
        used = [form["client_id"] for form in here.asked("/token")]
    assert used == ["client-1", "client-2"]


@pytest.mark.req("B17")
@pytest.mark.parametrize(("given", "sent"), [(False, None), ("api://other", "api://other")])
async def test_another_resource_goes_into_every_request(given: Any, sent: str | None) -> None:
    async with world() as here:
        here.life = 1e-9
        await log_in(here, OAuth(store=MemoryStore(), resource=given))
        said = [*here.asked("/authorize"), *here.asked("/token")]
    assert {one["grant_type"] for one in said[1:]} == {"authorization_code", "refresh_token"}
    assert {one.get("resource") for one in said} == {sent}


@pytest.mark.req("B17")
async def test_a_refused_resource_names_the_option_that_leaves_it_out() -> None:
    async with world() as here:
        here.odd = {"error": "invalid_target", "error_description": "AADSTS9010010: no"}
        with pytest.raises(LoginFailed, match="resource=False"):
            await log_in(here)


@pytest.mark.req("B18", "A17")
@pytest.mark.parametrize(
    ("listed", "named", "iss", "fault"),
    [
        ("{}/", "{}", "{}", ""),
        ("{}", "{}/", "{}/", ""),
        ("{}/", "{}", "{}/", "is not from"),
        ("{}/a", "{}/a/", "{}/a/", "its issuer is another one"),
        ("{}/a", "{}", "{}", "its issuer is another one"),
    ],
)
async def test_the_slash_of_a_bare_origin_may_differ_but_the_answer_names_the_document_s(
    listed: str, named: str, iss: str, fault: str
) -> None:
    async with world() as here:
        here.resource = {"authorization_servers": [listed.format(here.url)]}
        here.metadata["issuer"], here.iss = named.format(here.url), iss.format(here.url)
        if not fault:
            return await log_in(here)
        with pytest.raises(holdfast.AuthError, match=fault):
            await log_in(here)
        assert not here.asked("/token")
        if fault == "is not from":
            return
        # The user may vouch for it.
        await log_in(here, OAuth(store=MemoryStore(), issuer=here.metadata["issuer"]))


@pytest.mark.req("B23")
async def test_answers_in_other_forms_are_read() -> None:
    async with world() as here:
        here.registration, here.form_encoded = {"status": 200}, True
        await log_in(here)
        here.form_encoded, here.changes = False, {"scope": ["read", "write"]}
        async with here.connect() as client:
            await client.login()
            assert client.transport.authorizer.login.granted == ("read", "write")
        here.odd = {"error": "access_denied", "error_description": "not today"}
        with pytest.raises(LoginFailed, match="not today"):
            await log_in(here)


@pytest.mark.req("B21")
@pytest.mark.parametrize("asked", [False, True])
async def test_a_client_certificate_goes_to_the_server_and_elsewhere_only_if_asked(
    tmp_path: Path, asked: bool
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue("server", "IP:127.0.0.1"))
    tls.load_verify_locations(authority.ca)
    tls.verify_mode = ssl.CERT_OPTIONAL
    own = authority.issue("client", "DNS:client")
    options: dict[str, Any] = {"ca": authority.ca, "cert": own}
    if asked:
        context = ssl.create_default_context(cafile=authority.ca)
        context.load_cert_chain(*own)
        options = {"ssl": context}
    async with world(tls) as here:
        target = holdfast.Http(f"{here.url}/mcp", auth=OAuth(store=MemoryStore()), **options)
        handlers = Handlers(login=here.person)
        async with holdfast.connect(target, handlers=handlers, protocol=VERSION) as client:
            assert (await client.call_tool("hello")).text == "hello"
        assert here.asked("/token")
        assert here.certified == ({"/mcp", "/token"} if asked else {"/mcp"})
