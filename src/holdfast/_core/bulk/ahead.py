"""Read in a thread what may be slow: a pipe, a generator over a database."""

# Each item is handed over when it is there, because the next may come tomorrow, or not before the
# outcome of this one is known. Many that come at once wake the loop once.

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")
_END: Final = object()


async def read_ahead(items: Iterator[T], room: int) -> AsyncGenerator[T]:
    """Yield what a thread reads, some items ahead; at its end raise what ended it.

    Args:
        items: What to read.
        room: The items that may wait for the loop.
    """
    reader = _Reader(items, room)
    del items  # the thread has it, and lets go of it
    try:
        while True:
            for item in await reader.batch():
                if item is _END:
                    if reader.error is not None:
                        raise reader.error
                    return
                yield item
    finally:
        reader.stop()


class _Reader:
    """The thread, and what it has read.

    It is a daemon: a pipe that says nothing more must not keep the program from ending.
    """

    def __init__(self, items: Iterator[Any], room: int) -> None:
        self.error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._read: deque[Any] = deque()
        self._room = threading.Semaphore(room)
        self._news = asyncio.Event()
        self._is_told = self._is_stopped = False
        threading.Thread(target=self._run, args=(items,), name="holdfast-rows", daemon=True).start()

    async def batch(self) -> list[Any]:
        """Return what is there, as soon as there is something."""
        await self._news.wait()
        self._news.clear()
        self._is_told = False  # before the look: of what comes after it, it is told
        batch = [self._read.popleft() for _ in range(len(self._read))]
        if batch:
            self._room.release(len(batch))
        return batch

    def stop(self) -> None:
        """Have the thread end when it has its next item."""
        self._is_stopped = True
        self._room.release()

    def _run(self, items: Iterator[Any]) -> None:
        try:
            for item in items:
                self._room.acquire()
                if self._is_stopped:
                    return
                self._hand_over(item)
        except BaseException as error:
            self.error = error
        self._hand_over(_END)

    def _hand_over(self, item: Any) -> None:
        self._read.append(item)
        if not self._is_told:
            self._is_told = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._news.set)
