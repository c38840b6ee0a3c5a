"""The order of those who wait: first come, first served, and in turns among callers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

W = TypeVar("W")

CALLER: Final[ContextVar[Hashable | None]] = ContextVar("holdfast_caller", default=None)
"""Who makes the calls of this context: a handle, a map; None: the client."""


@contextmanager
def calling_as(caller: Hashable) -> Iterator[None]:
    """Have calls in this block wait in a line of their own."""
    token = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(token)


class FairQueue(Generic[W]):
    """Those who wait, by caller.

    Callers have their turns one after another, each with the call that has waited longest. A
    caller with a thousand calls and one with a single call get every other place.
    """

    def __init__(self) -> None:
        self._lines: OrderedDict[Hashable, OrderedDict[W, None]] = OrderedDict()
        self.size: int = 0
        """The number of those who wait."""

    def __repr__(self) -> str:
        return f"<FairQueue {self.size} of {len(self._lines)} callers>"

    def __len__(self) -> int:
        return self.size

    def add(self, caller: Hashable, waiter: W) -> None:
        """Add one at the end of its caller's line; a caller who is new has the last turn."""
        self._lines.setdefault(caller, OrderedDict())[waiter] = None
        self.size += 1

    def next(self) -> W:
        """Take the one whose turn it is."""
        caller, line = next(iter(self._lines.items()))
        waiter, _ = line.popitem(last=False)
        self.size -= 1
        if line:
            self._lines.move_to_end(caller)
        else:
            del self._lines[caller]
        return waiter

    def remove(self, caller: Hashable, waiter: W) -> bool:
        """Take one out who waits no longer; False if it had its turn already."""
        line = self._lines.get(caller)
        if line is None or waiter not in line:
            return False
        del line[waiter]
        self.size -= 1
        if not line:
            del self._lines[caller]
        return True
