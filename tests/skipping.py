"""The clock of the tests: deadlines pass without being waited for.

The clock stands still while the program works, so that no deadline passes because a machine is
slow. Where the program waits, and nothing but a timer can wake it, the clock jumps to that timer;
where a process, a socket or a thread may answer, it goes on as clocks do while the program waits,
but not past a timer that has yet to fire. Of work beside those it counts a little in each turn of
the loop: a program that is flooded never waits.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

POLL = "PosixChild._poll_exit"
"""The timer by which a child is looked after where the system cannot tell of its exit."""

LONGEST_WORK = 0.05
"""Seconds of work that count in one turn: an import, or a busy machine, takes longer."""


class _Selector(selectors.DefaultSelector):
    """Tells the time, by how long the loop waits and for what."""

    def __init__(self, polls_child: Callable[[], bool]) -> None:
        super().__init__()
        self._polls_child = polls_child
        self.now = self._last = time.monotonic()
        self.jobs = 0
        """Functions that run in the loop's executor."""
        self._threads = set(threading.enumerate())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        waits = timeout is None or timeout > 0
        alone = not self._serves_others() and not (waits and self._has_threads())
        began = time.monotonic()
        worked = min(began - self._last, LONGEST_WORK)
        events = super().select(0 if alone and timeout is not None else timeout)
        self._last = time.monotonic()
        if not alone:
            passed = worked + self._last - began
            self.now += min(passed, timeout) if timeout is not None and waits else passed
        elif timeout is not None and not events:
            self.now += max(0.0, timeout)
        return events

    def _serves_others(self) -> bool:
        """Whether processes, sockets or jobs may wake the loop, besides its own socket pair."""
        return len(self.get_map()) > 1 or self.jobs > 0 or self._serves_children()

    def _serves_children(self) -> bool:
        """Whether a thread waits for the exit of a child process, or a timer looks for it."""
        return self._polls_child() or (
            threading.active_count() > 1
            and any(thread.name == "holdfast-exit" for thread in threading.enumerate())
        )

    def _has_threads(self) -> bool:
        """Whether threads were started meanwhile, but for those that wait for jobs."""
        return any(
            not thread.name.startswith("asyncio_")
            for thread in set(threading.enumerate()) - self._threads
        )


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop with the clock of the tests."""

    def __init__(self) -> None:
        self._clock = _Selector(self._polls_child)
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def _polls_child(self) -> bool:
        # A process takes real time to end: a clock that jumped from look to look would have given
        # it up, after all its seconds of grace, before the kernel has got round to it.
        timers: list[Any] = getattr(self, "_scheduled", [])
        return any(_callback_name(timer) == POLL for timer in timers)

    def skip(self, seconds: float) -> None:
        self._clock.now += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._clock.jobs += 1
        future.add_done_callback(self._job_done)
        return future

    def _job_done(self, _: asyncio.Future[Any]) -> None:
        self._clock.jobs -= 1


def _callback_name(timer: Any) -> str:
    """Return what a timer calls; a cancelled one calls nothing."""
    return getattr(timer._callback, "__qualname__", "")


def skip(seconds: float) -> None:
    """Put the clock forward."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippingLoop)
    loop.skip(seconds)


@contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    """Fail if what is inside takes longer, by this clock."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    yield
    assert loop.time() <= until, f"{loop.time() - until:g} s later than it should have ended"


def run_skipping(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(work)
