"""Registration, token requests and logins as transcripts."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import rich.pretty
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import holdfast
from holdfast._core.auth import grants
from holdfast._core.auth.credentials import Login, Registration
from holdfast._core.auth.flow import Challenge, Refusal, answer, renew
from holdfast._core.auth.login import log_in, read_redirect
from holdfast._core.auth.options import (
    ClientCredentials,
    EnterpriseManaged,
    OAuth,
    WorkloadIdentity,
    options_for,
)
from holdfast._core.auth.registration import callback_path, identify, stored_key
from holdfast._core.auth.service import by_machine
from holdfast._core.auth.steps import Ask, Fetched, Listen, Pause, Sign, Visit, Write
from holdfast.errors import (
    DiscoveryError,
    GrantError,
    LoginFailed,
    ScopeError,
    TransportError,
    ValidationError,
)
from tests.auth.talk import (
    AS_DOCUMENT,
    ISSUER,
    METADATA,
    PRM,
    PRM_DOCUMENT,
    REDIRECT,
    SERVER,
    TOKENS,
    Play,
    attempt,
    client,
    draft,
    ok,
    refused_request,
    server,
    stored_login,
    unreachable,
)
from tests.rows import rows

POST = "client_secret_post"
BASIC = "client_secret_basic"
TOKEN, REGISTER = f"{ISSUER}/token", f"{ISSUER}/register"


def redirected(**params: str) -> Any:
    def browse(step: Visit) -> dict[str, str]:
        return {"state": str(step.state), "code": "CODE-SECRET", **params}

    return browse


def query_of(play: Play) -> dict[str, list[str]]:
    (step,) = [one for one in play.steps if isinstance(one, Visit)]
    return parse_qs(urlsplit(step.url).query)


# Who we are.


@pytest.mark.req("A9", "A10")
def test_a_given_client_comes_first_and_is_not_registered() -> None:
    options = OAuth(client_id="mine", client_secret="SECRET")
    play = Play({})
    found = play.run(identify(attempt(server(takes_documents=True), options=options)))
    assert (found.client_id, found.client_secret, found.how) == ("mine", "SECRET", "given")
    assert play.urls == []


@pytest.mark.req("A10", "A13")
def test_a_given_client_is_not_shown_to_another_issuer() -> None:
    play = Play({})
    with pytest.raises(DiscoveryError, match="belongs to"):
        play.run(identify(attempt(options=OAuth(client_id="mine"), bound="https://old.example")))
    assert play.steps == []


@pytest.mark.req("A9", "A11")
def test_a_metadata_document_is_used_where_the_server_takes_it() -> None:
    url = "https://app.example/client.json"
    options = OAuth(client_metadata_url=url)
    found = Play({}).run(identify(attempt(server(takes_documents=True), options=options)))
    assert (found.client_id, found.how) == (url, "document")
    other = Play({REGISTER: ok({"client_id": "dyn"}, 201)})
    assert other.run(identify(attempt(server(), options=options))).client_id == "dyn"


@pytest.mark.req("A9")
def test_without_any_way_to_register_a_client_id_is_asked_for() -> None:
    with pytest.raises(DiscoveryError, match="client_id="):
        Play({}).run(identify(attempt(server(registration_endpoint=None), options=OAuth())))


@pytest.mark.req("A12", "A18", "A21")
def test_registration_says_what_kind_of_client_this_is() -> None:
    play = Play({REGISTER: ok({"client_id": "dyn", "client_secret": "S"}, 201)})
    found = play.run(identify(attempt(server(), options=OAuth())))
    sent = next(step for step in play.steps if isinstance(step, Ask)).json
    assert sent is not None
    assert sent["application_type"] == "native"
    assert sent["grant_types"] == ["authorization_code", "refresh_token"]
    assert sent["redirect_uris"] == [found.redirect_uri]
    assert found.client_secret == "S"
    assert any(isinstance(step, Write) and step.value == found for step in play.steps)


@pytest.mark.req("A12", "A22")
@rows(
    ("offered", "asked"),
    [
        ((), "none"),
        ((POST,), POST),
        ((BASIC,), BASIC),
        ((BASIC, POST), POST),
        ((BASIC, POST, "none"), "none"),
        (("private_key_jwt",), "none"),
    ],
)
def test_registration_asks_for_a_method_that_is_offered(
    offered: tuple[str, ...], asked: str
) -> None:
    play = Play({REGISTER: ok({"client_id": "dyn"}, 201)})
    play.run(identify(attempt(server(auth_methods=offered), options=OAuth())))
    sent = next(step for step in play.steps if isinstance(step, Ask)).json
    assert sent is not None
    assert sent["token_endpoint_auth_method"] == asked


@pytest.mark.req("A13", "A7")
def test_a_registration_is_kept_by_issuer_and_kind_of_redirect() -> None:
    ways = [OAuth(), OAuth(device=True), OAuth(redirect_uri="http://localhost:1/x")]
    issuers = [server(), server(issuer="https://other.example")]
    assert len({stored_key(one, way) for one in issuers for way in ways}) == 6


@pytest.mark.req("A12")
def test_an_application_on_the_web_registers_as_one() -> None:
    play = Play({REGISTER: ok({"client_id": "dyn"}, 201)})
    play.run(identify(attempt(server(), options=OAuth(redirect_uri="https://app.example/cb"))))
    sent = next(step for step in play.steps if isinstance(step, Ask)).json
    assert sent is not None
    assert sent["application_type"] == "web"


@pytest.mark.req("A12")
def test_a_refused_redirect_is_tried_once_as_the_other_kind_and_then_told() -> None:
    refusal = ok({"error": "invalid_redirect_uri", "error_description": "no \x1b[31mnative"}, 400)
    play = Play({REGISTER: refusal})
    with pytest.raises(LoginFailed, match=r"invalid_redirect_uri \(no \\x1b\[31mnative\)"):
        play.run(identify(attempt(server(), options=OAuth())))
    sent = [step.json or {} for step in play.steps if isinstance(step, Ask)]
    kinds = [one["application_type"] for one in sent]
    assert kinds == ["native", "web"]


@pytest.mark.req("B10", "B9")
def test_a_registration_is_used_again_at_its_own_port() -> None:
    stored = client(client_id="dyn", redirect_uri=REDIRECT, how="registered")
    play = Play({}, registration=stored)
    found = play.run(identify(attempt(server(), options=OAuth())))
    assert found == replace(stored, how="stored")
    assert any(isinstance(step, Listen) and step.preferred == REDIRECT for step in play.steps)
    assert play.urls == []


@pytest.mark.req("B9")
def test_if_its_port_is_taken_a_registered_client_registers_anew() -> None:
    stored = client(client_id="dyn", redirect_uri=REDIRECT, how="registered")
    play = Play(
        {REGISTER: ok({"client_id": "new"}, 201)},
        registration=stored,
        redirect="http://127.0.0.1:5/callback",
    )
    assert play.run(identify(attempt(server(), options=OAuth()))).client_id == "new"


def test_a_registration_whose_secret_has_expired_is_not_used() -> None:
    stored = client(client_id="dyn", redirect_uri=REDIRECT, how="registered", expires_at=5.0)
    play = Play({REGISTER: ok({"client_id": "new"}, 201)}, registration=stored)
    assert play.run(identify(attempt(server(), options=OAuth()))).client_id == "new"


@pytest.mark.req("B23", "A12")
def test_what_the_server_changed_is_read() -> None:
    said = {"client_id": "dyn", "client_secret": "", "token_endpoint_auth_method": "none"}
    play = Play({REGISTER: ok(said, 200)})
    found = play.run(identify(attempt(server(), options=OAuth())))
    assert (found.client_secret, found.method) == (None, "none")


@pytest.mark.req("A18")
def test_a_registration_with_another_redirect_is_refused() -> None:
    play = Play({REGISTER: ok({"client_id": "x", "redirect_uris": ["https://evil.example"]}, 201)})
    with pytest.raises(LoginFailed, match="another redirect"):
        play.run(identify(attempt(server(), options=OAuth())))


@pytest.mark.req("A17")
def test_each_issuer_has_a_redirect_path_of_its_own() -> None:
    assert callback_path("https://a.example") != callback_path("https://b.example")


# Client authentication.


@pytest.mark.req("A22")
@rows(
    ("registered", "offered", "used"),
    [
        ({}, (), ("none",)),
        ({}, (POST, BASIC), ("none",)),
        ({"client_secret": "s"}, (), (BASIC, POST)),
        ({"client_secret": "s"}, (POST,), (POST,)),
        ({"client_secret": "s"}, (BASIC, POST), (POST, BASIC)),
        ({"client_secret": "s"}, ("none",), ("none",)),
        ({"client_secret": "s", "method": POST}, (BASIC,), (POST, BASIC)),
        ({"client_secret": "s", "method": BASIC}, (POST, BASIC), (BASIC, POST)),
        ({"private_key": "pem"}, (BASIC,), ("private_key_jwt",)),
    ],
)
def test_the_client_authenticates_as_registered_then_as_offered(
    registered: dict[str, Any], offered: tuple[str, ...], used: tuple[str, ...]
) -> None:
    assert grants.methods_for(client(**registered), offered) == used


@pytest.mark.req("A22")
@pytest.mark.parametrize(
    "refusal", [{"error": "invalid_client"}, {"error": "unauthorized_client"}, {}]
)
def test_a_refused_client_tries_the_next_way_once_and_it_is_remembered(
    refusal: dict[str, Any],
) -> None:
    play = Play({TOKEN: [ok(refusal, 401), ok(TOKENS)]})
    who = client(client_secret="s", method=BASIC)
    login = stored_login(auth_server=server(auth_methods=(BASIC, POST)), client=who)
    renewed = play.run(renew(login, 0))
    first, second = [step for step in play.steps if isinstance(step, Ask)]
    assert "Authorization" in first.headers
    assert not {"client_id", "client_secret"} & (first.form or {}).keys()
    assert second.form is not None
    assert (second.form["client_id"], second.form["client_secret"]) == ("me", "s")
    assert "Authorization" not in second.headers
    assert second.form["refresh_token"] == "REFRESH"
    assert renewed.client.method == POST


@pytest.mark.req("A22")
def test_a_client_that_is_refused_in_both_ways_is_refused() -> None:
    play = Play({TOKEN: ok({"error": "invalid_client", "error_description": "who"}, 401)})
    login = stored_login(client=client(client_secret="s"))
    with pytest.raises(GrantError, match="invalid_client"):
        play.run(renew(login, 0))
    assert play.urls == [TOKEN, TOKEN]


@pytest.mark.req("A22")
def test_a_refused_grant_is_no_reason_to_authenticate_otherwise() -> None:
    play = Play({TOKEN: ok({"error": "invalid_grant"}, 400)})
    with pytest.raises(GrantError, match="invalid_grant"):
        play.run(renew(stored_login(client=client(client_secret="s")), 0))
    assert play.urls == [TOKEN]


def ask_token(who: Registration, offered: tuple[str, ...] = ()) -> Ask:
    play = Play({TOKEN: TOKENS})
    login = stored_login(auth_server=server(auth_methods=offered), client=who)
    play.run(grants.obtain(login, {"grant_type": "x", "none": None}, 0))
    (ask,) = play.steps[-1:]
    assert isinstance(ask, Ask)
    return ask


@pytest.mark.req("A22")
def test_basic_authentication_encodes_both_halves() -> None:
    ask = ask_token(client(client_id="a:b c", client_secret="é/%"))
    decoded = base64.b64decode(ask.headers["Authorization"].removeprefix("Basic "))
    assert decoded == b"a%3Ab+c:%C3%A9%2F%25"
    assert ask.form == {"grant_type": "x"}


@pytest.mark.req("A33", "A22")
def test_an_assertion_is_for_the_issuer_and_not_for_its_endpoint() -> None:
    play = Play({TOKEN: TOKENS})
    play.run(grants.obtain(stored_login(client=client(private_key="pem")), {}, 0))
    form = play.form(TOKEN)
    assert form["client_assertion"] == f"SIGNED BY me FOR {ISSUER}"
    assert form["client_assertion_type"] == grants.CLIENT_ASSERTION


# Token answers.


def read(document: Any, status: int = 200, **known: Any) -> Login:
    found = document if isinstance(document, Fetched) else ok(document, status)
    return Play({TOKEN: found}).run(grants.obtain(stored_login(**known), {}, 1000.0))


@pytest.mark.req("A23")
def test_a_token_answer_is_read() -> None:
    found = read({**TOKENS, "token_type": "BEARER", "scope": "a b"})
    assert found.token_type == "Bearer"
    assert found.granted == ("a", "b")
    assert read(TOKENS, granted=("c",)).granted == ("c",)


@pytest.mark.req("A36")
def test_a_token_is_bound_to_the_key_if_that_was_asked_for_and_only_then() -> None:
    bound = {**TOKENS, "token_type": "dpop"}
    assert read(bound, dpop_key="pem").token_type == "DPoP"
    with pytest.raises(GrantError, match="Bearer token, but a DPoP-bound one"):
        read(TOKENS, dpop_key="pem")
    with pytest.raises(GrantError, match="cannot be used"):
        read(bound)


@pytest.mark.req("B23")
def test_lenient_reading() -> None:
    form = Fetched(200, b"access_token=x&token_type=bearer&scope=a+b&expires_in=60")
    found = read(form)
    assert (found.access_token, found.granted, found.expires_at) == ("x", ("a", "b"), 1060.0)
    assert read({**TOKENS, "scope": ["a", "b"]}).granted == ("a", "b")


@pytest.mark.req("A23", "B23")
@pytest.mark.parametrize("status", [200, 400, 401, 302])
def test_an_error_counts_in_any_status(status: int) -> None:
    with pytest.raises(GrantError) as caught:
        read({"error": "invalid_grant", "error_description": "gone", **TOKENS}, status)
    assert (caught.value.error, caught.value.description) == ("invalid_grant", "gone")


@pytest.mark.req("B7")
@rows(
    ("said", "seconds"),
    [
        (60, 60.0),
        ("60", 60.0),
        (1.5, 1.5),
        (1e18, 10 * 365 * 86400.0),
        (0, None),
        (-1, None),
        (True, None),
        ("soon", None),
        (None, None),
        ([], None),
    ],
)
def test_a_life_that_makes_no_sense_is_unknown(said: Any, seconds: float | None) -> None:
    until = None if seconds is None else 1000.0 + seconds
    assert read({**TOKENS, "expires_in": said}).expires_at == until


@pytest.mark.req("B20")
@rows("token", ["a\r\nX: y", "a b", "", 7, None, "é", "a" * 70_000])
def test_a_token_that_cannot_be_used_is_not_quoted(token: Any) -> None:
    with pytest.raises(GrantError) as caught:
        read({**TOKENS, "access_token": token})
    assert "a" * 100 not in str(caught.value)
    assert "X: y" not in str(caught.value)


@pytest.mark.req("B20")
def test_texts_of_an_authorization_server_are_shortened_and_made_plain() -> None:
    with pytest.raises(GrantError) as caught:
        read({"error": "bad\x1b[2J", "error_description": "\x1b[31m\n<b>" + "x" * 10_000})
    assert caught.value.error == "unreadable error"
    assert len(str(caught.value)) < 300
    assert "\x1b" not in str(caught.value)


@pytest.mark.req("B17")
def test_the_refusal_of_a_resource_names_the_cure() -> None:
    with pytest.raises(GrantError, match="resource=False"):
        read({"error": "invalid_target", "error_description": "AADSTS9010010: no"})


@pytest.mark.req("B5")
@pytest.mark.parametrize("reply", [Fetched(500), Fetched(503), Fetched(429), unreachable()])
def test_trouble_at_the_token_endpoint_is_a_matter_of_transport(reply: Any) -> None:
    play = Play({TOKEN: reply})
    with pytest.raises(TransportError):
        play.run(grants.obtain(stored_login(), {}, 0))


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["access_token", "token_type", "expires_in", "scope", "error", "id_token"]),
        VALUES | st.lists(VALUES, max_size=2),
    )
)
def test_no_answer_of_a_token_endpoint_breaks_the_reader(document: dict[str, Any]) -> None:
    try:
        read(document)
    except GrantError:
        pass


@rows("body", [b'{"a":' * 100_000, b"[" * 100_000, b"\xff", b"", b"null", b"[]"])
def test_a_body_that_is_deep_or_no_object_is_no_document(body: bytes) -> None:
    assert Fetched(200, body).document() is None


# Logging in.


@pytest.mark.req("A14", "A15", "A18")
def test_the_code_grant() -> None:
    play = Play({TOKEN: TOKENS}, browse=redirected())
    login = play.run(log_in(attempt(scopes=("a", "b"))))
    query = query_of(play)
    assert query["code_challenge_method"] == ["S256"]
    # openssl dgst -sha256 -binary | basenc --base64url, for VERIFIER-SECRET
    assert query["code_challenge"] == ["6brF3K5JhBhh1YOH6axN0SSKyglylpfiUjJfWqXhUKA"]
    assert query["resource"] == [SERVER]
    assert query["scope"] == ["a b"]
    form = play.form(TOKEN)
    assert form["code_verifier"] == "VERIFIER-SECRET"
    assert form["resource"] == SERVER
    assert form["redirect_uri"] == query["redirect_uri"][0]
    assert login.granted == login.requested_scopes == ("a", "b")
    assert (login.expires_at, login.refresh_token) == (4600.0, "REFRESH-SECRET")


@pytest.mark.req("A19")
def test_an_address_that_no_browser_takes_is_not_opened() -> None:
    play = Play({}, browse=redirected())
    with pytest.raises(LoginFailed, match="not opened"):
        play.run(log_in(attempt(scopes=("x" * 20_000,))))
    assert not [step for step in play.steps if isinstance(step, Visit)]


@pytest.mark.req("A14", "B19")
@pytest.mark.parametrize("methods", [None, (), ("plain",)])
def test_a_server_that_does_not_advertise_pkce_is_refused(methods: Any) -> None:
    play = Play({})
    with pytest.raises(DiscoveryError, match='pkce="assume"'):
        play.run(log_in(attempt(server(pkce_methods=methods))))
    assert play.steps == []
    options = OAuth(client_id="me", pkce="assume")
    play = Play({TOKEN: TOKENS}, browse=redirected())
    play.run(log_in(attempt(server(pkce_methods=methods), options=options)))
    assert query_of(play)["code_challenge_method"] == ["S256"]


@pytest.mark.req("A14", "A8")
def test_without_metadata_pkce_is_sent_unverified() -> None:
    play = Play({TOKEN: TOKENS}, browse=redirected())
    play.run(log_in(attempt(server(assumed=True, pkce_methods=None))))
    assert query_of(play)["code_challenge_method"] == ["S256"]


@pytest.mark.req("A17")
@rows(
    ("sends", "iss", "accepted"),
    [
        (True, ISSUER, True),
        (True, None, False),
        (False, ISSUER, True),
        (False, None, True),
        (True, ISSUER + "/", False),
        (False, "https://evil.example", False),
        (False, "HTTPS://as.example", False),
        (False, "", False),
    ],
)
def test_the_issuer_of_an_answer_is_compared_as_it_stands(
    sends: bool, iss: str | None, accepted: bool
) -> None:
    params = {"code": "c"} if iss is None else {"code": "c", "iss": iss}
    if accepted:
        assert read_redirect(params, server(sends_iss=sends)) == "c"
        return
    with pytest.raises(LoginFailed):
        read_redirect(params, server(sends_iss=sends))


@pytest.mark.req("A17")
def test_of_an_error_by_somebody_else_nothing_is_shown() -> None:
    params = {"iss": "https://evil.example", "error": "evil", "error_description": "call 0900"}
    with pytest.raises(LoginFailed) as caught:
        read_redirect(params, server())
    assert "evil" not in str(caught.value)
    assert "0900" not in str(caught.value)


def test_a_denial_is_told() -> None:
    with pytest.raises(LoginFailed, match=r"access_denied \(not today\)"):
        read_redirect({"error": "access_denied", "error_description": "not today"}, server())


@pytest.mark.req("A21")
def test_offline_access_is_asked_for_only_where_it_is_listed() -> None:
    play = Play({TOKEN: TOKENS}, browse=redirected())
    play.run(log_in(attempt(server(scopes=("a", "offline_access")), scopes=("a",))))
    assert query_of(play)["scope"] == ["a offline_access"]
    assert query_of(play)["prompt"] == ["consent"]
    play = Play({TOKEN: TOKENS}, browse=redirected())
    play.run(log_in(attempt(server(scopes=("a",)), scopes=("a",))))
    assert query_of(play)["scope"] == ["a"]
    assert "prompt" not in query_of(play)


@pytest.mark.req("B8")
def test_a_client_that_the_token_endpoint_does_not_know_is_registered_anew_once() -> None:
    stored = client(client_id="old", redirect_uri=REDIRECT, how="registered")
    play = Play(
        {
            REGISTER: ok({"client_id": "new"}, 201),
            TOKEN: [ok({"error": "invalid_client"}, 401), ok(TOKENS)],
            f"{ISSUER}/authorize": Fetched(200),
        },
        registration=stored,
        browse=redirected(),
    )
    login = play.run(log_in(attempt(options=OAuth())))
    assert login.client.client_id == "new"
    assert len([step for step in play.steps if isinstance(step, Visit)]) == 2


@pytest.mark.req("B8")
def test_a_stored_client_is_tried_before_a_person_sees_an_error_page() -> None:
    stored = client(client_id="old", redirect_uri=REDIRECT, how="registered")
    play = Play(
        {
            REGISTER: ok({"client_id": "new"}, 201),
            TOKEN: TOKENS,
            f"{ISSUER}/authorize": Fetched(400),
        },
        registration=stored,
        browse=redirected(),
    )
    assert play.run(log_in(attempt(options=OAuth()))).client.client_id == "new"
    assert len([step for step in play.steps if isinstance(step, Visit)]) == 1


@pytest.mark.req("B8", "B10")
@rows("status", [200, 302, 403, 405, 429, 500])
def test_a_trial_that_says_nothing_of_the_client_keeps_it(status: int) -> None:
    stored = client(client_id="old", redirect_uri=REDIRECT, how="registered")
    play = Play(
        {TOKEN: TOKENS, f"{ISSUER}/authorize": Fetched(status)},
        registration=stored,
        browse=redirected(),
    )
    assert play.run(log_in(attempt(options=OAuth()))).client.client_id == "old"


@pytest.mark.req("B8")
def test_a_client_that_is_refused_right_after_its_registration_is_not_registered_again() -> None:
    refusal = ok({"error": "invalid_client"}, 401)
    play = Play(
        {REGISTER: ok({"client_id": "new"}, 201), TOKEN: refusal},
        browse=redirected(),
    )
    with pytest.raises(LoginFailed, match="invalid_client"):
        play.run(log_in(attempt(options=OAuth())))
    assert len([step for step in play.steps if isinstance(step, Visit)]) == 1


@pytest.mark.req("B12")
def test_the_device_grant() -> None:
    place = f"{ISSUER}/device"
    begun = {
        "device_code": "DEVICE-SECRET",
        "user_code": "ABCD",
        "verification_uri": f"{ISSUER}/activate",
        "interval": 1,
    }
    pending = ok({"error": "authorization_pending"}, 400)
    slow = ok({"error": "slow_down"}, 400)
    play = Play({place: begun, TOKEN: [pending, slow, Fetched(503), ok(TOKENS)]})
    options = OAuth(client_id="me", device=True)
    login = play.run(log_in(attempt(server(device_authorization_endpoint=place), options=options)))
    assert login.access_token == "ACCESS-SECRET"
    (shown,) = [step for step in play.steps if isinstance(step, Visit)]
    assert (shown.user_code, shown.url) == ("ABCD", f"{ISSUER}/activate")
    assert [step.seconds for step in play.steps if isinstance(step, Pause)] == [1, 1, 6, 12]
    assert play.form(place)["resource"] == play.form(TOKEN)["resource"] == SERVER


@pytest.mark.req("B12")
@rows("interval", [0, 0.0, 0.001, "0.01", -1, 1e-300, None, True, [], 1e300])
def test_a_device_login_never_polls_without_a_pause(interval: Any) -> None:
    begun = {"device_code": "d", "user_code": "u", "verification_uri": f"{ISSUER}/go"}
    place = f"{ISSUER}/device"
    pending = [ok({"error": "authorization_pending"}, 400)] * 5
    play = Play({place: {**begun, "interval": interval}, TOKEN: [*pending, ok(TOKENS)]})
    options = OAuth(client_id="me", device=True)
    play.run(log_in(attempt(server(device_authorization_endpoint=place), options=options)))
    pauses = [step.seconds for step in play.steps if isinstance(step, Pause)]
    assert len(pauses) == 6
    assert all(1 <= pause <= 60 for pause in pauses)


@pytest.mark.req("B12")
@rows(("life", "asked"), [(10, 2), ("10", 2), (None, 60), (0, 60), (1e300, 60)])
def test_a_device_code_is_not_used_after_its_end(life: Any, asked: int) -> None:
    begun = {"device_code": "d", "user_code": "u", "verification_uri": f"{ISSUER}/go"}
    place = f"{ISSUER}/device"
    pending = [ok({"error": "authorization_pending"}, 400)] * 60
    play = Play({place: {**begun, "interval": 4, "expires_in": life}, TOKEN: pending})
    options = OAuth(client_id="me", device=True)
    found = server(device_authorization_endpoint=place)
    # Without an end only the login's own time bounds it.
    with pytest.raises(LoginFailed if asked < 60 else IndexError) as caught:
        play.run(log_in(attempt(found, options=options)))
    if asked < 60:
        assert "expired" in str(caught.value)
    assert play.urls.count(TOKEN) - (asked == 60) == asked


@pytest.mark.req("A19")
@pytest.mark.parametrize("url", ["javascript:alert(1)", "--flag", "http://evil.example/"])
def test_a_dangerous_page_for_a_device_code_is_not_shown(url: str) -> None:
    begun = {"device_code": "d", "user_code": "u", "verification_uri": url}
    play = Play({f"{ISSUER}/device": begun})
    options = OAuth(client_id="me", device=True)
    with pytest.raises(LoginFailed, match="not opened"):
        play.run(
            log_in(
                attempt(server(device_authorization_endpoint=f"{ISSUER}/device"), options=options)
            )
        )
    assert not [step for step in play.steps if isinstance(step, Visit)]


# Renewing, and what a refusal asks for.


@pytest.mark.req("A24", "A15")
def test_a_refresh_goes_to_the_stored_endpoint_with_the_resource() -> None:
    play = Play({TOKEN: {"access_token": "NEW", "token_type": "Bearer", "expires_in": 60}})
    login = play.run(renew(stored_login(), 1000.0))
    assert play.urls == [TOKEN]
    form = play.form(TOKEN)
    assert (form["refresh_token"], form["resource"]) == ("REFRESH", SERVER)
    assert (login.access_token, login.refresh_token) == ("NEW", "REFRESH")
    assert (login.expires_at, login.granted) == (1060.0, ("a",))


@pytest.mark.req("A25", "B6")
def test_a_due_token_is_renewed_without_reading_metadata() -> None:
    login = stored_login(expires_at=1001.0)
    play = Play({})
    assert play.run(answer(refused_request(login=login))) == login
    assert play.steps == []


@pytest.mark.req("A25")
def test_a_refused_token_is_renewed_once_and_then_a_login_is_needed() -> None:
    login = stored_login()
    script = {PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT}
    assert Play(script).run(answer(refused_request(login=login))) == login
    assert not isinstance(
        Play(script).run(answer(refused_request(login=login, renewed=True))), Login
    )


@pytest.mark.req("A13")
def test_a_refresh_token_is_not_shown_to_a_new_authorization_server() -> None:
    other = "https://new.example"
    play = Play(
        {
            PRM: {**PRM_DOCUMENT, "authorization_servers": [other]},
            f"{other}/.well-known/oauth-authorization-server": {**AS_DOCUMENT, "issuer": other},
        }
    )
    found = play.run(answer(refused_request(login=stored_login())))
    assert not isinstance(found, Login)
    assert found.login.issuer == other


@pytest.mark.req("B5")
def test_a_token_is_renewed_although_the_metadata_cannot_be_read() -> None:
    login = stored_login()
    assert Play({PRM: unreachable()}).run(answer(refused_request(login=login))) == login


@pytest.mark.req("A20", "A26")
@pytest.mark.parametrize(
    ("own", "challenged", "asked"),
    [(None, ("new",), ("a", "new")), (None, None, ("a",)), (["mine"], ("new",), ("mine",))],
)
def test_a_login_anew_keeps_the_scopes_of_the_one_before(
    own: Any, challenged: Any, asked: tuple[str, ...]
) -> None:
    before = stored_login(requested_scopes=("a", "offline_access"), granted=("a", "offline_access"))
    challenge = Challenge(frozenset({"bearer"}), None, challenged)
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    settings = {"options": OAuth(scopes=own), "challenge": challenge, "renewed": True}
    found = play.run(answer(refused_request(login=before, **settings)))
    assert not isinstance(found, Login)
    assert found.login.requested_scopes == asked


@pytest.mark.req("A13")
def test_scopes_of_another_authorization_server_are_not_asked_for() -> None:
    before = stored_login(auth_server=server(issuer="https://old.example"))
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    found = play.run(answer(refused_request(login=before, renewed=True)))
    assert not isinstance(found, Login)
    assert found.login.requested_scopes == ()


def forbidden(scope: tuple[str, ...] | None, error: str = "insufficient_scope") -> dict[str, Any]:
    challenge = Challenge(frozenset({"bearer"}), None, scope, error)
    return {"status": 403, "challenge": challenge, "operation": "tools/call x"}


@pytest.mark.req("A26")
def test_a_step_up_asks_for_earlier_and_challenged_scopes() -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    found = play.run(answer(refused_request(login=stored_login(), **forbidden(("b",)))))
    assert not isinstance(found, Login)
    assert (found.login.requested_scopes, found.step_up_for) == (("a", "b"), "tools/call x")


@pytest.mark.req("A26")
@pytest.mark.parametrize(
    "changes",
    [forbidden(("a",)), forbidden(None), {**forbidden(("b",)), "step_ups": 2}],
)
def test_a_step_up_that_cannot_help_is_not_tried(changes: dict[str, Any]) -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: AS_DOCUMENT})
    with pytest.raises(ScopeError):
        play.run(answer(refused_request(login=stored_login(), **changes)))
    assert play.steps == []


# Machines.


@pytest.mark.req("A33")
def test_client_credentials() -> None:
    options = ClientCredentials(client_id="svc", client_secret="SECRET", scopes="a b")
    play = Play({TOKEN: TOKENS})
    play.run(by_machine(options, draft(scopes=("a", "b")), None, 0))
    form = play.form(TOKEN)
    assert form == {"grant_type": "client_credentials", "scope": "a b", "resource": SERVER}
    assert play.steps[-1].headers["Authorization"].startswith("Basic ")


@pytest.mark.req("A35")
def test_workload_identity() -> None:
    options = WorkloadIdentity(client_id="job", token=lambda: "JWT")
    play = Play({TOKEN: ok({"error": "invalid_grant"}, 400)})
    with pytest.raises(GrantError):
        play.run(by_machine(options, draft(), "JWT", 0))
    assert play.urls == [TOKEN]
    form = play.form(TOKEN)
    assert (form["grant_type"], form["assertion"]) == (grants.JWT_BEARER, "JWT")
    assert form["client_id"] == "job"


@pytest.mark.req("A34")
def test_enterprise_managed_authorization() -> None:
    idp = "https://idp.example"
    options = EnterpriseManaged(
        idp_issuer=idp,
        idp_client_id="sso",
        idp_client_secret="S1",
        id_token="ID-TOKEN",
        client_id="me",
        client_secret="S2",
    )
    play = Play(
        {
            f"{idp}/.well-known/openid-configuration": {
                "issuer": idp,
                "token_endpoint": f"{idp}/token",
            },
            f"{idp}/token": {"access_token": "JAG", "token_type": "N_A"},
            TOKEN: TOKENS,
        }
    )
    play.run(by_machine(options, draft(scopes=("a",)), "ID-TOKEN", 0))
    exchange, grant = play.form(f"{idp}/token"), play.form(TOKEN)
    assert exchange["audience"] == ISSUER
    assert exchange["resource"] == SERVER
    assert exchange["requested_token_type"] == grants.ID_JAG
    assert exchange["subject_token"] == "ID-TOKEN"
    assert exchange["subject_token_type"] == grants.ID_TOKEN
    assert grant["assertion"] == "JAG"
    assert "ID-TOKEN" not in json.dumps(grant)


@pytest.mark.req("A34", "A27")
@pytest.mark.parametrize(
    "answer",
    [
        {"token_type": "Bearer"},
        {"token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"},
        {"token_type": "N_A", "issued_token_type": 7},
    ],
)
def test_what_the_company_s_provider_gives_is_handed_on_only_if_it_is_a_grant(answer: Any) -> None:
    options = EnterpriseManaged(
        idp_issuer="https://idp.example",
        idp_client_id="sso",
        id_token="ID-TOKEN",
        client_id="me",
    )
    found = {"issuer": "https://idp.example", "token_endpoint": "https://idp.example/token"}
    play = Play(
        {
            "https://idp.example/.well-known/oauth-authorization-server": found,
            "https://idp.example/token": {"access_token": "SECRET", **answer},
            TOKEN: TOKENS,
        }
    )
    with pytest.raises(GrantError, match="no grant"):
        play.run(by_machine(options, draft(), "ID-TOKEN", 0))
    assert TOKEN not in play.urls


# Options.


@pytest.mark.req("B20")
@rows(
    "value",
    [
        OAuth(client_id="me", client_secret="SECRET"),
        holdfast.Bearer("SECRET"),
        ClientCredentials(client_id="me", client_secret="SECRET"),
        ClientCredentials(client_id="me", private_key="SECRET"),
        WorkloadIdentity(client_id="me", token="SECRET"),
        EnterpriseManaged(
            client_id="me",
            client_secret="SECRET",
            idp_issuer=ISSUER,
            idp_client_id="me",
            idp_client_secret="SECRET",
            id_token="SECRET",
        ),
        Ask(url=TOKEN, form={"a": "SECRET"}, headers={"a": "SECRET"}, proof="SECRET"),
        Fetched(200, b"SECRET"),
        Visit(url="https://as/?SECRET", issuer=ISSUER, scopes=(), state="SECRET"),
        Sign(client(private_key="SECRET"), ISSUER),
        Refusal(token="SECRET", nonce="SECRET"),
        stored_login(access_token="SECRET", refresh_token="SECRET", dpop_key="SECRET"),
        attempt(verifier="SECRET", state="SECRET", dpop_key="SECRET"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_value_shows_its_secret(value: Any) -> None:
    assert "SECRET" not in repr(value) + rich.pretty.pretty_repr(value)


@pytest.mark.req("B20")
def test_a_token_in_the_place_of_a_keyword_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as caught:
        options_for("sk-TOKEN-SECRET")
    assert "TOKEN-SECRET" not in str(caught.value)


@pytest.mark.req("B20")
@rows(
    ("kind", "wrong", "message"),
    [
        (OAuth, {"scopes": 3}, "OAuth(scopes=3): must be a string or a list of them"),
        (OAuth, {"client_id": b"SECRET"}, "OAuth(client_id=…): must be a string, not bytes"),
        (OAuth, {"insecure": 1}, "OAuth(insecure=…): must be True or False, not int"),
        (OAuth, {"account": 3}, "OAuth(account=…): must be a string or a function, not int"),
        (OAuth, {"timeout": "a"}, "OAuth(timeout=…): must be a number, not str"),
        (
            holdfast.Bearer,
            {"token": b"SECRET"},
            "Bearer(token=…): must be a string or a function, not bytes",
        ),
    ],
)
def test_an_option_of_a_wrong_type_is_refused_without_its_value(
    kind: Any, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        kind(**wrong)
    assert str(caught.value) == message


def test_keywords() -> None:
    auto, oauth = options_for("auto"), options_for("oauth")
    assert isinstance(auto, OAuth)
    assert isinstance(oauth, OAuth)
    assert (auto.interactive, oauth.interactive) == (False, True)
    assert options_for(None) is None
