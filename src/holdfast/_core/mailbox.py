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

from msgspec import Struct

from holdfast._core.callbacks import call_plain, ends_task

log: logging.Logger = logging.getLogger("holdfast")

Handler: TypeAlias = Callable[[Any], Any]

_TOO_SLOW: Final = "%s: handlers are slower than the server's notifications; the oldest are dropped"
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of values that wait for a handler."""

handling: ContextVar[asyncio.Task[Any] | None] = ContextVar("holdfast_handling", default=None)
"""The task of the handler that is running, also in the tasks and threads that it starts.

A handler may close its own client: ``close()`` must not cancel the handler that waits for it.
"""


class Mailbox(Struct, eq=False):
    """Delivers values to handlers in the order in which they came."""

    _limit: int
    _loop: asyncio.AbstractEventLoop
    _name: str
    dropped: int = 0
    task: asyncio.Task[None] | None = None
    """Runs the handlers; None: none runs or is to run."""
    _queue: deque[tuple[Handler, Any, int]] | None = None
    """None before the first value: an empty deque takes 760 bytes."""
    _bytes: int = 0
    _overflowing: bool = False

    def __repr__(self) -> str:
        return f"<Mailbox {len(self._queue or ())} of {self._limit}, {self.dropped} dropped>"

    def post(self, handler: Handler, value: Any, size: int = 0) -> None:
        """Queue ``handler(value)``; ``size`` is that of the value in bytes."""
        if self._queue is None:
            self._queue = deque()
        queue = self._queue
        while queue and (len(queue) >= self._limit or self._bytes + size > MOST_BYTES):
            self._discard(queue)
            self.dropped += 1
            if not self._overflowing:
                self._overflowing = True
                log.warning(_TOO_SLOW, self._name)
        queue.append((handler, value, size))
        self._bytes += size
        if self.task is None:
            work = self._deliver(queue)
            self.task = self._loop.create_task(work, name=f"holdfast-{self._name}")

    def close(self) -> None:
        while self._queue:
            self._discard(self._queue)
        if self.task is not None and self.task is not handling.get():
            self.task.cancel()

    def _discard(self, queue: deque[tuple[Handler, Any, int]]) -> None:
        _, value, size = queue.popleft()
        self._bytes -= size
        if inspect.iscoroutine(value):
            value.close()

    async def _deliver(self, queue: deque[tuple[Handler, Any, int]]) -> None:
        handling.set(asyncio.current_task())
        try:
            while queue:
                handler, value, size = queue.popleft()
                self._bytes -= size
                await run(handler, value, self._name)
                if len(queue) < self._limit // 2:
                    self._overflowing = False
        finally:
            self.task = None


async def run(handler: Handler, value: Any, name: str) -> None:
    """Call a handler, sync or async, and log what it raises."""
    try:
        result = call_plain(handler, value)
        if isinstance(result, Awaitable):
            # A task of the application's own is not ours to cancel.
            await (asyncio.shield(result) if asyncio.isfuture(result) else result)
    except BaseException as error:
        if ends_task(error):
            raise
        log.exception("%s: a handler failed: %r", name, handler)
