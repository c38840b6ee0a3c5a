"""Calls again and again, so many at once, until the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from holdfast._core.bulk.engine import Bulk
from holdfast._core.bulk.outcomes import RowOutcome
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
) -> LoadStats:
    """Make the calls in their order, from the beginning again after the last.

    Args:
        client: The client to make them with.
        calls: What to call; at least one.
        jobs: Calls under way at once.
        seconds: When to begin no more. Calls under way are waited for.
        on_outcome: Called after each.

    Returns:
        How they went. An error is counted, and ends nothing.
    """
    if not calls:
        raise ValidationError("there is no call to repeat")
    loop, stats = asyncio.get_running_loop(), LoadStats(seconds)
    begun = loop.time()
    counts = _count_reconnects(stats, is_connected=client.is_connected)
    remove = client.events.subscribe(counts, Transition.name)

    def planned() -> Iterator[dict[str, Any]]:
        while True:
            for name, arguments in calls:
                if loop.time() - begun >= seconds:
                    return
                yield {"name": name, "arguments": arguments}

    async def call(number: int, row: Any) -> ToolResult:
        return await client.call_tool(row["name"], row["arguments"])

    try:
        async with aclosing(Bulk(call, planned(), concurrency=jobs).outcomes()) as outcomes:
            async for outcome in outcomes:
                stats.elapsed = loop.time() - begun
                stats.add(calls[outcome.row % len(calls)][0], outcome, stats.elapsed)
                if on_outcome is not None:
                    on_outcome(stats, outcome)
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
