"""Servers at work: ``status``, ``ping``, ``watch``; the tools of many servers at once."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from holdfast._core.text import counted, has_unseen, visible_json, visible_lines
from holdfast.cli.completers import servers
from holdfast.cli.options import option
from holdfast.cli.output import Exit, Output, as_said, exit_for
from holdfast.cli.progress import status as status_line
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb
from holdfast.cli.views import first_line
from holdfast.errors import AuthError, HoldfastError, TransportError, TrustError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast._core.calls.handlers import Notification
    from holdfast.events import Event

State = Literal["ready", "offline", "needs login", "not approved", "disabled", "broken"]


@click.command(cls=ServerVerb)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=servers)
async def status(target: ServerTarget, names: tuple[str, ...]) -> int:
    """Start all servers at the same time, and show which of them can be used.

    The exit code is that of the first server that cannot.
    """
    return await show_all(target, names)


@click.command(cls=ServerVerb, takes="", or_all=True)
async def ping(target: ServerTarget) -> int:
    """See whether a server answers, who it is, and how long that took; without a name, all."""
    if target.server is None and target.is_open:
        return await show_all(target)
    began = time.perf_counter()
    async with target.client() as client:
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


# Many servers


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

    @property
    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        facts: dict[str, Any] = {"name": self.name, "state": self.state, "ms": self.ms}
        if self.state == "ready":
            tools = None if self.tools is None else len(self.tools)
            facts |= {"tools": tools, "server": self.server, "protocol": self.protocol}
        return {**facts, "reason": self.reason} if self.reason else facts

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
    if out.is_terminal and not out.json:
        rows: dict[str, ServerHealth | None] = dict.fromkeys(wanted)
        with _live(rows):
            found = await visit(target, wanted, rows)
    else:
        found = await visit(target, wanted)
        lines = [f"{one.name}\t{one.state}\t{one.told}\n" for one in found]
        if out.json or lines:
            out.result({"servers": [one.facts for one in found]}, "".join(lines))
    bad = next((one for one in found if one.exit), None)
    return Exit.OK if bad is None else bad.verdict(out)


async def visit(
    target: ServerTarget, names: Sequence[str], rows: dict[str, ServerHealth | None] | None = None
) -> list[ServerHealth]:
    """List the tools of every server, a few at a time, and store them; nobody is asked anything.

    Each result is put into ``rows`` as it comes; without them the status line shows the wait.
    """
    import asyncio

    if rows is None:
        status_line.begin(f"asking {counted(len(names), 'server')}")
    room = asyncio.Semaphore(max(4, 2 * (os.cpu_count() or 1)))

    async def one(name: str) -> ServerHealth:
        async with room:
            found = await _visit(target, name)
        if rows is not None:
            rows[name] = found
        return found

    return list(await asyncio.gather(*map(one, names)))


async def _visit(target: ServerTarget, name: str) -> ServerHealth:
    entry = target.configuration.servers.get(name)
    if entry is not None and entry.disabled:
        return ServerHealth(name, "disabled", reason=f"in {entry.source.file}")
    began = time.perf_counter()
    there = target.at(name)
    try:
        async with there.client(ask=False) as client:
            await client.open()
            tools = await there.list_tools(client)
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


_MARKS: Final = {
    "ready": ("✓", "green"),
    "offline": ("✗", "red"),
    "broken": ("✗", "red"),
    "needs login": ("!", "yellow"),
    "not approved": ("!", "yellow"),
    "disabled": ("·", "dim"),
}


def _live(rows: Mapping[str, ServerHealth | None]) -> Any:
    """Return what draws the lines on a terminal, and again as servers answer."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

    spinner = Spinner("dots", style="dim")

    def drawn() -> Table:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=1)
        grid.add_column(style="bold", overflow="fold")
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, one in rows.items():
            if one is None:
                grid.add_row(spinner, Text(name), Text("starting", "dim"))
            else:
                mark, colour = _MARKS[one.state]
                told = Text(visible_lines(one.told))
                grid.add_row(Text(mark, colour), Text(name), Text(one.state, colour), told)
        return grid

    return Live(
        get_renderable=drawn,
        console=Console(highlight=False, file=sys.stdout),
        refresh_per_second=10,
        vertical_overflow="visible",
        redirect_stdout=False,
        redirect_stderr=False,
    )


# What a server says of its own accord


@click.command(cls=ServerVerb, takes="")
@option("--level LEVEL", "Have log messages sent, from this level up.")
@option("--resource URI...", "Hear when a resource changes.")
async def watch(target: ServerTarget, level: str | None, resource: tuple[str, ...]) -> int:
    """Notifications, log messages and the connection's states, until Ctrl-C.

    Lost connections come back by themselves, and so does what was asked for.
    """
    import asyncio

    from holdfast.events import Transition

    target.options.setdefault("when_down", "wait")
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    was_ready = False

    def tell(what: str, facts: Mapping[str, Any]) -> None:
        """One line for each thing that happens, so that it can be searched and piped."""
        if ended.done():
            return
        try:
            value = {"time": time.time(), "what": what, "params": facts}
            target.output.result(value, _line(what.removeprefix("notifications/"), facts))
        except Exception as error:  # nobody reads any more, say: that ends the watch
            ended.set_exception(error)

    def moved(event: Event) -> None:
        nonlocal was_ready
        assert isinstance(event, Transition)
        was_ready = was_ready or event.new == "ready"
        reason = {"reason": str(event.reason)} if event.reason else {}
        tell("connection", {"state": str(event.new), **reason})

    def notified(notification: Notification) -> None:
        tell(notification.method, notification.params)

    async def ask(client: Client) -> None:
        """Have said what is only said on request; anew if the server, once there, is lost."""
        while True:
            try:
                await (client.wait_ready() if was_ready else client.open())
                if level is not None:
                    await client.set_log_level(level)
                for uri in resource:
                    await client.subscribe_resource(uri)
                return
            except TransportError:
                if not was_ready:
                    raise

    async with target.client() as client:
        status_line.end()  # each state is a line of its own
        client.events.subscribe(moved, Transition.name)
        client.on_notification(notified)
        asked = asyncio.ensure_future(ask(client))
        try:
            await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
            await (ended if ended.done() or not asked.exception() else asked)
        except asyncio.CancelledError:  # Ctrl-C, which is how a watch ends
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            ended.cancel()
            if sys.stderr.isatty():
                print(file=sys.stderr)  # the terminal has written ^C there
        finally:
            asked.cancel()
    return Exit.INTERRUPTED


def _line(what: str, facts: Mapping[str, Any]) -> str:
    """``12:00:00 message level=info the words``: what a log message says stands last, and plain."""
    facts = {key: value for key, value in facts.items() if key != "_meta"}
    words = facts.pop("data", None) if what == "message" else None
    told = [f"{key}={_word(value)}" for key, value in facts.items()]
    said = [] if words is None else [_word(words)]
    return " ".join([time.strftime("%H:%M:%S"), what, *told, *said])


def _word(value: Any) -> str:
    """On one line, whatever it is."""
    if isinstance(value, str) and not has_unseen(value):
        return value
    return visible_json(json.dumps(value, ensure_ascii=False))
