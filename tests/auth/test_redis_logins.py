"""Logins that workers share in Redis: sealed, renewed once, and not needed while it is down."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import AuthError, OAuth
from holdfast._core.auth.logins import LoginChanged, Logins
from holdfast._core.auth.saving import SAVING_PAUSE
from holdfast.errors import LoginRequired
from holdfast.stores import MemoryStore, RedisStore, StoreError
from holdfast.stores.base import StoreUnreachable
from tests.auth.test_hostile import Clock
from tests.auth.test_processes import start
from tests.auth.world import world
from tests.redis_server import DURABLE, RedisServer, running_redis

pytestmark = pytest.mark.req("S1")
KEY = secrets.token_urlsafe(32)
PATIENCE = 60.0

WORKER = """
import asyncio, sys
import holdfast

async def main(url, redis, key):
    store = holdfast.stores.RedisStore(redis, login_key=key, patience=60.0)
    auth = holdfast.OAuth(store=store, interactive=False)
    async with holdfast.connect(url, auth=auth, protocol="2025-11-25") as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print((await client.call_tool("hello")).text, flush=True)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path / "redis", *DURABLE) as server:
        yield server


async def call_all(workers: list[asyncio.subprocess.Process]) -> None:
    """Have every worker make a call at the same time."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"call\n")
    for worker in workers:
        assert worker.stdout is not None
        line = await worker.stdout.readline()
        if line != b"hello\n":
            worker.kill()
            _, err = await worker.communicate(b"")
            raise AssertionError(err.decode())


@pytest.mark.thorough(only=True)
@pytest.mark.hang(400)
@pytest.mark.long
async def test_eight_workers_renew_an_expired_login_once_and_go_on_without_redis(
    server: RedisServer,
) -> None:
    async with world() as here:
        store = RedisStore(server.url, login_key=KEY, patience=PATIENCE)
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.login()
        words = (f"{here.url}/mcp", server.url, KEY)
        workers = [await start(WORKER, *words) for _ in range(8)]
        await call_all(workers)
        assert here.count["refresh_token"] == 0
        here.tokens.clear()  # it has expired, and the refresh token can be used once
        await call_all(workers)
        assert here.count["refresh_token"] == 1
        server.stop()
        await call_all(workers)
        server.start()
        here.tokens.clear()
        await asyncio.sleep(5.1)  # by then each asks Redis again
        await call_all(workers)
        assert here.count["refresh_token"] == 2
        assert here.count["authorize"] == 1
        for worker in workers:
            _, err = await worker.communicate(b"")
            assert worker.returncode == 0, err.decode()
        await store.close()


async def test_what_is_in_redis_is_sealed_with_a_key_that_is_not(server: RedisServer) -> None:
    async with world() as here:
        store = RedisStore(server.url, login_key=KEY, patience=PATIENCE)
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.login()
        with server.client() as redis:
            contents = b"\n".join(redis.get(key) for key in redis.scan_iter("holdfast:entry:*"))
        assert contents
        for secret in (*here.secrets, KEY):
            assert secret.encode() not in contents
        other = RedisStore(server.url, login_key=secrets.token_urlsafe(32), patience=PATIENCE)
        async with here.connect(auth=OAuth(store=other, interactive=False)) as client:
            with pytest.raises(LoginRequired):
                await client.list_tools()
        same = RedisStore(server.url, login_key=KEY, patience=PATIENCE)
        async with here.connect(auth=OAuth(store=same, interactive=False)) as client:
            assert await client.list_tools()
        for used in (store, other, same):
            await used.close()


async def test_without_a_key_given_one_is_made_for_this_user(
    server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast._core.auth import keyring

    def fail() -> bytes:
        raise keyring.KeyringUnusable("none was found")

    monkeypatch.setattr(keyring, "KEYRING", keyring.Keyring(fail))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for _ in range(2):
        store = RedisStore(server.url, patience=PATIENCE)
        logins = Logins(store)
        async with logins.hold("login-a") as slot:
            assert await slot.read() in (None, b"a secret")
            await slot.write(b"a secret")
        assert await logins.read("login-a") == b"a secret"
        await store.close()
    key = (tmp_path / "data" / "holdfast" / "auth" / "login.key").read_bytes()
    assert len(key) == 32
    (tmp_path / "data" / "holdfast" / "auth" / "login.key").write_bytes(b"broken")
    store = RedisStore(server.url, patience=PATIENCE)
    with pytest.raises(AuthError, match="does not hold a key"):
        await Logins(store).read("login-a")
    await store.close()


# The store goes down


class Fragile(MemoryStore):
    """A store that can be down, as one across a network."""

    down = ""
    """The operations that fail."""

    def fails(self, operation: str) -> None:
        if operation in self.down.split():
            raise StoreUnreachable("the store does not answer")

    async def get(self, key: str) -> bytes | None:
        self.fails("get")
        return await super().get(key)

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        self.fails("swap" if old == new else "renewed")
        return await super().swap(key, old, new, ttl)


async def test_an_expired_token_is_used_while_the_store_is_down_and_nobody_renews() -> None:
    store = Fragile()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.list_tools()
        clock = Clock(client)
        store.down, clock.now = "get swap renewed", 3601
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 0
        here.tokens.clear()
        with pytest.raises(AuthError, match="logins cannot be read: the store does not answer"):
            await client.call_tool("hello")
        store.down = ""
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1


async def test_a_token_that_was_renewed_while_the_store_went_down_is_used_and_written_later() -> (
    None
):
    store = Fragile()
    async with world() as here, here.connect(auth=OAuth(store=store)) as client:
        await client.list_tools()
        store.down = "renewed"
        here.tokens.clear()
        assert (await client.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1
        store.down = ""
        await asyncio.sleep(2 * SAVING_PAUSE)
        async with here.connect(auth=OAuth(store=store, interactive=False)) as other:
            assert (await other.call_tool("hello")).text == "hello"
        assert here.count["refresh_token"] == 1


async def test_whoever_lost_the_lock_does_not_overwrite_what_came_after() -> None:
    store = MemoryStore()
    await store.put("login-a", b"old")
    logins = Logins(store)
    async with logins.hold("login-a") as slot:
        assert await slot.read() == b"old"
        await store.put("login-a", b"of the next holder")
        with pytest.raises(LoginChanged):
            await slot.write(b"of the past")
    assert await store.get("login-a") == b"of the next holder"


async def test_a_store_without_swaps_is_written_as_before() -> None:
    class Plain:
        def __init__(self) -> None:
            self._store = MemoryStore()
            self.get, self.put = self._store.get, self._store.put
            self.delete, self.keys, self.lock = (
                self._store.delete,
                self._store.keys,
                self._store.lock,
            )

    store: MemoryStore = Plain()  # type: ignore[assignment]
    async with Logins(store).hold("login-a") as slot:
        assert await slot.read() is None
        await slot.write(b"x")
        assert await slot.read() == b"x"
        await slot.write(None)
    assert await store.get("login-a") is None
    assert issubclass(StoreUnreachable, StoreError)
