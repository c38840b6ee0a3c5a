"""A bar for a call that reports progress: on stderr, only for a person, only once it does."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any, Self

from holdfast.cli.output import harmless
from holdfast.types.progress import Progress


class Bar:
    """Hears progress. Nothing is drawn, and nothing loaded, before the first word of it."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn is not None:
            self._drawn.stop()

    def update(self, progress: Progress) -> None:
        if not self._wanted:
            return
        if self._drawn is None:
            self._begin()
        words = harmless(progress.message or self._title)
        self._drawn.update(
            self._task, completed=progress.progress, total=progress.total, description=words
        )

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
        )
        self._drawn = Progress(*columns, console=Console(stderr=True), transient=True)
        self._drawn.start()
        self._task = self._drawn.add_task(harmless(self._title), total=None)
