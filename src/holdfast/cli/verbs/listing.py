"""Lists: tools, describe, resources, prompts, servers, search."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import completers, tool_cache, views
from holdfast.cli.arguments import pick
from holdfast.cli.completers import SERVER
from holdfast.cli.options import CONFIG, output_option
from holdfast.cli.output import Exit, Output
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb, known
from holdfast.cli.views import blocks, first_line, flat, heading, prose, table, words_of

if TYPE_CHECKING:
    from holdfast.agents.listing import ServerTool
    from holdfast.cli.verbs.status import ServerHealth

OFFLINE = click.option(
    "--offline", is_flag=True, help="What was last seen, without starting the server."
)


@click.command(cls=ServerVerb)
@click.argument("server", nargs=-1, metavar="[SERVER]...", shell_complete=completers.servers)
@OFFLINE
def tools(target: ServerTarget, server: tuple[str, ...], offline: bool) -> Any:
    """The tools of a server, of several, or of all that are configured.

    \b
    holdfast tools git
    holdfast tools git files
    holdfast tools --url https://example.org/mcp
    holdfast tools server.py
    holdfast tools -- uvx mcp-server-git
    """
    if target.is_open and len(server) != 1:
        for word in server:
            if target.entry(word) is None:
                raise click.UsageError(f"{word} is not configured: name it alone.")
        names = list(server or target.configuration.servers)
        if names:
            return _grouped_offline(target, names) if offline else _list_grouped(target, names)
    name = target.only(server)
    if not offline:
        return _list_tools(target, name)
    views.tools(target.output, _seen_of(target, name))
    return None


def _grouped_offline(target: ServerTarget, names: list[str]) -> int:
    from holdfast.cli.verbs.status import ServerHealth

    found = []
    for name in names:
        known = tool_cache.load(name)
        if known is None:
            found.append(ServerHealth(name, "offline", reason="not seen yet", exit=Exit.USAGE))
        else:
            target.output.note(f"{name}: {known}")
            found.append(ServerHealth(name, "ready", tools=known.tools))
    return _grouped(target.output, found)


async def _list_grouped(target: ServerTarget, names: list[str]) -> int:
    from holdfast.cli.verbs.status import visit

    return _grouped(target.output, await visit(target, names))


def _grouped(output: Output, found: Sequence[ServerHealth]) -> int:
    """Show the tools of several servers, and which of the servers cannot be used."""
    if output.json:
        facts = [{"name": one.name, "state": one.state, "tools": one.tools} for one in found]
        output.value({"servers": facts})
    for one in found:
        if output.json or one.state != "ready":
            continue
        if output.is_terminal:
            heading(one.name)
        views.tools(output, one.tools or (), "" if output.is_terminal else f"{one.name}.")
    bad = [one for one in found if one.exit]
    for one in bad:
        output.note(f"{one.name}: {one.state}: {first_line(one.remedy)}")
    return bad[0].verdict(output) if bad else Exit.OK


async def _list_tools(target: ServerTarget, name: str | None) -> None:
    async with target.client(name) as client:
        found = await target.list_tools(name, client)
    if not found and not target.output.json:
        target.output.note(f"{client.name} has no tools.")
    else:
        views.tools(target.output, found or [])


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, metavar="[SERVER] [TOOL]", shell_complete=completers.tools)
@OFFLINE
def describe(target: ServerTarget, words: tuple[str, ...], offline: bool) -> Any:
    """One tool: what it does, what it takes, how to call it. Or all of a server, in short.

    \b
    holdfast describe git
    holdfast describe git.git_log
    holdfast describe add -- python server.py
    """
    is_server = not words and not target.is_open
    if len(words) == 1 and not target.given:
        is_server = target.is_server(words[0])
    if is_server:
        if offline:
            raise click.UsageError("Offline there are only tools; name one, or see 'tools'.")
        return _overview(target, words[0] if words else None)
    if not words:
        raise click.UsageError(f"Which one? {target.hint()}")
    name, wanted, rest = target.named(words[0], words[1:])
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}.")
    called = [f"{name}.{wanted}"] if target.entry(name) is not None else list(words)
    if not offline:
        return _describe(target, name, wanted, called)
    _show(target, _seen_of(target, name), wanted, called)
    return None


async def _overview(target: ServerTarget, name: str | None) -> None:
    """Show a server in short: who it is, and everything that it offers."""
    from holdfast.cli.verbs.status import identity

    output = target.output
    async with target.client(name) as client:
        await client.open()
        facts = {
            "name": client.name,
            "server": identity(client),
            "protocol": client.protocol_version,
            "instructions": client.instructions,
        }
        lists: dict[str, Any] = {
            "tools": await known(client.list_tools()),
            "resources": await known(client.list_resources()),
            "templates": await known(client.list_resource_templates()),
            "prompts": await known(client.list_prompts()),
        }
    raw = {
        key: None if found is None else [one.raw for one in found] for key, found in lists.items()
    }
    if raw["tools"] is not None:
        target.keep(name, raw["tools"])
    if output.json:
        output.value({**facts, **raw})
        return
    who = facts["server"] or "a server without a name"
    lines = [f"{facts['name']}: {who}, protocol {facts['protocol']}"]
    if facts["instructions"]:
        lines.append(f"\n{flat(facts['instructions'].strip())}")
    prose(output, "\n".join(lines))
    for key, called in _CALLED.items():
        rows = [(called(one), words_of(one)) for one in raw[key] or ()]
        if rows and output.is_terminal:
            output.text("")
            heading(key.title())
            blocks(rows)
        elif rows:
            told = [f"  {first_line(first)}  {first_line(words)}" for first, words in rows]
            output.text("\n".join([f"\n{key.title()}:", *told]))


_CALLED: dict[str, Callable[[dict[str, Any]], str]] = {
    "tools": views.signature_of,
    "resources": lambda one: str(one.get("uri")),
    "templates": lambda one: str(one.get("uriTemplate")),
    "prompts": lambda one: str(one.get("name")),
}
"""What a server offers, and how each is called."""


async def _describe(target: ServerTarget, name: str | None, wanted: str, called: list[str]) -> None:
    async with target.client(name) as client:
        found = await target.list_tools(name, client) or []
    _show(target, found, wanted, called)


def _show(
    target: ServerTarget, found: list[dict[str, Any]], wanted: str, called: list[str]
) -> None:
    command = shlex.join(["holdfast", "call", *called])
    again = f" {target.reach()}".rstrip()
    views.tool(target.output, pick(found, wanted), command, again)


def _seen_of(target: ServerTarget, name: str | None) -> list[dict[str, Any]]:
    """Return what was last seen of a server; say when."""
    found = tool_cache.require(target.key(name))
    target.output.note(str(found))
    return found.tools


@click.command(cls=ServerVerb)
@SERVER
async def resources(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The resources of a server, and its templates for more."""
    async with target.client(target.only(server)) as client:
        found = await known(client.list_resources())
        templates = await known(client.list_resource_templates())
    if not (found or templates or target.output.json):
        target.output.note(f"{client.name} has no resources.")
    else:
        views.resources(target.output, found or (), templates or ())


@click.command(cls=ServerVerb)
@SERVER
async def prompts(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The prompts of a server, with their arguments."""
    async with target.client(target.only(server)) as client:
        found = await known(client.list_prompts())
    if not found and not target.output.json:
        target.output.note(f"{client.name} has no prompts.")
    else:
        views.prompts(target.output, found or ())


# Servers


@click.command()
@CONFIG
@output_option
def servers(config: str | None, output: Output) -> None:
    """The configured servers, where each comes from, and whether it may be used."""
    from holdfast.config import load, show

    found = show(load(config))
    home = os.path.expanduser("~")
    rows = []
    for one in found.servers:
        state = "disabled" if one.disabled else "broken" if one.problems else _STANDINGS[one.trust]
        is_home = output.is_terminal and one.file.startswith(f"{home}/")
        rows.append((one.name, state, one.target, one.file.replace(home, "~", is_home)))
    if rows or output.json:
        table(output, found, ("server", "standing", "what it is", "from"), rows, paths=True)
    else:
        output.note(NO_SERVER)
    for file in found.files:
        for problem in map(str, file.problems):
            output.note(problem)
    for one in found.servers:
        for problem in (*one.problems, *one.warnings):
            output.note(problem)


_STANDINGS = {
    "own": "yours",
    "trusted": "trusted",
    "untrusted": "not trusted",
    "changed": "changed",
}


# Search


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, required=True)
@click.option("--most", metavar="N", type=click.IntRange(1), default=10, help="How many to show.")
@click.option("--offline", is_flag=True, help="In what was last seen, without starting servers.")
async def search(target: ServerTarget, words: tuple[str, ...], most: int, offline: bool) -> int:
    """Find tools by words: names, descriptions and parameters of all configured servers.

    \b
    holdfast search read file
    """
    from holdfast.agents.search import Index
    from holdfast.cli.verbs.status import visit

    known: dict[str, Iterable[dict[str, Any]]] = {}
    if offline:
        for name in target.configuration.servers:
            cached = tool_cache.load(name)
            known[name] = cached.tools if cached is not None else ()
    elif target.given:
        async with target.client() as client:
            known[""] = await target.list_tools(None, client) or ()
    else:
        for one in await visit(target, list(target.configuration.servers)):
            known[one.name] = one.tools or ()
            if one.exit:
                target.output.note(f"{one.name}: {one.state}: {first_line(one.remedy)}")
    hits = Index(_named(known)).search(" ".join(words), most)
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


def _named(known: dict[str, Iterable[dict[str, Any]]]) -> list[ServerTool]:
    from holdfast import Tool
    from holdfast.agents.listing import ServerTool
    from holdfast.types.base import decode, encode

    found = []
    for server, raws in known.items():
        for raw in raws:
            tool = decode(encode(raw), Tool)
            found.append(ServerTool(server, tool, f"{server}.{tool.name}".removeprefix(".")))
    return found
