"""What every store does, tried on each of them: the contract, and what only ours promise."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.stores import FileStore, MemoryStore, RedisStore, SqliteStore, Store
from holdfast.testing.store_contract import KEYS, StoreContract
from tests.redis_server import RedisServer, running_redis


class Clock:
    """The time of a store. Redis has its own: there, what has an end is moved towards it."""

    def __init__(self) -> None:
        self._now = 1_000_000.0
        self.redis: RedisServer | None = None

    def __call__(self) -> float:
        return self._now

    @property
    def now(self) -> float:
        return self._now

    @now.setter
    def now(self, now: float) -> None:
        passed, self._now = now - self._now, now
        if self.redis is None:
            return
        with self.redis.client() as client:
            for key in client.scan_iter():
                if (left := client.pttl(key)) >= 0:
                    client.pexpire(key, int(max(0, left - passed * 1000)))


KINDS = ("memory", "files", "sqlite", "redis")
PATIENCE = 60.0
"""Seconds: what is tested here is what Redis says, on a machine that may be busy."""


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


def make(
    kind: str, folder: Path, clock: Clock, request: pytest.FixtureRequest
) -> tuple[Store, str]:
    """Return a new store, and how other processes open it; "" if they cannot."""
    if kind == "memory":
        return MemoryStore(clock=clock), ""
    if kind == "files":
        return FileStore(folder / "entries", clock=clock), "FileStore(sys.argv[1] + '/entries')"
    if kind == "sqlite":
        expression = "SqliteStore(sys.argv[1] + '/entries.db')"
        return SqliteStore(folder / "entries.db", clock=clock), expression
    clock.redis = request.getfixturevalue("redis_server")
    with clock.redis.client() as client:
        client.flushall()
    url = clock.redis.url
    expression = f"RedisStore({url!r}, patience={PATIENCE})"
    return RedisStore(url, patience=PATIENCE), expression


async def close(store: Store) -> None:
    if isinstance(store, SqliteStore):
        store.close()
    elif isinstance(store, RedisStore):
        await store.close()


ODD_KEYS = [*KEYS, "", "a\0b"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[Store]:
    store, _ = make(request.param, tmp_path, clock, request)
    yield store
    await close(store)


@pytest_asyncio.fixture(params=KINDS[1:])
async def shared(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[tuple[Store, str]]:
    store, expression = make(request.param, tmp_path, clock, request)
    yield store, expression
    await close(store)


@pytest.mark.req("S1")
class TestContract(StoreContract):
    """The contract that is published, over each store."""

    ttl = 1000.0

    @pytest.fixture(autouse=True)
    def _set_up(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        yield self._store

    async def pass_time(self, seconds: float) -> None:
        self._clock.now += seconds


# Entries


async def test_keys_of_all_kinds_are_told_apart(store: Store) -> None:
    for number, key in enumerate(ODD_KEYS):
        await store.put(key, b"%d" % number)
    assert [await store.get(key) for key in ODD_KEYS] == [
        b"%d" % number for number in range(len(ODD_KEYS))
    ]
    assert await store.keys() == sorted(ODD_KEYS)


@pytest.mark.parametrize("data", ["text", 7, None, bytearray(b"x"), memoryview(b"x")])
async def test_only_bytes_are_stored(store: Store, data: Any) -> None:
    with pytest.raises(TypeError, match="bytes"):
        await store.put("a", data)
    assert await store.get("a") is None


# Time


async def test_an_entry_without_a_time_stays(store: Store, clock: Clock) -> None:
    await store.put("a", b"x")
    clock.now += 1e9
    assert await store.get("a") == b"x"


# Swaps


@pytest.mark.parametrize("value", ["text", 7, bytearray(b"x")])
async def test_only_bytes_are_swapped(store: Store, value: Any) -> None:
    for old, new in ((value, b"x"), (None, value)):
        with pytest.raises(TypeError, match="bytes"):
            await store.swap("a", old, new)


# Locks


async def test_tasks_get_a_lock_in_the_order_in_which_they_asked(store: Store) -> None:
    order: list[int] = []

    async def take(number: int) -> None:
        async with store.lock("a"):
            order.append(number)
            await asyncio.sleep(0)

    async with store.lock("a"):
        waiting = [asyncio.create_task(take(number)) for number in range(8)]
        await asyncio.sleep(0.2)  # by the clock of the tests: each has asked, and polled
    await asyncio.gather(*waiting)
    assert order == list(range(8))


async def test_a_lock_holds_between_loops_of_two_threads(store: Store) -> None:
    """`holdfast.sync` has a loop of its own; one store may serve it and the application's."""
    entered, release = threading.Event(), threading.Event()

    async def hold() -> None:
        async with store.lock("held", ttl=600):
            entered.set()
            await asyncio.to_thread(release.wait)
        if isinstance(store, RedisStore):
            await store.close()

    holder = asyncio.create_task(asyncio.to_thread(asyncio.run, hold()))
    await asyncio.to_thread(entered.wait)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), store.lock("held"):
            pass
    release.set()
    await holder
    async with asyncio.timeout(30), store.lock("held"):
        pass

    async def count() -> None:
        for _ in range(10):
            async with store.lock("a"):
                number = int(await store.get("count") or b"0")
                await asyncio.sleep(0)
                await store.put("count", b"%d" % (number + 1))
        if isinstance(store, RedisStore):
            await store.close()

    with ThreadPoolExecutor(3) as threads:
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            *(loop.run_in_executor(threads, asyncio.run, count()) for _ in range(3))
        )
    assert await store.get("count") == b"30"


# Several processes

_COUNT = """
import asyncio, sys
from holdfast.stores import *
async def main():
    store = {store}
    for _ in range(20):
        async with store.lock("a"):
            number = int(await store.get("count") or b"0")
            await store.put("count", b"%d" % (number + 1))
    for _ in range(20):
        while not await store.swap("swaps", data := await store.get("swaps"),
                                   b"%d" % (int(data or b"0") + 1)):
            pass
asyncio.run(main())
"""

_HOLD = """
import asyncio, sys
from holdfast.stores import *
async def main():
    store = {store}
    await store.put("seen", b"by others")
    async with store.lock("a", ttl=600):
        print("held", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def _start(program: str, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(folder), stdout=asyncio.subprocess.PIPE
    )


async def test_processes_do_not_overwrite_each_other(
    shared: tuple[Store, str], tmp_path: Path
) -> None:
    store, expression = shared
    program = _COUNT.format(store=expression)
    running = [await _start(program, tmp_path) for _ in range(3)]
    assert [await process.wait() for process in running] == [0, 0, 0]
    assert await store.get("count") == b"60"
    assert await store.get("swaps") == b"60"


async def test_the_lock_of_a_process_that_was_killed_is_free_again(
    shared: tuple[Store, str], tmp_path: Path, clock: Clock
) -> None:
    store, expression = shared
    clock.now = time.time()
    async with store.lock("a") as first:
        pass
    holder = await _start(_HOLD.format(store=expression), tmp_path)
    assert holder.stdout is not None
    await holder.stdout.readline()
    assert await store.get("seen") == b"by others"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), store.lock("a"):
            pass
    holder.kill()
    await holder.wait()
    clock.now += 3600
    async with asyncio.timeout(30), store.lock("a") as number:
        assert await store.get("seen") == b"by others"
        assert number > first + 1


# Anything in any order

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from("abc"),
            st.binary(max_size=20),
            st.sampled_from([None, 1000, 5000]),
        ),
        st.tuples(
            st.just("swap"),
            st.sampled_from("abc"),
            st.none() | st.binary(max_size=1),
            st.none() | st.binary(max_size=1),
            st.sampled_from([None, 1000, 5000]),
        ),
        st.tuples(st.just("delete"), st.sampled_from("abc")),
        st.tuples(st.just("wait"), st.sampled_from([500, 1000, 4000])),
    ),
    max_size=15,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_a_store_is_a_dictionary_with_ends(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[Any, ...]],
) -> None:
    clock = Clock()
    store, _ = make(kind, tmp_path_factory.mktemp("store"), clock, request)
    expected: dict[str, tuple[bytes, float]] = {}

    async def run() -> None:
        for what, *details in steps:
            match what:
                case "put":
                    key, data, ttl = details
                    await store.put(key, data, ttl)
                    expected[key] = (data, clock.now + (ttl or 1e9))
                case "swap":
                    key, old, data, ttl = details
                    current, until = expected.get(key, (None, 0.0))
                    current = current if until > clock.now else None
                    assert await store.swap(key, old, data, ttl) is (current == old)
                    if current == old:
                        expected.pop(key, None)
                        if data is not None:
                            expected[key] = (data, clock.now + (ttl or 1e9))
                case "delete":
                    await store.delete(details[0])
                    expected.pop(details[0], None)
                case "wait":
                    clock.now += details[0]
            present = {key: data for key, (data, until) in expected.items() if until > clock.now}
            assert {key: await store.get(key) for key in "abc"} == {
                key: present.get(key) for key in "abc"
            }
            assert await store.keys() == sorted(present)
        await close(store)

    asyncio.run(run())
