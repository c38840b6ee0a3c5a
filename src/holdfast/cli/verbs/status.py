"""``holdfast status``: every configured server, one line each."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from holdfast._core.text import counted
from holdfast.cli.completers import servers
from holdfast.cli.exit_codes import Exit
from holdfast.cli.fleet import ServerHealth, visit
from holdfast.cli.options import ServerCommand
from holdfast.cli.render import first_line
from holdfast.cli.target import NO_SERVER, ServerTarget, server_options

_MARKS: Final = {
    "ready": ("✓", "green"),
    "offline": ("✗", "red"),
    "broken": ("✗", "red"),
    "needs login": ("!", "yellow"),
    "not approved": ("!", "yellow"),
    "disabled": ("·", "dim"),
    "starting": ("…", "dim"),
}


@click.command(cls=ServerCommand)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=servers)
@server_options
async def status(target: ServerTarget, names: tuple[str, ...]) -> int:
    """Start all servers at the same time, and show which of them can be used.

    The exit code is that of the first server that cannot.
    """
    return await show_all(target, names)


async def show_all(target: ServerTarget, names: tuple[str, ...] = ()) -> int:
    """Show the state of the named servers, by default of all that are configured."""
    if target.given:
        raise click.UsageError("This is about configured servers; for this one, see 'ping'.")
    wanted = list(dict.fromkeys(names)) or list(target.configuration.servers)
    out = target.output
    if not wanted:
        out.note(NO_SERVER)
    live = _Live(wanted) if out.is_terminal and not out.json else None
    try:
        found = await visit(target, wanted, live.update if live else None)
    finally:
        if live:
            live.stop()
    if out.json:
        out.value({"servers": [_facts(one) for one in found]})
    elif live is None:
        for one in found:
            out.text(f"{one.name}\t{one.state}\t{first_line(_told(one))}")
    bad = next((one for one in found if one.exit), None)
    if bad is None:
        return Exit.OK
    return out.verdict(f"{bad.name}: {bad.state}: {bad.reason}", bad.exit, "status")


def _facts(one: ServerHealth) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": one.name, "state": one.state, "ms": one.ms}
    if one.state == "ready":
        tools = None if one.tools is None else len(one.tools)
        facts |= {"tools": tools, "server": one.server, "protocol": one.protocol}
    return {**facts, "reason": one.reason} if one.reason else facts


def _told(one: ServerHealth) -> str:
    if one.state == "ready":
        tools = len(one.tools or ())
        count = counted(tools, "tool") if tools else "no tools"
        return f"{count}, {_time(one.ms or 0)}"
    return one.remedy


def _time(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


class _Live:
    """The lines on a terminal, redrawn as servers answer."""

    def __init__(self, names: list[str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._rows: dict[str, ServerHealth | None] = dict.fromkeys(names)
        console = Console(highlight=False, file=sys.stdout)
        self._live = Live(
            self._grid(),
            console=console,
            refresh_per_second=10,
            vertical_overflow="visible",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def update(self, standing: ServerHealth) -> None:
        """Show the state of one server."""
        self._rows[standing.name] = standing
        self._live.update(self._grid(), refresh=True)

    def stop(self) -> None:
        """End the display."""
        self._live.stop()

    def _grid(self) -> Any:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        from holdfast._core.text import visible_lines

        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=1)
        grid.add_column(style="bold", overflow="fold")
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, one in self._rows.items():
            state = one.state if one else "starting"
            mark, colour = _MARKS[state]
            told = visible_lines(first_line(_told(one))) if one else ""
            shown = Text(mark, colour) if one else Spinner("dots", style=colour)
            grid.add_row(shown, Text(name), Text(state, colour), Text(told))
        return grid
