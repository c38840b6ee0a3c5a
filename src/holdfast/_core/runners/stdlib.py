"""The server side on the standard library alone: a process that starts fast.

One thread reads standard input; the main thread handles messages and resumes the handlers that
wait, one after the other. Without asyncio a small server starts in half the time.
"""

from __future__ import annotations

import heapq
import json
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Final

from holdfast._core.server.incoming import Incoming
from holdfast._core.server.server import Server, ServerSession
from holdfast._core.wire.codes import PARSE_ERROR, RequestError

LONGEST_END: Final = 0.5
"""Seconds from the end of the input to the end of the process, if nobody reads the answers."""


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
        if not self._done:
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

    def start(self, incoming: Incoming, work: Coroutine[Any, Any, None]) -> None:
        def stop() -> None:
            with suppress(RuntimeError):  # a handler that waits once more although it was stopped
                work.close()

        incoming.stop = stop
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

    def encode(self, message: Any) -> bytes:
        """Return a message as JSON; half a surrogate pair goes out as it came in."""
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()

    def decode(self, frame: bytes) -> Any:
        """Return the JSON value of a frame; NaN and Infinity, which Python accepts, are refused."""
        try:
            return json.loads(frame, parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise RequestError(PARSE_ERROR, f"not JSON: {error}") from None


def serve(
    server: Server,
    source: BinaryIO,
    target: BinaryIO,
    at_end: Callable[[], None] = lambda: None,
) -> None:
    """Serve one client until its input ends, or nobody reads the answers any more.

    ``at_end`` is called on another thread when the input has ended.
    """

    def write(data: bytes) -> None:
        target.write(data)
        target.flush()

    turns = Turns()
    session = ServerSession(server, write, turns)
    frames: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        with suppress(OSError, ValueError):  # the input is gone
            for frame in iter(source.readline, b""):
                frames.put(frame)
        frames.put(b"")
        at_end()

    # A daemon: a read that waits for input must not hold up the end.
    threading.Thread(target=read, name="holdfast-stdin", daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError):
        while True:
            try:
                frame = frames.get(timeout=turns.run())
            except Empty:
                continue
            if not frame:
                break
            session.feed(frame)
        session.close()


def run(server: Server) -> None:
    """Serve on standard input and output, then end the process."""

    def end() -> None:
        # Where the client has stopped reading, a write of the main thread never returns.
        time.sleep(LONGEST_END)
        os._exit(0)

    try:
        serve(server, sys.stdin.buffer, sys.stdout.buffer, end)
    except OSError:
        pass  # nobody reads the answers any more
    except KeyboardInterrupt:
        os._exit(130)
    # Not sys.exit: the thread that reads the input must not hold up the end.
    os._exit(0)


def _finite(number: str) -> float:
    """Return a float; refuse NaN, Infinity, and 1e999, which could not be sent back."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a number")
    return value
