"""Run work once for any number of concurrent waiters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.errors import HoldfastError


class SharedTask:
    """Runs ``work`` in a task of its own; callers that join while it runs share the task.

    A caller that stops waiting does not cancel the work.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<SharedTask {'grounded' if self._task is None else 'under way'}>"

    async def join(self) -> bool:
        """Wait for the work and raise what it raised; False if it was stopped."""
        task = self._task
        if task is None:
            task = self._task = asyncio.create_task(self._work(), name="holdfast-handle")
            task.add_done_callback(self._landed)
        await asyncio.wait((task,))
        if task.cancelled():
            return False
        error = task.exception()
        if error is not None:
            raise error.again() if isinstance(error, HoldfastError) else error
        return True

    async def stop(self) -> None:
        """End the work, if it is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._task = None
        look(task)


def look(task: asyncio.Task[None]) -> None:
    """Retrieve the exception, so that asyncio logs nothing if no caller waits."""
    if not task.cancelled():
        task.exception()
