"""How processes divide one limit between them. Pure: the entry of a store in, the same out."""

# One entry of a store says who has how many places and who waits. Each process changes only its own
# line of it, under the store's lock, so the sum of the places is right at every moment.
#
# What a process may have. It keeps the places that its calls need and gives the others back. Free
# places go to whoever has fewest, and among equals to whoever has waited longest, one after
# another; a process takes what falls to itself and leaves the rest for those it falls to. One that
# has two or more than a process that waits gives one up at once. If there are more processes than
# places, nobody has more than another who waits, but some have none: then those who have had a
# place for a while give it up (``rotates``), and stand at the end of the line.
#
# The dead. Clocks of two machines are not compared. Each process counts up its ``beat``; whoever
# sees the same beat for the length of the lease, by its own clock, strikes that process off. If all
# have died, the entry is gone when its time to live is over, by the clock of the store.

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush

from msgspec import Struct, field

from holdfast._core.rate import Rate, TokenBucket


class Worker(Struct):
    """The line of one process."""

    places: int = 0
    waits: int = 0
    """The calls that it has no place for."""
    turn: int = 0
    """Its number in the line: the lowest has waited longest."""
    beat: int = 0
    """Changes as long as it lives."""


class Shares(Struct):
    """All processes that share one limit."""

    workers: dict[str, Worker] = field(default_factory=dict)
    turns: int = 0
    """The number that was given out last."""
    tokens: float | None = None
    at: float = 0.0
    """The time of the tokens, in seconds since the epoch."""
    closed_until: float = 0.0
    """The server takes no calls until then, in seconds since the epoch."""

    def next_turn(self) -> int:
        self.turns += 1
        return self.turns

    def strike_off(self, dead: Collection[str]) -> None:
        """Take back the places of processes that have died."""
        for name in dead:
            self.workers.pop(name, None)

    def divide(
        self, name: str, concurrent: int, running: int, waiting: int, *, rotates: bool = False
    ) -> int:
        """Return how many places a process has from now on.

        Args:
            name: The process.
            concurrent: All places.
            running: Its calls under way: it has at least so many places.
            waiting: Its calls that wait.
            rotates: It has had its places for a while, and gives one up if another has none.
        """
        mine = self.workers.get(name)
        if mine is None:
            mine = self.workers[name] = Worker(turn=self.next_turn())
        needed = running + waiting
        places = min(mine.places, needed)
        if places > running and self._is_poorer(name, places, rotates):
            places -= 1
            mine.turn = self.next_turn()
        mine.places = max(places, running)
        mine.waits = needed - mine.places
        granted = self._offer(name, concurrent)
        if granted:
            mine.turn = self.next_turn()
        mine.places += granted
        mine.waits -= granted
        return mine.places

    def must_yield(self, name: str, *, rotates: bool) -> bool:
        """Return True if another process should have one of the places of this one."""
        mine = self.workers.get(name)
        return mine is not None and self._is_poorer(name, mine.places, rotates)

    def _is_poorer(self, name: str, places: int, rotates: bool) -> bool:
        """Return True if one that waits has two places less, or none while this one rotates."""
        waiting = (
            worker.places
            for other, worker in self.workers.items()
            if other != name and worker.waits
        )
        least = min(waiting, default=places)
        return least + 1 < places or (rotates and least == 0 < places)

    def _offer(self, name: str, concurrent: int) -> int:
        """Return how many of the free places fall to a process."""
        free = concurrent - sum(worker.places for worker in self.workers.values())
        line = [
            (worker.places, worker.turn, other, worker.waits)
            for other, worker in self.workers.items()
            if worker.waits
        ]
        heapify(line)
        granted = 0
        while free > 0 and line:
            places, turn, other, waits = heappop(line)
            free -= 1
            granted += other == name
            if waits > 1:
                heappush(line, (places + 1, turn, other, waits - 1))
        return granted

    def take_tokens(self, rate: Rate, wanted: int, now: float) -> tuple[int, float]:
        """Return how many tokens a process gets, and the seconds until there is another one."""
        bucket = TokenBucket(rate, self.at if self.tokens is not None else now, self.tokens)
        bucket.fill(now)
        claimants = max(1, sum(1 for worker in self.workers.values() if worker.waits))
        fair = max(1, int(bucket.tokens / claimants))
        tokens = min(wanted, fair, int(bucket.tokens + 1e-9))
        bucket.take(now, tokens)
        self.tokens, self.at = bucket.tokens, bucket.at
        return tokens, bucket.ready_at(now) - now

    def return_tokens(self, rate: Rate, tokens: int) -> None:
        """Put back tokens that were not used."""
        if self.tokens is not None:
            self.tokens = min(self.tokens + tokens, rate.burst)
