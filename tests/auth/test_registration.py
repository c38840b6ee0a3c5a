"""The client of a login: its scopes and its ways to authenticate, as registered and as answered."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast import OAuth
from holdfast._core.auth.login import log_in
from holdfast._core.auth.registration import identify
from holdfast._core.auth.steps import Ask, Fetched, Visit, Write
from holdfast.errors import LoginFailed, ValidationError
from tests.auth.talk import ISSUER, REDIRECT, TOKENS, Play, attempt, client, ok, server
from tests.auth.world import parameters, world
from tests.rows import rows

REGISTER, TOKEN, AUTHORIZE = f"{ISSUER}/register", f"{ISSUER}/token", f"{ISSUER}/authorize"


def registrations(play: Play) -> list[dict[str, Any]]:
    asks = [step for step in play.steps if isinstance(step, Ask) and step.url == REGISTER]
    return [dict(ask.json or {}) for ask in asks]


def visited_scopes(play: Play) -> list[str | None]:
    visits = [step for step in play.steps if isinstance(step, Visit)]
    return [parameters(visit.url).get("scope") for visit in visits]


def browse(visit: Visit) -> dict[str, str]:
    return {"code": "CODE", "state": visit.state or ""}


@pytest.mark.req("A12", "A20")
def test_a_client_is_registered_with_the_scopes_that_will_be_asked_for() -> None:
    play = Play({REGISTER: ok({"client_id": "new"}, 201), TOKEN: TOKENS}, browse=browse)
    offline = server(scopes=("offline_access",))
    play.run(log_in(attempt(offline, options=OAuth(), scopes=("read", "write"))))
    assert [document["scope"] for document in registrations(play)] == ["read write offline_access"]
    assert visited_scopes(play) == ["read write offline_access"]


@pytest.mark.req("A12", "A20")
@rows(
    ("answered", "requested"),
    [
        ("read", "read"),
        ("write read more", "read write"),
        (["read"], "read"),
        (None, "read write"),
        ("", "read write"),
        (7, "read write"),
        ("nothing-of-ours", "read write"),
    ],
)
def test_scopes_that_the_server_did_not_register_are_not_asked_for(
    answered: Any, requested: str
) -> None:
    answer = {"client_id": "new", "scope": answered}
    play = Play({REGISTER: ok(answer, 201), TOKEN: TOKENS}, browse=browse)
    login = play.run(log_in(attempt(options=OAuth(), scopes=("read", "write"))))
    assert visited_scopes(play) == [requested]
    assert login.granted == tuple(requested.split())


@pytest.mark.req("A20")
def test_scopes_that_the_user_chose_are_asked_for_whatever_was_registered() -> None:
    answer = {"client_id": "new", "scope": "read"}
    play = Play({REGISTER: ok(answer, 201), TOKEN: TOKENS}, browse=browse)
    options = OAuth(scopes=["read", "write"])
    play.run(log_in(attempt(options=options, scopes=("read", "write"))))
    assert visited_scopes(play) == ["read write"]


@pytest.mark.req("B10", "A26")
@pytest.mark.parametrize(
    ("stored", "registered_anew"),
    [
        ({"scopes": ("read",), "requested_scopes": ("read",)}, True),
        ({"scopes": ("read", "write"), "requested_scopes": ()}, False),
        ({"scopes": ("read",), "requested_scopes": ("read", "write")}, False),
        ({"scopes": None, "requested_scopes": ("read",)}, False),
    ],
)
def test_a_registration_without_the_scopes_is_made_anew_unless_that_is_no_use(
    stored: dict[str, Any], registered_anew: bool
) -> None:
    registration = client(client_id="old", redirect_uri=REDIRECT, how="registered", **stored)
    play = Play({REGISTER: ok({"client_id": "new"}, 201)}, registration=registration)
    found = play.run(identify(attempt(options=OAuth(), scopes=("read", "write"))))
    assert (found.client_id == "new") is registered_anew
    assert bool(registrations(play)) is registered_anew


@pytest.mark.req("A12")
@pytest.mark.parametrize("error", ["invalid_client_metadata", "invalid_scope"])
def test_scopes_that_cannot_be_registered_are_left_to_the_server(error: str) -> None:
    def answer(document: dict[str, Any]) -> Fetched:
        if "scope" in document:
            return ok({"error": error, "error_description": "scopes are not valid"}, 400)
        return ok({"client_id": "new", "scope": "read"}, 201)

    play = Registrar(answer)
    play.run(log_in(attempt(options=OAuth(), scopes=("read", "odd"))))
    assert visited_scopes(play) == ["read"]


class Registrar(Play):
    """Answers registrations by a function of their document."""

    def __init__(self, answer: Any) -> None:
        super().__init__({TOKEN: TOKENS}, browse=browse)
        self.answer = answer

    def reply(self, step: Any) -> Any:
        if isinstance(step, Ask) and step.url == REGISTER:
            return self.answer(step.json)
        return super().reply(step)


@pytest.mark.req("A12", "A22")
def test_a_way_to_authenticate_that_cannot_be_registered_gives_way_to_the_next() -> None:
    def answer(document: dict[str, Any]) -> Fetched:
        if document["token_endpoint_auth_method"] == "none":
            return ok({"error": "invalid_client_metadata"}, 400)
        return ok({**document, "client_id": "new", "client_secret": "s"}, 201)

    play = Registrar(answer)
    offered = ("none", "client_secret_basic", "client_secret_post")
    login = play.run(log_in(attempt(server(auth_methods=offered), options=OAuth())))
    assert login.client.method == "client_secret_post"
    assert play.form(TOKEN)["client_secret"] == "s"


@pytest.mark.req("A12")
def test_the_first_refusal_is_the_one_that_is_told() -> None:
    descriptions = iter(["no such scope", "no web", "no", "no"])

    def answer(document: dict[str, Any]) -> Fetched:
        error = {"error": "invalid_client_metadata", "error_description": next(descriptions)}
        return ok(error, 400)

    with pytest.raises(LoginFailed, match="no such scope"):
        Registrar(answer).run(log_in(attempt(options=OAuth(), scopes=("read",))))


@pytest.mark.req("A22")
@pytest.mark.parametrize(
    ("answered", "sent"),
    [
        ({"token_endpoint_auth_method": "client_secret_basic"}, "basic"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "post"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "post"),
        ({}, "post"),
    ],
)
def test_the_client_authenticates_as_the_registration_was_answered(
    answered: dict[str, Any], sent: str
) -> None:
    answer = {"client_id": "new", "client_secret": "s", **answered}
    play = Play({REGISTER: ok(answer, 201), TOKEN: TOKENS}, browse=browse)
    offered = ("client_secret_basic", "client_secret_post")
    play.run(log_in(attempt(server(auth_methods=offered), options=OAuth())))
    assert ("client_secret" in play.form(TOKEN)) is (sent == "post")
    assert ("client_id" in play.form(TOKEN)) is (sent == "post")


@pytest.mark.req("A22", "B10")
def test_the_way_that_worked_is_stored_with_the_registration() -> None:
    answer = {"client_id": "new", "client_secret": "s"}
    tokens = [ok({"error": "invalid_client"}, 401), ok(TOKENS)]
    play = Play({REGISTER: ok(answer, 201), TOKEN: tokens}, browse=browse)
    offered = ("client_secret_basic", "client_secret_post")
    play.run(log_in(attempt(server(auth_methods=offered), options=OAuth())))
    assert len([step for step in play.steps if isinstance(step, Visit)]) == 1
    writes = [step.value for step in play.steps if isinstance(step, Write)]
    assert [getattr(value, "method", None) for value in writes] == [
        "client_secret_post",
        "client_secret_basic",
    ]


@pytest.mark.req("A9", "A10")
@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
def test_a_client_id_of_the_user_is_never_replaced_by_a_registration(error: str) -> None:
    play = Play({TOKEN: ok({"error": error}, 401), AUTHORIZE: Fetched(400)}, browse=browse)
    with pytest.raises(LoginFailed, match=error):
        play.run(log_in(attempt(options=OAuth(client_id="mine", client_secret="s"))))
    assert registrations(play) == []
    assert not [step for step in play.steps if isinstance(step, Write)]
    assert len([step for step in play.steps if isinstance(step, Visit)]) == 1


@pytest.mark.req("A9", "A10")
async def test_a_refused_client_id_of_the_user_is_told_and_asked_about_once() -> None:
    async with world() as here:
        here.clients.add("another")
        here.count["register"] = 1
        here.odd = {"error": "invalid_client"}
        auth = OAuth(client_id="another", redirect_uri="http://127.0.0.1:0/callback")
        async with here.connect(auth=auth) as session:
            with pytest.raises(LoginFailed, match="invalid_client"):
                await session.call_tool("hello")
        assert here.asked("/register") == []
        assert here.count["asked"] == 1


@pytest.mark.req("B8")
@pytest.mark.parametrize(
    "trial",
    [
        Fetched(400),
        Fetched(401),
        Fetched(302, location=f"{REDIRECT}?error=unauthorized_client&state=x"),
        Fetched(303, location=f"{REDIRECT}?state=x&error=invalid_client"),
    ],
)
def test_a_client_that_was_forgotten_is_found_out_before_a_person_is_asked(trial: Fetched) -> None:
    stored = client(client_id="old", redirect_uri=REDIRECT, how="registered")
    script = {REGISTER: ok({"client_id": "new"}, 201), TOKEN: TOKENS, AUTHORIZE: trial}
    play = Play(script, registration=stored, browse=browse)
    assert play.run(log_in(attempt(options=OAuth()))).client.client_id == "new"
    visits = [step for step in play.steps if isinstance(step, Visit)]
    assert [parameters(visit.url)["client_id"] for visit in visits] == ["new"]


@pytest.mark.req("B8")
async def test_a_running_client_heals_when_its_registration_is_forgotten() -> None:
    async with world() as here, here.connect() as session:
        for number in range(1, 4):
            assert (await session.call_tool("hello")).text == "hello"
            assert here.asked("/token")[-1]["client_id"] == f"client-{number}"
            # The authorization server starts anew, without its database.
            here.clients.clear()
            here.tokens.clear()
            here.refresh.clear()
        assert here.count["asked"] == 3


@pytest.mark.req("B8", "B10")
async def test_a_registration_that_is_known_is_used_for_every_login() -> None:
    async with world() as here, here.connect() as session:
        for _ in range(3):
            assert (await session.call_tool("hello")).text == "hello"
            here.tokens.clear()
            here.refresh.clear()
        assert here.count["register"] == 1


@pytest.mark.req("A11")
def test_the_client_metadata_document_repeats_its_address() -> None:
    address = "https://app.example/client.json"
    document = OAuth(client_metadata_url=address).client_metadata("Mine")
    assert (document["client_id"], document["client_name"]) == (address, "Mine")
    hosts = [urlsplit(redirect).hostname for redirect in document["redirect_uris"]]
    assert hosts == ["127.0.0.1", "localhost"]
    assert "refresh_token" in document["grant_types"]
    fixed = OAuth(client_metadata_url=address, redirect_uri="https://app.example/back")
    assert fixed.client_metadata()["redirect_uris"] == ["https://app.example/back"]
    with pytest.raises(ValidationError, match="needs client_metadata_url"):
        OAuth().client_metadata()
