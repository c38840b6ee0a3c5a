"""Looking around: tools, describe, resources, prompts, ping."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import tool_cache, views
from holdfast.cli.completers import servers
from holdfast.cli.completers import tools as suggest_tools
from holdfast.cli.exit_codes import Exit
from holdfast.cli.options import ServerCommand
from holdfast.cli.target import ServerTarget, is_direct, server_options
from holdfast.cli.tool_cache import key_of, listed, pick

if TYPE_CHECKING:
    from holdfast import Client

OFFLINE = click.option(
    "--offline", is_flag=True, help="What was last seen, without starting the server."
)


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]...", shell_complete=servers)
@OFFLINE
@server_options
def tools(target: ServerTarget, server: tuple[str, ...], offline: bool) -> Any:
    """The tools of a server, of several, or of all that are configured.

    \b
    holdfast tools git
    holdfast tools git files
    holdfast tools --url https://example.org/mcp
    holdfast tools server.py
    holdfast tools -- uvx mcp-server-git
    """
    names = _several(target, server)
    if names:
        return _grouped_offline(target, names) if offline else _list_grouped(target, names)
    name = target.only(server)
    if not offline:
        return _list_tools(target, name)
    views.tools(target.output, _remembered(target, name))
    return None


def _several(target: ServerTarget, words: tuple[str, ...]) -> list[str]:
    """Return the configured servers, where more than one is meant."""
    if not target.is_open or len(words) == 1:
        return []
    for word in words:
        target.entry(word)
    return list(words or target.configuration.servers)


def _grouped_offline(target: ServerTarget, names: list[str]) -> None:
    for name in names:
        views.tools(target.output, _remembered(target, name), f"{name}.")


async def _list_grouped(target: ServerTarget, names: list[str]) -> int:
    from holdfast.cli.fleet import visit

    async def raw(client: Client) -> list[dict[str, Any]]:
        return [tool.raw for tool in await client.list_tools()]

    found = await visit(target, names, raw)
    for one in found:
        if one.state == "ready":
            tool_cache.keep(target, one.name, one.found)
    return views.grouped(target.output, found)


async def _list_tools(target: ServerTarget, name: str | None) -> None:
    async with target.client(name) as client:
        found = await listed(target, name, client)
    views.tools(target.output, found)


@click.command(cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] [TOOL]", shell_complete=suggest_tools)
@OFFLINE
@server_options
def describe(target: ServerTarget, words: tuple[str, ...], offline: bool) -> Any:
    """One tool: what it does, what it takes, how to call it. Or all of a server, in short.

    \b
    holdfast describe git
    holdfast describe git.git_log
    holdfast describe add -- python server.py
    """
    if _is_server(target, words):
        if offline:
            raise click.UsageError("Offline there are only tools; name one, or see 'tools'.")
        return _overview(target, words[0] if words else None)
    if not words:
        raise click.UsageError(f"Which one? {target.hint()}")
    name, wanted, rest = target.named(words[0], words[1:])
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}.")
    called = [f"{name}.{wanted}"] if name and target.is_configured(name) else list(words)
    if not offline:
        return _describe(target, name, wanted, called)
    _show(target, _remembered(target, name), wanted, called)
    return None


def _is_server(target: ServerTarget, words: tuple[str, ...]) -> bool:
    if not words:
        return not target.is_open
    alone = len(words) == 1 and not target.given
    return alone and (is_direct(words[0]) or words[0] in target.configuration.servers)


async def _overview(target: ServerTarget, name: str | None) -> None:
    from holdfast.cli.fleet import offered

    async with target.client(name) as client:
        await client.open()
        found = await offered(client)
        if found.tools is not None:
            tool_cache.keep(target, name, found.tools)
    views.overview(target.output, found)


async def _describe(target: ServerTarget, name: str | None, wanted: str, called: list[str]) -> None:
    async with target.client(name) as client:
        found = await listed(target, name, client)
    _show(target, found, wanted, called)


def _show(
    target: ServerTarget, found: list[dict[str, Any]], wanted: str, called: list[str]
) -> None:
    command = shlex.join(["holdfast", "call", *called])
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
    from holdfast.cli.fleet import known

    async with target.client(target.only(server)) as client:
        found = await known(client.list_resources())
        templates = await known(client.list_resource_templates())
    if found is None and templates is None:
        target.output.note(f"{client.name} has no resources.")
    views.resources(target.output, found or (), templates or ())


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def prompts(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The prompts of a server, with their arguments."""
    from holdfast.cli.fleet import known

    async with target.client(target.only(server)) as client:
        found = await known(client.list_prompts())
    if found is None:
        target.output.note(f"{client.name} has no prompts.")
    views.prompts(target.output, found or ())


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def ping(target: ServerTarget, server: tuple[str, ...]) -> int:
    """See whether a server answers, who it is, and how long that took; without a name, all."""
    if not server and target.is_open:
        from holdfast.cli.verbs.status import show_all

        return await show_all(target)
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
        return Exit.OK
    who = facts["server"] or client.name
    times = f"connected in {facts['connectMs']} ms, answered in {facts['pingMs']} ms"
    target.output.text(f"{who}, protocol {facts['protocol']}: {times}")
    return Exit.OK
