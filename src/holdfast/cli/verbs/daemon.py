"""``holdfast daemon``: servers that stay warm, shared by all programs of one user."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from holdfast._core.text import join_words, visible
from holdfast.cli.app import option, output_option
from holdfast.cli.output import Exit, Output
from holdfast.cli.views import table

if TYPE_CHECKING:
    from holdfast._core.transports.daemon_socket import Welcome


class _Seconds(click.FloatRange):
    """A time: more than 0, and a number."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value} is not in the range x>0.", param, ctx)
        return seconds


_IDLE = option(
    "--idle SECONDS",
    "How long a server runs on that nobody uses.",
    type=_Seconds(),
    default=600.0,
)
_LINGER = option(
    "--linger SECONDS",
    "How long the daemon runs on without servers.",
    type=_Seconds(),
    default=1800.0,
)


_ANOTHER: Final = " (another version: stop it, and start it anew)"


@click.group(no_args_is_help=True)
def daemon() -> None:
    """Keep servers running, and share them among all programs of yours.

    While it runs, every command uses it, and so does each program with `shared=True`: two calls
    act on one browser. A server that nobody has used for ten minutes ends.

    \b
    holdfast daemon start
    holdfast call browser.browser_navigate url=https://example.org
    holdfast call browser.browser_snapshot
    """


@daemon.command("start")
@_IDLE
@_LINGER
@output_option
@click.pass_context
def start(context: click.Context, output: Output, idle: float, linger: float) -> int:
    """Start the daemon in the background, unless it runs."""
    from holdfast.daemon import life

    welcome, is_new = life.start(idle=idle, linger=linger)
    verb = "Started" if is_new else "Already running"
    output.result({"pid": welcome.pid, "started": is_new}, f"{verb}: the daemon, pid {welcome.pid}")
    if not _is_compatible(welcome):
        output.note(f"It is not used: it runs holdfast {welcome.version}{_ANOTHER}.")
    given = map(context.get_parameter_source, ("idle", "linger"))
    if not is_new and ParameterSource.COMMANDLINE in given:
        output.note("It keeps the times that it was started with: 'holdfast daemon stop' first.")
    return Exit.OK


@daemon.command("run")
@_IDLE
@_LINGER
def run(idle: float, linger: float) -> int:
    """Be the daemon, in the foreground: for a supervisor such as systemd."""
    from holdfast.daemon import life

    if not life.run(idle=idle, linger=linger):
        click.echo("The daemon is running already.", err=True)
    return Exit.OK


@daemon.command("stop")
@output_option
def stop(output: Output) -> int:
    """Stop the daemon and its servers. Calls under way have 5 seconds."""
    from holdfast.daemon import life

    welcome = life.stop()
    if welcome is None:
        output.result({"stopped": False}, "No daemon runs.")
        return Exit.OK
    clients = welcome.status.get("clients", 0)
    note = f"; {clients} connected clients were told" if clients else ""
    output.result({"stopped": True, "pid": welcome.pid}, f"Stopped: pid {welcome.pid}{note}")
    return Exit.OK


@daemon.command("status")
@output_option
def status(output: Output) -> int:
    """Show whether the daemon runs, and its servers. Exit code 1: it does not."""
    import asyncio

    from holdfast._core.transports.daemon_socket import socket_path
    from holdfast.daemon import life
    from holdfast.daemon.log import log_path

    welcome = asyncio.run(life.ask("status"))
    if welcome is None:
        output.result({"running": False}, "No daemon runs. Start it: holdfast daemon start")
        return Exit.TOOL
    servers = welcome.status.get("servers", [])
    facts = {
        "running": True,
        "pid": welcome.pid,
        "version": welcome.version,
        "compatible": _is_compatible(welcome),
        "socket": socket_path(),
        "log": log_path(),
        **welcome.status,
    }
    rows = [_row(server) for server in servers]
    if not output.json:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(welcome.status.get("since", 0)))
        other = "" if facts["compatible"] else _ANOTHER
        output.note(f"pid {welcome.pid}, holdfast {welcome.version}{other}, since {since}")
        output.note(f"socket {socket_path()}")
        output.note(f"log {log_path()}")
    columns = ("server", "state", "clients", "calls", "idle", "project")
    table(output, facts, columns, rows, "The daemon")
    if not output.json:
        for server in servers:
            if apart := server.get("apart"):
                names = join_words([visible(name, 80) for name in apart], 10)
                kept = "kept apart from another of the same command by"
                output.note(f"{visible(server['name'], 80)}: {kept} {names}")
    return Exit.OK


def _is_compatible(welcome: Welcome) -> bool:
    from holdfast._core.transports.daemon_socket import FINGERPRINT

    return welcome.holdfast == FINGERPRINT


def _row(server: dict[str, Any]) -> tuple[str, ...]:
    idle = server.get("idle")
    project = str(server["project"])
    home = os.path.expanduser("~")
    if project.startswith(home + os.sep):
        project = "~" + project[len(home) :]
    shown_idle = "" if idle is None else f"{idle:.0f} s"
    counts = (str(server["clients"]), str(server["calls"]))
    return (server["name"], server["state"], *counts, shown_idle, project)
