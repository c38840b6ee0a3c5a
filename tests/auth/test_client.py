"""Logins, renewals and refusals through the public client, against a server on loopback."""

from __future__ import annotations

import asyncio
import logging
import shlex
import socket
import subprocess
import sys
import traceback
from typing import Any

import pytest
from aiohttp import web

import holdfast
from holdfast import OAuth, TransportError
from holdfast._core.auth.options import DPOP_EXTENSION
from holdfast.auth import LoginRequest
from holdfast.errors import LoginFailed, LoginPending, LoginRequired
from holdfast.stores import FileStore, MemoryStore, StoreError
from tests.auth.world import World, parameters, world
from tests.skipping import run_skipping, skip


def fresh(**options: Any) -> OAuth:
    return OAuth(store=MemoryStore(), **options)


@pytest.mark.req("A1", "A25")
async def test_a_call_logs_in_and_every_request_carries_the_token() -> None:
    async with world() as here:
        async with here.connect() as client:
            assert (await client.call_tool("hello")).text == "hello"
        refused, *others = here.seen
        assert refused == ("POST", None)
        assert {token for _, token in others} == {"access-SECRET-1"}
        assert {method for method, _ in others} == {"POST", "GET", "DELETE"}


@pytest.mark.req("B1")
async def test_a_store_with_a_length_is_used_while_it_is_empty() -> None:
    class Sized(MemoryStore):
        written = 0

        def __len__(self) -> int:
            return self.written

        async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
            self.written += 1
            await super().put(key, data, ttl)

    store = Sized()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.call_tool("hello")
        assert len(store) > 0
        assert await store.keys()


@pytest.mark.req("B13", "A25")
@pytest.mark.parametrize("auth", ["auto", "handlerless"])
async def test_with_nobody_there_a_call_fails_at_once_and_names_the_command(auth: str) -> None:
    async with world() as here:
        options: Any = "auto" if auth == "auto" else fresh()
        async with holdfast.connect(f"{here.url}/mcp", auth=options) as client:
            for _ in range(3):
                with pytest.raises(LoginRequired) as caught:
                    await client.call_tool("hello")
            assert caught.value.command == f"holdfast login {here.url}/mcp"
            assert caught.value.command in str(caught.value)
            assert not caught.value.outcome_unknown
        # No reconnecting behind the caller's back: the later calls did not reach the server.
        assert len(here.seen) == 1


@pytest.mark.req("B6")
async def test_after_a_restart_the_first_request_has_the_stored_token() -> None:
    store = MemoryStore()
    async with world() as here:
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.list_tools()
        here.seen.clear()
        async with here.connect(auth=OAuth(store=store, interactive=False)) as client:
            await client.list_tools()
        assert {token for _, token in here.seen} == {"access-SECRET-1"}
        assert here.count["authorize"] == 1


@pytest.mark.req("B6", "B7")
async def test_a_stored_token_that_is_due_is_renewed_before_the_first_request() -> None:
    store = MemoryStore()
    async with world() as here:
        here.life = 1e-9
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.login()
        here.life = 3600
        here.seen.clear()
        async with here.connect(auth=OAuth(store=store, interactive=False)) as client:
            await client.list_tools()
        assert None not in {token for _, token in here.seen}
        assert len({token for _, token in here.seen}) == 1
        assert here.count["refresh_token"] == 1


async def expire(here: World, client: holdfast.Client) -> None:
    """Make the server forget its access tokens, as when they are revoked."""
    here.tokens.clear()


@pytest.mark.req("B1")
async def test_many_calls_with_a_refused_token_make_one_refresh() -> None:
    async with world() as here, here.connect() as client:
        await client.list_tools()
        await expire(here, client)
        results = await asyncio.gather(*(client.call_tool("hello") for _ in range(200)))
        assert [one.text for one in results] == ["hello"] * 200
        assert here.count["refresh_token"] == 1
        assert here.count["prm"] <= 3
        assert here.count["authorize"] == 1


@pytest.mark.req("B4")
async def test_a_refresh_outlives_every_caller_and_is_saved() -> None:
    store = MemoryStore()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.list_tools()
        await expire(here, client)
        here.gate = asyncio.Event()
        here.entered.clear()
        calls = [asyncio.create_task(client.call_tool("hello")) for _ in range(5)]
        await here.entered.wait()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        here.gate.set()
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1
        entries = [await store.get(key) or b"" for key in await store.keys()]
        assert any(b"refresh-SECRET-2" in entry for entry in entries)


@pytest.mark.req("B4")
async def test_closing_a_client_waits_for_the_token_to_be_saved() -> None:
    store = MemoryStore()
    async with world() as here:
        client = here.connect(auth=OAuth(store=store))
        await client.list_tools()
        await expire(here, client)
        here.gate = asyncio.Event()
        here.entered.clear()
        call = asyncio.create_task(client.call_tool("hello"))
        await here.entered.wait()
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        here.gate.set()
        await closing
        await asyncio.gather(call, return_exceptions=True)
        entries = [await store.get(key) or b"" for key in await store.keys()]
        assert any(b"refresh-SECRET-2" in entry for entry in entries)


@pytest.mark.req("B4")
async def test_a_new_token_is_saved_before_it_is_used() -> None:
    class Slow(MemoryStore):
        gate: asyncio.Event | None = None
        saving = asyncio.Event()

        async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
            if self.gate is not None and b"SECRET-2" in data:
                self.saving.set()
                await self.gate.wait()
            await super().put(key, data, ttl)

    store = Slow()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.list_tools()
        await expire(here, client)
        store.gate = asyncio.Event()
        call = asyncio.create_task(client.call_tool("hello"))
        await store.saving.wait()
        here.called.clear()
        other = asyncio.create_task(client.call_tool("hello"))
        await here.called.wait()
        assert "access-SECRET-2" not in {token for _, token in here.seen}
        store.gate.set()
        assert [(await one).text for one in (call, other)] == ["hello"] * 2


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    "error",
    [
        "invalid_grant",
        "invalid_client",
        "unauthorized_client",
        "invalid_refresh_token",
        "expired_refresh_token",
        "token_expired",
    ],
)
async def test_errors_that_end_a_login(error: str) -> None:
    async def person(request: LoginRequest) -> str:
        here.odd = None
        return await here.person(request)

    async with world() as here, here.connect(login=person) as client:
        await client.list_tools()
        await expire(here, client)
        here.odd = {"error": error}
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["authorization_code"] == 2


@pytest.mark.req("B11", "A25")
async def test_nobody_is_asked_for_the_sake_of_a_session_that_is_to_end() -> None:
    async with world() as here:
        async with here.connect() as client:
            await client.list_tools()
            await expire(here, client)
            here.refresh.clear()
            read = here.count["prm"]
        assert here.seen[-1][0] == "DELETE"
        assert (here.count["refresh_token"], here.count["prm"]) == (0, read)


@pytest.mark.req("B5")
@pytest.mark.parametrize("status", [500, 503, 429])
async def test_trouble_at_the_authorization_server_keeps_the_login(status: int) -> None:
    async with world() as here, here.connect() as client:
        await client.list_tools()
        await expire(here, client)
        here.broken = status
        with pytest.raises(TransportError):
            await client.call_tool("hello")
        here.broken = None
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["authorize"] == 1


@pytest.mark.req("B4")
async def test_a_token_is_not_used_up_where_its_successor_cannot_be_saved() -> None:
    class Full(MemoryStore):
        full = False

        async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
            if self.full:
                raise StoreError("no space left")
            await super().put(key, data, ttl)

    store = Full()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.list_tools()
        await expire(here, client)
        store.full = True
        with pytest.raises(holdfast.AuthError, match="no space"):
            await client.call_tool("hello")
        assert here.count["refresh_token"] == 0
        store.full = False
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["authorize"] == 1


@pytest.mark.req("A25", "B3")
async def test_a_refused_refresh_ends_the_login_and_a_person_is_asked() -> None:
    async with world() as here, here.connect() as client:
        await client.list_tools()
        here.refresh.clear()
        await expire(here, client)
        assert (await client.call_tool("hello")).text == "hello"
        # One of the requests only tries whether the client is still known.
        assert (here.count["refresh_token"], here.count["authorize"]) == (1, 3)


@pytest.mark.req("B2", "B3")
async def test_a_token_that_another_process_renewed_is_taken_over() -> None:
    store = MemoryStore()
    async with (
        world() as here,
        here.connect(auth=OAuth(store=store)) as one,
        here.connect(auth=OAuth(store=store)) as other,
    ):
        await one.list_tools()
        await other.list_tools()
        await expire(here, one)
        await one.call_tool("hello")
        # The other one holds a refresh token that was used: using it would end the family.
        del here.tokens[next(iter(here.tokens))]
        here.tokens["access-SECRET-2"] = here.scopes
        assert (await other.call_tool("hello")).text == "hello"
        assert (here.count["refresh_token"], here.count["authorize"]) == (1, 1)


@pytest.mark.req("B11")
async def test_calls_that_need_a_login_wait_for_the_same_one() -> None:
    async with world() as here, here.connect() as client:
        results = await asyncio.gather(*(client.call_tool("hello") for _ in range(20)))
        assert len(results) == 20
        assert here.count["asked"] == 1


@pytest.mark.req("B14", "B11")
def test_a_login_outlives_the_call_that_asked_for_it() -> None:
    run_skipping(_a_login_outlives_the_call_that_asked_for_it())


async def _a_login_outlives_the_call_that_asked_for_it() -> None:
    async with world() as here:
        asked, come = asyncio.Event(), asyncio.Event()

        async def slow(request: LoginRequest) -> str:
            asked.set()
            await come.wait()
            return await here.person(request)

        async with here.connect(login=slow) as client:
            call = asyncio.create_task(client.call_tool("hello", total_timeout=60))
            await asked.wait()
            skip(61)
            with pytest.raises(LoginPending) as caught:
                await call
            assert isinstance(caught.value, TimeoutError)
            assert not caught.value.outcome_unknown
            come.set()
            assert (await client.call_tool("hello")).text == "hello"
            assert here.count["asked"] == 1


@pytest.mark.req("B14")
async def test_nobody_comes() -> None:
    async def nobody(request: LoginRequest) -> None:
        return None

    async with world() as here:
        async with here.connect(login=nobody, auth=fresh(timeout=0.2)) as client:
            with pytest.raises(LoginFailed, match=r"within 0\.2 s"):
                await client.call_tool("hello")
        assert here.count["authorization_code"] == 0


async def test_closing_a_client_ends_a_login_under_way() -> None:
    asked = asyncio.Event()

    async def never(request: LoginRequest) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with world() as here:
        client = here.connect(login=never)
        call = asyncio.create_task(client.call_tool("hello"))
        await asked.wait()
        await client.close()
        with pytest.raises((holdfast.HoldfastError, asyncio.CancelledError)):
            await call


@pytest.mark.req("A26")
async def test_a_step_up_is_a_new_authorization_for_all_scopes() -> None:
    async with world() as here:
        here.wanted = ("write",)
        async with here.connect(auth=fresh(scopes=["read"])) as client:
            await client.list_tools()
            assert (await client.call_tool("hello")).text == "hello"
        assert here.scopes == ("read", "write")
        assert (here.count["authorize"], here.count["refresh_token"]) == (2, 0)


@pytest.mark.req("A26")
async def test_a_step_up_that_brings_nothing_ends_in_an_error() -> None:
    async with world() as here:
        here.wanted = ("admin",)

        async def deny_admin(request: LoginRequest) -> str:
            found = await here.person(request)
            here.scopes = ("read",)
            return found

        async with here.connect(login=deny_admin) as client:
            await client.list_tools()
            with pytest.raises(holdfast.AuthError):
                await client.call_tool("hello")
        assert here.count["authorize"] <= 3


@pytest.mark.req("A26", "B13")
async def test_a_step_up_with_nobody_there_names_a_command_that_brings_the_scopes() -> None:
    store = MemoryStore()
    async with world() as here:
        async with here.connect(auth=OAuth(store=store, scopes=["read"])) as client:
            await client.login()
        here.wanted = ("write", "$(id)")
        async with here.connect(auth=OAuth(store=store, interactive=False)) as client:
            # Nothing was authorized in between, so it stays the same answer.
            for _ in range(4):
                with pytest.raises(LoginRequired) as caught:
                    await client.call_tool("hello")
            words = shlex.split(caught.value.command)
            assert words[3:] == ["--scope=read", "--scope=write", "--scope=$(id)"]
        assert here.count["authorize"] == 1


@pytest.mark.req("A3", "A25")
async def test_a_new_login_finds_the_metadata_where_the_server_once_said_that_it_is() -> None:
    store = MemoryStore()
    async with world() as here:
        here.prm = "/prm"
        for _ in range(3):
            async with here.connect(auth=OAuth(store=store)) as client:
                # After the first time the stored login is good: no refusal tells.
                await client.login()
                assert client.transport.authorizer.login.resource == f"{here.url}/mcp"
        assert here.count["authorization_code"] == 3


@pytest.mark.req("A26")
@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer error="access_denied", scope="admin"',
        'Bearer error="invalid_token", scope="admin"',
        'Bearer scope="admin"',
        'Basic realm="insufficient_scope"',
        'Basic error="insufficient_scope", scope="admin"',
        "",
    ],
)
async def test_any_other_403_is_only_an_error(challenge: str) -> None:
    async with world() as here, here.connect() as client:
        here.wanted, here.forbids = ("admin",), challenge
        with pytest.raises(holdfast.HoldfastError) as caught:
            await client.call_tool("hello")
        assert not isinstance(caught.value, holdfast.errors.ScopeError | LoginRequired)
        assert here.count["authorize"] == 1


@pytest.mark.req("B22")
async def test_logout_revokes_and_deletes() -> None:
    store = MemoryStore()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.list_tools()
        assert await client.logout()
        assert here.count["revoked"] == 2
        assert not here.tokens
        assert not [key for key in await store.keys() if key.startswith(("login-", "server-"))]
        assert not await client.logout()


@pytest.mark.req("B22", "B2")
async def test_logout_revokes_what_another_process_has_renewed() -> None:
    store = MemoryStore()
    async with (
        world() as here,
        here.connect(auth=OAuth(store=store)) as one,
        here.connect(auth=OAuth(store=store)) as other,
    ):
        await one.list_tools()
        await other.list_tools()
        await expire(here, one)
        await one.call_tool("hello")
        assert await other.logout()
        assert not here.refresh
        assert not here.tokens


@pytest.mark.req("B16")
async def test_accounts_are_kept_apart() -> None:
    store = MemoryStore()
    async with world() as here:
        for name in ("work", "home"):
            async with here.connect(auth=OAuth(store=store, account=name)) as client:
                await client.list_tools()
        assert here.count["authorization_code"] == 2
        here.seen.clear()
        async with here.connect(auth=OAuth(store=store, account="work")) as client:
            await client.list_tools()
        assert {token for _, token in here.seen} == {"access-SECRET-1"}


@pytest.mark.req("A10", "A13")
async def test_a_given_client_is_bound_to_the_issuer_of_its_first_login() -> None:
    auth = OAuth(store=MemoryStore(), client_id="mine", client_secret="SECRET")
    async with world() as here:
        async with here.connect(auth=auth) as client:
            await client.login()
        here.moves = True
        async with here.connect(auth=auth) as client:
            with pytest.raises(holdfast.errors.DiscoveryError, match="client_id belongs to"):
                await client.login()
        assert here.count["authorize"] == 1


@pytest.mark.req("B10")
async def test_a_registration_is_used_by_the_next_login() -> None:
    store = MemoryStore()
    async with world() as here:
        for name in ("work", "home"):
            async with here.connect(auth=OAuth(store=store, account=name)) as client:
                await client.list_tools()
        assert len(here.clients) == 1


@pytest.mark.req("A27")
async def test_a_stored_login_is_not_used_for_another_server() -> None:
    store = MemoryStore()
    async with world() as here, world() as other:
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.list_tools()
        async with other.connect(auth=OAuth(store=store, interactive=False)) as client:
            with pytest.raises(LoginRequired):
                await client.list_tools()
        assert other.seen == [("POST", None)]


@pytest.mark.req("A29")
async def test_stdio_knows_nothing_of_it() -> None:
    with pytest.raises(holdfast.ValidationError, match="auth"):
        holdfast.connect("python -m holdfast.demo.server", auth="oauth")


LOADED = """
import asyncio, sys
import holdfast

async def main():
    async with holdfast.connect([sys.executable, "-m", "holdfast.demo.server"]) as client:
        await client.list_tools()

asyncio.run(main())
heavy = ("holdfast._core.auth", "aiohttp", "cryptography", "keyring")
print([name for name in sys.modules if name.startswith(heavy)])
"""


@pytest.mark.req("A29")
def test_a_program_that_speaks_over_stdio_loads_nothing_of_it() -> None:
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


async def test_an_authorization_header_of_ones_own_switches_oauth_off() -> None:
    async with world() as here:
        own = {"authorization": "Bearer mine"}
        async with holdfast.connect(f"{here.url}/mcp", auth="oauth", headers=own) as client:
            with pytest.raises(holdfast.AuthError) as caught:
                await client.list_tools()
        assert not isinstance(caught.value, LoginRequired)
        assert here.count["prm"] == 0


@pytest.mark.parametrize("kind", ["oauth", "bearer"])
async def test_a_function_for_headers_and_an_authorization_hold_together(kind: str) -> None:
    asked: list[int] = []

    def traced() -> dict[str, str]:
        asked.append(1)
        return {"X-Trace": "1", "authorization": "Basic never"}

    async with world() as here:
        here.tokens["mine"] = ()
        auth = fresh() if kind == "oauth" else holdfast.Bearer("mine")
        async with here.connect(auth=auth, headers=traced) as client:
            assert (await client.call_tool("hello")).text == "hello"
        assert asked
        assert here.count["authorize"] == (kind == "oauth")


async def test_a_bearer_token_is_sent_as_it_is() -> None:
    async with world() as here:
        here.tokens["mine"] = ()
        async with holdfast.connect(f"{here.url}/mcp", auth=holdfast.Bearer("mine")) as client:
            await client.list_tools()
        asked: list[int] = []

        async def token() -> str:
            asked.append(1)
            return "mine"

        async with holdfast.connect(f"{here.url}/mcp", auth=holdfast.Bearer(token)) as client:
            await client.list_tools()
        assert asked


async def test_events_tell_of_a_login_and_of_its_renewal() -> None:
    async with world() as here, here.connect() as client:
        seen: list[Any] = []
        client.events.subscribe(seen.append, "auth.required", "auth.login", "auth.granted")
        client.events.subscribe(seen.append, "auth.refreshed")
        await client.list_tools()
        await expire(here, client)
        await client.call_tool("hello")
        names = [event.name for event in seen]
        assert names == ["auth.required", "auth.login", "auth.granted", "auth.refreshed"]
        assert {event.issuer for event in seen} == {here.url}
        assert {event.account for event in seen} == {"default"}


@pytest.mark.req("A36")
@pytest.mark.parametrize("forgetful", [False, True])
async def test_tokens_bound_to_a_key(forgetful: bool) -> None:
    """Both servers check each proof; a forgetful one wants another nonce each time."""
    async with world() as here:
        here.dpop = True
        async with here.connect() as client:
            for _ in range(3):
                assert (await client.call_tool("hello")).text == "hello"
                if forgetful:
                    here.nonce += "x"
            await expire(here, client)
            assert (await client.call_tool("hello")).text == "hello"
        assert (here.count["authorize"], here.count["refresh_token"]) == (1, 1 + forgetful)
        assert len(here.keys) == 1
        assert not here.faults


@pytest.mark.req("A36", "A37")
async def test_a_client_that_wants_bound_tokens_says_so_and_takes_no_others() -> None:
    async with world() as here, here.connect(auth=fresh(dpop=True)) as client:
        assert DPOP_EXTENSION in client.transport.traits.extensions
        with pytest.raises(LoginFailed, match="DPoP-bound one was asked for"):
            await client.call_tool("hello")


@pytest.mark.req("A16", "A14")
async def test_every_login_has_a_state_and_a_verifier_of_its_own() -> None:
    seen: list[dict[str, str]] = []

    async def person(request: LoginRequest) -> str:
        seen.append(parameters(request.url))
        return await here.person(request)

    async with world() as here, here.connect(login=person) as client:
        for _ in range(3):
            await client.login()
        for name in ("state", "code_challenge"):
            found = {one[name] for one in seen}
            assert len(found) == 3
            # 128 bits in base64url.
            assert all(len(one) >= 22 for one in found)


@pytest.mark.req("A37")
async def test_the_extension_in_use_is_declared() -> None:
    options = holdfast.auth.ClientCredentials(client_id="svc", client_secret="s")
    async with world() as here:
        async with here.connect(auth=options) as client:
            await client.list_tools()
        declared = here.initialized["capabilities"]["extensions"]
        assert declared == {"io.modelcontextprotocol/oauth-client-credentials": {}}


@pytest.mark.req("B20")
async def test_no_secret_is_shown_anywhere(
    tmp_path: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Everything that a run leaves behind is searched for every secret of it."""
    shown: list[str] = []
    store = FileStore(tmp_path)
    with caplog.at_level(logging.DEBUG):
        async with world() as here:
            client = here.connect(auth=OAuth(store=store), log=shown.append)
            client.events.subscribe(lambda event: shown.append(repr(event)))
            async with client:
                await client.call_tool("hello")
                await expire(here, client)
                await client.call_tool("hello")
                login = client.transport.authorizer.login
                shown += [repr(one) for one in (client, client.transport, login, login.client)]
                shown += [repr(client.transport.authorizer)]
                here.broken = 503
                await expire(here, client)
                with pytest.raises(TransportError) as first:
                    await client.call_tool("hello")
                here.broken = None
                here.refresh.clear()
                with pytest.raises(holdfast.HoldfastError) as second:
                    async with here.connect(auth=OAuth(store=store, interactive=False)) as other:
                        await other.call_tool("hello")
                for caught in (first, second):
                    shown += traceback.format_exception(caught.value)
                    shown += [repr(caught.value), str(caught.value.__dict__)]
    out, err = capfd.readouterr()
    text = "\n".join([*shown, caplog.text, out, err])
    assert here.secrets
    for secret in here.secrets:
        assert secret not in text


async def test_a_login_made_elsewhere_is_found_by_the_next_call() -> None:
    store = MemoryStore()
    async with world() as here:
        async with here.connect(auth=OAuth(store=store, interactive=False)) as client:
            with pytest.raises(LoginRequired):
                await client.list_tools()
            async with here.connect(auth=OAuth(store=store)) as other:
                await other.login()
            await client.open()
            assert await client.list_tools()
        assert (here.count["refresh_token"], here.count["authorization_code"]) == (0, 1)


@pytest.mark.req("B14")
def test_a_call_whose_time_ends_while_it_waits_for_a_token_has_not_run() -> None:
    run_skipping(_a_call_whose_time_ends_while_it_waits_for_a_token_has_not_run())


async def _a_call_whose_time_ends_while_it_waits_for_a_token_has_not_run() -> None:
    async with world() as here:
        async with here.connect() as client:
            await client.list_tools()
            await expire(here, client)
            here.gate = asyncio.Event()
            here.entered.clear()
            call = asyncio.create_task(client.call_tool("hello", total_timeout=4))
            await here.entered.wait()
            skip(5)
            with pytest.raises(holdfast.RequestTimeout) as caught:
                await call
            assert not caught.value.outcome_unknown
            here.gate.set()


async def test_a_login_handler_that_fails_ends_the_login_and_not_the_program() -> None:
    def broken(request: LoginRequest) -> None:
        raise KeyError("oops")

    async with world() as here, here.connect(login=broken) as client:
        with pytest.raises(LoginFailed, match="KeyError"):
            await client.call_tool("hello")


@pytest.mark.req("B16")
@pytest.mark.parametrize("named", [True, False])
async def test_another_persons_login_begins_a_session_and_leaves_the_caches(named: bool) -> None:
    async with world() as here:
        here.names_users = named
        async with here.connect(cache=holdfast.Cache(ttl=3600)) as client:
            assert (await client.call_tool("hello")).text == "hello"
            await client.list_tools()
            listed = here.count["tools/list"]
            await client.list_tools()
            assert here.count["tools/list"] == listed
            here.next_user = "bob"
            await client.login()
            await client.list_tools()
            assert here.count["tools/list"] > listed
            assert (await client.call_tool("hello")).text == "hello bob"
        assert list(here.sessions.values()) == ["ada", "bob"]


@pytest.mark.req("B16")
async def test_the_same_persons_login_keeps_the_session() -> None:
    async with world() as here, here.connect() as client:
        await client.call_tool("hello")
        await client.login()
        await client.call_tool("hello")
        assert list(here.sessions.values()) == ["ada"]


async def test_a_token_at_hand_is_sent_without_a_look_at_the_store() -> None:
    class Counting(MemoryStore):
        reads = 0

        async def get(self, key: str) -> bytes | None:
            self.reads += 1
            return await super().get(key)

    store = Counting()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.call_tool("hello")
        before = store.reads
        for _ in range(10):
            await client.call_tool("hello")
        assert store.reads == before


@pytest.mark.req("A13", "A25")
async def test_a_resource_that_names_another_server_each_time_ends_in_an_error() -> None:
    async with world() as here, here.connect() as client:
        here.refuses_all = here.moves = True
        with pytest.raises(holdfast.AuthError):
            await client.call_tool("hello")
        # No client id of one authorization server is shown to another.
        assert here.count["authorize"] == len(here.clients)
        assert here.count["refresh_token"] <= here.count["authorize"]
        assert here.count["prm"] < 20


@pytest.mark.req("C4")
async def test_an_answer_under_way_to_a_person_is_not_kept_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve, asked, gate = World.mcp, asyncio.Event(), asyncio.Event()
    slow = down = False

    async def mcp(self: World, request: web.Request) -> web.StreamResponse:
        if slow and b"tools/list" in await request.read():
            asked.set()
            await gate.wait()
        return web.Response(status=503) if down else await serve(self, request)

    monkeypatch.setattr(World, "mcp", mcp)
    async with world() as here:
        here.next_user = "alice"
        async with here.connect(cache=holdfast.Cache(ttl=60, serve_stale=True)) as client:
            await client.call_tool("hello")
            slow = True
            hers = asyncio.create_task(client.list_tools(cache="refresh"))
            await asked.wait()
            here.next_user = "bob"
            await client.login()
            gate.set()
            assert [tool.name for tool in await hers] == ["hello"]
            down = True
            with pytest.raises(TransportError):
                await client.list_tools()


@pytest.mark.req("A1", "E2")
async def test_a_login_to_a_server_that_is_down_says_so() -> None:
    """There is nobody to ask where the person is to log in."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # A port that nobody listens at.
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        async with holdfast.connect(url, auth=OAuth(store=MemoryStore())) as client:
            with pytest.raises(TransportError, match="cannot connect to"):
                await client.login()
