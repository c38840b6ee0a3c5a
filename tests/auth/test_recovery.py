"""Calls that meet a refusal: one login, no stale ones, and no time beyond their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import AuthError, Client, OAuth, RequestTimeout
from holdfast.auth import ClientCredentials, LoginRequest
from holdfast.errors import DiscoveryError, LoginPending, LoginRequired
from holdfast.stores import MemoryStore
from tests.auth.world import World, world
from tests.skipping import ends_within, run_skipping, skip

# A server that refuses every token


@pytest.mark.req("A25", "B11")
async def test_a_server_that_refuses_every_token_gets_one_login_and_an_error_that_says_so() -> None:
    async with world() as here, here.connect() as session:
        here.refuses_all = True
        for _ in range(3):
            with pytest.raises(AuthError, match="refuses the token of the new login") as caught:
                await session.call_tool("hello")
            assert not isinstance(caught.value, LoginRequired)
            assert "holdfast login" not in str(caught.value)
        assert here.count["asked"] == 1
        assert here.count["refresh_token"] == 0
        assert len(here.seen) < 20


@pytest.mark.req("A25", "B11")
async def test_a_server_that_begins_to_refuse_every_token_gets_one_login_more() -> None:
    async with world() as here, here.connect() as session:
        assert (await session.call_tool("hello")).text == "hello"
        here.refuses_all = True
        for _ in range(3):
            with pytest.raises(AuthError, match="refuses the token of the new login"):
                await session.call_tool("hello")
        assert here.count["asked"] == 2
        here.refuses_all = False
        assert (await session.call_tool("hello")).text == "hello"
        # Once it was accepted, a token that ends is renewed, and then asked for.
        here.tokens.clear()
        here.refresh.clear()
        assert (await session.call_tool("hello")).text == "hello"
        assert here.count["asked"] == 3


@pytest.mark.req("A25", "B11")
async def test_many_calls_to_a_server_that_refuses_every_token_share_the_one_login() -> None:
    async with world() as here, here.connect() as session:
        here.refuses_all = True
        calls = (session.call_tool("hello") for _ in range(20))
        for error in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(error, AuthError)
        assert here.count["asked"] == 1


@pytest.mark.req("A25", "B20")
async def test_the_reason_of_the_refusal_is_told_without_the_token() -> None:
    async with world() as here, here.connect() as session:
        here.refuses_all = True
        here.challenge = 'error="invalid_token", error_description="wrong audience", '
        with pytest.raises(AuthError, match="wrong audience") as caught:
            await session.call_tool("hello")
        assert not [secret for secret in here.secrets if secret in str(caught.value)]


# Calls around the end of a login


@pytest.mark.req("B11")
async def test_calls_around_the_end_of_a_login_ask_for_no_other() -> None:
    async with world() as here, here.connect() as session:
        here.gate = asyncio.Event()
        calls = [asyncio.create_task(session.call_tool("hello"))]
        await here.entered.wait()
        here.gate.set()
        while not calls[0].done():
            calls.append(asyncio.create_task(session.call_tool("hello")))
            await asyncio.sleep(0)
        assert {result.text for result in await asyncio.gather(*calls)} == {"hello"}
        assert len(calls) > 10
        assert here.count["asked"] == 1


@pytest.mark.req("B11")
async def test_a_discovery_that_ends_after_the_login_asks_for_no_other() -> None:
    """Two requests are refused; one is slow to learn where to log in."""
    async with world() as here, here.connect() as session:
        await session.list_tools()
        here.tokens.clear()
        here.refresh.clear()
        here.hangs = "/.well-known"
        slow = asyncio.create_task(session.call_tool("hello"))
        await here.hanging.wait()
        here.hangs = ""
        await session.login()
        here.unhang.set()
        assert (await slow).text == "hello"
        assert here.count["asked"] == 2


@pytest.mark.req("B2", "B11")
async def test_a_login_of_another_process_is_used_instead_of_asking() -> None:
    store = MemoryStore()
    async with world() as here:
        people: list[LoginRequest] = []

        async def person(request: LoginRequest) -> str:
            people.append(request)
            return await here.person(request)

        options: dict[str, Any] = {"login": person}
        async with (
            here.connect(auth=OAuth(store=store), **options) as one_process,
            here.connect(auth=OAuth(store=store, interactive=False), **options) as another,
        ):
            with pytest.raises(LoginRequired):
                await another.call_tool("hello")
            await one_process.login()
            assert (await another.call_tool("hello")).text == "hello"
        assert len(people) == 1


# The time of a call


STEPS = {
    "discovery": "/.well-known/oauth-protected-resource",
    "metadata": "/.well-known/oauth-authorization-server",
    "registration": "/register",
    "token": "/token",
}
SERVICE = ClientCredentials(client_id="me", client_secret="S")


@pytest.mark.req("B14")
@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("service", [False, True])
def test_the_time_of_a_call_covers_an_authorization_server_that_hangs(
    step: str, connected: bool, service: bool
) -> None:
    if not (service and step == "registration"):
        run_skipping(_call_a_hanging_server(STEPS[step], connected, service))


async def _call_a_hanging_server(path: str, connected: bool, service: bool) -> None:
    async with world() as here:
        auth = SERVICE if service else OAuth(store=MemoryStore())
        async with here.connect(auth=auth) as session:
            if connected:
                await session.list_tools()
                here.tokens.clear()
                here.refresh.clear()
                here.clients.clear()
            here.hangs = path
            before = here.count["tools/call"]
            await ends_in_its_time(here, session)
            assert here.count["tools/call"] == before
            # What was begun goes on, and the next call uses it.
            here.hangs = ""
            here.unhang.set()
            assert (await session.call_tool("hello")).text == "hello"


async def ends_in_its_time(here: World, session: Client) -> None:
    """A call of 3 seconds, whose authorization server hangs, ends then, and not after 9."""
    with ends_within(6):
        call = asyncio.create_task(session.call_tool("hello", timeout=3))
        await here.hanging.wait()
        skip(3.1)
        with pytest.raises(TimeoutError) as caught:
            await call
    assert isinstance(caught.value, RequestTimeout | LoginPending)
    assert not caught.value.outcome_unknown


@pytest.mark.req("B14", "B4")
def test_the_time_of_a_call_covers_a_renewal_that_hangs() -> None:
    run_skipping(_renew_at_a_hanging_server())


async def _renew_at_a_hanging_server() -> None:
    async with world() as here, here.connect() as session:
        await session.list_tools()
        here.tokens.clear()
        here.hangs = "/token"
        await ends_in_its_time(here, session)
        here.hangs = ""
        here.unhang.set()
        assert (await session.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1


@pytest.mark.req("B14")
def test_a_person_has_all_of_the_time_of_a_call() -> None:
    run_skipping(_log_in_slowly())


async def _log_in_slowly() -> None:
    async with world() as here:

        async def slow(request: LoginRequest) -> str:
            skip(20)
            await asyncio.sleep(0.001)
            return await here.person(request)

        async with here.connect(login=slow) as session:
            await session.list_tools()
            here.tokens.clear()
            here.refresh.clear()
            result = await session.call_tool("hello", timeout=3, total_timeout=60)
            assert result.text == "hello"
            assert here.count["asked"] == 2


# Reasons


@pytest.mark.req("A4", "B13")
@pytest.mark.parametrize("auth", ["auto", "oauth"])
async def test_metadata_of_another_resource_is_the_reason_that_every_call_gives(auth: Any) -> None:
    async with world() as here:
        other = here.url.replace("127.0.0.1", "localhost")
        here.resource = {"resource": f"{other}/mcp"}
        async with here.connect(auth=auth) as session:
            for work in (session.list_tools, session.open, lambda: session.call_tool("hello")):
                with pytest.raises(DiscoveryError, match="is for another resource") as caught:
                    await work()
                assert f"{other}/mcp" in str(caught.value)
                assert f"{here.url}/mcp" in str(caught.value)
        assert here.sent == []


@pytest.mark.req("B13")
async def test_metadata_without_a_usable_authorization_server_is_a_reason_too() -> None:
    async with world() as here:
        here.resource = {"authorization_servers": []}
        async with here.connect(auth="auto") as session:
            with pytest.raises(DiscoveryError, match="names no authorization server"):
                await session.call_tool("hello")


# Logging out


@pytest.mark.req("B22")
@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (400, {"error": "invalid_request", "error_description": "no"}, "invalid_request"),
        (401, {"error": "invalid_client"}, "invalid_client"),
        (403, None, "403"),
        (404, None, "404"),
        (503, None, "503"),
    ],
)
async def test_logging_out_says_that_the_tokens_were_not_revoked(
    status: int, error: dict[str, Any] | None, reason: str
) -> None:
    store = MemoryStore()
    async with world() as here, here.connect(auth=OAuth(store=store)) as session:
        await session.call_tool("hello")
        here.revocation, here.revocation_error = status, error
        with pytest.raises(AuthError, match=reason) as caught:
            await session.logout()
        assert "may stay valid" in str(caught.value)
        assert not [secret for secret in here.secrets if secret in str(caught.value)]
        assert not await store.keys("login-")
        assert not await session.logout()


@pytest.mark.req("B22")
async def test_logging_out_of_a_server_that_cannot_be_reached_says_so_and_forgets() -> None:
    store = MemoryStore()
    async with world() as here:
        async with here.connect(auth=OAuth(store=store)) as session:
            await session.call_tool("hello")
            here.metadata["revocation_endpoint"] = "http://127.0.0.1:9/revoke"
            await session.login()
            with pytest.raises(AuthError, match="cannot be asked"):
                await session.logout()
    assert not await store.keys("login-")


@pytest.mark.req("B22")
async def test_access_tokens_that_cannot_be_revoked_are_no_reason_to_complain() -> None:
    async with world() as here, here.connect() as session:
        await session.call_tool("hello")
        here.revocation, here.revocation_error = 400, {"error": "unsupported_token_type"}
        assert await session.logout()
        assert here.count["revoked"] == 2
