"""Processes that share a limit by a store."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Limits
from holdfast._core.limits import shared
from holdfast._core.limits.shares import Shares, Worker
from holdfast.stores import MemoryStore, RedisStore, SqliteStore
from holdfast.stores.base import StoreError
from holdfast.testing import Peer
from tests.limits.worker import store_at
from tests.redis_server import running_redis

WORKER = Path(__file__).with_name("worker.py")
LEASE = 900.0
"""Longer than any test: the places of the dead come back when a clock is put forward."""


class Counter:
    """Counts the calls that are inside at once; holds each until it is released."""

    def __init__(self) -> None:
        self.inside = self.most = self.total = 0
        self.released = asyncio.Event()
        self.changed = asyncio.Condition()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.inside += 1
        self.total += 1
        self.most = max(self.most, self.inside)
        async with self.changed:
            self.changed.notify_all()
        gone = asyncio.ensure_future(reader.read())
        free = asyncio.ensure_future(self.released.wait())
        await asyncio.wait((gone, free), return_when=asyncio.FIRST_COMPLETED)
        # It leaves before it is answered: the caller gives its place to the next at once.
        self.inside -= 1
        if free.done():
            writer.write(b"done\n")
        for task in (gone, free):
            task.cancel()
        writer.close()
        async with self.changed:
            self.changed.notify_all()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(condition)


@asynccontextmanager
async def counting() -> AsyncIterator[Counter]:
    counter = Counter()
    server = await asyncio.start_server(counter.serve, "127.0.0.1", 0)
    counter.port = server.sockets[0].getsockname()[1]
    async with server:
        yield counter


async def worker(place: str, counter: Counter, calls: int) -> asyncio.subprocess.Process:
    words = (str(WORKER), place, str(counter.port), str(calls), str(LEASE))
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "limits.db")
    else:
        with running_redis(tmp_path) as server:
            yield server.url


@pytest.mark.req("S3")
async def test_eight_processes_keep_to_four_places(place: str) -> None:
    async with counting() as counter:
        processes = [await worker(place, counter, 5) for _ in range(8)]
        await counter.until(lambda: counter.inside == 4)
        counter.released.set()
        outputs = [await process.communicate() for process in processes]
        assert [out for out, _ in outputs] == [b"all done\n"] * 8
        assert counter.total == 40
        assert counter.most == 4


@pytest.mark.req("S3")
async def test_the_places_of_a_killed_process_come_back(place: str) -> None:
    async with counting() as counter:
        first = await worker(place, counter, 4)
        await counter.until(lambda: counter.inside == 4)
        second = await worker(place, counter, 4)
        # The first has all places; the other gets one when a call ends, and none ends.
        assert [line.places for line in await lines(place, 2)] == [4, 0]
        assert counter.total == 4
        first.kill()
        await first.wait()
        while counter.total < 8:
            second.send_signal(signal.SIGUSR1)  # the lease is over, by its clock
            await asyncio.sleep(0.1)
        counter.released.set()
        out, _ = await second.communicate()
        assert out == b"all done\n"
        assert counter.most == 4


async def lines(place: str, count: int) -> list[Worker]:
    """The lines of the processes that share the limit, when there are so many of them."""
    store = store_at(place)
    while True:
        shares = msgspec.json.decode(await store.get("limits/proof") or b"{}", type=Shares)
        if len(shares.workers) == count:
            break
        await asyncio.sleep(0.01)
    await store.close() if isinstance(store, RedisStore) else store.close()
    return list(shares.workers.values())


class Broken:
    """A store that can be switched off."""

    def __init__(self) -> None:
        self._store = MemoryStore()
        self.is_down = False
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        if self.is_down:
            raise StoreError("the store is on fire")
        return getattr(self._store, name)

    lock: Any = property(lambda self: self.__getattr__("lock"))


def peer_with(event: asyncio.Event, seen: list[int]) -> Peer:
    peer = Peer()

    @peer.tool()
    async def hold() -> str:
        seen.append(1)
        await event.wait()
        return "done"

    return peer


@pytest.mark.req("S3")
async def test_without_its_store_a_process_goes_on_with_its_part_and_says_so_once() -> None:
    store, free, seen = Broken(), asyncio.Event(), list[int]()
    limits = Limits(concurrent=4, rate="600/s", store=store, key="x")
    told: list[Any] = []
    async with holdfast.connect(peer_with(free, seen), limits=limits) as client:
        client.events.subscribe(told.append, "limits.unshared")
        store.is_down = True
        calls = [asyncio.ensure_future(client.call_tool("hold")) for _ in range(10)]
        async with asyncio.timeout(10):
            while len(seen) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len(seen) == 4
        free.set()
        await asyncio.gather(*calls)
        assert [str(event.error) for event in told] == ["the store is on fire"]


@pytest.mark.req("S3")
async def test_two_clients_share_places_and_tokens_of_one_store() -> None:
    store, free, seen = MemoryStore(), asyncio.Event(), list[int]()
    limits = Limits(concurrent=2, store=store, key="x")
    async with (
        holdfast.connect(peer_with(free, seen), limits=limits) as one,
        holdfast.connect(peer_with(free, seen), limits=limits) as two,
    ):
        calls = [asyncio.ensure_future(client.call_tool("hold")) for client in (one, two) * 3]
        async with asyncio.timeout(10):
            while len(seen) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await asyncio.sleep(shared.LONGEST_PAUSE)
        assert len(seen) == 2
        free.set()
        await asyncio.gather(*calls)
    assert len(seen) == 6
    assert b"places" not in (await store.get("limits/x") or b"")


@pytest.mark.req("S3")
@pytest.mark.parametrize(
    "junk",
    [b'{"workers": {"\xff": {}}}', b"\x00", b"[]", b'{"workers": 1}', b'{"closed_until": 1e300}'],
)
async def test_what_another_version_left_in_the_entry_is_no_outage(junk: bytes) -> None:
    store, free, seen = MemoryStore(), asyncio.Event(), list[int]()
    await store.put("limits/x", junk)
    free.set()
    limits = Limits(concurrent=2, store=store, key="x")
    async with holdfast.connect(peer_with(free, seen), limits=limits) as client:
        downs: list[Any] = []
        client.events.subscribe(downs.append, "store.down")
        await asyncio.gather(*(client.call_tool("hold") for _ in range(4)))
        assert (len(seen), downs) == (4, [])
    assert await store.get("limits/x") != junk


@pytest.mark.req("S3")
async def test_later_is_heard_by_all_processes_of_a_store(tmp_path: Path) -> None:
    from holdfast._core.wire.codes import RATE_LIMITED, RequestError

    peer, calls = Peer(), 0

    @peer.tool()
    def work() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RequestError(RATE_LIMITED, "slow down", {"retryAfterMs": 2000})
        return "done"

    free, seen = asyncio.Event(), list[int]()
    store = SqliteStore(tmp_path / "limits.db")
    limits = Limits(concurrent=2, store=store, key="x")
    async with (
        holdfast.connect(peer, limits=limits) as one,
        holdfast.connect(peer_with(free, seen), limits=limits) as two,
    ):
        waits: list[Any] = []
        two.events.subscribe(waits.append, "request.waiting")
        busy = asyncio.ensure_future(two.call_tool("hold"))
        work_done = asyncio.ensure_future(one.call_tool("work"))
        gate = two._requester.opener.gate
        assert gate is not None
        async with asyncio.timeout(10):
            while not gate.closed_until:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        late = asyncio.ensure_future(two.call_tool("hold"))
        free.set()
        await asyncio.gather(busy, late, work_done)
        assert "later" in {wait.reason for wait in waits}
    store.close()
