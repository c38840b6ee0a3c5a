"""One client for many users: the account is a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

import holdfast
from holdfast import Client, OAuth, Servers, ToolPolicy, _pool
from holdfast.agents.listing import ToolSource
from holdfast.auth import LoginRequest
from holdfast.handles import Handle
from holdfast.stores import MemoryStore
from tests.auth.world import World, world

T = TypeVar("T")

SESSION = "Mcp-Session-Id"
current: ContextVar[str] = ContextVar("current")


def connect(here: World, **options: Any) -> Client:
    """Return a client for many users; it names no user where none is set."""
    return here.connect(auth=OAuth(store=MemoryStore(), account=current.get), **options)


async def by(name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do work for a user, in a context of its own."""

    async def serve() -> T:
        current.set(name)
        return await work()

    return await asyncio.create_task(serve())


@pytest.mark.req("B16")
async def test_an_account_by_function_gives_every_user_a_session_of_their_own() -> None:
    user: ContextVar[str] = ContextVar("user")
    async with world() as here:

        async def serve(name: str) -> str:
            user.set(name)
            tools = await client.list_tools()
            results = [await client.call_tool(tools[0].name) for _ in range(3)]
            (text,) = {result.text for result in results}
            return text

        async with here.connect(auth=OAuth(store=MemoryStore(), account=user.get)) as client:
            names = ["bob", "eve", "bob", "mallory"]
            # A task has a context of its own.
            found = await asyncio.gather(*(asyncio.create_task(serve(name)) for name in names))
            assert found == [f"hello {name}" for name in names]
            assert "3 accounts" in repr(client)
        assert sorted(here.sessions.values()) == ["bob", "eve", "mallory"]
        assert here.count["asked"] == 3
        with pytest.raises(holdfast.StateError, match="closed"):
            await serve("bob")
        assert not await client.close()


@pytest.mark.req("B16")
async def test_every_verb_uses_the_session_of_its_own_caller() -> None:
    user: ContextVar[str] = ContextVar("user")
    async with world() as here:
        auth = OAuth(store=MemoryStore(), account=user.get)
        async with here.connect(auth=auth) as client:
            for name in ("bob", "eve"):
                user.set(name)
                result = await client.request("tools/call", {"name": "hello"})
                assert result["content"][0]["text"] == f"hello {name}"
                with pytest.raises(holdfast.StateError, match="does not offer skills"):
                    await client.list_skills()
        assert sorted(here.sessions.values()) == ["bob", "eve"]


@pytest.mark.req("B16")
async def test_a_lock_holds_for_every_user(tmp_path: Path) -> None:
    user: ContextVar[str] = ContextVar("user")
    lock = tmp_path / "mcp.lock"
    lock.write_text("{}")
    async with world() as here:
        auth = OAuth(store=MemoryStore(), account=user.get)
        async with here.connect(auth=auth, lock=lock) as client:
            for name in ("bob", "eve"):
                user.set(name)
                with pytest.raises(holdfast.HoldfastError):
                    await client.call_tool("hello")
        assert here.count["tools/call"] == 0


async def test_without_an_account_in_the_context_a_call_fails_and_says_so() -> None:
    user: ContextVar[str] = ContextVar("user", default="")
    async with world() as here:
        auth = OAuth(store=MemoryStore(), account=user.get)
        async with here.connect(auth=auth) as client:
            with pytest.raises(holdfast.AuthError, match="account="):
                await client.call_tool("hello")
        assert not here.seen


@pytest.mark.req("B16")
async def test_a_function_that_fails_to_name_an_account_fails_the_call() -> None:
    async with world() as here, connect(here) as client:
        with pytest.raises(holdfast.AuthError, match=r"account\(\) failed: LookupError"):
            await client.call_tool("hello")
        assert isinstance((await client.invoke_tool("hello")).exception, holdfast.AuthError)
        await client.close()
        outcome = await by("bob", lambda: client.invoke_tool("hello"))
        assert isinstance(outcome.exception, holdfast.StateError)
        assert client.state == "closed"
        assert not here.seen


@pytest.mark.req("B16")
async def test_the_environment_names_nobody_s_account_where_a_function_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_ACCOUNT", "bob")
    async with world() as here, connect(here) as client:
        assert (await by("bob", lambda: client.call_tool("hello"))).text == "hello bob"
        assert (await by("default", lambda: client.call_tool("hello"))).text == "hello"


@pytest.mark.req("B16")
@pytest.mark.parametrize("listed_by", ["bob", "eve"])
async def test_a_user_cannot_read_more_of_another_s_result(listed_by: str) -> None:
    async with world() as here, connect(here, tools=ToolPolicy(budget=50)) as client:
        here.says = lambda user: f"secret of {user} " * 100  # type: ignore[method-assign]
        listed = await by(listed_by, client.model_tools)
        tools = {tool.name: tool for tool in listed}
        cut = await by("bob", tools["hello"].call)
        assert "read_more" in cut.text
        asked = {"handle": f"{client.name}-1", "offset": 100}
        assert "secret of bob" in (await by("bob", lambda: tools["read_more"].call(asked))).text
        refused = await by("eve", lambda: tools["read_more"].call(asked))
        assert refused.kind == "validation"
        assert "bob" not in refused.text
        # Nobody's call fails as an outcome, too.
        assert (await tools["hello"].call()).kind == "auth"


@pytest.mark.req("B16")
async def test_a_user_is_not_shown_the_tools_of_another() -> None:
    async with world() as here:

        async def login(request: LoginRequest) -> str:
            if request.account == "eve":
                raise holdfast.errors.LoginFailed("no")
            return await here.person(request)

        async with connect(here, login=login) as client, Servers({"w": client}) as servers:
            for source in (ToolSource(client), ToolSource(servers)):
                assert await by("bob", source.tools)
                if source.name == "holdfast":
                    assert not await by("eve", source.tools)
                    continue
                with pytest.raises(holdfast.errors.LoginFailed):
                    await by("eve", source.tools)


@pytest.mark.req("B16")
async def test_a_session_with_a_call_under_way_is_not_closed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pool, "MAX_CLIENTS", 2)
    names = [f"user-{number}" for number in range(6)]
    async with world() as here, connect(here) as client:
        calls = [by(name, lambda: client.call_tool("hello")) for name in names]
        found = [result.text for result in await asyncio.gather(*calls)]
        assert found == [f"hello {name}" for name in names]
        assert (await by("last", lambda: client.call_tool("hello"))).text == "hello last"
        assert "2 accounts" in repr(client)


@pytest.mark.req("B16")
async def test_servers_show_a_status_where_no_user_is_named() -> None:
    async with world() as here, Servers({"w": connect(here)}) as servers:
        await by("bob", lambda: servers.call_tool("w.hello"))

        async def status() -> str:
            return servers.status("w").state

        assert [await by("bob", status), await by("eve", status)] == ["ready", "not started"]
        assert (servers.status("w").state, repr(servers)) == ("not started", "<Servers 1, 0 ready>")
        await servers.close()
        assert await by("bob", status) == "closed"


@pytest.mark.req("B16", "F2")
async def test_without_await_a_close_ends_the_sessions_of_all_users() -> None:
    async with world() as here:
        auth = OAuth(store=MemoryStore(), account=current.get)
        handlers = holdfast.Handlers(login=here.person)
        client = holdfast.sync.connect(f"{here.url}/mcp", auth=auth, handlers=handlers)
        for name in ("bob", "eve"):
            current.set(name)
            assert (await asyncio.to_thread(client.call_tool, "hello")).text == f"hello {name}"
        assert await asyncio.to_thread(client.close)
        assert [method for method, _ in here.seen].count("DELETE") == 2
        assert client.state == "closed"


@pytest.mark.req("B16", "X5")
async def test_a_session_ends_with_the_headers_of_its_own_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pool, "MAX_CLIENTS", 1)
    serve, ended = World.mcp, []

    async def mcp(self: World, request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            ended.append((request.headers["X-User"], self.sessions[request.headers[SESSION]]))
        return await serve(self, request)

    monkeypatch.setattr(World, "mcp", mcp)
    names = ["bob", "eve", "mallory"]
    async with world() as here:
        async with connect(here, headers=lambda: {"X-User": current.get("nobody")}) as client:
            for name in names:
                await by(name, lambda: client.call_tool("hello"))
        assert sorted(ended) == [(name, name) for name in names]


@pytest.mark.req("T8", "B16")
async def test_the_audit_names_the_account_of_each_call() -> None:
    records: list[holdfast.calls.AuditRecord] = []
    observability = holdfast.Observability(audit=records.append)
    async with world() as here, connect(here, observability=observability) as client:
        for name in ("bob", "eve"):
            await by(name, lambda: client.call_tool("hello"))
    assert [record.who for record in records] == ["bob", "eve"]


async def test_a_handle_is_for_one_account() -> None:
    async with world() as here, connect(here) as client:
        with pytest.raises(holdfast.ValidationError, match="name the account"):
            Handle(client)


@pytest.mark.req("B16")
async def test_the_session_used_least_recently_is_closed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pool, "MAX_CLIENTS", 2)
    async with world() as here, connect(here) as client:
        for name in ("bob", "eve", "bob", "mallory"):
            await by(name, lambda: client.call_tool("hello"))
        sessions = len(here.sessions)
        await by("bob", lambda: client.call_tool("hello"))
        assert len(here.sessions) == sessions, "bob was used after eve, and has the session he had"
        await by("eve", lambda: client.call_tool("hello"))
        assert len(here.sessions) == sessions + 1


async def test_every_part_of_a_client_is_the_caller_s() -> None:
    """A part that `Client` gets and the client of many has not would be an AttributeError."""
    async with world() as here, connect(here) as client:
        await by("bob", lambda: client.call_tool("hello"))
        plain = here.connect(auth=OAuth(store=MemoryStore()))
        missing = {
            part
            for part in vars(plain)
            if part not in vars(client) and not hasattr(type(client), part)
        }
        await plain.close()
        # Used by `close` alone, which is another for many.
        assert missing == {"_closing"}


@pytest.mark.req("B16")
async def test_a_session_that_fails_to_close_is_reported_and_the_others_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world() as here:
        client = connect(here)
        for name in ("bob", "eve", "mallory"):
            await by(name, lambda: client.call_tool("hello"))

        async def fail(self: Any, driver: Any) -> None:
            await close(self, driver)
            if self.transport.authorizer.account == "bob":
                raise OSError("the disk is full")

        close = Client._close
        monkeypatch.setattr(Client, "_close", fail)
        with pytest.raises(OSError, match="the disk is full"):
            await client.close()
        assert [method for method, _ in here.seen].count("DELETE") == 3
        assert client.state == "closed"


@pytest.mark.req("B16")
async def test_a_session_whose_call_waits_for_an_approval_is_not_closed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of such a call is on its way to the server, and yet it is under way."""
    monkeypatch.setattr(_pool, "MAX_CLIENTS", 1)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def approve(request: holdfast.calls.ApprovalRequest) -> bool:
        asked.set()
        await answer.wait()
        return True

    async with world() as here:
        async with connect(here, tools=ToolPolicy(approve=approve)) as client:
            call = asyncio.create_task(by("bob", lambda: client.call_tool("hello")))
            await asked.wait()
            await by("eve", client.list_tools)
            answer.set()
            assert (await call).text == "hello bob"
