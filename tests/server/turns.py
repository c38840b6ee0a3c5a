"""A runner of handlers without a loop: what the server side does, step by step."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any

from holdfast._core.server.request import ServerRequest


class Wait:
    """A result that a handler waits for; set once."""

    def __init__(self, ready: deque[Coroutine[Any, Any, None]]) -> None:
        self._ready = ready
        self._result: Any = None
        self._error: BaseException | None = None
        self._done = False
        self.handler: Coroutine[Any, Any, None] | None = None
        """The one that waits."""

    def done(self) -> bool:
        return self._done

    def set_exception(self, error: BaseException) -> None:
        self.set_result(None, error)

    def set_result(self, result: Any, error: BaseException | None = None) -> None:
        assert not self._done, "an outcome is set once"
        self._done, self._result, self._error = True, result, error
        if self.handler is not None:
            self._ready.append(self.handler)

    def __await__(self) -> Generator[Wait, None, Any]:
        if not self._done:
            yield self
        if self._error is not None:
            raise self._error
        return self._result


class Turns:
    """Runs each handler until it waits, and resumes it when its result is there."""

    def __init__(self) -> None:
        self._ready: deque[Coroutine[Any, Any, None]] = deque()
        self._sleeping: list[tuple[float, int, Wait]] = []
        self._count = 0

    def start(self, request: ServerRequest, work: Coroutine[Any, Any, None]) -> None:
        def stop() -> None:
            with suppress(RuntimeError):  # a handler that waits once more although it was stopped
                work.close()

        request.stop = stop
        self._turn(work)

    def _turn(self, work: Coroutine[Any, Any, None]) -> None:
        # RuntimeError: it was stopped. What a handler raises itself, the session takes.
        with suppress(StopIteration, RuntimeError):
            work.send(None).handler = work

    def answer(self) -> Wait:
        return Wait(self._ready)

    def sleep(self, seconds: float) -> Wait:
        wait = self.answer()
        self._count += 1
        heapq.heappush(self._sleeping, (time.monotonic() + seconds, self._count, wait))
        return wait

    def run(self) -> float | None:
        """Run what is ready; return the seconds until more is, None if only input can help."""
        now = time.monotonic()
        while self._sleeping and self._sleeping[0][0] <= now:
            heapq.heappop(self._sleeping)[2].set_result(None)
        for _ in range(len(self._ready)):
            self._turn(self._ready.popleft())
        if self._ready:
            return 0.0
        return max(0.0, self._sleeping[0][0] - time.monotonic()) if self._sleeping else None
