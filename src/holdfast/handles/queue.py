"""The queue of a handle's calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.errors import StateError

T = TypeVar("T")


class CallQueue:
    """The queue of one handle."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._queue: deque[asyncio.Future[None]] = deque()
        self._busy = False
        """A call has the turn, or was just given it."""
        self._running = 0
        self._idle: asyncio.Future[None] | None = None
        self._closed = False
        self._reason: Exception | None = None

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<CallQueue {state} {self._running} running, {len(self._queue)} queued>"

    @property
    def closed(self) -> bool:
        """Return True if the queue refuses calls."""
        return self._closed

    async def run(
        self, subject: str, work: Callable[[], Awaitable[T]], *, parallel: bool = False
    ) -> T:
        """Do ``work`` when it is its turn, or at once if ``parallel``."""
        self.check(subject)
        if not parallel:
            await self._turn(subject)
        self._running += 1
        try:
            return await work()
        finally:
            self._running -= 1
            if not self._running and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)
            if not parallel:
                self._pass_on()

    async def _turn(self, subject: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The turn and the cancellation met: the turn is the next one's.
                self._pass_on()
            raise
        self.check(subject)

    def _pass_on(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False

    # The end

    def close(self, reason: Exception | None = None) -> None:
        """Refuse waiting and later calls; running calls continue."""
        if self._closed:
            return
        self._closed, self._reason = True, reason
        while self._queue:
            # Everybody who waits wakes up, and finds that it is closed.
            self._pass_on()

    async def idle(self, wait: float) -> bool:
        """Wait until nothing runs; False if something still does after ``wait`` seconds."""
        if self._running:
            self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._idle,), timeout=wait)
        return not self._running

    def check(self, subject: str) -> None:
        """Refuse calls after the end."""
        if self._closed:
            raise self.refusal(subject) from self._reason

    def refusal(self, subject: str) -> StateError:
        """Return the error for a call after closing, which may have a longer cause."""
        why = ""
        if self._reason is not None:
            first = str(self._reason).partition("\n")[0].rstrip(" :")
            why = f", since it could not be opened ({first or type(self._reason).__name__})"
        text = f"{self._owner}: {subject}: the handle is closed{why}; nothing was sent"
        return StateError(text, state="closed")
