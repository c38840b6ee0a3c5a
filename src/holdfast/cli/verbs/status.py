"""``holdfast status`` and ``ping``: which servers can be used; the tools of many at once."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from holdfast._core.text import counted, visible_lines
from holdfast.cli.completers import SERVER, servers
from holdfast.cli.output import Exit, Output, as_said, exit_for
from holdfast.cli.progress import status as status_line
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb
from holdfast.cli.views import first_line
from holdfast.errors import AuthError, HoldfastError, TrustError

if TYPE_CHECKING:
    from holdfast import Client

State = Literal["ready", "offline", "needs login", "not approved", "disabled", "broken"]

_MARKS: Final = {
    "ready": ("✓", "green"),
    "offline": ("✗", "red"),
    "broken": ("✗", "red"),
    "needs login": ("!", "yellow"),
    "not approved": ("!", "yellow"),
    "disabled": ("·", "dim"),
    "starting": ("…", "dim"),
}


@click.command(cls=ServerVerb)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=servers)
async def status(target: ServerTarget, names: tuple[str, ...]) -> int:
    """Start all servers at the same time, and show which of them can be used.

    The exit code is that of the first server that cannot.
    """
    return await show_all(target, names)


@click.command(cls=ServerVerb)
@SERVER
async def ping(target: ServerTarget, server: tuple[str, ...]) -> int:
    """See whether a server answers, who it is, and how long that took; without a name, all."""
    if not server and target.is_open:
        return await show_all(target)
    began = time.perf_counter()
    async with target.client(target.only(server)) as client:
        await client.open()
        opened = time.perf_counter()
        await client.ping()
        facts = {
            "server": identity(client),
            "protocol": client.protocol_version,
            "connectMs": round((opened - began) * 1000, 1),
            "pingMs": round((time.perf_counter() - opened) * 1000, 1),
        }
    who = facts["server"] or client.name
    times = f"connected in {facts['connectMs']} ms, answered in {facts['pingMs']} ms"
    target.output.result(facts, f"{who}, protocol {facts['protocol']}: {times}")
    return Exit.OK


def identity(client: Client) -> str | None:
    """Return a server's own name and version, if it says them."""
    info = client.server_info
    return None if info is None else f"{info.name} {info.version}"


@dataclass(frozen=True)
class ServerHealth:
    """One server: whether it could be used, how long that took, and its tools."""

    name: str
    state: State
    ms: float | None = None
    reason: str = ""
    exit: Exit = Exit.OK
    tools: Sequence[dict[str, Any]] | None = None
    """As the server describes them; None if it has none, or cannot be used."""
    server: str | None = None
    protocol: str | None = None

    @property
    def remedy(self) -> str:
        """Return the command that makes it usable, or else why it is not, with its last words."""
        if self.state == "not approved":
            from holdfast.config.trust import approving

            return approving(self.name)
        if self.state == "needs login":
            return f"holdfast login {shlex.quote(self.name)}"
        first, *rest = self.reason.splitlines() or [""]
        # Node's last line is its version.
        errors = (line for line in reversed(rest) if re.search(r"(?i)error\b|fatal|panic", line))
        last = next(errors, rest[-1] if rest else "").strip()
        return f"{first}: {last}" if last else first

    @property
    def told(self) -> str:
        """Return what is said of it, on one line."""
        if self.state != "ready":
            return first_line(self.remedy)
        count = counted(len(self.tools), "tool") if self.tools else "no tools"
        ms = self.ms or 0
        return f"{count}, {f'{ms:.0f} ms' if ms < 1000 else f'{ms / 1000:.1f} s'}"

    def verdict(self, output: Output) -> Exit:
        """Say in JSON why it cannot be used; return the exit code."""
        return output.verdict(f"{self.name}: {self.state}: {self.reason}", self.exit, "status")


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
            out.text(f"{one.name}\t{one.state}\t{one.told}")
    bad = next((one for one in found if one.exit), None)
    return Exit.OK if bad is None else bad.verdict(out)


def _facts(one: ServerHealth) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": one.name, "state": one.state, "ms": one.ms}
    if one.state == "ready":
        tools = None if one.tools is None else len(one.tools)
        facts |= {"tools": tools, "server": one.server, "protocol": one.protocol}
    return {**facts, "reason": one.reason} if one.reason else facts


async def visit(
    target: ServerTarget,
    names: Sequence[str],
    done: Callable[[ServerHealth], None] | None = None,
) -> list[ServerHealth]:
    """List the tools of every server, a few at a time, and store them; nobody is asked anything.

    Args:
        target: The command line.
        names: The configured servers.
        done: Called with each standing, as they come; None: the status line shows the wait.

    Returns:
        A standing for each name, in the order of the names.
    """
    import asyncio

    if done is None:
        status_line.begin(f"asking {counted(len(names), 'server')}")
    room = asyncio.Semaphore(max(4, 2 * (os.cpu_count() or 1)))

    async def one(name: str) -> ServerHealth:
        async with room:
            standing = await _visit(target, name)
        if done is not None:
            done(standing)
        return standing

    return list(await asyncio.gather(*map(one, names)))


async def _visit(target: ServerTarget, name: str) -> ServerHealth:
    entry = target.configuration.servers.get(name)
    if entry is not None and entry.disabled:
        return ServerHealth(name, "disabled", reason=f"in {entry.source.file}")
    began = time.perf_counter()
    try:
        async with target.client(name, ask=False) as client:
            await client.open()
            tools = await target.list_tools(name, client)
            elapsed = round((time.perf_counter() - began) * 1000, 1)
            facts = (tools, identity(client), client.protocol_version)
        return ServerHealth(name, "ready", elapsed, "", Exit.OK, *facts)
    except HoldfastError as error:
        elapsed = round((time.perf_counter() - began) * 1000, 1)
        state: State = "offline"
        if entry is not None and entry.errors:
            state = "broken"
        elif isinstance(error, TrustError):
            state = "not approved"
        elif isinstance(error, AuthError):
            state = "needs login"
        reason = as_said(str(error)).removeprefix(f"{name}: ")
        return ServerHealth(name, state, elapsed, reason, exit=exit_for(error))


class _Live:
    """The lines on a terminal, redrawn as servers answer."""

    def __init__(self, names: list[str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._rows: dict[str, ServerHealth | None] = dict.fromkeys(names)
        self._live = Live(
            self._grid(),
            console=Console(highlight=False, file=sys.stdout),
            refresh_per_second=10,
            vertical_overflow="visible",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self.stop = self._live.stop

    def update(self, standing: ServerHealth) -> None:
        """Show the state of one server."""
        self._rows[standing.name] = standing
        self._live.update(self._grid(), refresh=True)

    def _grid(self) -> Any:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=1)
        grid.add_column(style="bold", overflow="fold")
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, one in self._rows.items():
            state = one.state if one else "starting"
            mark, colour = _MARKS[state]
            shown = Text(mark, colour) if one else Spinner("dots", style=colour)
            told = visible_lines(one.told) if one else ""
            grid.add_row(shown, Text(name), Text(state, colour), Text(told))
        return grid
