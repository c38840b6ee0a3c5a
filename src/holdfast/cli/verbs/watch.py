"""``holdfast watch``: what a server says of its own accord, as it comes."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.calls.handlers import Notification
from holdfast._core.text import has_unseen, visible_json
from holdfast.cli.completers import SERVER
from holdfast.cli.output import Exit, Output
from holdfast.cli.progress import status
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.errors import TransportError
from holdfast.events import Event, Transition

if TYPE_CHECKING:
    from holdfast import Client


@click.command(cls=ServerVerb)
@SERVER
@click.option("--level", metavar="LEVEL", help="Have log messages sent, from this level up.")
@click.option("--resource", metavar="URI", multiple=True, help="Hear when a resource changes.")
async def watch(
    target: ServerTarget, server: tuple[str, ...], level: str | None, resource: tuple[str, ...]
) -> int:
    """Notifications, log messages and the connection's states, until Ctrl-C.

    Lost connections come back by themselves, and so does what was asked for.
    """
    target.options.setdefault("when_down", "wait")
    teller = Teller(target.output)
    async with target.client(target.only(server)) as client:
        status.end()  # each state is a line of its own
        client.events.subscribe(teller.moved, Transition.name)
        client.on_notification(teller.notified)
        asked = asyncio.ensure_future(_ask(client, level, resource, teller))
        try:
            await asyncio.wait({asked, teller.ended}, return_when=asyncio.FIRST_COMPLETED)
            await (teller.ended if teller.ended.done() or not asked.exception() else asked)
        except asyncio.CancelledError:  # Ctrl-C, which is how a watch ends
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            teller.is_quiet = True
            if sys.stderr.isatty():
                print(file=sys.stderr)  # the terminal has written ^C there
        finally:
            asked.cancel()
    return Exit.INTERRUPTED


async def _ask(
    client: Client, level: str | None, resources: tuple[str, ...], teller: Teller
) -> None:
    """Have said what is only said on request; anew if the server, once there, is lost over it."""
    connect: Callable[[], Awaitable[object]] = client.open
    while True:
        try:
            await connect()
            if level is not None:
                await client.set_log_level(level)
            for uri in resources:
                await client.subscribe_resource(uri)
            return
        except TransportError:
            if not teller.was_ready:
                raise
            connect = client.wait_ready


class Teller:
    """Says one line for each thing that happens, so that it can be searched and piped."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.was_ready = False
        self.is_quiet = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def moved(self, event: Event) -> None:
        """Of the connection: each state as it is entered."""
        if isinstance(event, Transition):
            self.was_ready = self.was_ready or event.new == "ready"
            reason = {"reason": str(event.reason)} if event.reason else {}
            self._tell("connection", {"state": str(event.new), **reason})

    def notified(self, notification: Notification) -> None:
        """Show a notification."""
        self._tell(notification.method, notification.params)

    def _tell(self, what: str, facts: Mapping[str, Any]) -> None:
        if self.is_quiet:
            return
        try:
            if self._output.json:
                self._output.value({"time": time.time(), "what": what, "params": facts})
            else:
                self._output.text(_line(what.removeprefix("notifications/"), facts))
        except Exception as error:  # nobody reads any more, say: that ends the watch
            if not self.ended.done():
                self.ended.set_exception(error)


def _line(what: str, facts: Mapping[str, Any]) -> str:
    """``12:00:00 message level=info the words``: what a log message says stands last, and plain."""
    facts = dict(facts)
    facts.pop("_meta", None)
    words = facts.pop("data", None) if what == "message" else None
    told = [f"{key}={_word(value)}" for key, value in facts.items()]
    said = [] if words is None else [_word(words)]
    return " ".join([time.strftime("%H:%M:%S"), what, *told, *said])


def _word(value: Any) -> str:
    """On one line, whatever it is."""
    if isinstance(value, str) and not has_unseen(value):
        return value
    return visible_json(json.dumps(value, ensure_ascii=False))
