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
from holdfast import Client, LoginRequest, OAuth, Servers, ToolPolicy, _accounts
from holdfast.agents.listing import ToolSource
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
                raise holdfast.LoginFailed("no")
            return await here.person(request)

        async with connect(here, login=login) as client, Servers({"w": client}) as servers:
            for source in (ToolSource(client), ToolSource(servers)):
                assert await by("bob", source.tools)
                if source.name == "holdfast":
                    assert not await by("eve", source.tools)
                    continue
                with pytest.raises(holdfast.LoginFailed):
                    await by("eve", source.tools)


@pytest.mark.req("B16")
async def test_a_session_with_a_call_under_way_is_not_closed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_accounts, "MAX_SESSIONS", 2)
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
    monkeypatch.setattr(_accounts, "MAX_SESSIONS", 1)
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
    records: list[holdfast.AuditRecord] = []
    observability = holdfast.Observability(audit=records.append)
    async with world() as here, connect(here, observability=observability) as client:
        for name in ("bob", "eve"):
            await by(name, lambda: client.call_tool("hello"))
    assert [record.who for record in records] == ["bob", "eve"]


async def test_a_handle_is_for_one_account() -> None:
    async with world() as here, connect(here) as client:
        with pytest.raises(holdfast.ValidationError, match="name the account"):
            Handle(client)
