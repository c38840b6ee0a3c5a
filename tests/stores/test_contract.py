"""What every store does, tried on each of them.

A store of one's own passes if it is added to ``MAKERS``.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.stores import FileStore, MemoryStore, SqliteStore, Store


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


MAKERS: dict[str, Callable[[Path, Clock], Store]] = {
    "memory": lambda folder, clock: MemoryStore(clock=clock),
    "files": lambda folder, clock: FileStore(folder / "entries", clock=clock),
    "sqlite": lambda folder, clock: SqliteStore(folder / "entries.db", clock=clock),
}
SHARED = {
    "files": "FileStore(sys.argv[1] + '/entries')",
    "sqlite": "SqliteStore(sys.argv[1] + '/entries.db')",
}
"""Stores that other processes see, and how those open them."""

ODD_KEYS = [
    "",
    "a" * 5000,
    "../outside",
    "/etc/passwd",
    "a\nb",
    "a\0b",
    "login-0123456789abcdef",
    "LOGIN-0123456789abcdef",
    "%_*[a]?",
    "größe ✓",
    ".",
    "a.entry",
    "+abc",
    "nul",
]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Store:
    return MAKERS[request.param](tmp_path, clock)


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> tuple[Store, str]:
    return MAKERS[request.param](tmp_path, clock), SHARED[request.param]


# Entries


async def test_what_was_put_is_returned(store: Store) -> None:
    assert await store.get("a") is None
    await store.put("a", b"first")
    await store.put("b", b"")
    assert (await store.get("a"), await store.get("b")) == (b"first", b"")
    await store.put("a", b"second")
    assert await store.get("a") == b"second"


@pytest.mark.parametrize("data", [bytes(range(256)), b"\n\n", b"\0", b"x" * 300_000])
async def test_data_comes_back_byte_by_byte(store: Store, data: bytes) -> None:
    await store.put("a", data)
    assert await store.get("a") == data


async def test_keys_of_all_kinds_are_told_apart(store: Store) -> None:
    for number, key in enumerate(ODD_KEYS):
        await store.put(key, b"%d" % number)
    assert [await store.get(key) for key in ODD_KEYS] == [
        b"%d" % number for number in range(len(ODD_KEYS))
    ]
    assert await store.keys() == sorted(ODD_KEYS)


async def test_a_deleted_entry_is_gone(store: Store) -> None:
    await store.put("a", b"1")
    await store.put("b", b"2", ttl=60)
    await store.delete("a")
    await store.delete("b")
    await store.delete("never there")
    assert (await store.get("a"), await store.get("b"), await store.keys()) == (None, None, [])


async def test_keys_are_found_by_prefix(store: Store) -> None:
    for key in ("login-b", "login-a", "pointer-a", "log%n", "Login-c"):
        await store.put(key, b"x")
    assert await store.keys("login-") == ["login-a", "login-b"]
    assert await store.keys("log%") == ["log%n"]
    assert await store.keys("x") == []


@pytest.mark.parametrize("data", ["text", 7, None, bytearray(b"x"), memoryview(b"x")])
async def test_only_bytes_are_stored(store: Store, data: Any) -> None:
    with pytest.raises(TypeError, match="bytes"):
        await store.put("a", data)
    assert await store.get("a") is None


# Time


async def test_an_entry_ends_with_its_time(store: Store, clock: Clock) -> None:
    await store.put("a", b"x", ttl=10)
    clock.now += 9.9
    assert await store.get("a") == b"x"
    assert await store.keys() == ["a"]
    clock.now += 0.1
    assert await store.keys() == []
    assert await store.get("a") is None


async def test_an_entry_without_a_time_stays(store: Store, clock: Clock) -> None:
    await store.put("a", b"x")
    clock.now += 1e9
    assert await store.get("a") == b"x"


async def test_the_last_put_decides_about_the_time(store: Store, clock: Clock) -> None:
    await store.put("longer", b"x", ttl=10)
    await store.put("longer", b"x")
    await store.put("shorter", b"x")
    await store.put("shorter", b"x", ttl=10)
    clock.now += 10
    assert await store.keys() == ["longer"]


@pytest.mark.parametrize("ttl", [0, -1, -0.5])
async def test_an_entry_without_any_time_left_replaces_and_is_not_kept(
    store: Store, ttl: float
) -> None:
    await store.put("a", b"x")
    await store.put("a", b"y", ttl=ttl)
    assert await store.get("a") is None


# Locks


async def test_a_lock_is_held_by_one_task_at_a_time(store: Store) -> None:
    inside = most = 0

    async def count() -> None:
        nonlocal inside, most
        async with store.lock("a"):
            inside += 1
            most = max(most, inside)
            number = int(await store.get("count") or b"0")
            await asyncio.sleep(0)
            await store.put("count", b"%d" % (number + 1))
            inside -= 1

    await asyncio.gather(*(count() for _ in range(20)))
    assert (most, await store.get("count")) == (1, b"20")


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


async def test_locks_of_other_names_do_not_wait(store: Store) -> None:
    async with store.lock("a"), store.lock("b"), store.lock("../x"), store.lock("+x"):
        await store.put("a", b"a lock is no entry")
        assert await store.get("a") is not None
        assert await store.keys() == ["a"]


async def test_a_lock_is_free_after_an_exception_and_a_cancellation(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        async with store.lock("a"):
            raise ZeroDivisionError
    entered = asyncio.Event()

    async def hold() -> None:
        async with store.lock("a"):
            entered.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    waiting = asyncio.create_task(hold())
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiting, return_exceptions=True)
    async with asyncio.timeout(10), store.lock("a"):
        pass


async def test_whoever_is_cancelled_at_any_step_of_locking_leaves_nothing_locked(
    store: Store,
) -> None:
    for steps in range(12):

        async def hold() -> None:
            async with store.lock("a", ttl=1000):
                await asyncio.sleep(0)

        task = asyncio.create_task(hold())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with asyncio.timeout(10), store.lock("a", ttl=1000):
            pass


async def test_a_lock_holds_between_loops_of_two_threads(store: Store) -> None:
    """`holdfast.sync` has a loop of its own; one store may serve it and the application's."""
    entered, release = threading.Event(), threading.Event()

    async def hold() -> None:
        async with store.lock("held", ttl=600):
            entered.set()
            await asyncio.to_thread(release.wait)

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


async def test_the_lock_of_a_process_that_was_killed_is_free_again(
    shared: tuple[Store, str], tmp_path: Path, clock: Clock
) -> None:
    store, expression = shared
    clock.now = time.time()
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
    async with asyncio.timeout(30), store.lock("a"):
        assert await store.get("seen") == b"by others"


# Anything in any order

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from("abc"),
            st.binary(max_size=20),
            st.sampled_from([None, 1, 5]),
        ),
        st.tuples(st.just("delete"), st.sampled_from("abc")),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 1, 4])),
    ),
    max_size=15,
)


@pytest.mark.parametrize("kind", MAKERS)
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_a_store_is_a_dictionary_with_ends(
    kind: str, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    clock = Clock()
    store = MAKERS[kind](tmp_path_factory.mktemp("store"), clock)
    expected: dict[str, tuple[bytes, float]] = {}

    async def run() -> None:
        for what, *details in steps:
            match what:
                case "put":
                    key, data, ttl = details
                    await store.put(key, data, ttl)
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

    asyncio.run(run())
