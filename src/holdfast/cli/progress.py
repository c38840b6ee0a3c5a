"""The status line on stderr: what the command waits for, for how long, and its progress.

It appears after half a second, or at once when there is progress to show. Other output erases it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from holdfast._core.text import truncate, visible
from holdfast.cli.main import columns_of_terminal

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.events import ServerStarting, Transition
    from holdfast.types.lifecycle import Progress

PATIENCE: Final = 0.5
"""Seconds before anything is drawn."""
PERIOD: Final = 0.1
FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BAR: Final = 24
"""Columns of the bar, in a window that has room for it."""
WIPE: Final = "\r\x1b[K"


# The line is drawn by a thread: the loop may be busy, or wait for a person, when the clock has to
# go on. So there are two writers to one terminal, and one rule: whoever writes anything else to
# stdout or stderr calls `hide` first, under the same lock. A thread that lost the race finds the
# line hidden, and draws it again half a second later at the earliest: below the output, not in it.


class StatusLine:
    """One line, redrawn by a thread; every method may be called from any thread."""

    def __init__(self) -> None:
        self.is_muted = False
        """True with JSON output: then a program reads stderr."""
        self._lock = RLock()
        self._words: str | None = None
        self._detail = ""
        self._progress: Progress | None = None
        self._since = 0.0
        self._quiet_until = 0.0
        self._is_drawn = False
        self._stop: Event | None = None

    def begin(self, words: str) -> bool:
        """Show what the command waits for; return False if stderr is not a terminal."""
        if self.is_muted or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            return False
        with self._lock:
            self._words, self._detail, self._progress = words, "", None
            self._since = monotonic()
            self._quiet_until = self._since + PATIENCE
            if self._stop is None:
                self._stop = Event()
                Thread(target=self._turn, args=(self._stop,), daemon=True).start()
        return True

    def say(self, words: str, detail: str = "") -> None:
        """Change the words; the clock goes on."""
        with self._lock:
            if self._words is not None:
                self._words, self._detail = words, detail

    def end(self) -> None:
        """Erase the line and stop."""
        with self._lock:
            self.hide()
            self._words = self._progress = None
            if self._stop is not None:
                self._stop.set()
                self._stop = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the line while a person answers a question; show it again once it is answered."""
        with self._lock:
            words = self._words
            self.end()
        yield
        if words is not None:
            self.begin(words)

    def update(self, progress: Progress) -> None:
        """Show the progress of a call; ignored if the call has ended."""
        with self._lock:
            if self._words is not None:
                self._progress = progress
                self._draw()

    def hide(self) -> None:
        """Erase the line before other output is written."""
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._quiet_until = monotonic() + PATIENCE
                print(WIPE, end="", file=sys.stderr, flush=True)

    def follow(self, client: Client) -> None:
        """Show how a client connects: a launcher may be downloading the server."""
        from holdfast.events import ServerStarting, Transition

        name = client.name

        def heard(event: ServerStarting | Transition) -> None:
            if isinstance(event, ServerStarting):
                self.say(f"starting {name}", " (it may be downloading)")
            elif event.new == "closed":
                self.end()
            elif event.new in ("ready", "closing"):
                self.say(f"{'waiting for' if event.new == 'ready' else 'closing'} {name}")

        client.events.subscribe(heard, ServerStarting.name, Transition.name)

    def _turn(self, stop: Event) -> None:
        while not stop.wait(PERIOD):
            with self._lock:
                if stop.is_set():
                    return
                if self._is_drawn or monotonic() >= self._quiet_until:
                    self._draw()

    def _draw(self) -> None:
        elapsed = monotonic() - self._since
        text = line(
            self._words or "", self._detail, elapsed, self._progress, columns_of_terminal(2)
        )
        try:
            print(f"{WIPE}{text}", end="", file=sys.stderr, flush=True)
        except (OSError, ValueError):  # stderr was closed
            return
        self._is_drawn = True


def line(words: str, detail: str, elapsed: float, progress: Progress | None, columns: int) -> str:
    """Return the status line, in less than the columns there are."""
    frame = FRAMES[int(elapsed / PERIOD) % len(FRAMES)]
    room = columns - 4  # the frame, and the ^C that a terminal writes
    if progress is None:
        clock = f" … {elapsed:.0f} s"
        if len(clock) + len(detail) > room // 2:
            detail = ""  # in a narrow window the name of the server says more
        return f"{frame} {_fit(words, clock + detail, room)}"
    words = progress.message or words
    if not progress.total or progress.total <= 0:
        return f"{frame} {_fit(words, f' {progress.progress:g}', room)}"
    share = min(max(progress.progress / progress.total, 0.0), 1.0)
    width = min(BAR, room // 3)
    done = round(width * share)
    bar = f" {'━' * done}{'╌' * (width - done)} {share:4.0%}"
    return f"{frame} {_fit(words, bar, room)}"


def _fit(words: str, after: str, room: int) -> str:
    """Return the words, truncated to fit before the rest."""
    words = visible(words)
    columns = max(room - len(after), 1)
    while cells(words) > columns and len(words) > 1:
        words = truncate(words, min(columns, len(words) - 1))
    return words + after


def cells(text: str) -> int:
    """Return the columns that a text takes: a wide character two, an accent none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 1 + (east_asian_width(char) in "WF") for char in text)


status: Final = StatusLine()
"""The line of this process, as there is one stderr."""
