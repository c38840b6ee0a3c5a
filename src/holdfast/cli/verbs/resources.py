"""Reading: resources, prompts, completion."""

from __future__ import annotations

from collections.abc import Iterable

import click

from holdfast.cli import views
from holdfast.cli.completers import prefixes
from holdfast.cli.options import ServerCommand, folders
from holdfast.cli.render import first_line
from holdfast.cli.target import ServerTarget, server_options
from holdfast.errors import ValidationError
from holdfast.types import PromptReference, ResourceReference


@click.command(cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] URI")
@click.option("--save", metavar="DIR", shell_complete=folders, help="Where what is no text goes.")
@server_options
async def read(target: ServerTarget, words: tuple[str, ...], save: str | None) -> None:
    """Read a resource.

    \b
    holdfast read docs file:///README.md
    holdfast read demo://greeting -- python server.py
    """
    server, (uri,) = target.take(words, "URI")
    async with target.client(server) as client:
        found = await client.read_resource(uri)
    views.resource(target.output, found, uri, save)


@click.command(cls=ServerCommand)
@click.argument("prompt", shell_complete=prefixes)
@click.argument("words", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--save", metavar="DIR", shell_complete=folders, help="Where what is no text goes.")
@server_options
async def prompt(
    target: ServerTarget, prompt: str, words: tuple[str, ...], save: str | None
) -> None:
    """Get a prompt, filled in.

    \b
    holdfast prompt demo.review language=python
    holdfast prompt review language=python -- python server.py
    """
    server, name = target.split(prompt)
    arguments = pairs(words)
    async with target.client(server) as client:
        found = await client.get_prompt(name, arguments)
    views.prompt(target.output, found, name, save)


@click.command(cls=ServerCommand)
@click.argument("words", nargs=-1, metavar="[SERVER] PROMPT_OR_TEMPLATE NAME[=TEXT]")
@click.option("--with", "context", metavar="K=V", multiple=True, help="An argument set already.")
@server_options
async def complete(target: ServerTarget, words: tuple[str, ...], context: tuple[str, ...]) -> None:
    """Suggestions for an argument of a prompt, or of a resource template (a URI with braces).

    \b
    holdfast complete demo review language=py
    """
    server, (about, argument) = target.take(
        _apart(target, words), "PROMPT_OR_TEMPLATE", "NAME=TEXT"
    )
    name, _, text = argument.partition("=")
    ref = ResourceReference(uri=about) if "://" in about else PromptReference(name=about)
    known = pairs(context) or None
    async with target.client(server) as client:
        found = await client.complete(ref, name, text, known)
    if target.output.json:
        target.output.value({"completion": found.raw})
        return
    for value in found.values:
        target.output.text(first_line(value))


def _apart(target: ServerTarget, words: tuple[str, ...]) -> tuple[str, ...]:
    """``server.prompt`` as two words, because that is how other verbs take it."""
    if len(words) == 2 and not target.given and "://" not in words[0]:
        for name in sorted(target.configuration.servers, key=len, reverse=True):
            if words[0].startswith(f"{name}.") and words[0] != f"{name}.":
                return name, words[0][len(name) + 1 :], words[1]
    return words


def pairs(words: Iterable[str]) -> dict[str, str]:
    """Arguments of a prompt, which are texts."""
    found = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise ValidationError(f"{word!r}: write NAME=VALUE")
        found[name] = value
    return found
