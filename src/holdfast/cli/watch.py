"""``holdfast watch``: what a server says of its own accord, as it comes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import click

from holdfast.calls.handlers import Notification
from holdfast.cli.aim import Aim, aimed
from holdfast.cli.suggest import servers
from holdfast.telemetry import Event, Transition


@click.command()
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@click.option("--level", metavar="LEVEL", help="Have log messages sent, from this level up.")
@click.option("--resource", metavar="URI", multiple=True, help="Hear when a resource changes.")
@aimed
async def watch(
    aim: Aim, server: tuple[str, ...], level: str | None, resource: tuple[str, ...]
) -> None:
    """Notifications, log messages and the connection's states, until Ctrl-C.

    Lost connections come back by themselves, and so does what was asked for.
    """
    name, rest = aim.take(server, "")
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}")
    aim.options.setdefault("when_down", "wait")
    ended = asyncio.Event()
    async with aim.client(name) as client:

        def moved(event: Event) -> None:
            if isinstance(event, Transition):
                _tell(aim, "connection", {"state": event.new, "reason": event.reason})
                if event.new == "closed":
                    ended.set()

        client.events.subscribe(moved, Transition.name)
        client.on_notification(lambda one: _notified(aim, one))
        await client.open()
        if level is not None:
            await client.set_log_level(level)
        for uri in resource:
            await client.subscribe_resource(uri)
        await ended.wait()


def _notified(aim: Aim, notification: Notification) -> None:
    _tell(aim, notification.method.removeprefix("notifications/"), notification.params)


def _tell(aim: Aim, what: str, facts: dict[str, Any]) -> None:
    """One line each, so that it can be searched and piped."""
    facts = {key: value for key, value in facts.items() if value not in (None, "")}
    if aim.output.json:
        aim.output.value({"time": time.time(), "what": what, **facts})
        return
    clock = time.strftime("%H:%M:%S")
    words = facts.pop("data", None) if what == "message" else None
    told = " ".join(f"{key}={value}" for key, value in facts.items())
    aim.output.text(" ".join(str(part) for part in (clock, what, told, words) if part))
