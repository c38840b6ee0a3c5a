"""Verbs that list: tools, describe, search, resources, prompts, servers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.text import counted
from holdfast.cli import completers, tool_cache, views
from holdfast.cli.app import CONFIG, REGISTRY, option, output_option
from holdfast.cli.output import Exit, Output
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb, or_none
from holdfast.cli.verbs.reading import offered_skills
from holdfast.cli.verbs.status import ServerHealth, identity, note_unusable, verdict, visit
from holdfast.cli.views import first_line
from holdfast.errors import ValidationError
from holdfast.schema.signature import signature

if TYPE_CHECKING:
    from holdfast.config import ConfigOverview, ServerExplanation
    from holdfast.types import Skill, Tool


@click.command(cls=ServerVerb)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=completers.servers)
@option("--offline", "Show the cached tools, without starting the server.")
def tools(target: ServerTarget, names: tuple[str, ...], offline: bool) -> Any:
    """The tools of a server, of several, or of all that are configured.

    \b
    holdfast tools git
    holdfast tools git files
    holdfast tools --url https://example.org/mcp
    holdfast tools server.py
    holdfast tools -- uvx mcp-server-git
    """
    if target.is_open and len(names) != 1:
        for word in names:
            if target.at(word).entry is None:
                raise click.UsageError(f"{word} is not configured: name it alone.")
        if several := list(names or target.configuration.servers):
            if not offline:
                return _tools_of_all(target, several)
            return _grouped(target, [_seen(target.output, name) for name in several])
    target.take(names)
    return _cached_tools_of_one(target) if offline else _tools_of_one(target)


def _cached_tools_of_one(target: ServerTarget) -> Any:
    """Show the tools as last seen, without an event loop: its import takes as long as the rest."""
    key = target.key()
    if (cached := tool_cache.load(key)) is None:
        raise ValidationError(
            f"{key}: not seen yet, so nothing is known of it offline; "
            "list its tools once without --offline"
        )
    target.output.note(str(cached))
    return views.show_tools(target.output, cached.tools, key)


async def _tools_of_one(target: ServerTarget) -> None:
    async with target.client() as client:
        tools = await target.list_tools(client)
    views.show_tools(target.output, tools or (), client.name)


async def _tools_of_all(target: ServerTarget, names: list[str]) -> int:
    return _grouped(target, await visit(target, names))


def _seen(output: Output, name: str) -> ServerHealth:
    """Return what was last seen of a server, and say when."""
    if (cached := tool_cache.load(name)) is None:
        return ServerHealth(name, "offline", reason="not seen yet", exit=Exit.USAGE)
    output.note(f"{name}: {cached}")
    return ServerHealth(name, "ready", tools=cached.tools)


def _grouped(target: ServerTarget, healths: Sequence[ServerHealth]) -> int:
    """Show the tools of several servers, and which of the servers cannot be used."""
    output = target.output
    if output.json:
        facts = [
            {"name": health.name, "state": health.state, "tools": _raw(health.tools)}
            for health in healths
        ]
        output.value({"servers": facts})
    for health in healths:
        if not output.json and health.state == "ready":
            if output.is_terminal:
                views.heading(health.name)
            prefix = "" if output.is_terminal else f"{health.name}."
            views.show_tools(output, health.tools or (), health.name, prefix)
    note_unusable(output, healths)
    return verdict(output, healths)


def _raw(offers: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    """Return what a server offers as it described it, for JSON; None if it has no such list."""
    return None if offers is None else [offer.raw for offer in offers]


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, metavar="[SERVER] [TOOL]", shell_complete=completers.tools)
async def describe(target: ServerTarget, words: tuple[str, ...]) -> None:
    """One tool: what it does, what it takes, how to call it. Or all of a server, in short.

    \b
    holdfast describe git
    holdfast describe git.git_log
    holdfast describe add -- python server.py
    """
    if not words and target.is_open:
        raise click.UsageError(f"Which one? {target.hint()}")
    if not words or _is_server_alone(target, words):
        target.server = words[0] if words else None
        await _overview(target)
        return
    name, rest = target.named(words[0], words[1:])
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}.")
    async with target.client() as client:
        tool = target.pick(await target.list_tools(client) or (), name)
    if target.output.json:
        target.output.value(tool.raw)
        return
    called = list(words) if target.entry is None else [f"{target.server}.{name}"]
    command, server = (
        shlex.join(["holdfast", "call", *called]),
        f" {target.server_arguments()}".rstrip(),
    )
    views.show_tool(target.output, tool, command, server)


def _is_server_alone(target: ServerTarget, words: tuple[str, ...]) -> bool:
    return len(words) == 1 and not target.is_given and target.is_server(words[0])


async def _overview(target: ServerTarget) -> None:
    """Show a server in short: who it is, and everything that it offers."""
    output = target.output
    async with target.client() as client:
        await client.open()
        tools = await target.list_tools(client)
        resources = await or_none(client.list_resources())
        templates = await or_none(client.list_resource_templates())
        prompts = await or_none(client.list_prompts())
    who, protocol, instructions = identity(client), client.protocol_version, client.instructions
    if output.json:
        facts = {"name": client.name, "server": who, "protocol": protocol}
        offers = {"tools": tools, "resources": resources, "templates": templates}
        offers["prompts"] = prompts
        lists = {key: _raw(listed) for key, listed in offers.items()}
        output.value({**facts, "instructions": instructions, **lists})
        return
    words = f"\n\n{instructions.strip().expandtabs(4)}" if instructions else ""
    who = who or "a server without a name"
    views.prose(output, f"{client.name}: {who}, protocol {protocol}{words}")
    for heading, caption, offers_of_kind in (
        ("Tools", _tool_caption, tools),
        ("Resources", attrgetter("uri"), resources),
        ("Templates", attrgetter("uri_template"), templates),
        ("Prompts", attrgetter("name"), prompts),
    ):
        _offers(output, heading, [(caption(offer), offer) for offer in offers_of_kind or ()])


def _tool_caption(tool: Tool) -> str:
    return signature(tool.name, tool.input_schema)


def _offers(output: Output, title: str, offers: Sequence[tuple[str, Any]]) -> None:
    """Show one kind of what a server offers, by name and words."""
    rows = [(name, views.words_of(offer)) for name, offer in offers]
    if rows and output.is_terminal:
        output.text("")
        views.heading(title)
        views.blocks(rows)
    elif rows:
        lines = [f"  {first_line(name)}  {first_line(words)}" for name, words in rows]
        output.about("\n".join([f"\n{title}:", *lines]))


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, required=True)
@option("--most N", "Show at most N tools.", type=click.IntRange(1), default=10)
@REGISTRY
async def search(
    target: ServerTarget, words: tuple[str, ...], most: int, registry: str | None
) -> int:
    """Find tools by words: names, descriptions and parameters of all configured servers.

    Of a server that cannot be reached, the tools that were last seen. With --registry: servers
    that others have published, to be added by their full names.

    \b
    holdfast search read file
    holdfast search --registry weather
    """
    if registry is not None:
        from holdfast.cli.registry import search_registry

        return await search_registry(target.output, registry, words, most)
    from holdfast.agents.listing import ServerTool
    from holdfast.agents.search import ToolIndex

    output = target.output
    names = [] if target.is_given else list(target.configuration.servers)
    if target.is_given:
        async with target.client() as client:
            servers = [ServerHealth("", "ready", tools=await target.list_tools(client))]
    else:
        visited = await visit(target, names)
        note_unusable(output, visited)
        servers = [_last_seen(target, health) for health in visited]
    tools = [
        ServerTool(health.name, tool, f"{health.name}.{tool.name}".removeprefix("."))
        for health in servers
        for tool in health.tools or ()
    ]
    unreachable = {health.name for health in servers if health.exit}
    hits = ToolIndex(tools).search(" ".join(words), most)
    if output.json:
        rows = [
            {
                "tool": hit.tool.dotted,
                "score": hit.score,
                **({"lastSeen": True} if hit.tool.server in unreachable else {}),
            }
            for hit in hits
        ]
        output.value({"tools": rows})
    elif hits:
        views.show_named_tools(output, [(hit.tool.dotted, hit.tool.tool) for hit in hits])
    if hits:
        return Exit.OK
    note = "No tool fits." if target.is_given or names else NO_SERVER
    output.note(note)
    return output.verdict(note, Exit.TOOL, "search")


def _last_seen(target: ServerTarget, health: ServerHealth) -> ServerHealth:
    """Return a server that cannot be reached with the tools that were last seen of it.

    Not those of another server that had its name, nor of one that its user has not approved.
    """
    entry = target.configuration.servers.get(health.name)
    if health.state not in ("offline", "needs login") or entry is None:
        return health
    cached = tool_cache.load(health.name)
    if cached is None or cached.source != entry.source.file:
        return health
    target.output.note(f"{health.name}: its tools are shown {cached}")
    return replace(health, tools=cached.tools)


@click.command(cls=ServerVerb, takes="")
async def resources(target: ServerTarget) -> None:
    """The resources of a server, its templates for more, and its skills. Reads none of them."""
    async with target.client() as client:
        resources = await or_none(client.list_resources()) or ()
        templates = await or_none(client.list_resource_templates()) or ()
        skills = await offered_skills(client)
    raw: dict[str, Any] = {"resources": _raw(resources), "resourceTemplates": _raw(templates)}
    if skills is not None:
        raw["skills"] = _raw(skills)
    rows = [(resource.uri, views.words_of(resource) or resource.name) for resource in resources]
    rows += [(item.uri_template, views.words_of(item) or item.name) for item in templates]
    rows += [(skill.uri, _skill_words(skill)) for skill in skills or ()]
    views.table(target.output, raw, ("resource", "what it is"), rows, client.name)


def _skill_words(skill: Skill) -> str:
    files = "" if skill.dynamic else f", {counted(len(skill.files), 'file')}"
    return f"{skill.description} (skill {skill.name}{files})"


@click.command(cls=ServerVerb, takes="")
async def prompts(target: ServerTarget) -> None:
    """The prompts of a server, with their arguments."""
    async with target.client() as client:
        prompts = await or_none(client.list_prompts()) or ()
    rows = []
    for prompt in prompts:
        names = [
            argument.name if argument.required else f"[{argument.name}]"
            for argument in prompt.arguments or ()
        ]
        rows.append((prompt.name, " ".join(names), views.words_of(prompt)))
    raw = {"prompts": _raw(prompts)}
    columns = ("prompt", "arguments", "what it is for")
    views.table(target.output, raw, columns, rows, client.name)


@click.command()
@option("--files", "Show the files that were found, in the order in which they count.")
@CONFIG
@output_option
def servers(files: bool, config: str | None, output: Output) -> None:
    """The configured servers, where each comes from, and whether it may be used."""
    from holdfast.config import load, show

    overview = show(load(config))
    home = os.path.expanduser("~")
    rows = []
    for server in overview.servers:
        is_home = output.is_terminal and server.file.startswith(f"{home}/")
        file = server.file.replace(home, "~", is_home)
        rows.append((server.name, _standing(server), _short_target(server), file))
    if output.json:
        output.value(overview)
    elif files:
        _show_files(output, overview)
    elif rows:
        views.table(output, overview, ("server", "standing", "what it is", "from"), rows, "")
    else:
        output.note(NO_SERVER)
    problems = [str(problem) for file in overview.files for problem in file.problems]
    for server in overview.servers:
        problems += [*server.problems, *server.warnings]
    for problem in problems:
        output.note(problem)


def _show_files(output: Output, overview: ConfigOverview) -> None:
    """Show the files of a configuration, the first of which wins, and the servers of each."""
    rows = []
    for file in overview.files:
        names = [server.name for server in overview.servers if server.file == file.path]
        rows.append((file.path, file.scope, file.dialect, ", ".join(names) or "no servers"))
    if rows:
        views.table(output, overview, ("file", "whose", "kind", "servers"), rows, "")
    else:
        output.note("No configuration was found.")


def _short_target(server: ServerExplanation) -> str:
    """Return its command, the program by its last part, or its URL."""
    program = str(server.definition.get("command") or "")
    is_path = "/" in program and server.target.startswith(program)
    return server.target.removeprefix(os.path.dirname(program) + "/") if is_path else server.target


def _standing(server: ServerExplanation) -> str:
    """Return whether a server may be used, in a word or two."""
    if server.disabled:
        return "disabled"
    if server.problems:
        return "broken"
    return {"own": "yours", "untrusted": "not trusted"}.get(server.trust, server.trust)
