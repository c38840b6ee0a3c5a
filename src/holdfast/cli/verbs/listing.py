"""Lists: tools, describe, resources, prompts, ping, servers, search."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import completers, tool_cache, views
from holdfast.cli.completers import tools as suggest_tools
from holdfast.cli.exit_codes import Exit
from holdfast.cli.find_tool import pick, require
from holdfast.cli.options import CONFIG, OUTPUT, ServerCommand
from holdfast.cli.output import Output
from holdfast.cli.render import first_line, table
from holdfast.cli.target import NO_SERVER, ServerTarget, is_direct, known, server_options

if TYPE_CHECKING:
    from holdfast.agents.listing import ServerTool
    from holdfast.config.views import ServerRow

OFFLINE = click.option(
    "--offline", is_flag=True, help="What was last seen, without starting the server."
)


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]...", shell_complete=completers.servers)
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
    views.tools(target.output, _seen_of(target, name))
    return None


def _several(target: ServerTarget, words: tuple[str, ...]) -> list[str]:
    """Return the configured servers, where more than one is meant."""
    if not target.is_open or len(words) == 1:
        return []
    for word in words:
        target.entry(word)
    return list(words or target.configuration.servers)


def _grouped_offline(target: ServerTarget, names: list[str]) -> int:
    from holdfast.cli.fleet import ServerHealth

    found = []
    for name in names:
        known = tool_cache.load(name)
        if known is None:
            found.append(ServerHealth(name, "offline", reason="not seen yet", exit=Exit.USAGE))
        else:
            target.output.note(f"{name}: {known}")
            found.append(ServerHealth(name, "ready", tools=known.tools))
    return views.grouped(target.output, found)


async def _list_grouped(target: ServerTarget, names: list[str]) -> int:
    from holdfast.cli.fleet import visit

    return views.grouped(target.output, await visit(target, names))


async def _list_tools(target: ServerTarget, name: str | None) -> None:
    async with target.client(name) as client:
        found = await known(target.list_tools(name, client))
    if not found and not target.output.json:
        target.output.note(f"{client.name} has no tools.")
    else:
        views.tools(target.output, found or [])


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
    _show(target, _seen_of(target, name), wanted, called)
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
            target.keep(name, found.tools)
    views.overview(target.output, found)


async def _describe(target: ServerTarget, name: str | None, wanted: str, called: list[str]) -> None:
    async with target.client(name) as client:
        found = await target.list_tools(name, client)
    _show(target, found, wanted, called)


def _show(
    target: ServerTarget, found: list[dict[str, Any]], wanted: str, called: list[str]
) -> None:
    command = shlex.join(["holdfast", "call", *called])
    again = f" {target.reach()}".rstrip()
    views.tool(target.output, pick(found, wanted), command, again)


def _seen_of(target: ServerTarget, name: str | None) -> list[dict[str, Any]]:
    """Return what was last seen of a server; say when."""
    found = require(target.key(name))
    target.output.note(str(found))
    return found.tools


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=completers.servers)
@server_options
async def resources(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The resources of a server, and its templates for more."""
    async with target.client(target.only(server)) as client:
        found = await known(client.list_resources())
        templates = await known(client.list_resource_templates())
    if not (found or templates or target.output.json):
        target.output.note(f"{client.name} has no resources.")
    else:
        views.resources(target.output, found or (), templates or ())


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=completers.servers)
@server_options
async def prompts(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The prompts of a server, with their arguments."""
    async with target.client(target.only(server)) as client:
        found = await known(client.list_prompts())
    if not found and not target.output.json:
        target.output.note(f"{client.name} has no prompts.")
    else:
        views.prompts(target.output, found or ())


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=completers.servers)
@server_options
async def ping(target: ServerTarget, server: tuple[str, ...]) -> int:
    """See whether a server answers, who it is, and how long that took; without a name, all."""
    if not server and target.is_open:
        from holdfast.cli.verbs.status import show_all

        return await show_all(target)
    from holdfast.cli.fleet import identity

    name = target.only(server)
    began = time.perf_counter()
    async with target.client(name) as client:
        await client.open()
        opened = time.perf_counter()
        await client.ping()
        answered = time.perf_counter()
        facts = {
            "server": identity(client),
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


# Servers


@click.command()
@CONFIG
@OUTPUT
def servers(config: str | None, output: str) -> None:
    """The configured servers, where each comes from, and whether it may be used."""
    from holdfast.config import load, show

    out = Output(output)
    found = show(load(config))
    if out.json:
        out.value(found)
        return
    rows = [(one.name, _standing(one), one.target, _place(out, one.file)) for one in found.servers]
    if rows:
        table(out, ("server", "standing", "what it is", "from"), rows, paths=True)
    else:
        out.note(NO_SERVER)
    for file in found.files:
        for problem in file.problems:
            out.note(problem)
    for one in found.servers:
        for problem in (*one.problems, *one.warnings):
            out.note(problem)


def _place(output: Output, path: str) -> str:
    """A path, the home shortened where a person looks."""
    home = os.path.expanduser("~")
    is_below = output.is_terminal and path.startswith(f"{home}/")
    return f"~{path[len(home) :]}" if is_below else path


def _standing(one: ServerRow) -> str:
    if one.disabled:
        return "disabled"
    return "broken" if one.problems else _STANDINGS[one.trust]


_STANDINGS = {
    "own": "yours",
    "trusted": "trusted",
    "untrusted": "not trusted",
    "changed": "changed",
}


# Search


@click.command(cls=ServerCommand)
@click.argument("words", nargs=-1, required=True)
@click.option("--most", metavar="N", type=click.IntRange(1), default=10, help="How many to show.")
@click.option("--offline", is_flag=True, help="In what was last seen, without starting servers.")
@server_options
async def search(target: ServerTarget, words: tuple[str, ...], most: int, offline: bool) -> int:
    """Find tools by words: names, descriptions and parameters of all configured servers.

    \b
    holdfast search read file
    """
    from holdfast.agents.search import Index

    if offline:
        tools = _seen(target)
    else:
        tools = await _asked(target)
    hits = Index(tools).search(" ".join(words), most)
    if target.output.json:
        facts = [{"tool": one.tool.dotted, "score": one.score} for one in hits]
        target.output.value({"tools": facts})
    elif hits:
        rows = [{**one.tool.tool.raw, "name": one.tool.dotted} for one in hits]
        views.tools(target.output, rows)
    if hits:
        return Exit.OK
    is_empty = not target.given and not target.configuration.servers
    told = NO_SERVER if is_empty else "No tool fits."
    target.output.note(told)
    return target.output.verdict(told, Exit.TOOL, "search")


def _seen(target: ServerTarget) -> list[ServerTool]:
    found: list[ServerTool] = []
    for name in target.configuration.servers:
        cached = tool_cache.load(name)
        found += _named(name, cached.tools if cached is not None else ())
    return found


async def _asked(target: ServerTarget) -> list[ServerTool]:
    from holdfast.cli.fleet import visit

    if target.given:
        async with target.client() as client:
            return _named("", await target.list_tools(None, client))
    found = await visit(target, list(target.configuration.servers))
    for one in found:
        if one.exit:
            target.output.note(f"{one.name}: {one.state}: {first_line(one.remedy)}")
    return [tool for one in found for tool in _named(one.name, one.tools or ())]


def _named(server: str, tools: Iterable[dict[str, Any]]) -> list[ServerTool]:
    from holdfast import Tool
    from holdfast.agents.listing import ServerTool
    from holdfast.types.base import decode, encode

    found = [decode(encode(raw), Tool) for raw in tools]
    dot = f"{server}." if server else ""
    return [ServerTool(server, tool, f"{dot}{tool.name}") for tool in found]
