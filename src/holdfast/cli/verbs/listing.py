"""Verbs that list (tools, search, resources, …) and read (read, prompt, skill, …)."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from holdfast._core.text import counted, did_you_mean, visible
from holdfast.cli import completers, tool_cache, views
from holdfast.cli.app import CONFIG, SAVE, option, output_option, pairs
from holdfast.cli.arguments import parse, suggestion
from holdfast.cli.output import Exit, Output, write
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb, known
from holdfast.cli.verbs.status import ServerHealth, identity, note_unusable, verdict, visit
from holdfast.cli.views import first_line
from holdfast.errors import HoldfastError, RpcError, ValidationError


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
            found = [_seen(target.output, name) for name in several] if offline else None
            return _tools_of_all(target, several) if found is None else _grouped(target, found)
    target.take(names)
    if not offline:
        return _tools_of_one(target)
    # Without an event loop, whose import takes as long as the rest.
    key = target.key()
    if (cached := tool_cache.load(key)) is None:
        raise ValidationError(
            f"{key}: not seen yet, so nothing is known of it offline; "
            "list its tools once without --offline"
        )
    target.output.note(str(cached))
    return views.tools(target.output, cached.tools, key)


async def _tools_of_one(target: ServerTarget) -> None:
    async with target.client() as client:
        found = await target.list_tools(client)
    views.tools(target.output, found or (), client.name)


async def _tools_of_all(target: ServerTarget, names: list[str]) -> int:
    return _grouped(target, await visit(target, names))


def _seen(output: Output, name: str) -> ServerHealth:
    """Return what was last seen of a server, and say when."""
    if (cached := tool_cache.load(name)) is None:
        return ServerHealth(name, "offline", reason="not seen yet", exit=Exit.USAGE)
    output.note(f"{name}: {cached}")
    return ServerHealth(name, "ready", tools=cached.tools)


def _grouped(target: ServerTarget, found: Sequence[ServerHealth]) -> int:
    """Show the tools of several servers, and which of the servers cannot be used."""
    output = target.output
    if output.json:
        facts = [{"name": one.name, "state": one.state, "tools": one.tools} for one in found]
        output.value({"servers": facts})
    for one in found:
        if not output.json and one.state == "ready":
            if output.is_terminal:
                views.heading(one.name)
            prefix = "" if output.is_terminal else f"{one.name}."
            views.tools(output, one.tools or (), one.name, prefix)
    note_unusable(output, found)
    return verdict(output, found)


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
    if not words or (len(words) == 1 and not target.given and target.is_server(words[0])):
        target.server = words[0] if words else None
        await _overview(target)
        return
    wanted, rest = target.named(words[0], words[1:])
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}.")
    async with target.client() as client:
        definition = target.pick(await target.list_tools(client) or (), wanted)
    if target.output.json:
        target.output.value(definition)
        return
    called = list(words) if target.entry is None else [f"{target.server}.{wanted}"]
    command, server = shlex.join(["holdfast", "call", *called]), f" {target.reach()}".rstrip()
    views.prose(target.output, views.description(definition, command, server))


async def _overview(target: ServerTarget) -> None:
    """Show a server in short: who it is, and everything that it offers."""
    output = target.output
    async with target.client() as client:
        await client.open()
        offers: dict[str, Any] = {"tools": await target.list_tools(client)}
        for key, listing in (
            ("resources", client.list_resources),
            ("templates", client.list_resource_templates),
            ("prompts", client.list_prompts),
        ):
            found = await known(listing())
            offers[key] = None if found is None else [one.raw for one in found]
    who, protocol, instructions = identity(client), client.protocol_version, client.instructions
    if output.json:
        facts = {"name": client.name, "server": who, "protocol": protocol}
        output.value({**facts, "instructions": instructions, **offers})
        return
    more = f"\n\n{instructions.strip().expandtabs(4)}" if instructions else ""
    who = who or "a server without a name"
    views.prose(output, f"{client.name}: {who}, protocol {protocol}{more}")
    names = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}
    for key, listed in offers.items():
        rows = []
        for one in listed or ():
            name = views.signature_of(one) if key == "tools" else str(one.get(names[key]))
            rows.append((name, views.words_of(one)))
        if rows and output.is_terminal:
            output.text("")
            views.heading(key.title())
            views.blocks(rows)
        elif rows:
            lines = [f"  {first_line(name)}  {first_line(words)}" for name, words in rows]
            output.text("\n".join([f"\n{key.title()}:", *lines]))


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, required=True)
@option("--most N", "Show at most N tools.", type=click.IntRange(1), default=10)
async def search(target: ServerTarget, words: tuple[str, ...], most: int) -> int:
    """Find tools by words: names, descriptions and parameters of all configured servers.

    \b
    holdfast search read file
    """
    from holdfast import Tool
    from holdfast.agents.listing import ServerTool
    from holdfast.agents.search import Index
    from holdfast.types.base import decode, encode

    output = target.output
    names = [] if target.given else list(target.configuration.servers)
    if target.given:
        async with target.client() as client:
            servers = [ServerHealth("", "ready", tools=await target.list_tools(client))]
    else:
        servers = await visit(target, names)
        note_unusable(output, servers)
    tools = [
        ServerTool(one.name, tool, f"{one.name}.{tool.name}".removeprefix("."))
        for one in servers
        for tool in (decode(encode(raw), Tool) for raw in one.tools or ())
    ]
    hits = Index(tools).search(" ".join(words), most)
    if output.json:
        output.value({"tools": [{"tool": one.tool.dotted, "score": one.score} for one in hits]})
    elif hits:
        views.tools(output, [{**one.tool.tool.raw, "name": one.tool.dotted} for one in hits], "")
    if hits:
        return Exit.OK
    told = "No tool fits." if target.given or names else NO_SERVER
    output.note(told)
    return output.verdict(told, Exit.TOOL, "search")


@click.command(cls=ServerVerb, takes="")
async def resources(target: ServerTarget) -> None:
    """The resources of a server, and its templates for more."""
    async with target.client() as client:
        found = await known(client.list_resources()) or ()
        templates = await known(client.list_resource_templates()) or ()
    raw = {"resources": [one.raw for one in found]}
    raw["resourceTemplates"] = [one.raw for one in templates]
    rows = [(one.uri, one.description or one.title or one.name) for one in found]
    rows += [(one.uri_template, one.description or one.title or one.name) for one in templates]
    views.table(target.output, raw, ("resource", "what it is"), rows, client.name)


@click.command(cls=ServerVerb, takes="")
async def prompts(target: ServerTarget) -> None:
    """The prompts of a server, with their arguments."""
    async with target.client() as client:
        found = await known(client.list_prompts()) or ()
    rows = []
    for one in found:
        names = [a.name if a.required else f"[{a.name}]" for a in one.arguments or ()]
        rows.append((one.name, " ".join(names), one.description or one.title or ""))
    raw = {"prompts": [one.raw for one in found]}
    columns = ("prompt", "arguments", "what it is for")
    views.table(target.output, raw, columns, rows, client.name)


@click.command(cls=ServerVerb, takes="")
async def skills(target: ServerTarget) -> None:
    """The skills that a server publishes. Reads no file of any of them."""
    async with target.client() as client:
        found = await client.list_skills()
    rows = []
    for one in found:
        files = "dynamic" if one.dynamic else counted(len(one.files), "file")
        rows.append((one.name, one.uri, files, one.description))
    raw = {"skills": [one.raw for one in found]}
    columns = ("skill", "uri", "files", "what it is for")
    views.table(target.output, raw, columns, rows, client.name)


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
        trust = {"own": "yours", "untrusted": "not trusted"}.get(one.trust, one.trust)
        state = "disabled" if one.disabled else "broken" if one.problems else trust
        is_home = output.is_terminal and one.file.startswith(f"{home}/")
        rows.append((one.name, state, one.target, one.file.replace(home, "~", is_home)))
    if rows or output.json:
        views.table(output, found, ("server", "standing", "what it is", "from"), rows, "")
    else:
        output.note(NO_SERVER)
    problems = [str(one) for file in found.files for one in file.problems]
    problems += [said for one in found.servers for said in (*one.problems, *one.warnings)]
    for problem in problems:
        output.note(problem)


# Reading


@click.command(cls=ServerVerb, takes="URI")
@SAVE
async def read(target: ServerTarget, uri: str, save: str | None) -> int:
    """Read a resource.

    \b
    holdfast read docs file:///README.md
    holdfast read demo://greeting -- python server.py
    """
    async with target.client() as client:
        try:
            found = await client.read_resource(uri)
        except RpcError as error:
            code = target.output.fail(error)
            with suppress(HoldfastError):
                known = [one.uri for one in await client.list_resources()]
                if uri not in known and (hint := did_you_mean(uri, known, 3, 0.8)):
                    target.output.note(f"D{hint[1:]}")
            return code
    if target.output.json:
        target.output.value(found.raw)
    else:
        stem = uri.rstrip("/").rpartition("/")[2]
        views.Contents(target.output, save, stem.rpartition(".")[0] or stem).show(found.contents)
    return Exit.OK


@click.command(cls=ServerVerb, context_settings={"ignore_unknown_options": True})
@click.argument("prompt", shell_complete=completers.prefixes)
@click.argument("words", nargs=-1, metavar="[NAME=VALUE]...")
@SAVE
async def prompt(
    target: ServerTarget, prompt: str, words: tuple[str, ...], save: str | None
) -> None:
    """Get a prompt, filled in. Arguments are given as to 'call'; all of them are texts.

    \b
    holdfast prompt demo.review language=python
    holdfast prompt review language=python -- python server.py
    """
    name, words = target.named(prompt, words)
    output = target.output
    async with target.client() as client:
        known: list[str] | None = None
        with suppress(RpcError):  # not every server has a list
            prompts = {one.name: one for one in await client.list_prompts()}
            if name not in prompts:
                hint = suggestion(name, list(prompts))
                raise ValidationError(f"There is no prompt {name!r}. {hint}")
            known = [one.name for one in prompts[name].arguments or ()]
        schema = {"properties": {one: {"type": "string"} for one in known or ()}}
        arguments = parse(words, schema)
        for one, value in arguments.items():
            if known is not None and one not in known:
                hint = suggestion(one, known)
                raise ValidationError(f"{name}: there is no argument {one!r}. {hint}")
            if not isinstance(value, str):
                arguments[one] = json.dumps(value, ensure_ascii=False)
        found = await client.get_prompt(name, arguments)
    if output.json:
        output.value(found.raw)
        return
    contents = views.Contents(output, save, name)
    for message in found.messages:
        if len(found.messages) > 1:
            output.text(f"[{message.role}]")
        contents.show([message.content])


@click.command(cls=ServerVerb)
@click.argument("about", metavar="PROMPT_OR_URI", shell_complete=completers.prefixes)
@click.argument("words", nargs=-1, metavar="NAME[=TEXT]")
@option("--with K=V...", "The value of another argument.", name="context")
async def complete(
    target: ServerTarget, about: str, words: tuple[str, ...], context: tuple[str, ...]
) -> None:
    """Suggestions for an argument of a prompt, or of a resource template (a URI with braces).

    \b
    holdfast complete demo.review language=py
    """
    about, rest = target.named(about, words)
    if len(rest) != 1:
        raise click.UsageError(
            f"Not understood: {' '.join(rest)}." if rest else "Missing: NAME=TEXT."
        )
    from holdfast.types import PromptReference, ResourceReference

    name, _, text = rest[0].partition("=")
    ref = ResourceReference(uri=about) if "://" in about else PromptReference(name=about)
    async with target.client() as client:
        found = await client.complete(ref, name, text, pairs("--with", context) or None)
    if target.output.json:
        target.output.value({"completion": found.raw})
        return
    for value in found.values:
        target.output.text(first_line(value))


@click.command(cls=ServerVerb, takes="SKILL")
@option("--file PATH", "The file of the skill.", default="SKILL.md")
@option("--dynamic", "Read a skill without digests, too.")
async def skill(target: ServerTarget, wanted: str, file: str, dynamic: bool) -> None:
    """Read a skill, by its name or URI; size, digest and frontmatter are verified.

    \b
    holdfast skill shop refunds
    holdfast skill shop skill://refunds/SKILL.md --file guide.md
    """
    async with target.client() as client:
        if "://" in wanted:
            found = await client.get_skill(wanted)
        else:
            known = await client.list_skills()
            fitting = [one for one in known if one.name == wanted]
            if not fitting:
                hint = suggestion(wanted, [one.name for one in known])
                raise ValidationError(f"There is no skill {wanted!r}. {hint}")
            if len(fitting) > 1:
                uris = ", ".join(visible(one.uri, 200) for one in fitting)
                text = f"There are {len(fitting)} skills {wanted!r}; name one by its URI: {uris}"
                raise ValidationError(text)
            found = fitting[0]
        read = await client.read_skill(found, file, dynamic=dynamic)
    if target.output.json:
        text = read.data.decode("utf-8", "replace")
        facts = {"server": read.server, "uri": read.uri, "size": len(read.data), "text": text}
        target.output.value(facts)
        return
    try:
        target.output.content(read.text.rstrip("\n"))
    except UnicodeDecodeError:
        write(read.data)
