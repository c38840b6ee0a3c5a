"""Verbs that read: read (a resource, a skill) and prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.text import did_you_mean, visible
from holdfast.cli import completers, views
from holdfast.cli.app import SAVE, option, pairs
from holdfast.cli.arguments import parse, suggestion
from holdfast.cli.output import Exit, Output, write
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.views import first_line
from holdfast.errors import HoldfastError, RpcError, StateError, ValidationError
from holdfast.types.skills import SKILL_FILE, is_inside

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.types import Skill, SkillFile

SUGGEST = option(
    "--suggest NAME[=TEXT]", "Show the server's suggestions for one argument, and end."
)


@click.command(cls=ServerVerb, takes="URI")
@SAVE
@option("--file PATH", "A file of the skill, by default its SKILL.md.")
@option("--dynamic", "Read a skill that has no digests to verify.")
@SUGGEST
@option("--with K=V...", "With --suggest: the value of another part.", name="context")
async def read(target: ServerTarget, uri: str, save: str | None, **options: Any) -> int:
    """Read a resource by its URI, or a skill by its name or URI.

    Of a skill, size, digest and frontmatter are verified.

    \b
    holdfast read docs file:///README.md
    holdfast read shop refunds --file guide.md
    holdfast read demo://greeting -- python server.py
    """
    async with target.client() as client:
        if options["suggest"] is not None:
            values = pairs("--with", options["context"])
            await _suggest(target.output, client, uri, options["suggest"], values)
            return Exit.OK
        if "://" not in uri or (options["file"] or options["dynamic"]):
            await _read_skill(target.output, client, uri, options["file"], options["dynamic"])
            return Exit.OK
        if skill := await _skill_with(client, uri):
            content = await client.read_skill(skill, uri, dynamic=options["dynamic"])
            _show_skill_file(target.output, content)
            return Exit.OK
        return await _read_resource(target.output, client, uri, save)


async def _read_resource(output: Output, client: Client, uri: str, save: str | None) -> int:
    try:
        resource = await client.read_resource(uri)
    except RpcError as error:
        code = output.fail(error)
        with suppress(HoldfastError):
            uris = [listed.uri for listed in await client.list_resources()]
            if uri not in uris and (hint := did_you_mean(uri, uris, 3, 0.8)):
                output.note(f"D{hint[1:]}")
        return code
    if output.json:
        output.value(resource.raw)
    else:
        stem = uri.rstrip("/").rpartition("/")[2]
        views.Contents(output, save, stem.rpartition(".")[0] or stem).show(resource.contents)
    return Exit.OK


async def _suggest(
    output: Output, client: Client, about: str, argument: str, context: dict[str, str]
) -> None:
    """Show what the server suggests for an argument of a prompt, or of a resource template."""
    from holdfast.types import PromptReference, ResourceReference

    name, _, text = argument.partition("=")
    ref = ResourceReference(uri=about) if "://" in about else PromptReference(name=about)
    completion = await client.complete(ref, name, text, context or None)
    if output.json:
        output.value({"completion": completion.raw})
        return
    for value in completion.values:
        output.text(first_line(value))


def _prompt_arguments(
    prompt: str, words: tuple[str, ...], parameters: list[str] | None
) -> dict[str, str]:
    """Return the arguments that words give; all of them are texts."""
    schema = {"properties": {name: {"type": "string"} for name in parameters or ()}}
    arguments = parse(words, schema)
    for name in arguments:
        if parameters is not None and name not in parameters:
            hint = suggestion(name, parameters)
            raise ValidationError(f"{prompt}: there is no argument {name!r}. {hint}")
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in arguments.items()
    }


@click.command(cls=ServerVerb, context_settings={"ignore_unknown_options": True})
@click.argument("prompt", shell_complete=completers.prefixes)
@click.argument("words", nargs=-1, metavar="[NAME=VALUE]...")
@SAVE
@SUGGEST
async def prompt(
    target: ServerTarget, prompt: str, words: tuple[str, ...], save: str | None, suggest: str | None
) -> None:
    """Get a prompt, filled in. Arguments are given as to 'call'; all of them are texts.

    \b
    holdfast prompt demo.review language=python
    holdfast prompt demo.review --suggest language=py
    holdfast prompt review language=python -- python server.py
    """
    name, words = target.named(prompt, words)
    output = target.output
    async with target.client() as client:
        parameters: list[str] | None = None
        with suppress(RpcError):  # not every server has a list
            prompts = {listed.name: listed for listed in await client.list_prompts()}
            if name not in prompts:
                hint = suggestion(name, list(prompts))
                raise ValidationError(f"There is no prompt {name!r}. {hint}")
            parameters = [parameter.name for parameter in prompts[name].arguments or ()]
        arguments = _prompt_arguments(name, words, parameters)
        if suggest is not None:
            await _suggest(output, client, name, suggest, arguments)
            return
        result = await client.get_prompt(name, arguments)
    if output.json:
        output.value(result.raw)
        return
    contents = views.Contents(output, save, name)
    for message in result.messages:
        if len(result.messages) > 1:
            output.text(f"[{message.role}]")
        contents.show([message.content])


# Skills


async def offered_skills(client: Client) -> Sequence[Skill] | None:
    """List the skills of a server; None if it offers none."""
    await client.open()
    try:
        return await client.list_skills()
    except StateError:  # it has not declared the extension, and nothing was sent
        return None


async def _read_skill(
    output: Output, client: Client, name: str, file: str | None, dynamic: bool
) -> None:
    if "://" in name:
        skill = await client.get_skill(name)
    elif (skills := await offered_skills(client)) is None:
        raise ValidationError(f"{name!r} is no URI, and the server offers no skills.")
    else:
        skill = _skill_named(name, skills)
    content = await client.read_skill(skill, file or SKILL_FILE, dynamic=dynamic)
    _show_skill_file(output, content)


async def _skill_with(client: Client, uri: str) -> Skill | None:
    """Return the skill that has a file at this URI; None if it is another resource.

    So a skill's file is verified, too, if it is asked for by its own URI.
    """
    with suppress(RpcError):
        if (skills := await offered_skills(client)) is None:
            return None
        for skill in skills:
            if is_inside(skill, uri):
                return skill
        if uri.endswith(f"/{SKILL_FILE}"):  # a server may publish more than it lists
            return await client.get_skill(uri)
    return None


def _show_skill_file(output: Output, content: SkillFile) -> None:
    if output.json:
        text = content.data.decode("utf-8", "replace")
        facts = {"server": content.server, "uri": content.uri, "size": len(content.data)}
        output.value({**facts, "text": text})
        return
    try:
        output.content(content.text.rstrip("\n"))
    except UnicodeDecodeError:
        write(content.data)


def _skill_named(name: str, skills: Sequence[Skill]) -> Skill:
    """Return the only skill of that name. Raises ValidationError with others that may be meant."""
    matches = [skill for skill in skills if skill.name == name]
    if not matches:
        hint = suggestion(name, [skill.name for skill in skills])
        raise ValidationError(f"There is no skill {name!r}. {hint}")
    if len(matches) > 1:
        uris = ", ".join(visible(skill.uri, 200) for skill in matches)
        text = f"There are {len(matches)} skills {name!r}; name one by its URI: {uris}"
        raise ValidationError(text)
    return matches[0]
