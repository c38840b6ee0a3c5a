"""What calls wait for besides the server: handlers, people, pauses. A close ends all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import Struct

from holdfast._core.mailbox import handling
from holdfast.errors import HoldfastError


class Waits(Struct, eq=False):
    """The waits of one client."""

    _scopes: dict[asyncio.Timeout, asyncio.Task[Any] | None] = {}
    """Those under way, and their tasks."""
    _closed: bool = False

    @asynccontextmanager
    async def until_closed(
        self, error: HoldfastError, until: float | None = None
    ) -> AsyncIterator[None]:
        """Wait in a call for a handler or for time; raise ``error`` when the client is closed.

        Raises:
            TimeoutError: It is later than ``until``.
        """
        if self._closed:
            raise error
        # A handler that closes its client comes to its end: it runs in this task, or below it.
        task = asyncio.current_task()
        before = handling.set(task)
        try:
            async with asyncio.timeout_at(until) as scope:
                self._scopes[scope] = task
                yield
        except TimeoutError:
            if self._closed and scope.expired():
                raise error from None
            raise
        finally:
            del self._scopes[scope]
            with suppress(ValueError):  # Python closes an abandoned coroutine in another context
                handling.reset(before)

    def end(self) -> None:
        """End all waits, but not that of the handler that is closing the client."""
        self._closed = True
        for scope, task in self._scopes.items():
            if task is not handling.get() and not scope.expired():
                scope.reschedule(0.0)
