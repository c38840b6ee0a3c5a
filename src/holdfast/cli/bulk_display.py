"""How far a map or a load test is: a bar at a terminal, a line now and then in a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Output
from holdfast.events import LimitsUnshared

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from holdfast import Client

PERIOD: Final = 0.1
"""Seconds between two pictures."""
PIPE_PERIOD: Final = 10.0
"""Seconds between two lines in a pipe."""
NARROW: Final = 70
COLORS: Final = {"ok": "green", "error": "red", "unknown": "yellow"}


class Measured(Protocol):
    """What is worked through: bytes of a file, or seconds."""

    @property
    def size(self) -> float | None:
        """Return all of it; None: not known."""

    @property
    def read(self) -> float:
        """Return how much of it is done."""


class Display:
    """Shows how far it is. This one shows nothing."""

    def __init__(self, output: Output, counts: Mapping[str, int], measured: Measured) -> None:
        self._output, self._counts, self._measured = output, counts, measured
        self._began = self._shown = time.monotonic()
        self._before = sum(counts.values())
        """Rows that an earlier run has done."""

    def advance(self) -> None:
        """Note that rows are done."""

    def end(self) -> None:
        """Leave the picture as it is."""

    def note(self, text: str) -> None:
        """Write a line below it."""
        self._output.note(text)

    @property
    def rate(self) -> float:
        """Rows in a second."""
        span = time.monotonic() - self._began
        return (sum(self._counts.values()) - self._before) / span if span > 0 else 0.0

    def summary(self) -> str:
        """Return the counts in words."""
        shown = (
            f"{count:,} {name}" for name, count in self._counts.items() if count or name == "ok"
        )
        return ", ".join(shown)


class ProgressLines(Display):
    """A plain line every few seconds, for a pipe or a log."""

    def advance(self) -> None:
        """Note that rows are done."""
        now = time.monotonic()
        if now - self._shown >= PIPE_PERIOD:
            self._shown = now
            share = (
                f"{self._measured.read / self._measured.size:.0%}, " if self._measured.size else ""
            )
            self.note(f"{share}{self.summary()}, {self.rate:,.0f}/s")


class Bar(Display):
    """A bar with the rate, the time left and the counts, drawn by rich."""

    def __init__(self, output: Output, counts: Mapping[str, int], measured: Measured) -> None:
        super().__init__(output, counts, measured)
        self._progress, self._task = _progress(measured.size)
        self._progress.start()
        self._draw(time.monotonic())

    def advance(self) -> None:
        """Note that rows are done; draw it if the last picture is old."""
        now = time.monotonic()
        if now - self._shown >= PERIOD:
            self._draw(now)

    def _draw(self, now: float) -> None:
        self._shown = now
        counts = "  ".join(
            f"[{COLORS.get(name, 'default')}]{count:,} {name}[/]"
            for name, count in self._counts.items()
            if count or name == "ok"
        )
        self._progress.update(
            self._task, completed=self._measured.read, counts=counts, rate=f"{self.rate:,.0f}/s"
        )

    def end(self) -> None:
        """Draw it once more, and leave it there."""
        self._draw(time.monotonic())
        self._progress.stop()


def _progress(size: float | None) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [TextColumn("{task.fields[counts]}"), TextColumn("{task.fields[rate]}")]
    is_narrow = columns_of_terminal() < NARROW
    if size is not None:
        share = TextColumn("{task.percentage:>3.0f} %")
        columns = [share, *columns] if is_narrow else [BarColumn(24), share, *columns]
        columns.append(TimeRemainingColumn(compact=True))
    console = Console(file=sys.stderr, highlight=False, width=columns_of_terminal())
    progress = Progress(*columns, console=console, refresh_per_second=5, transient=False)
    return progress, progress.add_task("", total=size, counts="", rate="")


@contextmanager
def display(
    output: Output,
    counts: Mapping[str, int],
    measured: Measured,
    client: Client,
    *,
    writes_stdout: bool = False,
) -> Iterator[Display]:
    """Show how far it is, as the terminal can, while the block runs; then what it ran into.

    Nothing is shown between lines that are written to the terminal meanwhile.
    """
    kind: type[Display] = ProgressLines
    if output.json or (writes_stdout and sys.stdout.isatty()):
        kind = Display
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        kind = Bar
    shown = kind(output, counts, measured)
    unshared: list[LimitsUnshared] = []
    if client._policy.limits.store is not None:  # to listen has each call tell its events
        client.events.subscribe(unshared.append, LimitsUnshared.name)
    try:
        yield shown
    finally:
        shown.end()
        if unshared:
            text = f"The limits were not shared with other processes: {unshared[0].error}"
            output.note(text)
