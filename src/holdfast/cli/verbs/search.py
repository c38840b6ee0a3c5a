"""``holdfast search``: find tools by words, in all configured servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import tool_cache, views
from holdfast.cli.exit_codes import Exit
from holdfast.cli.fleet import visit
from holdfast.cli.options import ServerCommand
from holdfast.cli.render import first_line
from holdfast.cli.target import ServerTarget, server_options

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.agents.listing import ServerTool


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
    else:
        target.output.note("No tool fits.")
    return Exit.OK if hits else target.output.verdict("No tool fits.", Exit.TOOL, "search")


def _seen(target: ServerTarget) -> list[ServerTool]:
    import msgspec

    from holdfast import Tool

    found: list[ServerTool] = []
    for name in target.configuration.servers:
        cached = tool_cache.load(name)
        texts = [msgspec.json.encode(raw) for raw in cached.tools] if cached is not None else []
        found += [_named(name, msgspec.json.decode(text, type=Tool)) for text in texts]
    return found


async def _asked(target: ServerTarget) -> list[ServerTool]:
    async def listed(client: Client) -> Any:
        return list(await client.list_tools())

    if target.given:
        async with target.client() as client:
            return [_named("", tool) for tool in await listed(client)]
    found = await visit(target, list(target.configuration.servers), listed)
    for one in found:
        if one.exit:
            target.output.note(f"{one.name}: {one.state}: {first_line(one.remedy)}")
        elif one.found is not None:
            tool_cache.keep(target, one.name, [tool.raw for tool in one.found])
    return [_named(one.name, tool) for one in found for tool in one.found or ()]


def _named(server: str, tool: Any) -> ServerTool:
    from holdfast.agents.listing import ServerTool

    return ServerTool(server, tool, f"{server}.{tool.name}" if server else tool.name)
