"""Authorization servers, resource servers and project files that mean harm."""

from __future__ import annotations

import asyncio
import shlex
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import jwt
import pytest
from aiohttp import web

import holdfast
from holdfast import Bearer, OAuth
from holdfast._core.auth import jws
from holdfast._core.auth.auth_server import MACHINE_TIME, NetworkSettings
from holdfast._core.auth.authorizer import Authorizer
from holdfast._core.auth.browser import Listener, describe
from holdfast._core.auth.credentials import Login
from holdfast._core.auth.flow import Attempts, Refusal, discover, keep, renew
from holdfast._core.auth.keyring import Keyring
from holdfast._core.auth.login import log_in
from holdfast._core.auth.registration import identify
from holdfast._core.auth.steps import (
    Ask,
    Conversation,
    Fetched,
    Pause,
    Read,
    Unreachable,
    Visit,
)
from holdfast.auth import ClientCredentials, EnterpriseManaged, LoginRequest
from holdfast.errors import (
    AuthError,
    DiscoveryError,
    GrantError,
    LoginFailed,
    LoginRequired,
    TransportError,
)
from holdfast.stores import FileStore, MemoryStore
from tests.auth.talk import (
    AS_DOCUMENT,
    ISSUER,
    METADATA,
    PRM,
    PRM_DOCUMENT,
    TOKENS,
    Play,
    attempt,
    ok,
    refused_request,
    server,
    stored_login,
)
from tests.auth.test_auth_server import serving, step_runner
from tests.auth.world import world
from tests.rows import rows
from tests.skipping import run_skipping, skip

TOKEN, REGISTER, DEVICE = f"{ISSUER}/token", f"{ISSUER}/register", f"{ISSUER}/device"
BEYOND_FLOAT = 10**400
UNUSABLE = ["", "a\nb", "é", "\ud800", "x" * 100_000, 7, None]


# Values that no honest server sends.


@pytest.mark.req("B7")
def test_a_life_beyond_all_numbers_is_a_long_one() -> None:
    play = Play({TOKEN: {**TOKENS, "expires_in": BEYOND_FLOAT}})
    found = play.run(renew(stored_login(), 1000.0))
    assert found.expires_at is not None
    assert found.expires_at < 1e10


@pytest.mark.req("A12")
@rows("expiry", [BEYOND_FLOAT, -BEYOND_FLOAT, 5e12, "5", [], None, 0])
def test_a_registration_may_say_anything_of_its_expiry(expiry: Any) -> None:
    said = {"client_id": "dyn", "client_secret": "s", "client_secret_expires_at": expiry}
    found = Play({REGISTER: ok(said, 201)}).run(identify(attempt(server(), options=OAuth())))
    assert found.client_id == "dyn"
    assert found.expires_at is None or found.expires_at > 0


@pytest.mark.req("A12", "B20")
@rows("name", UNUSABLE)
def test_a_client_that_cannot_be_used_is_refused(name: Any) -> None:
    play = Play({REGISTER: ok({"client_id": name}, 201)})
    with pytest.raises(LoginFailed, match="did not register"):
        play.run(identify(attempt(server(), options=OAuth())))


@pytest.mark.req("B12")
@rows("code", UNUSABLE)
def test_a_device_code_that_cannot_be_used_is_refused(code: Any) -> None:
    said = {"device_code": code, "user_code": "AB", "verification_uri": f"{ISSUER}/go"}
    play = Play({DEVICE: said})
    with pytest.raises(LoginFailed, match="no device code"):
        play.run(log_in(device_attempt()))


@pytest.mark.req("B12")
@rows("interval", [BEYOND_FLOAT, 1e308, float("inf"), float("nan"), "9", -1])
def test_no_interval_makes_the_device_login_wait_for_ever_or_not_at_all(interval: Any) -> None:
    said = {
        "device_code": "D",
        "user_code": "AB",
        "verification_uri": f"{ISSUER}/go",
        "interval": interval,
    }
    answers = [ok({"error": "slow_down"}, 400), Fetched(503), TOKENS]
    play = Play({DEVICE: said, TOKEN: answers})
    play.run(log_in(device_attempt()))
    pauses = [step.seconds for step in play.steps if isinstance(step, Pause)]
    assert len(pauses) == 3
    assert all(5 <= one <= 60 for one in pauses)


def device_attempt() -> Any:
    found = server(device_authorization_endpoint=DEVICE)
    return attempt(found, options=OAuth(client_id="me", device=True))


@pytest.mark.req("B5")
@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize("error", ["temporarily_unavailable", "server_error"])
def test_trouble_that_passes_keeps_the_login(status: int, error: str) -> None:
    play = Play({TOKEN: ok({"error": error}, status)})
    with pytest.raises(TransportError):
        play.run(renew(stored_login(), 0))


@pytest.mark.req("B5")
@rows("status", [408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_mean_later_keep_the_login(status: int) -> None:
    with pytest.raises(TransportError):
        Play({TOKEN: Fetched(status, b"<html>")}).run(renew(stored_login(), 0))


@pytest.mark.req("A23")
@rows(
    "answer",
    [
        {"refresh_token": "r"},
        {**TOKENS, "token_type": "mac"},
        {**TOKENS, "token_type": "DPoP"},
        {**TOKENS, "token_type": 7},
        {**TOKENS, "access_token": ["x"]},
    ],
)
def test_a_renewal_without_a_usable_token_is_an_error_that_ends_no_login(answer: Any) -> None:
    with pytest.raises(GrantError) as caught:
        Play({TOKEN: answer}).run(renew(stored_login(), 0))
    assert not caught.value.error


# Metadata.


@pytest.mark.req("A19")
@rows(
    "endpoint",
    [
        f"{ISSUER}/authorize#",
        f"{ISSUER}/authorize#fragment",
        f"{ISSUER}/authorize?client_id=evil",
        f"{ISSUER}/authorize?a=b&redirect%5Furi=https://evil.example",
        f"{ISSUER}/authorize?STATE=x&state=y",
        f"{ISSUER}/authorize?response_mode=fragment&scope",
    ],
)
def test_an_authorization_endpoint_cannot_bring_parameters_of_the_request(endpoint: str) -> None:
    play = Play({PRM: PRM_DOCUMENT, METADATA: {**AS_DOCUMENT, "authorization_endpoint": endpoint}})
    with pytest.raises((DiscoveryError, LoginFailed)):
        need = play.run(discover(refused_request()))
        play.run(log_in(attempt(need.login.auth_server)))
    assert not [step for step in play.steps if isinstance(step, Visit)]


@pytest.mark.req("A6")
@rows("issuer", ["\ud800", "x\x1b[2J", "javascript:1", 7, None, f"{ISSUER}?a", f"{ISSUER}#a", ""])
def test_a_document_that_the_user_names_has_an_issuer_that_can_be_one(issuer: Any) -> None:
    place = "https://as.example/own.json"
    play = Play({PRM: PRM_DOCUMENT, place: {**AS_DOCUMENT, "issuer": issuer}})
    with pytest.raises(DiscoveryError):
        play.run(discover(refused_request(options=OAuth(metadata_url=place))))


@pytest.mark.req("A6", "A30")
@rows(
    "issuer",
    [
        f"{ISSUER}?tenant=1",
        f"{ISSUER}/#x",
        "https://ås.example",
        "https://as.example\u3002evil",
        "https://user@as.example",
        "HTTPS//as.example",
        "https://as.example:x",
        "https://[::1",
    ],
)
def test_an_issuer_that_cannot_be_one_is_not_asked(issuer: str) -> None:
    play = Play({PRM: {**PRM_DOCUMENT, "authorization_servers": [issuer]}})
    with pytest.raises(DiscoveryError):
        play.run(discover(refused_request()))
    assert play.urls == [PRM]


# Addresses.


@pytest.mark.req("A31", "A32")
async def test_a_pinned_place_is_not_left_for_a_private_one() -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response({})

    async def here(request: web.Request) -> web.StreamResponse:
        if request.path == "/same":
            return web.json_response({})
        return web.Response(status=302, headers={"Location": place})

    asked: list[str] = []
    async with serving(elsewhere) as other, serving(here) as home:
        asker = step_runner("global")
        place = f"{other}/secret"
        found = await asker.fetch(Ask(url=f"{home}/x", pinned=True))
        assert isinstance(found, Unreachable)
        place = f"{home}/same"
        found = await asker.fetch(Ask(url=f"{home}/x", pinned=True))
        assert isinstance(found, Fetched)
    assert not asked


@pytest.mark.req("A31", "B21")
@rows(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "a.localhost",
        "localhost.",
        "0x7f.1",
        "2130706433",
        "10.1",
        "[::1]",
    ],
)
async def test_a_proxy_is_not_asked_for_private_places(host: str) -> None:
    asked: list[str] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        return web.json_response({})

    async with serving(proxy) as place:
        asker = step_runner("global", NetworkSettings(proxy=lambda url: place))
        found = await asker.fetch(Ask(url=f"http://{host}/x"))
    assert isinstance(found, Unreachable)
    assert not asked


@pytest.mark.req("A31", "B21")
async def test_the_address_of_a_proxy_is_not_that_of_the_server() -> None:
    """A proxy on this machine must not open this machine to a server elsewhere."""
    asked: list[str] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        challenge = 'Bearer resource_metadata="http://127.0.0.1:9/secret"'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    async with serving(proxy) as place:
        target = holdfast.Http("http://mcp.example/mcp", auth="oauth", proxy=place)
        async with holdfast.connect(target) as session:
            with pytest.raises(holdfast.HoldfastError):
                await session.list_tools()
        assert target.authorizer is not None
        assert target.authorizer.runner.network in (None, "global")
    assert asked
    assert not [url for url in asked if "127.0.0.1:9" in url]


# Answers to requests.


@pytest.mark.req("A36")
@rows("nonce", ["", "\udcff", "a b", 'a"b', "a\x7f", "n" * 5000])
def test_a_nonce_that_cannot_be_one_is_not_used(nonce: str) -> None:
    authorizer = Authorizer("https://mcp.example/mcp", OAuth())
    assert not authorizer.runner.note_nonce(TOKEN, nonce)
    assert not authorizer.runner.nonces


class Clock:
    """The time, which a test puts forward."""

    def __init__(self, session: holdfast.Client) -> None:
        self.now = 0.0
        step_runner = session.transport.authorizer.runner
        begin = step_runner.clock()
        step_runner.clock = lambda: begin + self.now


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ("30", 30),
        ("1000000000", 60),
        # By the clock of the server, which is decades late.
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30),
        ("Sun, 06 Nov 9994 08:50:07 GMT", 60),
    ],
)
async def test_a_server_that_asks_for_time_is_not_asked_again_at_once(
    said: str, waits: int
) -> None:
    async with world() as here, here.connect() as session:
        await session.list_tools()
        clock = Clock(session)
        here.broken, here.retry_after = 429, said
        clock.now = 4000
        for _ in range(3):
            with pytest.raises(TransportError, match=f"in {waits} s"):
                await session.call_tool("hello")
        assert here.count["refresh_token"] == 1
        here.broken = None
        clock.now += waits + 1
        assert (await session.call_tool("hello")).text == "hello"
        assert here.count["authorize"] == 1


@pytest.mark.req("B5", "B7")
async def test_while_a_token_is_good_trouble_at_its_server_costs_one_request() -> None:
    async with world() as here, here.connect() as session:
        await session.list_tools()
        clock = Clock(session)
        here.broken = 503
        clock.now = 3590
        for _ in range(5):
            assert (await session.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1
        here.broken = None
        clock.now = 3601
        assert (await session.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 2


@pytest.mark.req("B5", "B7")
@pytest.mark.parametrize("failure", [ValueError, TimeoutError])
async def test_while_a_token_is_good_trouble_with_the_store_fails_no_call(
    failure: type[Exception],
) -> None:
    class Failing(MemoryStore):
        fails = False

        @asynccontextmanager
        async def lock(self, name: str, ttl: float = 30) -> AsyncIterator[int]:
            if self.fails:
                raise failure
            async with super().lock(name, ttl):
                yield 1

    store = Failing()
    async with world() as here, here.connect(auth=OAuth(store=store)) as session:
        await session.list_tools()
        clock = Clock(session)
        store.fails, clock.now = True, 3590
        assert (await session.call_tool("hello")).text == "hello"
        clock.now = 3601
        with pytest.raises(AuthError, match=f"because of {failure.__name__} in a .* store"):
            await session.call_tool("hello")
        store.fails = False
        assert (await session.call_tool("hello")).text == "hello"
        assert (here.count["tools/call"], here.count["refresh_token"]) == (2, 1)


@pytest.mark.req("B2", "B3")
async def test_of_two_that_renew_at_once_the_second_takes_what_the_first_stored() -> None:
    store = MemoryStore()
    async with (
        world() as here,
        here.connect(auth=OAuth(store=store)) as one,
        here.connect(auth=OAuth(store=store)) as other,
    ):
        for session in (one, other):
            await session.list_tools()
            Clock(session).now = 4000
        here.gate = asyncio.Event()
        here.entered.clear()
        calls = [asyncio.create_task(session.call_tool("hello")) for session in (one, other)]
        await here.entered.wait()
        here.gate.set()
        assert [(await call).text for call in calls] == ["hello"] * 2
        assert (here.count["refresh_token"], here.count["authorize"]) == (1, 1)


@pytest.mark.req("B5", "B7")
async def test_a_clock_that_is_put_back_does_not_prolong_the_trouble() -> None:
    async with world() as here, here.connect() as session:
        await session.list_tools()
        clock = Clock(session)
        here.broken, here.retry_after = 429, "30"
        clock.now = 1_000_000
        with pytest.raises(TransportError):
            await session.call_tool("hello")
        here.broken = None
        clock.now = 4000
        assert (await session.call_tool("hello")).text == "hello"


@pytest.mark.req("B5")
@pytest.mark.parametrize("answer", [{"error": "invalid_request"}, {"access_token": 7}])
async def test_an_odd_answer_to_a_renewal_does_not_stop_a_token_that_is_good(answer: Any) -> None:
    async with world() as here, here.connect() as session:
        await session.list_tools()
        clock = Clock(session)
        here.odd = answer
        clock.now = 3590
        assert (await session.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1
        clock.now = 3601
        with pytest.raises(GrantError):
            await session.call_tool("hello")
        here.odd = None
        clock.now += 60
        assert (await session.call_tool("hello")).text == "hello"
        assert here.count["authorize"] == 1


@pytest.mark.req("B7", "A33", "A36")
async def test_the_clock_of_the_authorization_server_counts_for_what_it_is_shown() -> None:
    """This machine is an hour slow: its assertions and proofs would have expired."""
    times: list[float] = []

    async def token(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        for text in (str(form["client_assertion"]), request.headers["DPoP"]):
            claims = jwt.decode(text, options={"verify_signature": False})
            times.append(claims["iat"])
        return web.json_response({**TOKENS, "token_type": "DPoP"})

    async def answer(request: web.Request) -> web.StreamResponse:
        home = f"http://{request.host}"
        if request.path == "/token":
            return await token(request)
        if request.path == "/mcp":
            return web.Response(status=401, headers={"WWW-Authenticate": "DPoP"})
        issuer = {"issuer": home, "token_endpoint": f"{home}/token"}
        prm = {"resource": f"{home}/mcp", "authorization_servers": [home]}
        return web.json_response(prm if "resource" in request.path else issuer)

    async with serving(answer) as url:
        auth = holdfast.auth.ClientCredentials(client_id="me", private_key=jws.new_key())
        async with holdfast.connect(f"{url}/mcp", auth=auth) as session:
            Clock(session).now = -3600
            with pytest.raises(holdfast.AuthError):
                await session.list_tools()
    assert len(times) == 2
    assert all(abs(one - time.time()) < 60 for one in times)


@pytest.mark.req("B7", "B6", "A36")
async def test_the_clock_of_the_server_is_known_after_a_restart() -> None:
    store, later = MemoryStore(), time.time() + 7200
    login = stored_login(dpop_key=jws.new_key(), token_type="DPoP", skew=3600.0, expires_at=later)
    authorizer = Authorizer("https://mcp.example/mcp", OAuth(store=store))
    await authorizer.runner.run(keep(login, None))
    headers = await authorizer.headers("POST", "https://mcp.example/mcp")
    claims = jwt.decode(headers["DPoP"], options={"verify_signature": False})
    assert 3500 < claims["iat"] - time.time() < 3700


@pytest.mark.req("A36")
def test_nonces_of_ever_new_places_do_not_pile_up() -> None:
    step_runner = Authorizer("https://mcp.example/mcp", OAuth()).runner
    for number in range(1000):
        assert step_runner.note_nonce(f"https://as{number}.example/token", "n" * 1000)
    assert len(step_runner.nonces) < 100
    assert "https://as999.example" in step_runner.nonces


@pytest.mark.req("B14", "A32")
def test_a_machine_s_part_takes_seconds_whatever_it_waits_for() -> None:
    run_skipping(_a_machine_s_part_takes_seconds_whatever_it_waits_for())


async def _a_machine_s_part_takes_seconds_whatever_it_waits_for() -> None:
    entered = asyncio.Event()

    class Stuck(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            entered.set()
            await asyncio.Event().wait()
            return None

    def conversation() -> Conversation[None]:
        yield Read("login-00000000", Login)

    step_runner = Authorizer("https://mcp.example/mcp", OAuth(store=Stuck())).runner
    work = asyncio.create_task(step_runner.run(conversation()))
    await entered.wait()
    skip(MACHINE_TIME + 1)
    with pytest.raises(TransportError, match="within 25 s"):
        await work


@pytest.mark.req("A25")
async def test_a_request_is_not_repeated_without_end_while_others_renew_the_token() -> None:
    authorizer = Authorizer("https://mcp.example/mcp", OAuth(store=MemoryStore()))
    authorizer._take(stored_login())
    tries = Attempts()
    with pytest.raises(AuthError, match="refuses every token"):
        for _ in range(10):
            await authorizer.answer(Refusal(token="the one before"), tries)
    assert tries.count < 10


# The person's side.


@pytest.mark.req("B12")
@rows("text", ["http://[", "http://[::1", "\x00", "//\u2100", "", "   "])
async def test_no_pasted_text_breaks_the_login(text: str) -> None:
    listener = await Listener.start(None, "/callback", fixed=False)
    try:
        assert listener.paste(text)
    finally:
        await listener.close("")


@pytest.mark.req("B12")
async def test_a_device_login_that_the_person_declines_ends_at_once() -> None:
    async def decline(request: LoginRequest) -> None:
        raise LoginFailed("the login was declined")

    async with world() as here:
        auth = OAuth(store=MemoryStore(), device=True)
        async with here.connect(auth=auth, login=decline) as session:
            with pytest.raises(LoginFailed, match="declined"):
                await session.login()


@pytest.mark.req("B20")
def test_a_name_from_a_project_steers_no_terminal() -> None:
    request = LoginRequest(url="https://a/", server="x\x1b[2J\u202ey", issuer="https://as")
    assert "\x1b" not in describe(request)
    assert "\u202e" not in describe(request)


@pytest.mark.req("B13")
async def test_the_command_to_log_in_is_one_command() -> None:
    async with world() as here:
        auth = OAuth(store=MemoryStore(), account="a; reboot", interactive=False)
        async with holdfast.connect(f"{here.url}/mcp", auth=auth) as session:
            with pytest.raises(LoginRequired) as caught:
                await session.list_tools()
        words = shlex.split(caught.value.command)
        assert words == ["holdfast", "login", f"{here.url}/mcp", "--account", "a; reboot"]


# Stores and functions that fail.


@pytest.mark.req("A27")
async def test_an_entry_of_another_server_in_the_place_of_this_one_is_not_used() -> None:
    store = MemoryStore()
    authorizer = Authorizer("https://mcp.example/mcp", OAuth(store=store))
    login = stored_login()
    await authorizer.runner.run(keep(login, None))
    await authorizer.load()
    assert authorizer.login == login
    moved = stored_login(server="https://evil.example/mcp")
    await authorizer.runner.write(login.key, moved)
    again = Authorizer("https://mcp.example/mcp", OAuth(store=store))
    await again.load()
    assert again.login is None


@pytest.mark.req("A7", "A10")
async def test_a_login_at_another_issuer_than_the_pinned_one_is_not_used() -> None:
    store = MemoryStore()
    login = stored_login()
    for issuer, used in ((ISSUER, login), ("https://other.example", None)):
        authorizer = Authorizer("https://mcp.example/mcp", OAuth(store=store, issuer=issuer))
        await authorizer.runner.run(keep(login, None))
        await authorizer.load()
        assert authorizer.login == used


class Broken(MemoryStore):
    async def get(self, key: str) -> bytes | None:
        raise RuntimeError("the database is away, password=SECRET")


async def no_token() -> str:
    raise KeyError("nobody")


@pytest.mark.parametrize(
    "auth",
    [
        OAuth(store=Broken()),
        holdfast.auth.WorkloadIdentity(client_id="me", token=no_token),
        holdfast.auth.ClientCredentials(client_id="me", private_key="no key"),
        holdfast.auth.WorkloadIdentity(client_id="me", token=lambda: "a b"),
    ],
    ids=["store", "function", "key", "token"],
)
async def test_what_the_application_gives_may_fail_and_the_call_says_so(auth: Any) -> None:
    async with world() as here, here.connect(auth=auth) as session:
        with pytest.raises(holdfast.HoldfastError) as caught:
            await session.call_tool("hello", timeout=5)
        assert not isinstance(caught.value, holdfast.RequestTimeout)
        assert not caught.value.outcome_unknown
        assert "SECRET" not in str(caught.value)


async def test_entries_of_another_user_are_not_used(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    key = "login-0123456789abcdef"
    await store.put(key, b"mine")
    (tmp_path / f"{key}.entry").chmod(0o666)
    assert await store.get(key) is None


@pytest.mark.req("B15")
def test_a_keyring_that_hangs_is_asked_by_one_thread(tmp_path: Path) -> None:
    never, asked = threading.Event(), []

    def stuck() -> bytes:
        asked.append(1)
        never.wait(30)
        return b"k" * 32

    ring = Keyring(stuck, patience=0.01)
    for _ in range(3):
        with pytest.raises(AuthError, match="did not answer"):
            ring.cipher(tmp_path, required=True)
    assert len(asked) == 1
    never.set()
    while True:
        try:
            assert ring.cipher(tmp_path, required=True) is not None
            break
        except AuthError:
            continue


@pytest.mark.req("A26")
async def test_scopes_that_change_with_every_refusal_end_in_an_error() -> None:
    async def endless(request: LoginRequest) -> str:
        found = await here.person(request)
        here.wanted = (*here.wanted, f"s{len(here.wanted)}")
        return found

    async with world() as here, here.connect(login=endless) as session:
        await session.list_tools()
        for _ in range(3):
            with pytest.raises(holdfast.AuthError):
                await session.call_tool("hello")
        assert here.count["authorize"] <= 4


# Texts.


@pytest.mark.req("A20", "B20")
async def test_scopes_of_the_resource_are_scopes_and_steer_no_terminal() -> None:
    """RFC 6749 §3.3: neither spaces nor anything unseen."""
    said: list[str] = []

    async def person(request: LoginRequest) -> str:
        said.append(describe(request))
        return await here.person(request)

    async with world() as here, here.connect(login=person) as session:
        here.resource = {"scopes_supported": ["read", "\x1b[2J", "x\u202ey", "a\n$ rm", 7, '"']}
        await session.list_tools()
        assert here.asked("/authorize")[0]["scope"] == "read"
    assert said[0].endswith(" for: read.")


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error.__dict__)


@pytest.mark.req("B20")
@pytest.mark.parametrize("grant", ["code", "refresh", "secret", "device", "exchange"])
async def test_what_a_token_endpoint_repeats_is_not_shown(grant: str) -> None:
    secret = "hunter2 secret"
    auth: Any = OAuth(store=MemoryStore(), device=grant == "device")
    events: list[str] = []
    async with world() as here:
        if grant == "secret":
            auth = ClientCredentials(client_id="svc", client_secret=secret)
        elif grant == "exchange":
            auth = EnterpriseManaged(
                idp_issuer=here.url, idp_client_id="sso", id_token="ID-SECRET", client_id="me"
            )
        # Whoever logs in by a code has nothing to give back.
        person = (lambda request: None) if grant == "device" else here.person
        async with here.connect(auth=auth, login=person) as session:
            session.events.subscribe(lambda event: events.append(repr(event)))
            if grant == "refresh":
                await session.list_tools()
                here.tokens.clear()
            here.echoes = True
            with pytest.raises(AuthError, match="bad: ") as caught:
                await session.call_tool("hello")
    text = shown(caught.value) + "".join(events)
    for one in {*here.secrets, secret, quote_plus(secret), "ID-SECRET"}:
        assert one not in text


@pytest.mark.req("B20")
@pytest.mark.parametrize("status", [400, 401, 403, 500])
@pytest.mark.parametrize("kind", ["OAuth", "Bearer", "ClientCredentials", "headers"])
async def test_a_token_that_a_server_repeats_is_not_shown(status: int, kind: str) -> None:
    token = "access-SECRET-1"
    options: dict[str, Any] = {"auth": OAuth(store=MemoryStore())}
    if kind == "Bearer":
        options = {"auth": Bearer(token)}
    elif kind == "headers":
        options = {"headers": {"Authorization": f"Bearer {token}"}}
    elif kind == "ClientCredentials":
        options = {"auth": ClientCredentials(client_id="svc", client_secret="S")}
    events: list[str] = []
    async with world() as here:
        here.tokens[token] = ()
        async with here.connect(**options) as session:
            session.events.subscribe(lambda event: events.append(repr(event)))
            await session.list_tools()
            here.quotes = status
            with pytest.raises(holdfast.HoldfastError) as caught:
                await session.call_tool("hello")
    # Not its beginning either, where a long text is cut.
    assert "SECRET" not in shown(caught.value) + "".join(events)
