"""``status`` and ``watch``; the tools of many servers at once."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from holdfast._core.text import counted, has_unseen, visible_json, visible_lines
from holdfast.cli.app import option
from holdfast.cli.completers import servers
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Exit, Output, color, exit_for, explain, hanging_indent, write
from holdfast.cli.progress import cells
from holdfast.cli.progress import status as status_line
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb
from holdfast.cli.views import first_line
from holdfast.errors import AuthError, HoldfastError, TransportError, TrustError

if TYPE_CHECKING:
    from holdfast import Client, Tool
    from holdfast._core.calls.handlers import Notification
    from holdfast.config import ServerEntry
    from holdfast.events import Event

State = Literal["ready", "offline", "needs login", "not approved", "disabled", "broken"]


@click.command(cls=ServerVerb)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=servers)
@option("--watch", "Hold the connections, and show how they are until Ctrl-C.", name="is_watched")
async def status(target: ServerTarget, names: tuple[str, ...], is_watched: bool) -> int:
    """Start all servers at the same time, and show which of them can be used.

    The exit code is that of the first server that cannot.

    \b
    holdfast status
    holdfast status git files --watch
    holdfast status -- uvx mcp-server-git
    """
    return await (_watch_all(target, names) if is_watched else show_all(target, names))


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
    tools: Sequence[Tool] | None = None
    """None if it has none, or cannot be used."""
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
    def summary(self) -> str:
        """Return how it is, on one line."""
        if self.state != "ready":
            return first_line(self.remedy)
        count = counted(len(self.tools), "tool") if self.tools else "no tools"
        ms = self.ms or 0
        return f"{count}, {f'{ms:.0f} ms' if ms < 1000 else f'{ms / 1000:.1f} s'}"

    @property
    def facts(self) -> dict[str, Any]:
        """Return the value for JSON."""
        facts: dict[str, Any] = {"name": self.name, "state": self.state, "ms": self.ms}
        if self.state == "ready":
            tools = None if self.tools is None else len(self.tools)
            facts |= {"tools": tools, "server": self.server, "protocol": self.protocol}
        return {**facts, "reason": self.reason} if self.reason else facts


def _names(target: ServerTarget, names: tuple[str, ...]) -> list[str]:
    """Return the servers that are meant: those named, the one given, or else all."""
    if target.is_given and names:
        raise click.UsageError(f"Not understood: {' '.join(names)} (the server is given already).")
    if target.command is not None:
        program, *arguments = target.command
        return [shlex.join([os.path.basename(program), *arguments])]
    if target.is_given:
        return [target.key()]
    if not names and target.variable:
        return [target.variable]
    servers = list(dict.fromkeys(names)) or list(target.configuration.servers)
    if not servers:
        target.output.note(NO_SERVER)
    return servers


async def show_all(target: ServerTarget, names: tuple[str, ...] = ()) -> int:
    """Show the state of the named servers, by default of all that are configured."""
    servers = _names(target, names)
    output = target.output
    if output.is_terminal and not output.json:
        width = max(map(cells, servers), default=0)
        healths = await visit(target, servers, lambda health: _draw(health, width))
    else:
        healths = await visit(target, servers)
        lines = [f"{health.name}\t{health.state}\t{health.summary}\n" for health in healths]
        if output.json or lines:
            output.result({"servers": [health.facts for health in healths]}, "".join(lines))
    if len(healths) > 1:
        output.note(summarize(health.state for health in healths))
    return verdict(output, healths)


async def _watch_all(target: ServerTarget, names: tuple[str, ...]) -> int:
    import asyncio

    from holdfast.cli.live_status import LiveStatus

    servers = _names(target, names)
    if not servers:
        return Exit.OK
    try:
        await LiveStatus(target, servers).run()
    except asyncio.CancelledError:  # Ctrl-C, which is how a watch ends
        end_watch()
    except BaseExceptionGroup as group:  # such as a closed pipe, in one of the tasks
        raise group.exceptions[0] from None
    return Exit.INTERRUPTED


def end_watch() -> None:
    """Take an interrupt for the end of a watch, not for an error."""
    import asyncio

    if (task := asyncio.current_task()) is not None:
        task.uncancel()
    if sys.stderr.isatty():
        print(file=sys.stderr)  # the terminal has written ^C there


_WORDS: Final = {"offline": "failed", "broken": "failed", "backoff": "coming back"}
_ORDER: Final = ("ready", "needs login", "not approved", "disabled", "failed")


def summarize(states: Iterable[str]) -> str:
    """Return how many servers are in which state: ``5 ready, 1 needs login, 1 failed``."""
    counts: dict[str, int] = dict.fromkeys(_ORDER, 0)
    for state in states:
        word = _WORDS.get(state, state)
        counts[word] = counts.get(word, 0) + 1
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def note_unusable(output: Output, healths: Sequence[ServerHealth]) -> None:
    """Note which servers cannot be used."""
    for health in healths:
        if health.exit:
            output.note(f"{health.name}: {health.state}: {first_line(health.remedy)}")


def verdict(output: Output, healths: Sequence[ServerHealth]) -> Exit:
    """Return the exit code for the first server that cannot be used; say why in JSON."""
    bad = next((health for health in healths if health.exit), None)
    if bad is None:
        return Exit.OK
    return output.verdict(f"{bad.name}: {bad.state}: {bad.reason}", bad.exit, "status")


# Nobody is asked while many servers start: a question would belong to one of them, and hold up the
# others. What is missing (an approval, a login, an input) is the state of that server, with the
# command that mends it. Starting costs processes and memory, so only a few start at once.


async def visit(
    target: ServerTarget, names: Sequence[str], done: Callable[[ServerHealth], None] | None = None
) -> list[ServerHealth]:
    """List the tools of every server, a few at a time, and cache them, without questions.

    ``done`` is called with each result as it comes; the status line shows the missing servers.
    """
    import asyncio

    status_line.begin(f"asking {counted(len(names), 'server')}")
    room = asyncio.Semaphore(max(4, 2 * (os.cpu_count() or 1)))
    waiting = dict.fromkeys(names)

    async def ask(name: str) -> ServerHealth:
        entry = target.configuration.servers.get(name)
        if entry is not None and entry.disabled:
            return ServerHealth(name, "disabled", reason=f"in {entry.source.file}")
        began = time.perf_counter()
        there = target if target.is_given else target.at(name)
        try:
            async with there.client(ask=False) as client:
                await client.open()
                tools = await there.list_tools(client)
                ms = round((time.perf_counter() - began) * 1000, 1)
                facts = (tools, identity(client), client.protocol_version)
            return ServerHealth(name, "ready", ms, "", Exit.OK, *facts)
        except HoldfastError as error:
            ms = round((time.perf_counter() - began) * 1000, 1)
            # In a list of servers there is no room for the command that looks closer at one.
            hints = tuple(hint for hint in error.hints if hint.option)
            reason = explain(error.again(hints=hints)).removeprefix(f"{name}: ")
            state = state_for(error, entry)
            return ServerHealth(name, state, ms, reason, exit=exit_for(error))

    async def in_turn(name: str) -> ServerHealth:
        async with room:
            health = await ask(name)
        waiting.pop(name, None)
        if done is not None:
            done(health)
        status_line.say(f"waiting for {', '.join(waiting)}")
        return health

    return list(await asyncio.gather(*map(in_turn, names)))


def state_for(error: HoldfastError, entry: ServerEntry | None) -> State:
    """Return the state of a server that cannot be used."""
    if entry is not None and entry.errors:
        return "broken"
    if isinstance(error, TrustError):
        return "not approved"
    return "needs login" if isinstance(error, AuthError) else "offline"


MARKS: Final = {
    "ready": ("✓", "32"),
    "offline": ("✗", "31"),
    "broken": ("✗", "31"),
    "disabled": ("·", "2"),
}
"""A mark for each state, and its colour; others have a yellow one."""


def _draw(health: ServerHealth, width: int) -> None:
    """Draw the line of a server on the terminal."""
    mark, style = MARKS.get(health.state, ("!", "33"))
    name = health.name + " " * (width - cells(health.name))
    line = f"{mark}  {name}  {health.state:<12}\t{visible_lines(health.summary)}"
    line = hanging_indent(line, columns_of_terminal())
    line = line.replace(health.state, color(health.state, style, sys.stdout), 1)
    write(color(mark, style, sys.stdout) + line.removeprefix(mark))


# Notifications


@click.command(cls=ServerVerb, takes="")
@option("--level LEVEL", "Ask for log messages of this level and above.")
@option("--resource URI...", "Subscribe to a resource.")
async def watch(target: ServerTarget, level: str | None, resource: tuple[str, ...]) -> int:
    """Notifications, log messages and the connection's states, until Ctrl-C.

    Lost connections come back by themselves, and so does what was asked for.
    """
    import asyncio

    from holdfast.events import Transition

    target.options.setdefault("when_down", "wait")
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    was_ready = False

    def show(what: str, facts: Mapping[str, Any]) -> None:
        """Write one line for each event, so that it can be searched and piped."""
        if ended.done():
            return
        try:
            value = {"time": time.time(), "what": what, "params": facts}
            target.output.result(value, _line(what.removeprefix("notifications/"), facts))
        except Exception as error:  # such as a closed pipe: that ends the watch
            ended.set_exception(error)

    def moved(event: Event) -> None:
        nonlocal was_ready
        assert isinstance(event, Transition)
        was_ready = was_ready or event.new == "ready"
        reason = {"reason": str(event.reason)} if event.reason else {}
        show("connection", {"state": str(event.new), **reason})

    def notified(notification: Notification) -> None:
        show(notification.method, notification.params)

    async def ask(client: Client) -> None:
        """Set the log level and subscribe; again if the connection, once ready, is lost."""
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
        asking = asyncio.ensure_future(ask(client))
        try:
            await asyncio.wait({asking, ended}, return_when=asyncio.FIRST_COMPLETED)
            await (ended if ended.done() or not asking.exception() else asking)
        except asyncio.CancelledError:  # Ctrl-C, which is how a watch ends
            end_watch()
            ended.cancel()
        finally:
            asking.cancel()
    return Exit.INTERRUPTED


def _line(what: str, facts: Mapping[str, Any]) -> str:
    """Return ``12:00:00 message level=info text``: the text of a log message stands last."""
    facts = {key: value for key, value in facts.items() if key != "_meta"}
    words = facts.pop("data", None) if what == "message" else None
    pairs = [f"{key}={_word(value)}" for key, value in facts.items()]
    message = [] if words is None else [_word(words)]
    return " ".join([time.strftime("%H:%M:%S"), what, *pairs, *message])


def _word(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, str) and not has_unseen(value):
        return value
    return visible_json(json.dumps(value, ensure_ascii=False))
