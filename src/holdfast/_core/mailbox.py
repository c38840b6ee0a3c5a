"""A bounded queue that runs handlers one after the other, off the reading path.

Reading never waits for a handler, so a handler may call the client back, and one that blocks
delays only itself. When the queue is full, the oldest values are dropped and counted.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from holdfast._core.callbacks import ends_task

log: logging.Logger = logging.getLogger("holdfast")

Handler: TypeAlias = Callable[[Any], Any]

MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of values that wait for a handler."""

handling: ContextVar[asyncio.Task[Any] | None] = ContextVar("holdfast_handling", default=None)
"""The task of the handler that is running, also in the tasks and threads that it starts.

A handler may close its own client: ``close()`` must not cancel the handler that waits for it.
"""


_EMPTY: Final[deque[tuple[Handler, Any, int]]] = deque()
"""The queue of every mailbox that has never had a value."""


class Mailbox:
    """Delivers values to handlers in the order in which they came."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.dropped: int = 0
        self._limit = limit
        self._loop = loop
        self._name = name
        self._queue = _EMPTY
        self._bytes = 0
        self.task: asyncio.Task[None] | None = None
        """Runs the handlers; None: none runs or is to run."""
        self._overflowing = False

    def __repr__(self) -> str:
        return f"<Mailbox {len(self._queue)} of {self._limit}, {self.dropped} dropped>"

    def post(self, handler: Handler, value: Any, size: int = 0) -> None:
        """Queue ``handler(value)``; ``size`` is that of the value in bytes."""
        if self._queue is _EMPTY:
            self._queue = deque()
        queue = self._queue
        while queue and (len(queue) >= self._limit or self._bytes + size > MOST_BYTES):
            self._discard()
            self._drop()
        queue.append((handler, value, size))
        self._bytes += size
        if self.task is None:
            self.task = self._loop.create_task(self._deliver(), name=f"holdfast-{self._name}")

    def close(self) -> None:
        while self._queue:
            self._discard()
        if self.task is not None and self.task is not handling.get():
            self.task.cancel()

    def _take(self) -> tuple[Handler, Any]:
        handler, value, size = self._queue.popleft()
        self._bytes -= size
        return handler, value

    def _discard(self) -> None:
        _, value = self._take()
        if inspect.iscoroutine(value):
            value.close()

    def _drop(self) -> None:
        self.dropped += 1
        if not self._overflowing:
            self._overflowing = True
            text = "%s: handlers are slower than the server's notifications; the oldest are dropped"
            log.warning(text, self._name)

    async def _deliver(self) -> None:
        handling.set(asyncio.current_task())
        try:
            while self._queue:
                handler, value = self._take()
                await run(handler, value, self._name)
                if len(self._queue) < self._limit // 2:
                    self._overflowing = False
        finally:
            self.task = None


async def run(handler: Handler, value: Any, name: str) -> None:
    """Call a handler, sync or async, and log what it raises."""
    try:
        result = handler(value)
        if isinstance(result, Awaitable):
            # A task of the application's own is not ours to cancel.
            await (asyncio.shield(result) if asyncio.isfuture(result) else result)
    except BaseException as error:
        if ends_task(error):
            raise
        log.exception("%s: a handler failed: %r", name, handler)
