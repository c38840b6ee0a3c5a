"""Iterate in a thread over what is made on the loop."""

# Handing one value from thread to thread takes longer than many a call. So the outcomes that are
# there are fetched together. The rows are read in a thread as well, a few at a time: a generator
# that waits for a database must not stand in the way of the loop and of all clients on it.

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

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
    if not isinstance(rows, Sequence | AsyncIterable) and hasattr(rows, "__iter__"):
        rows = _read_in_thread(iter(rows))
    # At once: what is wrong with the options is raised by the call, not by the first step.
    outcomes = portal.do(lambda: make(rows))
    return _fetched(portal, outcomes)


def _fetched(portal: Portal, outcomes: AsyncGenerator[T]) -> Iterator[T]:
    buffer = _Buffer(outcomes)
    try:
        while batch := portal.run(buffer.fetch()):
            yield from batch
    finally:
        portal.run(buffer.close())


async def _read_in_thread(rows: Iterator[Any]) -> AsyncIterator[Any]:
    loop = asyncio.get_running_loop()
    while chunk := await loop.run_in_executor(None, lambda: list(islice(rows, ROWS))):
        for row in chunk:
            yield row


class _Buffer:
    """Takes outcomes from a generator in a task, and holds a few of them."""

    def __init__(self, outcomes: AsyncGenerator[T]) -> None:
        self._outcomes = outcomes
        self._queue: asyncio.Queue[Any] = asyncio.Queue(ROWS)
        self._task: asyncio.Task[None] | None = None

    async def fetch(self) -> list[Any]:
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
