"""Calls again and again, so many at once, until the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from holdfast._core.bulk.engine import Bulk
from holdfast._core.bulk.outcomes import RowOutcome
from holdfast._core.rate import TokenBucket, parse_rate
from holdfast.client import Client
from holdfast.errors import ValidationError
from holdfast.events import Transition
from holdfast.load.stats import LoadStats
from holdfast.types.tools import ToolResult

PlannedCall = tuple[str, dict[str, Any]]
"""A tool, and its arguments."""


async def run_load(
    client: Client,
    calls: Sequence[PlannedCall],
    *,
    jobs: int,
    seconds: float,
    on_outcome: Callable[[LoadStats, RowOutcome], None] | None = None,
    stats: LoadStats | None = None,
    rate: str | None = None,
) -> LoadStats:
    """Make the calls in their order, from the beginning again after the last.

    Args:
        client: The client to make them with.
        calls: What to call; at least one.
        jobs: Calls under way at once.
        seconds: When to begin no more. Calls under way are waited for.
        on_outcome: Called after each.
        stats: What they are counted in; whoever cancels this has what there is.
        rate: The most calls in a time, such as ``100/s``. A call is begun when its time has come:
            one that waited for the limit of a client would count that as the server's time.

    Returns:
        How they went. An error is counted, and ends nothing.
    """
    if not calls:
        raise ValidationError("there is no call to repeat")
    loop = asyncio.get_running_loop()
    stats = LoadStats(seconds) if stats is None else stats
    begun = loop.time()
    end = begun + seconds
    counts = _count_reconnects(stats, is_connected=client.is_connected)
    remove = client.events.subscribe(counts, Transition.name)

    def planned() -> Iterator[dict[str, Any]]:
        while True:
            for name, arguments in calls:
                if loop.time() >= end:
                    return
                yield {"name": name, "arguments": arguments}

    async def paced(bucket: TokenBucket) -> AsyncIterator[dict[str, Any]]:
        for row in planned():
            while not bucket.take(now := loop.time()):
                if now >= end:
                    return
                await asyncio.sleep(min(bucket.ready_at(now), end) - now)
            yield row

    async def call(number: int, row: Any) -> ToolResult:
        return await client.call_tool(row["name"], row["arguments"])

    def count(outcome: RowOutcome) -> None:
        stats.elapsed = loop.time() - begun
        stats.add(calls[outcome.row % len(calls)][0], outcome, stats.elapsed)

    rows = planned() if rate is None else paced(TokenBucket(parse_rate(rate), begun))
    bulk = Bulk(call, rows, concurrency=jobs)
    try:
        async with aclosing(bulk.outcomes()) as outcomes:
            async for outcome in outcomes:
                count(outcome)
                if on_outcome is not None:
                    on_outcome(stats, outcome)
    except asyncio.CancelledError:
        for outcome in bulk.remaining():
            count(outcome)
        raise
    finally:
        stats.elapsed = loop.time() - begun
        stats.reconnects = max(0, stats.reconnects)
        remove()
    return stats


def _count_reconnects(stats: LoadStats, *, is_connected: bool) -> Callable[[Transition], None]:
    """Return a subscriber that counts connections after the first."""
    stats.reconnects = 0 if is_connected else -1

    def moved(event: Transition) -> None:
        stats.reconnects += event.new == "ready"

    return moved
