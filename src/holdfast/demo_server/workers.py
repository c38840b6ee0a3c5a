"""Threads for what may take time. They are kept: starting one costs more than most tools do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Workers:
    """Runs every task at once, in a thread that is free or else in a new one."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._changed = threading.Condition()
        self._threads = 0
        self._busy = 0

    def run(self, task: Callable[[], None]) -> None:
        with self._changed:
            self._busy += 1
            if self._busy > self._threads:
                self._threads += 1
                threading.Thread(target=self._work, daemon=True).start()
        self._tasks.put(task)

    def wait(self, seconds: float) -> None:
        """Waits until all tasks are done, but no longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0, seconds)

    def _work(self) -> None:
        while True:
            try:
                self._tasks.get()()
            except OSError:
                pass  # the client is gone, and the end of stdin will follow
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()
