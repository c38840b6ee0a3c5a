"""Looking around: tools, describe, resources, prompts, ping."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import click

from holdfast.cli import manifests
from holdfast.cli.aim import Aim, aimed
from holdfast.cli.arguments import describe as told
from holdfast.cli.arguments import resolve
from holdfast.cli.render import table
from holdfast.cli.seen import key_of, listed, pick
from holdfast.cli.suggest import servers
from holdfast.cli.suggest import tools as suggest_tools

OFFLINE = click.option(
    "--offline", is_flag=True, help="What was last seen, without starting the server."
)


@click.command()
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
    name = _only(aim, server)
    if offline:
        _show_tools(aim, manifests.require(key_of(aim, name)))
        return None
    return _list_tools(aim, name)


async def _list_tools(aim: Aim, name: str | None) -> None:
    async with aim.client(name) as client:
        found = await listed(aim, name, client)
    _show_tools(aim, found)


def _show_tools(aim: Aim, found: list[dict[str, Any]]) -> None:
    if aim.output.json:
        aim.output.value({"tools": found})
        return
    rows = [
        (tool["name"], str(tool.get("description") or tool.get("title") or "")) for tool in found
    ]
    table(aim.output, ("tool", "what it does"), rows)


@click.command()
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
    if offline:
        _show_tool(aim, pick(manifests.require(key_of(aim, name)), wanted), tool)
        return None
    return _describe(aim, name, wanted, tool)


async def _describe(aim: Aim, name: str | None, wanted: str, called: str) -> None:
    async with aim.client(name) as client:
        found = await listed(aim, name, client)
    _show_tool(aim, pick(found, wanted), called)


def _show_tool(aim: Aim, definition: dict[str, Any], called: str) -> None:
    if aim.output.json:
        aim.output.value(definition)
    else:
        aim.output.text(description(definition, called))


@click.command()
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
async def resources(aim: Aim, server: tuple[str, ...]) -> None:
    """The resources of a server, and its templates for more."""
    async with aim.client(_only(aim, server)) as client:
        found = await client.list_resources()
        templates = await client.list_resource_templates()
    if aim.output.json:
        raw = {"resources": [one.raw for one in found]}
        aim.output.value({**raw, "resourceTemplates": [one.raw for one in templates]})
        return
    rows = [(one.uri, one.description or one.title or one.name) for one in found]
    rows += [(one.uri_template, one.description or one.title or one.name) for one in templates]
    table(aim.output, ("resource", "what it is"), rows)


@click.command()
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
async def prompts(aim: Aim, server: tuple[str, ...]) -> None:
    """The prompts of a server, with their arguments."""
    async with aim.client(_only(aim, server)) as client:
        found = await client.list_prompts()
    if aim.output.json:
        aim.output.value({"prompts": [one.raw for one in found]})
        return
    rows = []
    for one in found:
        names = [a.name if a.required else f"[{a.name}]" for a in one.arguments or ()]
        rows.append((one.name, " ".join(names), one.description or one.title or ""))
    table(aim.output, ("prompt", "arguments", "what it is for"), rows)


@click.command()
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@aimed
async def ping(aim: Aim, server: tuple[str, ...]) -> None:
    """See whether a server answers, who it is, and how long that took."""
    began = time.perf_counter()
    async with aim.client(_only(aim, server)) as client:
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


def _only(aim: Aim, words: tuple[str, ...]) -> str | None:
    """The one word that names the server, where it is a word that does."""
    name, rest = aim.take(words, "")
    if rest:
        extra = " ".join(rest)
        raise click.UsageError(f"Not understood: {extra} (the server is named already)")
    return name


# One tool, described


def description(tool: Mapping[str, Any], called: str) -> str:
    """A tool as text: its words, its parameters, and a line to call it with."""
    parts = [str(tool["name"])]
    if tool.get("title"):
        parts[0] += f": {tool['title']}"
    if tool.get("description"):
        parts.append(str(tool["description"]).strip())
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, Mapping) else {}
    parts.append(_parameters(schema))
    hints = tool.get("annotations")
    if isinstance(hints, Mapping) and hints:
        said = ", ".join(f"{key} {json.dumps(value)}" for key, value in hints.items())
        parts.append(f"The server says: {said}")
    if tool.get("outputSchema") is not None:
        parts.append("Gives structured results: see --output json for their schema.")
    parts.append(f"holdfast call {called}{_example(schema)}")
    return "\n\n".join(part for part in parts if part)


def _parameters(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return "Takes no parameters."
    required = _required(schema)
    width = min(24, max(len(name) for name in properties))
    lines = ["Parameters:"]
    for name, part in properties.items():
        part = resolve(part, schema)
        facts = [told(part)] + ([] if name in required else ["optional"])
        if "default" in part:
            facts.append(f"default {json.dumps(part['default'])}")
        words = " ".join(str(part.get("description") or "").split())
        lines.append(f"  {name:<{width}}  {', '.join(facts)}{'  ' + words if words else ''}")
    return "\n".join(lines)


def _example(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    words = (
        f"{name}={told(resolve(known.get(name), schema)).upper()}" for name in _required(schema)
    )
    return "".join(f" {word.replace(' ', '-')}" for word in words)


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
