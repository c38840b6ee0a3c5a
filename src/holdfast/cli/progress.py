"""A bar for a call that reports progress: on stderr, only for a person, only once it does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from holdfast._core.text import visible_lines
from holdfast.events import ServerStarting, Transition
from holdfast.types.notifications import Progress

if TYPE_CHECKING:
    from holdfast import Client


class StartNotice:
    """A line at the terminal while a server starts: a launcher may be downloading it."""

    def __init__(self, client: Client) -> None:
        self._name = client.name
        self._is_drawn = False
        client.events.subscribe(self._hear, ServerStarting.name, Transition.name)

    @staticmethod
    def wanted() -> bool:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def _hear(self, event: ServerStarting | Transition) -> None:
        if isinstance(event, ServerStarting):
            name = visible_lines(self._name)
            words = f"starting {name} … {event.elapsed:.0f} s (it may be downloading)"
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
            self._is_drawn = True
        elif self._is_drawn:
            self._is_drawn = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Bar:
    """Hears progress. Nothing is drawn, and nothing loaded, before the first word of it.

    Words may come from another thread, also after the call has ended: those draw nothing.
    """

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._title: str | None = None
        self._drawn: Any = None
        self._task: Any = None
        self._lock = Lock()

    @contextmanager
    def over(self, title: str) -> Iterator[None]:
        """While a call runs."""
        with self._lock:
            self._title = title
        try:
            yield
        finally:
            self._end()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While a person is asked something, over which nothing may be drawn."""
        title = self._end()
        try:
            yield
        finally:
            with self._lock:
                self._title = title

    def update(self, progress: Progress) -> None:
        with self._lock:
            if not self._wanted or self._title is None:
                return
            if self._drawn is None:
                self._begin()
            words = visible_lines(progress.message or self._title)
            self._drawn.update(
                self._task, completed=progress.progress, total=progress.total, description=words
            )

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        from rich.table import Column

        columns = (
            TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
            ),
            BarColumn(),
            TaskProgressColumn(),
        )
        console = Console(stderr=True)
        console.width = max(20, console.width - 2)  # room for the ^C that a terminal writes
        self._drawn = Progress(
            *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._drawn.start()
        self._task = self._drawn.add_task("", total=None)

    def _end(self) -> str | None:
        with self._lock:
            title, self._title = self._title, None
            drawn, self._drawn = self._drawn, None
        if drawn is not None:
            drawn.stop()
        return title
