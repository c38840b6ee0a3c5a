"""Reading: resources, prompts, completion, skills."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from holdfast._core.text import did_you_mean, visible
from holdfast.cli import views
from holdfast.cli.arguments import parse, read_file, suggestion
from holdfast.cli.completers import SERVER, prefixes
from holdfast.cli.options import folders, pairs
from holdfast.cli.output import Exit, write
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.views import first_line, table
from holdfast.errors import HoldfastError, RpcError, ValidationError
from holdfast.types import PromptReference, ResourceReference

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.types import Skill

SAVE = click.option(
    "--save", metavar="DIR", shell_complete=folders, help="Where what is no text goes."
)


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, metavar="[SERVER] URI")
@SAVE
async def read(target: ServerTarget, words: tuple[str, ...], save: str | None) -> int:
    """Read a resource.

    \b
    holdfast read docs file:///README.md
    holdfast read demo://greeting -- python server.py
    """
    server, (uri,) = target.take(words, "URI")
    async with target.client(server) as client:
        try:
            found = await client.read_resource(uri)
        except RpcError as error:
            code = target.output.fail(error)
            with suppress(HoldfastError):
                known = [one.uri for one in await client.list_resources()]
                if uri not in known and (hint := did_you_mean(uri, known, 3, 0.8)):
                    target.output.note(f"D{hint[1:]}")
            return code
    views.resource(target.output, found, uri, save)
    return Exit.OK


@click.command(cls=ServerVerb, context_settings={"ignore_unknown_options": True})
@click.argument("prompt", shell_complete=prefixes)
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
    server, name, words = target.named(prompt, words)
    async with target.client(server) as client:
        known: list[str] | None = None
        with suppress(RpcError):  # not every server has a list
            prompts = {one.name: one for one in await client.list_prompts()}
            if name not in prompts:
                hint = suggestion(name, list(prompts))
                raise ValidationError(f"There is no prompt {name!r}. {hint}")
            known = [one.name for one in prompts[name].arguments or ()]
        found = await client.get_prompt(name, fill(words, known, name))
    views.prompt(target.output, found, name, save)


def fill(words: Iterable[str], known: list[str] | None, prompt: str) -> dict[str, str]:
    """Return the arguments that words give, which are texts; refuse those that are not known."""
    schema = {"properties": {name: {"type": "string"} for name in known or ()}}
    found = parse(words, schema, read_file)
    for name in found:
        if known is not None and name not in known:
            hint = suggestion(name, known)
            raise ValidationError(f"{prompt}: there is no argument {name!r}. {hint}")
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in found.items()
    }


@click.command(cls=ServerVerb)
@click.argument("about", metavar="PROMPT_OR_URI", shell_complete=prefixes)
@click.argument("words", nargs=-1, metavar="NAME[=TEXT]")
@click.option("--with", "context", metavar="K=V", multiple=True, help="An argument set already.")
async def complete(
    target: ServerTarget, about: str, words: tuple[str, ...], context: tuple[str, ...]
) -> None:
    """Suggestions for an argument of a prompt, or of a resource template (a URI with braces).

    \b
    holdfast complete demo.review language=py
    """
    server, about, rest = target.named(about, words)
    if len(rest) != 1:
        raise click.UsageError(
            f"Not understood: {' '.join(rest)}." if rest else "Missing: NAME=TEXT."
        )
    name, _, text = rest[0].partition("=")
    ref = ResourceReference(uri=about) if "://" in about else PromptReference(name=about)
    known = pairs("--with", context, "=") or None
    async with target.client(server) as client:
        found = await client.complete(ref, name, text, known)
    if target.output.json:
        target.output.value({"completion": found.raw})
        return
    for value in found.values:
        target.output.text(first_line(value))


# Skills


@click.command(cls=ServerVerb)
@SERVER
async def skills(target: ServerTarget, server: tuple[str, ...]) -> None:
    """The skills that a server publishes. Reads no file of any of them."""
    async with target.client(target.only(server)) as client:
        found = await client.list_skills()
    rows = [
        (one.name, one.uri, "dynamic" if one.dynamic else str(len(one.files)), one.description)
        for one in found
    ]
    raw = {"skills": [one.raw for one in found]}
    table(target.output, raw, ("skill", "uri", "files", "what it is for"), rows)


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, metavar="[SERVER] SKILL")
@click.option("--file", default="SKILL.md", metavar="PATH", help="Another file than SKILL.md.")
@click.option("--dynamic", is_flag=True, help="Read a skill without digests, too.")
async def skill(target: ServerTarget, words: tuple[str, ...], file: str, dynamic: bool) -> None:
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
        return
    try:
        target.output.content(read.text.rstrip("\n"))
    except UnicodeDecodeError:
        write(read.data)


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
    hint = suggestion(wanted, [one.name for one in known])
    raise ValidationError(f"There is no skill {wanted!r}. {hint}")
