"""Run work once for all callers that want it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from holdfast.errors import HoldfastError

T = TypeVar("T")


class WorkStopped(Exception):  # noqa: N818
    """The owner cancelled the work; this caller did not."""


class _Flight(Struct, eq=False):
    task: asyncio.Task[Any]
    waiting: int = 0


class SingleFlight:
    """Tasks by key: callers with the same key share one task.

    Args:
        abandon: Cancel the work when its last caller stops waiting; otherwise it goes on.
    """

    __slots__ = ("_abandon", "_flights")

    def __init__(self, *, abandon: bool = False) -> None:
        self._abandon = abandon
        self._flights: dict[Hashable, _Flight] = {}

    @property
    def is_busy(self) -> bool:
        """True while any work is running."""
        return bool(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    async def join(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]], *, anew: bool = False
    ) -> T:
        """Return the result of the work under ``key``, which is started if it is not running.

        Args:
            key: Identifies the work.
            work: Started in a task of its own, in the context of the first caller.
            anew: Start it even if it is running; later callers join the new one.

        Raises:
            WorkStopped: `close` cancelled it.
        """
        flight = None if anew else self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(work()))
            flight.task.add_done_callback(partial(self._forget, key))
            flight.task.add_done_callback(retrieve)
        flight.waiting += 1
        try:
            await asyncio.wait((flight.task,))
        except asyncio.CancelledError:
            if self._abandon and flight.waiting == 1:
                self._forget(key, flight.task)
                flight.task.cancel()
                await asyncio.wait((flight.task,))
            raise
        finally:
            flight.waiting -= 1
        if flight.task.cancelled():
            raise WorkStopped
        error = flight.task.exception()
        if isinstance(error, HoldfastError):
            raise error.again() from error.__cause__
        result: T = flight.task.result()
        return result

    def _forget(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.task is task:
            del self._flights[key]

    async def close(
        self, *, cancel: Container[Hashable] | None = None, timeout: float | None = None
    ) -> None:
        """Cancel the work under some keys (default: all) and wait for the rest to end."""
        flights = dict(self._flights)
        for key, flight in flights.items():
            if cancel is None or key in cancel:
                flight.task.cancel()
        if flights:
            await asyncio.wait([flight.task for flight in flights.values()], timeout=timeout)


def retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, so that asyncio logs nothing if no caller waits."""
    if not task.cancelled():
        task.exception()
