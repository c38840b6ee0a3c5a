"""Looking around: tools, describe, resources, prompts, ping."""

from __future__ import annotations

import shlex
import time
from typing import Any

import click

from holdfast.cli import manifests, views
from holdfast.cli.completers import servers
from holdfast.cli.completers import tools as suggest_tools
from holdfast.cli.options import AboutServer
from holdfast.cli.target import Aim, aimed
from holdfast.cli.tool_cache import key_of, listed, pick

OFFLINE = click.option(
    "--offline", is_flag=True, help="What was last seen, without starting the server."
)


@click.command(cls=AboutServer)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@OFFLINE
@aimed
def tools(aim: Aim, server: tuple[str, ...], offline: bool) -> Any:
    """The tools of a server.

    \b
    holdfast tools git
    holdfast tools --url https://example.org/mcp
    holdfast tools -- python server.py
    """
    name = aim.only(server)
    if not offline:
        return _list_tools(aim, name)
    views.tools(aim.output, _remembered(aim, name))
    return None


async def _list_tools(aim: Aim, name: str | None) -> None:
    async with aim.client(name) as client:
        found = await listed(aim, name, client)
    views.tools(aim.output, found)


@click.command(cls=AboutServer)
@click.argument("tool", shell_complete=suggest_tools)
@OFFLINE
@aimed
def describe(aim: Aim, tool: str, offline: bool) -> Any:
    """One tool: what it does, what it takes, how to call it.

    \b
    holdfast describe git.git_log
    holdfast describe add -- python server.py
    """
    name, wanted = aim.split(tool)
    if not offline:
        return _describe(aim, name, wanted, tool)
    _show(aim, _remembered(aim, name), wanted, tool)
    return None


async def _describe(aim: Aim, name: str | None, wanted: str, called: str) -> None:
    async with aim.client(name) as client:
        found = await listed(aim, name, client)
    _show(aim, found, wanted, called)


def _show(aim: Aim, found: list[dict[str, Any]], wanted: str, called: str) -> None:
    command = f"holdfast call {shlex.quote(called)}"
    views.tool(aim.output, pick(found, wanted), command, _again(aim))


def _again(aim: Aim) -> str:
    """How the same server is said again, where its name is not part of the tool's."""
    if aim.url is not None:
        return f" --url {shlex.quote(aim.url)}"
    return f" -- {shlex.join(aim.command)}" if aim.command is not None else ""


def _remembered(aim: Aim, name: str | None) -> list[dict[str, Any]]:
    """What was last seen of a server, and a word on when that was."""
    seen = manifests.require(key_of(aim, name))
    aim.output.note(str(seen))
    return seen.tools


@click.command(cls=AboutServer)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
async def resources(aim: Aim, server: tuple[str, ...]) -> None:
    """The resources of a server, and its templates for more."""
    async with aim.client(aim.only(server)) as client:
        found = await client.list_resources()
        templates = await client.list_resource_templates()
    views.resources(aim.output, found, templates)


@click.command(cls=AboutServer)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
async def prompts(aim: Aim, server: tuple[str, ...]) -> None:
    """The prompts of a server, with their arguments."""
    async with aim.client(aim.only(server)) as client:
        found = await client.list_prompts()
    views.prompts(aim.output, found)


@click.command(cls=AboutServer)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
async def ping(aim: Aim, server: tuple[str, ...]) -> None:
    """See whether a server answers, who it is, and how long that took."""
    name = aim.only(server)
    began = time.perf_counter()
    async with aim.client(name) as client:
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
    if aim.output.json:
        aim.output.value(facts)
        return
    who = facts["server"] or client.name
    times = f"connected in {facts['connectMs']} ms, answered in {facts['pingMs']} ms"
    aim.output.text(f"{who}, protocol {facts['protocol']}: {times}")
