"""Iterate in a thread over what is made on the loop."""

# Handing one value from thread to thread takes longer than many a call. So the outcomes that are
# there are fetched together. The rows are read in a thread as well: a generator that waits for a
# database must not stand in the way of the loop and of all clients on it.

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from typing import Any, Final, Generic, TypeAlias, TypeVar

from holdfast._core.bulk.ahead import read_ahead
from holdfast._core.bulk.outcomes import RowOutcome
from holdfast.sync.portal import Portal

T = TypeVar("T")
Outcomes: TypeAlias = Iterator[RowOutcome]
"""How the calls of rows ended, as they end."""

ROWS: Final = 64
"""Rows that are read ahead, and outcomes that are fetched at once."""


def in_batches(
    portal: Portal,
    make: Callable[[Any], AsyncGenerator[T]],
    rows: Iterable[Any] | AsyncIterable[Any],
) -> Iterator[T]:
    """Return an iterator over what ``make`` gives for the rows, on the portal's loop."""
    reading: AsyncGenerator[Any] | None = None
    if not isinstance(rows, Sequence | AsyncIterable) and hasattr(rows, "__iter__"):
        rows = reading = read_ahead(iter(rows), ROWS)
    # At once: what is wrong with the options is raised by the call, not by the first step.
    outcomes = portal.do(lambda: make(rows))
    return _fetched(portal, _Buffer(outcomes, reading))


def _fetched(portal: Portal, buffer: _Buffer[T]) -> Iterator[T]:
    try:
        while batch := portal.run(buffer.fetch()):
            yield from batch
    finally:
        portal.run(buffer.close())


class _Buffer(Generic[T]):
    """Takes outcomes from a generator in a task, and holds a few of them.

    Args:
        outcomes: The outcomes of rows.
        reading: What reads these rows, and ends with them.
    """

    def __init__(self, outcomes: AsyncGenerator[T], reading: AsyncGenerator[Any] | None) -> None:
        self._outcomes, self._reading = outcomes, reading
        self._queue: asyncio.Queue[Any] = asyncio.Queue(ROWS)
        self._task: asyncio.Task[None] | None = None

    async def fetch(self) -> list[T]:
        """Return the outcomes that are there, at least one; none at the end."""
        if self._task is None:
            self._task = asyncio.create_task(self._take())
        first = await self._queue.get()
        if first is None:
            self._queue.put_nowait(None)
            await self._task
            return []
        batch = [first]
        while not self._queue.empty() and (item := self._queue.get_nowait()) is not None:
            batch.append(item)
        if self._task.done():
            self._queue.put_nowait(None)
        return batch

    async def _take(self) -> None:
        try:
            async for outcome in self._outcomes:
                await self._queue.put(outcome)
        finally:
            await self._queue.put(None)

    async def close(self) -> None:
        """End the calls under way."""
        if self._task is not None:
            self._task.cancel()
            while not self._task.done():
                while not self._queue.empty():
                    self._queue.get_nowait()
                await asyncio.sleep(0)
        await self._outcomes.aclose()
        if self._reading is not None:
            await self._reading.aclose()
