"""``holdfast skills`` and ``holdfast skill``: instructions that a server publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast._core.text import did_you_mean, visible
from holdfast.cli.completers import servers
from holdfast.cli.exit_codes import Exit
from holdfast.cli.options import ServerCommand
from holdfast.cli.output import write
from holdfast.cli.render import table
from holdfast.cli.target import ServerTarget, server_options
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.types import Skill


@click.command(cls=ServerCommand)
@click.argument("server", nargs=-1, metavar="[SERVER]", shell_complete=servers)
@server_options
async def skills(target: ServerTarget, server: tuple[str, ...]) -> int:
    """The skills that a server publishes. Reads no file of any of them."""
    async with target.client(target.only(server)) as client:
        found = await client.list_skills()
    if target.output.json:
        target.output.value({"skills": [one.raw for one in found]})
        return Exit.OK
    rows = [
        (one.name, one.uri, "dynamic" if one.dynamic else str(len(one.files)), one.description)
        for one in found
    ]
    table(target.output, ("skill", "uri", "files", "what it is for"), rows)
    return Exit.OK


@click.command(cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] SKILL")
@click.option("--file", default="SKILL.md", metavar="PATH", help="Another file than SKILL.md.")
@click.option("--dynamic", is_flag=True, help="Read a skill without digests, too.")
@server_options
async def skill(target: ServerTarget, words: tuple[str, ...], file: str, dynamic: bool) -> int:
    """Read a skill, by its name or URI; size, digest and frontmatter are verified.

    \b
    holdfast skill shop refunds
    holdfast skill shop skill://refunds/SKILL.md --file guide.md
    """
    server, (wanted,) = target.take(words, "SKILL")
    async with target.client(server) as client:
        found = await _find(client, wanted)
        read = await client.read_skill(found, file, dynamic=dynamic)
    if target.output.json:
        text = read.data.decode("utf-8", "replace")
        facts = {"server": read.server, "uri": read.uri, "size": len(read.data), "text": text}
        target.output.value(facts)
        return Exit.OK
    try:
        target.output.content(read.text.rstrip("\n"))
    except UnicodeDecodeError:
        write(read.data)
    return Exit.OK


async def _find(client: Client, wanted: str) -> Skill:
    """Return the skill at a URI, or the only one of a name."""
    if "://" in wanted:
        return await client.get_skill(wanted)
    known = await client.list_skills()
    found = [one for one in known if one.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        uris = ", ".join(visible(one.uri, 200) for one in found)
        text = f"There are {len(found)} skills {wanted!r}; name one by its URI: {uris}"
        raise ValidationError(text)
    near = did_you_mean(wanted, [one.name for one in known], 3)
    raise ValidationError(f"There is no skill {wanted!r}.{f' D{near[1:]}' if near else ''}")
