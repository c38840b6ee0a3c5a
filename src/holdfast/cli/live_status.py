"""``status --watch``: every server held open, its state and the time of its last answer, live.

At a terminal a table that is drawn anew (by rich, which is loaded for nothing else); in a pipe, and
with ``--json``, a line for each change.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast._core.text import visible_lines
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Output, explain
from holdfast.cli.progress import cells
from holdfast.cli.target import ServerTarget
from holdfast.cli.verbs.status import MARKS, ServerHealth, State, state_for, summarize
from holdfast.cli.views import first_line
from holdfast.errors import HoldfastError, TransportError
from holdfast.events import Event, Transition

if TYPE_CHECKING:
    from rich.table import Table

    from holdfast import Client

PERIOD: Final = 2.0
"""Seconds between two questions to a server that answers."""
AGAIN: Final = 10.0
"""Seconds before a server that could not be used is tried again: it may have been mended."""


@dataclass
class LiveRow:
    """One server, as it is now."""

    name: str
    state: State | str = "starting"
    tools: int | None = None
    ms: float | None = None
    """How long its last answer took."""
    losses: int = 0
    """How often its connection was lost, and came back or is coming back."""
    reason: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """Return the value for JSON."""
        facts = {"name": self.name, "state": self.state, "tools": self.tools, "ms": self.ms}
        return {**facts, "losses": self.losses, "reason": self.reason}


class LiveStatus:
    """Holds connections to servers, and shows how they are."""

    def __init__(self, target: ServerTarget, names: Sequence[str]) -> None:
        self._target = target
        self._rows = {name: LiveRow(name) for name in names}
        self._is_drawn = target.output.is_terminal and not target.output.json

    async def run(self) -> None:
        """Hold all servers, until it is cancelled; raise what keeps a line from being written."""
        with _display(self.table) if self._is_drawn else nullcontext():
            async with asyncio.TaskGroup() as group:
                for row in self._rows.values():
                    group.create_task(self._hold(row))

    async def _hold(self, row: LiveRow) -> None:
        """Keep one server open; begin anew if that failed for good, or somebody is needed."""
        entry = self._target.configuration.servers.get(row.name)
        if entry is not None and entry.disabled:
            self._change(row, "disabled", f"in {entry.source.file}")
            return
        while True:
            try:
                await self._open_and_ask(row)
            except HoldfastError as error:
                row.ms = None
                state = state_for(error, entry)
                reason = explain(error).removeprefix(f"{row.name}: ")
                self._change(row, state, ServerHealth(row.name, state, reason=reason).summary)
            await asyncio.sleep(AGAIN)

    async def _open_and_ask(self, row: LiveRow) -> None:
        there = self._target if self._target.is_given else self._target.at(row.name)
        there.options.setdefault("when_down", "wait")
        client: Client = there.client(ask=False)

        def moved(event: Event) -> None:
            assert isinstance(event, Transition)
            row.losses += event.new == "backoff" and event.old == "ready"
            if event.new not in ("closing", "closed"):
                reason = "" if event.reason is None else first_line(str(event.reason))
                self._change(row, str(event.new), reason)

        client.events.subscribe(moved, Transition.name)
        async with client:
            await client.open()
            tools = await there.list_tools(client)
            row.tools = None if tools is None else len(tools)
            while True:
                began = time.perf_counter()
                try:
                    await client.ping()
                    row.ms = round((time.perf_counter() - began) * 1000, 1)
                except TransportError:
                    await client.wait_ready()
                await asyncio.sleep(PERIOD)

    def _change(self, row: LiveRow, state: str, reason: str = "") -> None:
        row.state, row.reason = state, reason.removeprefix(f"{row.name}: ")
        if not self._is_drawn:
            _write_line(self._target.output, row)

    def table(self) -> Table:
        """Return all rows, and how many are in which state."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), expand=True, caption_justify="left")
        width = min(max(map(cells, self._rows)), max(columns_of_terminal() // 3, 10))
        for title, least in (("", 1), ("server", width), ("state", 12)):
            table.add_column(title, width=least, no_wrap=True, overflow="ellipsis")
        numbers = NUMBERS if columns_of_terminal() >= ROOM_FOR_NUMBERS else ()
        for title, least in numbers:
            table.add_column(title, justify="right", width=least, no_wrap=True)
        table.add_column("", ratio=1, no_wrap=True, overflow="ellipsis", style="dim")
        for row in self._rows.values():
            mark, style = MARKS.get(row.state, ("!", "33"))
            # Text, not markup: names and reasons may come from others.
            words = [mark, row.name, row.state, *_numbers(row)[: len(numbers)], row.reason]
            texts = [Text(visible_lines(word)) for word in words]
            for text in (texts[0], texts[2]):
                text.stylize(_RICH[style])
            table.add_row(*texts)
        table.caption = Text(f"\n{summarize(row.state for row in self._rows.values())}")
        return table


NUMBERS: Final = (("tools", 5), ("answers in", 10), ("lost", 4))
"""Columns with their widths; a narrow terminal has room for names and reasons alone."""
ROOM_FOR_NUMBERS: Final = 64

_RICH: Final = {"32": "green", "31": "red", "33": "yellow", "2": "dim"}
"""Styles of rich for the colours that are used elsewhere."""


def _numbers(row: LiveRow) -> tuple[str, str, str]:
    tools = "" if row.tools is None else str(row.tools)
    ms = "" if row.ms is None or row.state != "ready" else f"{row.ms:.1f} ms"
    return tools, ms, str(row.losses or "")


def _write_line(output: Output, row: LiveRow) -> None:
    words = (time.strftime("%H:%M:%S"), row.name, row.state, row.reason)
    output.result({"time": time.time(), **row.facts}, "\t".join(words).rstrip("\t"))


def _display(table: Callable[[], Table]) -> Any:
    """Return rich's live display, as wide as other output."""
    from rich.console import Console
    from rich.live import Live

    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    console = Console(file=sys.stdout, no_color=plain, highlight=False, markup=False)
    return Live(get_renderable=table, console=console, refresh_per_second=4)
