"""Memory: bounded in number and bytes, the least recently used out first."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stores import MemoryStore
from holdfast.stores.memory import OVERHEAD, RecentlyUsed


@pytest.mark.req("C4")
async def test_the_least_recently_used_goes_first() -> None:
    store = MemoryStore(entries=2)
    await store.put("a", b"x", ttl=60)
    await store.put("b", b"x", ttl=60)
    await store.get("a")
    await store.put("c", b"x", ttl=60)
    assert await store.keys() == ["a", "c"]


@pytest.mark.req("C4")
async def test_what_does_not_fit_at_all_is_not_kept() -> None:
    store = MemoryStore(bytes=10_000)
    await store.put("small", b"x", ttl=60)
    await store.put("large", b"x" * 10_000, ttl=60)
    assert await store.keys() == ["small"]


async def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    values: RecentlyUsed[bytes] = RecentlyUsed(10, 10_000)
    values.put("a", b"x", 100)
    values.put("a", b"y", 10)
    assert (len(values), values.get("a")) == (1, b"y")
    assert values.used == 10 + 1 + OVERHEAD


async def test_entries_without_an_end_are_not_dropped_for_room() -> None:
    store = MemoryStore(entries=1, bytes=1000)
    for number in range(10):
        await store.put(f"{number}", b"x" * 1000)
        await store.put("passing", b"x", ttl=60)
    assert len(await store.keys()) == 11


async def test_a_store_is_true_and_has_a_length() -> None:
    store = MemoryStore()
    assert store
    assert len(store) == 0
    await store.put("a", b"x")
    await store.put("b", b"x", ttl=1)
    assert len(store) == 2
    assert repr(store) == "<MemoryStore 2 entries>"


@pytest.mark.req("C4")
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3000))))
def test_the_bounds_hold_whatever_is_put(puts: list[tuple[str, int]]) -> None:
    store = MemoryStore(entries=4, bytes=8000)

    async def run() -> None:
        for key, size in puts:
            await store.put(key, b"x" * size, ttl=60)
            assert len(store) <= 4
            assert 0 <= store._passing.used <= 8000

    asyncio.run(run())
