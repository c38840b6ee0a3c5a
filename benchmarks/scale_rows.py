"""The price of what many workers share: the ledger, a store for the cache, a limit."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.bench import HELLO, Bench, Found, Measure, MeasureError, Row, expect
from benchmarks.server import Target
from benchmarks.sides import Side
from benchmarks.user_rows import Once, Pair, echo, in_turns, opened, option, row, served

Place = Callable[[AsyncExitStack], Any]
"""Makes a store for as long as the stack is open."""
LIMITS = holdfast.Limits(concurrent=64, rate="1000000/s")


def sqlite(stack: AsyncExitStack) -> Any:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
    return holdfast.stores.SqliteStore(Path(folder) / "store.db")


def redis(stack: AsyncExitStack, *options: str) -> Any:
    """A redis-server on loopback that keeps what it is told in memory."""
    from tests.redis_server import RedisServer

    if shutil.which("redis-server") is None and shutil.which("valkey-server") is None:
        raise MeasureError("needs redis-server")
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
    server = RedisServer(Path(folder), *options)
    server.start()
    stack.callback(server.stop)
    return holdfast.stores.RedisStore(server.url)


def durable_redis(stack: AsyncExitStack) -> Any:
    """The same with what it answers on the disk, as a ledger should have it."""
    from tests.redis_server import DURABLE

    return redis(stack, *DURABLE)


def with_key(place: Place) -> Pair:
    """A call with ``once=``, each with a key of its own, against the same call without."""

    async def pair(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
        ledger = holdfast.Ledger(place(stack), may_forget=True)
        plain = await opened(target, stack)
        recorded = await opened(target, stack, ledger=ledger)
        numbers = itertools.count()

        def once() -> Any:
            return recorded.call_tool("echo", HELLO, once=f"order-{next(numbers)}")

        await once()
        expect("records of one call", len(await ledger.records()), 1)
        return echo(plain), once

    return pair


def cached(place: Place) -> Pair:
    """A list from a store that others share, against a call."""

    async def pair(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
        plain = await opened(target, stack)
        store = place(stack)
        await store.get("opened")  # a store that takes long to open would be left alone for a while
        cache = holdfast.Cache(tools=600, store=store, context="bench")
        caching = await opened(target, stack, cache=cache)
        before = await served(caching)
        for _ in range(3):
            await caching.list_tools()
        expect("lists that reached the server", await served(caching) - before, 0)
        return echo(plain), caching.list_tools

    return pair


def price(measure: Measure) -> Measure:
    """Return what an addition costs by itself, instead of the call with it."""

    def added(bench: Bench, side: Side) -> Found:
        times = measure(bench, side)
        assert isinstance(times, dict)
        return times["holdfast"] - times["plain"]

    return added


def once_row(key: str, title: str, place: Place, budget: float | None = None) -> Row:
    return Row(
        key,
        title,
        "µs",
        price(in_turns(with_key(place), "stdio")),
        budget=budget,
        only=("holdfast-stateless",),
        group="users",
    )


ROWS = (
    row("limit", "a limit that is not reached", option(limits=LIMITS)),
    once_row("once-sqlite", "once=, a ledger in SQLite: its price", sqlite, 0.001),
    once_row("once-redis", "once=, a ledger in Redis: its price", redis, 0.0003),
    once_row("once-durable", "once=, Redis that syncs always: its price", durable_redis),
    row("cache-sqlite", "list of 8 tools, cached in SQLite", cached(sqlite), era="handshake"),
    row("cache-redis", "list of 8 tools, cached in Redis", cached(redis), era="handshake"),
)
