"""A call with a key that is cancelled at any of its steps: the ledger is left whole.

What the server has answered is recorded although nobody waits for it any more; what it has not
answered is unknown, or free; and no other process waits for an owner that is done with it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import Ledger, OutcomeUnknown
from holdfast.stores import MemoryStore
from holdfast.testing import Peer

pytestmark = pytest.mark.req("S2")


class Slow(MemoryStore):
    """A store whose writes take a few turns of the loop, before and after they are done."""

    turns = 3

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        is_done = await super().swap(key, old, new, ttl)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        return is_done


class Shop:
    """A server that counts what it runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.peer = Peer()

        @self.peer.tool()
        async def charge(**arguments: Any) -> Any:
            self.runs += 1
            await asyncio.sleep(0)
            return {"receipt": self.runs}


async def cancelled_after(client: holdfast.Client, turns: int) -> bool:
    """Cancel a call after so many turns of the loop; return whether it was under way."""
    task = asyncio.create_task(client.call_tool("charge", {}, once="order-1"))
    for _ in range(turns):
        await asyncio.sleep(0)
    is_under_way = not task.done()
    task.cancel()
    await asyncio.wait((task,))
    return is_under_way


async def ending_for_another(store: MemoryStore, shop: Shop) -> str:
    """Return what a call of another process, with little time, gets."""
    ledger = Ledger(store, by="name")
    async with holdfast.connect(shop.peer, ledger=ledger, name="shop") as other:
        try:
            result = await other.call_tool("charge", {}, once="order-1", total_timeout=5)
        except OutcomeUnknown:
            return "unknown"
        assert result.structured == {"receipt": 1}
        return "result"


async def test_a_call_that_is_cancelled_anywhere_leaves_no_doubt_that_could_be_avoided() -> None:
    endings, turns, is_under_way = [], 0, True
    while is_under_way:
        shop, store = Shop(), Slow()
        ledger = Ledger(store, by="name")
        async with holdfast.connect(shop.peer, ledger=ledger, name="shop") as client:
            await client.list_tools()
            is_under_way = await cancelled_after(client, turns)
            has_run = shop.runs
            endings.append((has_run, await ending_for_another(store, shop)))
        assert shop.runs <= 1
        turns += 1
    first, last = endings[0], endings[-1]
    assert (first, last) == ((0, "result"), (1, "result"))
    # Not sent: it runs for the other. Sent: unknown. Answered: known from there on.
    order = [(0, "result"), (0, "unknown"), (1, "unknown"), (1, "result")]
    assert [order.index(ending) for ending in endings] == sorted(map(order.index, endings))


async def test_an_end_that_is_cancelled_while_sent_is_being_noted_is_noted_too() -> None:
    noting, release = asyncio.Event(), asyncio.Event()

    class Held(MemoryStore):
        """A store that takes long to note that a call was sent."""

        async def swap(
            self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
        ) -> bool:
            if b'"state":"sent"' in (new or b""):
                noting.set()
                await release.wait()
            return await super().swap(key, old, new, ttl)

    shop, store, answer = Shop(), Held(), asyncio.Event()

    @shop.peer.tool()
    async def slow(**arguments: Any) -> Any:
        shop.runs += 1
        await answer.wait()
        return {"receipt": shop.runs}

    async with holdfast.connect(shop.peer, ledger=Ledger(store), name="shop") as client:
        task = asyncio.create_task(client.call_tool("slow", {}, once="order-1"))
        await noting.wait()
        answer.set()
        for _ in range(20):  # the answer is there, and the end of the mark is waited for
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
        release.set()
        result = await client.call_tool("slow", {}, once="order-1")
    assert result.structured == {"receipt": 1}
    assert shop.runs == 1
