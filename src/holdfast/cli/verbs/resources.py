"""Reading: resources, prompts, skills; completion of their arguments."""

from __future__ import annotations

import json
from contextlib import suppress

import click

from holdfast._core.text import did_you_mean, visible
from holdfast.cli.arguments import parse, suggestion
from holdfast.cli.completers import prefixes
from holdfast.cli.options import SAVE, pairs
from holdfast.cli.output import Exit, write
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.views import Contents, first_line
from holdfast.errors import HoldfastError, RpcError, ValidationError
from holdfast.types import PromptReference, ResourceReference


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
        Contents(target.output, save, stem.rpartition(".")[0] or stem).show(found.contents)
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
    contents = Contents(output, save, name)
    for message in found.messages:
        if len(found.messages) > 1:
            output.text(f"[{message.role}]")
        contents.show([message.content])


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
    about, rest = target.named(about, words)
    if len(rest) != 1:
        raise click.UsageError(
            f"Not understood: {' '.join(rest)}." if rest else "Missing: NAME=TEXT."
        )
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
@click.option("--file", default="SKILL.md", metavar="PATH", help="Another file than SKILL.md.")
@click.option("--dynamic", is_flag=True, help="Read a skill without digests, too.")
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
