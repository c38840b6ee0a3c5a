"""A call under way that can be awaited, looked at, or cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from holdfast.errors import CancelledCallError

R = TypeVar("R")


class RunningCall(Generic[R]):
    """A call under way. Await it for its result; ``cancel()`` ends it and tells the server."""

    def __init__(self, label: str, work: Awaitable[R]) -> None:
        self._label = label
        self._cancelled = False
        self._task: asyncio.Future[R] = asyncio.ensure_future(work)
        # Whether or not anybody awaits it, a failure is not an unhandled one.
        self._task.add_done_callback(_look)

    def __repr__(self) -> str:
        return f"<RunningCall {self._label} {'done' if self.done else 'under way'}>"

    @property
    def done(self) -> bool:
        return self._task.done()

    def cancel(self) -> bool:
        """True if this ended it; False if it had ended already."""
        if self._task.done() or self._cancelled:
            return False
        self._cancelled = True
        return self._task.cancel()

    def __await__(self) -> Generator[Any, None, R]:
        return self._wait().__await__()

    async def _wait(self) -> R:
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._cancelled and self._task.done():
                text = f"{self._label}: cancelled by its owner; the server was told to stop"
                raise CancelledCallError(text, outcome_unknown=True) from None
            raise


def _look(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
