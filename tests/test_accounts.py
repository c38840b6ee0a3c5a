"""One client for many users: the account is a function."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from pathlib import Path

import pytest

import holdfast
from holdfast import MemoryLogins, OAuth
from tests.auth.world import world


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

        async with here.connect(auth=OAuth(store=MemoryLogins(), account=user.get)) as client:
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
        auth = OAuth(store=MemoryLogins(), account=user.get)
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
        auth = OAuth(store=MemoryLogins(), account=user.get)
        async with here.connect(auth=auth, lock=lock) as client:
            for name in ("bob", "eve"):
                user.set(name)
                with pytest.raises(holdfast.HoldfastError):
                    await client.call_tool("hello")
        assert here.count["tools/call"] == 0


async def test_without_an_account_in_the_context_a_call_fails_and_says_so() -> None:
    user: ContextVar[str] = ContextVar("user", default="")
    async with world() as here:
        auth = OAuth(store=MemoryLogins(), account=user.get)
        async with here.connect(auth=auth) as client:
            with pytest.raises(holdfast.AuthError, match="account="):
                await client.call_tool("hello")
        assert not here.seen
