"""Reading: resources, prompts, completion."""

from __future__ import annotations

import click

from holdfast.cli.aim import Aim, aimed
from holdfast.cli.contents import Contents
from holdfast.cli.render import first_line
from holdfast.errors import ValidationError
from holdfast.types import PromptReference, ResourceReference


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[SERVER] URI")
@click.option("--save", metavar="DIR", help="Where what is no text goes.")
@aimed
async def read(aim: Aim, words: tuple[str, ...], save: str | None) -> None:
    """Read a resource.

    \b
    holdfast read docs file:///README.md
    holdfast read demo://greeting -- python server.py
    """
    server, rest = aim.take(words, "URI")
    (uri,) = _exactly(rest, "URI")
    async with aim.client(server) as client:
        found = await client.read_resource(uri)
    if aim.output.json:
        aim.output.value(found.raw)
    else:
        stem = uri.rstrip("/").rpartition("/")[2]
        Contents(aim.output, save, stem.rpartition(".")[0] or stem).show(found.contents)


@click.command()
@click.argument("prompt")
@click.argument("words", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--save", metavar="DIR", help="Where what is no text goes.")
@aimed
async def prompt(aim: Aim, prompt: str, words: tuple[str, ...], save: str | None) -> None:
    """Get a prompt, filled in.

    \b
    holdfast prompt demo.review language=python
    holdfast prompt review language=python -- python server.py
    """
    server, name = aim.split(prompt)
    arguments = dict(_pairs(words))
    async with aim.client(server) as client:
        found = await client.get_prompt(name, arguments)
    if aim.output.json:
        aim.output.value(found.raw)
        return
    contents = Contents(aim.output, save, name)
    for message in found.messages:
        if len(found.messages) > 1:
            aim.output.text(f"[{message.role}]")
        contents.show([message.content])


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[SERVER] PROMPT_OR_TEMPLATE NAME[=TEXT]")
@click.option("--with", "context", metavar="K=V", multiple=True, help="An argument set already.")
@aimed
async def complete(aim: Aim, words: tuple[str, ...], context: tuple[str, ...]) -> None:
    """Suggestions for an argument of a prompt, or of a resource template (a URI with braces).

    \b
    holdfast complete demo review language=py
    """
    server, rest = aim.take(words, "PROMPT NAME=TEXT")
    about, argument = _exactly(rest, "PROMPT_OR_TEMPLATE NAME=TEXT")
    name, _, text = argument.partition("=")
    ref = ResourceReference(uri=about) if "://" in about else PromptReference(name=about)
    known = dict(_pairs(context)) or None
    async with aim.client(server) as client:
        found = await client.complete(ref, name, text, known)
    if aim.output.json:
        aim.output.value(found.raw)
        return
    for value in found.values:
        aim.output.text(first_line(value))


def _pairs(words: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise ValidationError(f"{word!r}: write NAME=VALUE")
        found.append((name, value))
    return found


def _exactly(words: list[str], wanted: str) -> list[str]:
    if len(words) != len(wanted.split()):
        raise click.UsageError(f"Expected {wanted}, got: {' '.join(words) or 'nothing'}")
    return words
