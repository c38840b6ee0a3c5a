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
#
# Tokens. They come with time, so the entry has a time of its own, ``at``, which only `Timeline`
# moves on: by as much as has passed on a process's own steady clock since it last looked, less
# what others have moved it on since. Two wall clocks that differ by an hour would otherwise fill
# the bucket at every turn.

from __future__ import annotations

from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import Final

from msgspec import Struct, field

from holdfast._core.rate import Rate, TokenBucket

LONGEST_REST: Final = 330.0
"""Seconds that a server is believed, with what chance adds. More is a wrong clock, not a rest."""


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
    """The time of the tokens; it began as seconds since the epoch."""
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

    def closed_for(self, wall: float) -> float:
        """Return for how many seconds the server takes no calls; 0 if it does."""
        rest = self.closed_until - wall
        return rest if 0 < rest <= LONGEST_REST else 0.0

    def return_tokens(self, rate: Rate, tokens: int) -> None:
        """Put back tokens that were not used."""
        if self.tokens is not None:
            self.tokens = min(self.tokens + tokens, rate.burst)


class Timeline:
    """The time of the tokens, as one process moves it on.

    Args:
        lease: Seconds for which an entry is kept at most without a change.
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._seen: tuple[float, float] | None = None
        """The time of the entry when this process last looked, and its own steady time then."""

    def time(self, shares: Shares, now: float, wall: float) -> float:
        """Return the time of the entry now, by a steady clock; at first sight, by the wall's."""
        if shares.tokens is None:
            time = wall
        elif self._seen is None:
            time = shares.at + min(max(0.0, wall - shares.at), self._lease)
        else:
            at, seen = self._seen
            time = max(shares.at, at + now - seen)
        self._seen = (time, now)
        return time
