"""The places and tokens of one limit."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable
from typing import Literal

from holdfast._core.limits.queue import FairQueue
from holdfast._core.rate import Rate, TokenBucket

Reason = Literal["concurrent", "rate", "later"]


class Limiter:
    """A limit in this process: so many calls at once, so many in a time.

    Args:
        label: The limit as its owner wrote it, for messages.
        concurrent: The most calls at once; None: any number.
        rate: The most calls in a time; None: any number.
    """

    def __init__(self, label: str, concurrent: int | None, rate: Rate | None) -> None:
        self.label = label
        self.running: int = 0
        """The places that are taken."""
        self._concurrent = concurrent
        self._rate = rate
        self._capacity: float = math.inf if concurrent is None else concurrent
        self._bucket: TokenBucket | None = None
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = f"{self.running} running, {len(self._queue)} waiting"
        return f"<{type(self).__name__} {self.label} {state}>"

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return len(self._queue)

    @property
    def reason(self) -> Reason:
        """What a call that cannot go on now waits for."""
        return "concurrent" if self.running >= self._capacity else "rate"

    def try_enter(self, now: float) -> bool:
        """Take a place at once; False if there is none, or somebody waits for it."""
        if self._queue.size or self.running >= self._capacity:
            return False
        if self._rate is not None and not (self._bucket or self._tokens(now)).take(now):
            return False
        self.running += 1
        return True

    async def enter(self, caller: Hashable) -> None:
        """Wait for a place, in the line of a caller."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._queue.add(caller, turn)
        self._wake(loop.time())
        try:
            await turn
        except BaseException:
            # The turn may have come in the same moment as the end of waiting.
            if not self._queue.remove(caller, turn) and turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def leave(self) -> None:
        """Give the place of a call that has ended to the next."""
        self.running -= 1
        if self._queue.size:
            self._wake(asyncio.get_running_loop().time())

    def give_back(self) -> None:
        """Give back the place, and the token, of a call that was not made."""
        self._refund()
        self.leave()

    def _tokens(self, now: float) -> TokenBucket:
        if self._bucket is None:
            assert self._rate is not None
            self._bucket = TokenBucket(self._rate, now)
        return self._bucket

    def _wake(self, now: float) -> None:
        """Let those go on for whom there is a place and a token."""
        while self._queue and self.running < self._capacity:
            if self._rate is not None and not self._tokens(now).take(now):
                self._wake_at(self._tokens(now).ready_at(now))
                return
            self._admit(self._queue.next())

    def _admit(self, turn: asyncio.Future[None]) -> None:
        """Give a place to one who waits, unless its task was cancelled a moment ago."""
        if turn.done():
            self._refund()
        else:
            self.running += 1
            turn.set_result(None)

    def _refund(self) -> None:
        """Take back the token of a call that was not made."""
        if self._bucket is not None:
            self._bucket.give_back()

    def _wake_at(self, when: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(when, self._wake_again)

    def _wake_again(self) -> None:
        self._timer = None
        self._wake(asyncio.get_running_loop().time())

    def close_for(self, seconds: float) -> None:
        """Tell others who share the limit that the server takes no calls: there are none."""

    async def release(self) -> None:
        """Leave nothing behind, if no call is under way: this client is at its end."""
        if self._timer is not None and not self._queue:
            self._timer.cancel()
            self._timer = None
