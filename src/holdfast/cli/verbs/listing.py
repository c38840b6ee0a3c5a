"""Looking around: tools, describe, resources, prompts, ping."""

from __future__ import annotations

import shlex
import time
from typing import Any

import click

from holdfast.cli import tool_cache, views
from holdfast.cli.completers import servers
from holdfast.cli.completers import tools as suggest_tools
from holdfast.cli.options import ServerCommand
from holdfast.cli.target import ServerTarget, server_options
from holdfast.cli.tool_cache import key_of, listed, pick

OFFLINE = click.option(
    "--offline", is_flag=True, help="What was last seen, without starting the server."
)


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@OFFLINE
@server_options
def tools(target: ServerTarget, server: tuple[str, ...], offline: bool) -> Any:
    """The tools of a server.

    \b
    holdfast tools git
    holdfast tools --url https://example.org/mcp
    holdfast tools -- python server.py
    """
    name = target.only(server)
    if not offline:
        return _list_tools(target, name)
    views.tools(target.output, _remembered(target, name))
    return None


async def _list_tools(target: ServerTarget, name: str | None) -> None:
    async with target.client(name) as client:
        found = await listed(target, name, client)
    views.tools(target.output, found)


@click.command(cls=ServerCommand)
@click.argument("tool", shell_complete=suggest_tools)
@OFFLINE
@server_options
def describe(target: ServerTarget, tool: str, offline: bool) -> Any:
    """One tool: what it does, what it takes, how to call it.

    \b
    holdfast describe git.git_log
    holdfast describe add -- python server.py
    """
    name, wanted = target.split(tool)
    if not offline:
        return _describe(target, name, wanted, tool)
    _show(target, _remembered(target, name), wanted, tool)
    return None


async def _describe(target: ServerTarget, name: str | None, wanted: str, called: str) -> None:
    async with target.client(name) as client:
        found = await listed(target, name, client)
    _show(target, found, wanted, called)


def _show(target: ServerTarget, found: list[dict[str, Any]], wanted: str, called: str) -> None:
    command = f"holdfast call {shlex.quote(called)}"
    views.tool(target.output, pick(found, wanted), command, _again(target))


def _again(target: ServerTarget) -> str:
    """How the same server is said again, where its name is not part of the tool's."""
    if target.url is not None:
        return f" --url {shlex.quote(target.url)}"
    return f" -- {shlex.join(target.command)}" if target.command is not None else ""


def _remembered(target: ServerTarget, name: str | None) -> list[dict[str, Any]]:
    """What was last seen of a server, and a word on when that was."""
    seen = tool_cache.require(key_of(target, name))
    target.output.note(str(seen))
    return seen.tools


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def resources(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The resources of a server, and its templates for more."""
    async with target.client(target.only(server)) as client:
        found = await client.list_resources()
        templates = await client.list_resource_templates()
    views.resources(target.output, found, templates)


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def prompts(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The prompts of a server, with their arguments."""
    async with target.client(target.only(server)) as client:
        found = await client.list_prompts()
    views.prompts(target.output, found)


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def ping(target: ServerTarget, server: tuple[str, ...]) -> None:
    """See whether a server answers, who it is, and how long that took."""
    name = target.only(server)
    began = time.perf_counter()
    async with target.client(name) as client:
        await client.open()
        opened = time.perf_counter()
        await client.ping()
        answered = time.perf_counter()
        info = client.server_info
        facts = {
            "server": None if info is None else f"{info.name} {info.version}",
            "protocol": client.protocol_version,
            "connectMs": round((opened - began) * 1000, 1),
            "pingMs": round((answered - opened) * 1000, 1),
        }
    if target.output.json:
        target.output.value(facts)
        return
    who = facts["server"] or client.name
    times = f"connected in {facts['connectMs']} ms, answered in {facts['pingMs']} ms"
    target.output.text(f"{who}, protocol {facts['protocol']}: {times}")
