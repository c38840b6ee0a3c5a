"""Clients by server and user: who shares one, and when one ends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

import holdfast
from holdfast import Client, Http, OAuth, Stdio
from holdfast._pool import ClientPool, SharingKey, definition_of
from holdfast.events import Transition
from holdfast.stores import MemoryStore
from holdfast.testing import Peer
from tests.rows import rows

user: ContextVar[str] = ContextVar("user")
URL = "https://mcp.example/mcp"


def key(account: str) -> SharingKey:
    return SharingKey("server", account)


def make() -> Client:
    return holdfast.connect(Peer())


@asynccontextmanager
async def pool_of(**options: Any) -> AsyncIterator[ClientPool]:
    pool = ClientPool(**options)
    try:
        yield pool
    finally:
        await pool.close()


# Who shares


SAME = [
    (Stdio("server --x"), Stdio(["server", "--x"])),
    (Stdio("server", env={"A": "1", "B": "2"}), Stdio("server", env={"B": "2", "A": "1"})),
    (Http(URL), Http(URL)),
    (Http(URL, headers={"X-Key": "1"}), Http(URL, headers={"X-Key": "1"})),
]
DIFFERENT = [
    (Stdio("server"), Stdio("server --x")),
    (Stdio("server"), Stdio("server", env={"TOKEN": "of bob"})),
    (Stdio("server", env={"TOKEN": "of eve"}), Stdio("server", env={"TOKEN": "of bob"})),
    (Stdio("server"), Stdio("server", inherit_env=True)),
    (Stdio("server", inherit_env=["A"]), Stdio("server", inherit_env=["B"])),
    (Stdio("server"), Stdio("server", cwd="/")),
    (Http(URL), Http(f"{URL}/other")),
    (Http(URL), Http(f"{URL}?user=bob")),
    (Http(URL, headers={"X-Key": "1"}), Http(URL, headers={"X-Key": "2"})),
    (Http(URL), Http(URL, auth=holdfast.Bearer("bob"))),
    (Http(URL, auth=holdfast.Bearer("eve")), Http(URL, auth=holdfast.Bearer("bob"))),
    (Http(URL), Http(URL, cert="bob.pem")),
    (Http(URL), Http(URL, ca="own.pem")),
    (Http(URL), Http(URL, proxy="http://proxy:3128")),
    (
        Http(URL, auth=OAuth(account="eve", store=MemoryStore())),
        Http(URL, auth=OAuth(account="bob", store=MemoryStore())),
    ),
    (Http("https://eve:1@mcp.example/mcp"), Http("https://bob:1@mcp.example/mcp")),
    (Stdio("server"), Http(URL)),
]


@pytest.mark.req("B16")
@pytest.mark.parametrize(("first", "second"), SAME)
def test_the_same_definition_is_shared(first: Any, second: Any) -> None:
    assert definition_of(first) == definition_of(second)
    assert definition_of(first, project="/a") != definition_of(second, project="/b")


@pytest.mark.req("B16")
@rows(("first", "second"), DIFFERENT)
def test_what_the_server_would_see_differently_is_not_shared(first: Any, second: Any) -> None:
    assert definition_of(first) != definition_of(second)


@pytest.mark.req("B16")
@rows(
    "transport",
    [
        Http(URL, headers=lambda: {"X-User": user.get()}),
        Http(URL, auth=OAuth(account=user.get, store=MemoryStore())),
        Http(URL, auth=holdfast.Bearer(user.get)),
        Http(URL, ssl=ssl.create_default_context()),
        holdfast.connect(Peer()).transport,
    ],
    ids=["headers", "account", "bearer", "ssl", "memory"],
)
def test_what_cannot_be_compared_is_shared_with_nobody(transport: Any) -> None:
    assert definition_of(transport) != definition_of(transport)


@pytest.mark.req("T8")
def test_a_definition_shows_no_secret() -> None:
    text = definition_of(Stdio("server", env={"TOKEN": "hunter2"}), project="/secret")
    assert "hunter2" not in text
    assert "secret" not in text


@pytest.mark.req("B16")
async def test_each_key_has_one_client() -> None:
    async with pool_of() as pool:
        bob = pool.obtain(key("bob"), make)
        assert pool.obtain(key("bob"), make) is bob
        assert pool.obtain(key("eve"), make) is not bob
        assert pool.obtain(SharingKey("other server", "bob"), make) is not bob
        assert repr(pool) == "<ClientPool 3 clients>"


@pytest.mark.req("B16")
async def test_threads_that_ask_at_once_get_one_client() -> None:
    async with pool_of() as pool:
        obtained = await asyncio.gather(
            *(asyncio.to_thread(pool.obtain, key("bob"), make) for _ in range(8))
        )
        assert len({id(client) for client in obtained}) == 1


# When one ends


async def test_the_one_used_least_recently_ends_for_another() -> None:
    async with pool_of(most=2) as pool:
        clients = {name: pool.obtain(key(name), make) for name in ("a", "b")}
        pool.obtain(key("a"), make)
        pool.obtain(key("c"), make)
        assert pool.obtain(key("a"), make) is clients["a"]
        assert len(pool) == 2
        assert pool.obtain(key("b"), make) is not clients["b"]
        await pool.close()
        assert {client.state for client in clients.values()} == {"closed"}


async def test_a_client_without_use_ends_and_the_next_use_makes_another() -> None:
    async with pool_of(idle=60) as pool:
        now = asyncio.get_running_loop().time()
        first = pool.obtain(key("a"), make)
        assert pool.end_idle(now + 59) == pytest.approx(now + 60, abs=5)
        assert pool.obtain(key("a"), make) is first
        assert pool.end_idle(now + 120) is None
        assert len(pool) == 0
        assert pool.obtain(key("a"), make) is not first


async def test_a_client_with_a_call_under_way_does_not_end_for_idleness() -> None:
    peer, gate = Peer(), asyncio.Event()

    @peer.tool()
    async def slow() -> str:
        await gate.wait()
        return "done"

    async with pool_of(idle=1) as pool:
        client = pool.obtain(key("a"), lambda: holdfast.connect(peer))
        call = asyncio.create_task(client.call_tool("slow"))
        await client.wait_ready()
        later = asyncio.get_running_loop().time() + 3600
        assert pool.end_idle(later) == later + 1
        gate.set()
        assert (await call).text == "done"
        assert pool.end_idle(later + 0.5) == later + 1, "its time begins when it was last busy"
        assert pool.end_idle(later + 1) is None


async def test_the_end_for_idleness_comes_by_itself() -> None:
    async with pool_of(idle=0.01) as pool:
        client = pool.obtain(key("a"), make)
        await client.open()
        ended = asyncio.Event()
        client.events.subscribe(
            lambda event: ended.set() if event.new == "closed" else None, Transition.name
        )
        async with asyncio.timeout(30):
            await ended.wait()
        assert len(pool) == 0


async def test_without_an_idle_time_nothing_ends() -> None:
    async with pool_of() as pool:
        pool.obtain(key("a"), make)
        assert pool.end_idle(1e12) is None
        assert len(pool) == 1


class Failing(Client):
    """Ends, and then fails."""

    async def close(self) -> bool:
        await super().close()
        raise OSError(f"{self.name} did not end")


def failing(name: str) -> Client:
    plain = holdfast.connect(Peer())
    return Failing(plain.transport, plain._policy, holdfast.Handlers(), name=name)


async def test_an_end_that_fails_is_raised_by_close_and_the_others_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = ClientPool()
    clients = [pool.obtain(key(name), lambda name=name: failing(name)) for name in "ab"]  # type: ignore[misc]
    clients.append(pool.obtain(key("c"), make))
    with pytest.raises(OSError, match="a did not end"):
        await pool.close()
    assert "b did not end" in caplog.text
    assert {client.state for client in clients} == {"closed"}
    await pool.close()


async def test_an_end_for_idleness_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    pool = ClientPool(idle=1)
    pool.obtain(key("a"), lambda: failing("a"))
    pool.end_idle(1e12)
    (task,) = pool._leaving
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert "a did not end" in caplog.text
    await pool.close()


@pytest.mark.req("B16")
async def test_a_client_ends_in_the_context_in_which_it_was_made() -> None:
    ended: list[str] = []

    class Telling(Client):
        async def close(self) -> bool:
            ended.append(user.get())
            return await super().close()

    def make_telling() -> Client:
        plain = holdfast.connect(Peer())
        return Telling(plain.transport, plain._policy, holdfast.Handlers())

    async with pool_of(most=1) as pool:
        for name in ("bob", "eve"):
            user.set(name)
            pool.obtain(key(name), make_telling)
        user.set("mallory")
    assert ended == ["bob", "eve"]
