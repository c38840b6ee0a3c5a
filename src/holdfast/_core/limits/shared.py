"""A limit that processes share by a store."""

# A store is asked as seldom as possible. A process takes places for the calls that it has and keeps
# them from call to call; only if it needs more, has none for a while, or others wait, does it go
# back. In between it reads the entry, without the lock, and writes only what would change: a line
# of ours that would be the same is written again just for the beat.
#
#   a call comes, there is a place       nothing is asked
#   a call comes, there is none          `_work` takes more, and looks again every few milliseconds
#   others wait                          one place is not given out again (`_capacity`), and goes
#                                        back when its call has ended
#   nothing to do                        all places go back, the task ends
#
# Places that are lost. A process that is killed leaves its line; see `shares`. One that was
# suspended for longer than the lease finds itself struck off; its calls under way are then one too
# many, which nobody can take back.
#
# The store fails. It gets `PATIENCE`; then the process goes on by itself for `DOWN_TIME`, with an
# equal part of the limit for each process it knew of, and says so once. So the limit may be wrong
# while a store is down (a part is at least one place), but calls go on.

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast._core.limits.limiter import Limiter, Reason
from holdfast._core.limits.shares import Shares, Timeline, Worker
from holdfast._core.rate import Rate, TokenBucket

if TYPE_CHECKING:
    from holdfast.stores.base import Store

log: logging.Logger = logging.getLogger("holdfast")

PATIENCE: Final = 2.0
"""Seconds for one change of the entry, the lock included."""
DOWN_TIME: Final = 5.0
FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.25
QUANTUM: Final = 1.0
"""Seconds after which a place goes to a process that has none."""
_BEATS: Final = 4
"""How often a process shows within the lease that it lives."""


class SharedLimiter(Limiter):
    """A limit for all processes that use the same entry of a store.

    Args:
        label: The limit as its owner wrote it, for messages.
        concurrent: The most calls at once, of all processes together.
        rate: The most calls in a time, of all processes together.
        store: Where they meet.
        key: The name of the entry.
        lease: Seconds after which the places of a process that died are free.
        on_down: Called with the error when the store fails, once until it works again.
        on_closed: Called with the seconds for which another process heard that the server takes
            no calls.
    """

    def __init__(
        self,
        label: str,
        concurrent: int | None,
        rate: Rate | None,
        *,
        store: Store,
        key: str,
        lease: float,
        on_down: Callable[[Exception], None],
        on_closed: Callable[[float], None],
    ) -> None:
        super().__init__(label, concurrent, rate)
        self._store, self._key, self._lease = store, key, lease
        self._on_down, self._on_closed = on_down, on_closed
        self._name = secrets.token_hex(8)
        self._capacity = math.inf if concurrent is None else 0
        self._allowance = 0
        """Tokens that were taken for calls to come."""
        self._next_token = 0.0
        """Seconds until the store has another token."""
        self._held_since = 0.0
        self._alive: dict[str, tuple[int, float]] = {}
        """The last beat of each other process, and when it was first seen."""
        self._beaten = -math.inf
        self._beat = 0
        self._down_until = -math.inf
        self._is_down = False
        self._closed_seen = 0.0
        self._timeline = Timeline(lease)
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        """Something changed that the task should look at now."""

    # As a limiter

    @property
    def reason(self) -> Reason:
        """What a call that cannot go on now waits for."""
        return "rate" if self._concurrent is None else "concurrent"

    def try_enter(self, now: float) -> bool:
        """Take a place that this process has; False if it has none."""
        if self._queue or self.running >= self._capacity or not self._take_token(now):
            self._look()
            return False
        self.running += 1
        return True

    def leave(self) -> None:
        """Give the place of a call that has ended to the next, of this process or another."""
        super().leave()
        if self.running == self._capacity or not self.running:
            self._look()

    def _refund(self) -> None:
        if self._rate is not None:
            self._allowance += 1

    def _wake(self, now: float) -> None:
        while self._queue and self.running < self._capacity and self._take_token(now):
            self._admit(self._queue.next())
        if self._queue:
            self._look()

    def _take_token(self, now: float) -> bool:
        if self._rate is None:
            return True
        if self._allowance:
            self._allowance -= 1
            return True
        return self._is_down and self._tokens(now).take(now)

    def close_for(self, seconds: float) -> None:
        """Tell the other processes that the server takes no calls."""
        self._closed_seen = time.time() + seconds
        self._beaten = -math.inf
        self._look()

    def _look(self) -> None:
        self._news.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._work(), name="holdfast-limits"
            )

    # With the store

    async def _work(self) -> None:
        """Take and give back places until there is nothing to do."""
        pause = FIRST_PAUSE
        while True:
            self._news.clear()
            waited = self.waiting
            await self._exchange()
            if not (self.running or self.waiting or self._has_something):
                return
            progressed = self.waiting < waited
            pause = FIRST_PAUSE if progressed else min(pause * 1.5, LONGEST_PAUSE)
            try:
                async with asyncio.timeout(max(pause, min(self._next_token, LONGEST_PAUSE))):
                    await self._news.wait()
                # Others wait too: not at every call that ends here.
                await asyncio.sleep(FIRST_PAUSE / 5)
            except TimeoutError:
                pass

    @property
    def _has_something(self) -> bool:
        return not self._is_down and (0 < self._capacity < math.inf or self._allowance > 0)

    async def _exchange(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._down_until:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                shares = self._read(await self._store.get(self._key), now)
                if self._is_worth_writing(shares, now):
                    await self._write(now)
                self._is_down = False
        except Exception as error:
            self._go_alone(error, now)
        self._wake(now)

    def _read(self, data: bytes | None, now: float) -> Shares:
        """Return the entry without the processes that have died; note who lives."""
        try:
            shares = Shares() if data is None else msgspec.json.decode(data, type=Shares)
        except (msgspec.MsgspecError, UnicodeError):
            # Whatever it was, it is not a limit of this version: begin anew.
            shares = Shares()
        alive = {}
        for name, worker in shares.workers.items():
            if name != self._name:
                beat, since = self._alive.get(name, (None, now))
                alive[name] = (worker.beat, since if beat == worker.beat else now)
        self._alive = alive
        shares.strike_off([name for name, (_, at) in alive.items() if now - at > self._lease])
        rest = shares.closed_for(time.time())
        if rest and shares.closed_until > self._closed_seen:
            self._closed_seen = shares.closed_until
            self._on_closed(rest)
        if self._is_yielding(shares, now):
            self._capacity = max(0, self._held(shares) - 1)
        return shares

    def _held(self, shares: Shares) -> int:
        line = shares.workers.get(self._name)
        return 0 if line is None else line.places

    def _is_yielding(self, shares: Shares, now: float) -> bool:
        return self._concurrent is not None and shares.must_yield(
            self._name, rotates=self._rotates(now)
        )

    def _rotates(self, now: float) -> bool:
        return now - self._held_since >= QUANTUM

    def _is_worth_writing(self, shares: Shares, now: float) -> bool:
        """Return True if there is something to take or to give, or a beat is due."""
        if now - self._beaten >= self._lease / _BEATS or self._missing_tokens:
            return True
        if self._concurrent is None:
            return False
        line = shares.workers.get(self._name)
        before = None if line is None else (line.places, bool(line.waits))
        self._divide(shares, now)
        line = shares.workers[self._name]
        return before != (line.places, bool(line.waits))

    @property
    def _missing_tokens(self) -> int:
        return 0 if self._rate is None else max(0, self.waiting - self._allowance)

    def _divide(self, shares: Shares, now: float) -> int:
        assert self._concurrent is not None
        return shares.divide(
            self._name,
            self._concurrent,
            self.running,
            self.waiting,
            rotates=self._rotates(now),
        )

    async def _write(self, now: float) -> None:
        """Change our line of the entry, under its lock."""
        async with self._store.lock(self._key, ttl=self._lease):
            shares = self._read(await self._store.get(self._key), now)
            places = self._change(shares, now)
            await self._store.put(self._key, msgspec.json.encode(shares), ttl=self._lease)
        self._beaten = now
        if self._concurrent is not None:
            if places > self._capacity or not places:
                self._held_since = now
            self._capacity = places

    def _change(self, shares: Shares, now: float) -> int:
        """Take and give back places and tokens; return our places."""
        places = 0
        if self._concurrent is not None:
            places = self._divide(shares, now)
        if self._rate is not None:
            at = self._timeline.time(shares, now, time.time())
            if self.running or self.waiting:
                wanted = self._missing_tokens
                tokens, self._next_token = shares.take_tokens(self._rate, wanted, at)
                self._allowance += tokens
            else:
                shares.return_tokens(self._rate, self._allowance)
                self._allowance = 0
        self._beat += 1
        if self.running or self.waiting or places:
            line = shares.workers.setdefault(self._name, Worker())
            line.beat = self._beat
            if self._concurrent is None:
                line.waits = self.waiting
        else:
            shares.workers.pop(self._name, None)
        shares.closed_until = max(shares.closed_until, self._closed_seen)
        return places

    def _go_alone(self, error: Exception, now: float) -> None:
        """Go on with a part of the limit, because the store cannot be reached."""
        self._down_until = now + DOWN_TIME
        parts = len(self._alive) + 1
        if self._concurrent is not None:
            self._capacity = max(1, self._concurrent // parts)
        if self._rate is not None:
            self._bucket = TokenBucket(self._rate.share(parts), now)
        if not self._is_down:
            self._is_down = True
            self._on_down(error)

    async def release(self) -> None:
        """Give back all places now, if no call is under way: this client is at its end."""
        task, self._task = self._task, None
        if task is None or self.running or self.waiting:
            self._task = task
            return
        task.cancel()
        await asyncio.wait((task,))
        now = asyncio.get_running_loop().time()
        if not self._is_down and (self._capacity or self._allowance or self._concurrent is None):
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._write(now)
            except Exception as error:
                log.debug("the places of a limit come back in %g s: %s", self._lease, error)
