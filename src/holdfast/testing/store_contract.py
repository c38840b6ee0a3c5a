"""The contract of stores, as tests to inherit.

class TestMyStore(StoreContract):
    @contextlib.asynccontextmanager
    async def store(self):
        yield MyStore(...)   # empty

A store whose clock can be moved does that in ``pass_time``; the others are waited for.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

from holdfast.stores.base import Store

PATIENCE: Final = 60.0
"""Seconds after which a contract test counts as hung."""
KEYS: Final = (
    "a" * 5000,
    "../outside",
    "/etc/passwd",
    "a\nb",
    "login-0123456789abcdef",
    "LOGIN-0123456789abcdef",
    "%_*[a]?",
    "größe ✓",
    ".",
    "a.entry",
    "+abc",
    "nul",
)
DATA: Final = (bytes(range(256)), b"\n\n", b"\0", b"1", b"x" * 300_000)


class StoreContract:
    """Inherit, give ``store``, and the store is tested like ours, in one process.

    What a machine that stops does to it, and whether two processes see the same, only its author
    can try.
    """

    ttl: float = 5.0
    """Seconds that entries of these tests last. More, if the store is slow; any, with a clock."""

    def store(self) -> AbstractAsyncContextManager[Store]:
        """Return a store without entries."""
        raise NotImplementedError

    async def pass_time(self, seconds: float) -> None:
        """Let time pass for the store."""
        await asyncio.sleep(seconds)

    # Entries

    async def test_what_was_put_is_returned(self) -> None:
        async with self.store() as store:
            assert await store.get("a") is None
            await store.put("a", b"first")
            await store.put("b", b"")
            assert (await store.get("a"), await store.get("b")) == (b"first", b"")
            await store.put("a", b"second")
            assert await store.get("a") == b"second"

    async def test_data_comes_back_byte_by_byte(self) -> None:
        async with self.store() as store:
            for data in DATA:
                await store.put("a", data)
                assert await store.get("a") == data

    async def test_keys_of_all_kinds_are_told_apart(self) -> None:
        async with self.store() as store:
            for number, key in enumerate(KEYS):
                await store.put(key, b"%d" % number)
            for number, key in enumerate(KEYS):
                assert await store.get(key) == b"%d" % number
            assert await store.keys() == sorted(KEYS)

    async def test_a_deleted_entry_is_gone(self) -> None:
        async with self.store() as store:
            await store.put("a", b"1")
            await store.put("b", b"2", ttl=self.ttl)
            for key in ("a", "b", "never there"):
                await store.delete(key)
            assert (await store.get("a"), await store.get("b")) == (None, None)
            assert await store.keys() == []

    async def test_keys_are_found_by_prefix(self) -> None:
        async with self.store() as store:
            for key in ("login-b", "login-a", "pointer-a", "log%n", "Login-c"):
                await store.put(key, b"x")
            assert await store.keys("login-") == ["login-a", "login-b"]
            assert await store.keys("log%") == ["log%n"]
            assert await store.keys("x") == []

    # Time

    async def test_an_entry_ends_with_its_time(self) -> None:
        async with self.store() as store:
            await store.put("a", b"x", ttl=self.ttl)
            await self.pass_time(0.9 * self.ttl)
            assert await store.get("a") == b"x"
            assert await store.keys() == ["a"]
            await self.pass_time(0.1 * self.ttl)
            assert await store.keys() == []
            assert await store.get("a") is None

    async def test_the_last_put_decides_about_the_time(self) -> None:
        async with self.store() as store:
            await store.put("longer", b"x", ttl=self.ttl)
            await store.put("longer", b"x")
            await store.put("shorter", b"x")
            await store.put("shorter", b"x", ttl=self.ttl)
            await self.pass_time(self.ttl)
            assert await store.keys() == ["longer"]

    async def test_an_entry_without_any_time_left_replaces_and_is_not_kept(self) -> None:
        async with self.store() as store:
            for ttl in (0, -1, -0.5):
                await store.put("a", b"x")
                await store.put("a", b"y", ttl=ttl)
                assert await store.get("a") is None

    # Swaps

    async def test_a_swap_replaces_only_what_it_expects(self) -> None:
        async with self.store() as store:
            assert not await store.swap("a", b"never there", b"x")
            assert await store.swap("a", None, b"1")
            assert not await store.swap("a", None, b"2")
            assert not await store.swap("a", b"2", b"3")
            assert await store.get("a") == b"1"
            assert await store.swap("a", b"1", b"")
            assert not await store.swap("a", None, b"4")
            assert await store.swap("a", b"", b"5")

    async def test_a_swap_deletes_only_what_it_expects(self) -> None:
        async with self.store() as store:
            await store.put("a", b"5")
            assert not await store.swap("a", b"4", None)
            assert await store.swap("a", b"5", None)
            assert await store.get("a") is None
            assert await store.swap("a", None, None)

    async def test_a_swap_compares_byte_by_byte(self) -> None:
        async with self.store() as store:
            for data in DATA:
                assert await store.swap("a", None, data)
                assert not await store.swap("a", data + b"x", b"other")
                assert not await store.swap("a", data[:-1], b"other")
                assert await store.swap("a", data, data + b"x")
                assert await store.get("a") == data + b"x"
                assert await store.swap("a", data + b"x", None)

    async def test_an_entry_past_its_time_counts_as_none_for_a_swap(self) -> None:
        async with self.store() as store:
            assert await store.swap("a", None, b"1", ttl=self.ttl)
            await store.put("b", b"1", ttl=self.ttl)
            await self.pass_time(0.9 * self.ttl)
            assert not await store.swap("a", None, b"2")
            await self.pass_time(0.1 * self.ttl)
            assert not await store.swap("a", b"1", b"2")
            assert await store.swap("a", None, b"3")
            assert not await store.swap("b", b"1", None)
            await self.pass_time(self.ttl)
            assert await store.get("a") == b"3"

    async def test_a_swap_to_what_has_no_time_left_deletes(self) -> None:
        async with self.store() as store:
            for ttl in (0, -1):
                await store.put("a", b"1")
                assert not await store.swap("a", b"2", b"3", ttl)
                assert await store.swap("a", b"1", b"3", ttl)
                assert await store.get("a") is None

    async def test_of_many_swaps_one_succeeds(self) -> None:
        async with self.store() as store:
            for old in (None, b"0"):
                swaps = (store.swap("a", old, b"new %d" % number) for number in range(20))
                outcomes = await asyncio.gather(*swaps)
                assert outcomes.count(True) == 1
                assert await store.get("a") == b"new %d" % outcomes.index(True)
                await store.put("a", b"0")

    # Locks

    async def test_each_holder_of_a_lock_has_a_larger_number(self) -> None:
        async with self.store() as store:
            numbers = []
            for _ in range(3):
                async with store.lock("a") as number:
                    numbers.append(number)
                async with store.lock("b"):
                    pass
            assert numbers == sorted(set(numbers))
            assert numbers[0] > 0

    async def test_a_lock_is_held_by_one_task_at_a_time(self) -> None:
        async with self.store() as store:
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

            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(count() for _ in range(20)))
            assert (most, await store.get("count")) == (1, b"20")

    async def test_locks_of_other_names_do_not_wait(self) -> None:
        async with self.store() as store, asyncio.timeout(PATIENCE):
            async with store.lock("a"), store.lock("b"), store.lock("../x"), store.lock("+x"):
                await store.put("a", b"a lock is no entry")
                assert await store.get("a") is not None
                assert await store.keys() == ["a"]

    async def test_a_lock_is_free_after_an_exception_and_a_cancellation(self) -> None:
        async with self.store() as store:
            with suppress(ZeroDivisionError):
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
            async with asyncio.timeout(PATIENCE), store.lock("a"):
                pass

    async def test_whoever_is_cancelled_at_any_step_of_locking_leaves_nothing_locked(self) -> None:
        async with self.store() as store:

            async def hold() -> None:
                async with store.lock("a", ttl=1000):
                    await asyncio.sleep(0)

            for steps in range(12):
                task = asyncio.create_task(hold())
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                async with asyncio.timeout(PATIENCE), store.lock("a", ttl=1000):
                    pass
