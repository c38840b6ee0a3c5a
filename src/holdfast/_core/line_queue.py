"""A bounded queue of what is to be written, and the thread that writes it in batches.

The call log and the trace share it: a call puts an item into the queue and goes on; what is dear
(decoding, redaction, the write itself) happens in a thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import repeat, starmap
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

GATHER: Final = 0.02
"""Seconds in which items gather before they are written together: what ``kill -9`` may cost."""
LINGER: Final = 50
"""How often the thread looks at an empty queue before it ends."""
BREAK: Final = 0.0001
"""Seconds between two batches, in which calls go on."""

Item = TypeVar("Item")

# The life of the thread
#
# A thread that is woken for each item costs a switch of threads for each: so nobody wakes it. It is
# started by the first item, looks at the queue every `GATHER` seconds, and ends by itself when
# nothing has come for a while. Between two batches it sleeps for a moment: a thread that computes
# gives the interpreter away after 5 ms only, for which a call would have to wait.
#
# Nothing is lost when a program ends in order. The thread is no daemon, so the interpreter waits
# for it, in processes of `multiprocessing` too, which run no functions of `atexit`; it sees that
# the main thread has ended, writes what is there, and ends. ``close`` ends it as well: a program
# that has closed its clients does not wait.
#
# Whoever puts an item looks whether there is a thread *after* that; the thread that ends says so
# *before* it looks at the queue for the last time. So one of them sees the other, and no item stays
# behind. Only the holder of the lock takes items: lines keep the order in which they were put.
#
# A forked process has a copy of the queue and not the thread. Its parent writes what was waiting;
# the child begins with an empty queue and a lock of its own.


LOSS: Final[dict[str, bool]] = {"is_loss": True}
"""Marks a record of the log that says what could not be written: the command line shows it."""


class LineQueue(Generic[Item]):
    """Items that wait for ``write``, which is given some of them at once, in order.

    Args:
        write: Takes the items; runs in the thread, or in that of whoever flushes. Must not raise.
        name: The name of the thread.
        most_items: Items that may wait.
        most_bytes: Bytes that may wait, by what `put` is told of each item.
        batch: Items that are written at once: as many as take less than a millisecond.
        forked: Called in a forked process, to let go of what belongs to the parent.
    """

    def __init__(
        self,
        write: Callable[[list[Item]], None],
        name: str,
        *,
        most_items: int,
        most_bytes: int,
        batch: int,
        forked: Callable[[], None] = lambda: None,
    ) -> None:
        self._write, self._name, self._forked = write, name, forked
        self.most_items, self.most_bytes = most_items, most_bytes
        self._batch = batch
        self._begin()
        _QUEUES.add(self)

    def _begin(self) -> None:
        self._queue: deque[Item] = deque()
        self._sizes: deque[int] = deque()
        """The size of each item; put first, taken last. In no tuple with it: an item that the
        garbage collector does not look at should not wait in one that it does."""
        self._put_bytes = self._taken_bytes = 0
        """Bytes that came, and those of them that went: each is changed at one end alone."""
        self.lock = threading.RLock()
        """Held while items are taken and written."""
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def begin_in_fork(self) -> None:
        """Forget what the parent writes."""
        self._begin()
        self._forked()

    def put(self, item: Item, size: int) -> bool:
        """Have an item written soon; return False if there is no room for it."""
        queue = self._queue
        put_bytes = self._put_bytes + size
        if len(queue) >= self.most_items:
            return False
        if put_bytes - self._taken_bytes > self.most_bytes and queue:
            return False
        self._put_bytes = put_bytes
        self._sizes.append(size)
        queue.append(item)
        if self._thread is None:
            self._start()
        return True

    def flush(self) -> None:
        """Write everything that waits, now."""
        while self._write_batch():
            pass

    def close(self) -> None:
        """Write everything, and end the thread. What comes later is written by another."""
        self.flush()
        self._ending.set()

    def _write_batch(self) -> bool:
        """Write some items; return True if more wait."""
        with self.lock:
            queue, sizes = self._queue, self._sizes
            count = min(len(queue), self._batch)
            if count:
                items = list(starmap(queue.popleft, repeat((), count)))
                self._taken_bytes += sum(starmap(sizes.popleft, repeat((), count)))
                self._write(items)
            return bool(queue)

    # The thread

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            self._ending.clear()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=False)
        try:
            self._thread.start()
        except RuntimeError:  # The interpreter is on its way out, or there are too many.
            self._thread = None
            self.flush()

    def _run(self) -> None:
        main, idle = threading.main_thread(), 0
        while True:
            is_last = self._ending.wait(GATHER) or not main.is_alive()
            idle = 0 if self._queue else idle + 1
            while self._write_batch():
                time.sleep(BREAK)
            if (is_last or idle > LINGER) and self._has_ended():
                return

    def _has_ended(self) -> bool:
        """Give the thread's place up; return False if there is work, and nobody else does it."""
        thread, self._thread = self._thread, None
        if not self._queue:
            return True
        with self._starting:
            if self._thread is not None:
                return True
            self._thread = thread
            return False


_QUEUES: Final[WeakSet[LineQueue[Any]]] = WeakSet()


def _begin_in_forks() -> None:
    for queue in tuple(_QUEUES):
        queue.begin_in_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_forks)
