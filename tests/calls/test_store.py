"""Memory for answers: bounded in number and bytes, the least recently used out first."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.calls.cache import OVERHEAD, CacheEntry, MemoryStore


def entry(size: int = 10) -> CacheEntry:
    return CacheEntry(b"x" * size, 0.0, 0.0, 1.0)


@pytest.mark.req("C4")
async def test_what_was_put_can_be_got() -> None:
    store = MemoryStore()
    put = entry()
    await store.put("a", put)
    assert await store.get("a") is put
    assert await store.get("b") is None


@pytest.mark.req("C4")
async def test_the_least_recently_used_goes_first() -> None:
    store = MemoryStore(entries=2)
    await store.put("a", entry())
    await store.put("b", entry())
    await store.get("a")
    await store.put("c", entry())
    assert await store.get("b") is None
    assert await store.get("a") is not None


@pytest.mark.req("C4")
async def test_what_does_not_fit_at_all_is_not_kept() -> None:
    store = MemoryStore(bytes=10_000)
    await store.put("small", entry())
    await store.put("large", entry(10_000))
    assert await store.get("large") is None
    assert await store.get("small") is not None


async def test_a_new_entry_takes_the_place_of_the_old_one() -> None:
    store = MemoryStore()
    await store.put("a", entry(100))
    await store.put("a", entry(10))
    assert len(store) == 1
    assert store.used == 2 * 10 + 1 + OVERHEAD


@pytest.mark.req("C4")
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3000))))
def test_the_bounds_hold_whatever_is_put(puts: list[tuple[str, int]]) -> None:
    store = MemoryStore(entries=4, bytes=8000)

    async def run() -> None:
        for key, size in puts:
            await store.put(key, entry(size))
            assert len(store) <= 4
            assert store.used <= 8000

    asyncio.run(run())
    assert store.used >= 0
