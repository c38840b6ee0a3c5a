"""Servers of a registry: ``search --registry``, and ``add io.github.owner/name``."""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast._core.text import one_line, visible
from holdfast.cli.app import EVERYTHING
from holdfast.cli.output import Exit, Output
from holdfast.cli.prompts import ask_input, confirm, is_interactive, show_pages
from holdfast.cli.views import blocks
from holdfast.config import ConfigInput
from holdfast.errors import TransportError, TrustError, ValidationError

if TYPE_CHECKING:
    from holdfast.registry.client import RegistryClient
    from holdfast.registry.entries import RegistryEntry
    from holdfast.registry.recipe import Recipe, UserInput, Word

LONGEST_TEXT: Final = 300
HOW: Final = "Give a URL, a command after --, or the full name of a server in the registry."


def _registry(url: str | None) -> RegistryClient:
    from holdfast.registry.client import RegistryClient

    return RegistryClient(None if url == EVERYTHING else url)


# Searching


async def search_registry(output: Output, url: str, words: tuple[str, ...], most: int) -> int:
    """Show the servers of a registry that fit these words."""
    from holdfast.registry.client import MAX_PAGES

    registry = _registry(url)
    result = await registry.search(words, most)
    if output.json:
        output.value({"servers": [_facts(entry) for entry in result.entries]})
    elif result.entries:
        blocks([(_caption(entry), _line(entry.server.description)) for entry in result.entries])
    if result.unreadable:
        output.note(f"{result.unreadable} entries cannot be read, and are left out.")
    if not result.entries:
        seen = f"the first {MAX_PAGES} pages of {registry.url}" if result.is_cut else registry.url
        note = f"Nothing in {seen} fits."
        output.note(note)
        return output.verdict(note, Exit.TOOL, "search")
    if result.is_cut:
        output.note("There may be more: search for more words, or give --most N.")
    return Exit.OK


def _caption(entry: RegistryEntry) -> str:
    server = entry.server
    kinds = ", ".join(visible(kind, 20) for kind in server.kinds[:4]) or "nothing to run"
    status = entry.fact("status")
    mark = f", {visible(status, 20)}" if status not in ("", "active") else ""
    return f"{server.name} {visible(server.version, 40)} ({kinds}{mark})"


def _line(text: str) -> str:
    return one_line(text, LONGEST_TEXT)


def _facts(entry: RegistryEntry) -> dict[str, Any]:
    server = entry.server
    return {
        "name": server.name,
        "version": server.version,
        "publisher": server.publisher,
        "kinds": server.kinds,
        "description": server.description[:LONGEST_TEXT],
        "status": entry.fact("status") or "active",
    }


# Adding


def add_from_registry(name: str, output: Output, options: dict[str, Any]) -> int:
    """Add a server by its full name; refuse anything else with the names that it may mean."""
    unfit = [key for key in ("cwd", "header", "transport") if options[key]]
    if unfit:
        raise click.UsageError(f"--{unfit[0]} needs a URL or a command. {HOW}")
    full, _, version = name.partition("@")
    registry = _registry(options["registry"])
    entry = asyncio.run(_look_up(registry, full, version or "latest", options["registry"]))
    return _Addition(entry, registry.url, output, options).carry_out()


async def _look_up(
    registry: RegistryClient, name: str, version: str, given: str | None
) -> RegistryEntry:
    from holdfast.registry.entries import FULL_NAME

    if FULL_NAME.fullmatch(name) is not None:
        return await registry.entry(name, version)
    try:
        raise await registry.refuse_bare(name)
    except TransportError:
        if given is not None:
            raise
        # Nobody spoke of a registry: the words were wrong, whatever the network says.
        raise click.UsageError(HOW) from None


class _Addition:
    """One server of a registry on its way into the configuration."""

    def __init__(
        self, entry: RegistryEntry, registry: str, output: Output, options: dict[str, Any]
    ) -> None:
        self._entry, self._registry, self._output, self._options = entry, registry, output, options
        self._server = entry.server
        self.name: str = options["alias"] or entry.server.name.partition("/")[2]
        self._recipe, self._refused = self._choose()
        self._given: dict[str, str] = options["env"]
        self._can_ask = is_interactive() and not output.json and not options["yes"]

    def _choose(self) -> tuple[Recipe, list[str]]:
        """Return the first way to start the server, and why others before it are not taken."""
        from holdfast.registry.recipe import Recipe, recipes

        if self._entry.fact("status") == "deleted":
            raise ValidationError(f"{self._server.name}: was deleted from {self._registry}")
        refused: list[str] = []
        for way in recipes(self._server, self._options["kind"]):
            if isinstance(way, Recipe):
                return way, refused
            refused.append(str(way))
        why = refused[0] if refused else self._why_nothing_fits()
        raise ValidationError(f"{self._server.name}: {why}")

    def _why_nothing_fits(self) -> str:
        kinds = ", ".join(visible(kind, 20) for kind in self._server.kinds[:8])
        if not kinds:
            return "the registry names neither a package nor a URL for it; there is nothing to add"
        return f"it has nothing of this kind to run (it has: {kinds})"

    def carry_out(self) -> int:
        """Show it, ask, write it, and offer a lock."""
        from holdfast.config import add

        if not self._output.json:
            show_pages(self._lines())
        if not self._can_ask and not self._options["yes"]:
            line = shlex.join(["holdfast", "add", self._server.name, "--yes"])
            raise TrustError(f"nobody to ask; after reading it: {line}")
        answers = {item.name: self._answer(item) for item in self._recipe.questions()}
        if self._can_ask and not confirm(f"Add it as '{visible(self.name, 80)}'?"):
            raise TrustError("nothing was added")
        done = add(
            self.name,
            **self._fields(answers),
            transport=self._recipe.transport,
            scope="project" if self._options["project"] else "user",
            overwrite=self._options["overwrite"],
        )
        return self._report(done)

    def _fields(self, answers: dict[str, str | None]) -> dict[str, Any]:
        """Return the command or URL, the variables and headers, with the answers in them."""
        recipe = self._recipe
        env = {key: value for key, value in self._given.items() if key not in answers}
        env |= _table(recipe.env, answers)
        if recipe.url:
            url = _filled(recipe.url, answers)
            return {"url": url, "headers": _table(recipe.headers, answers)}
        filled = (_filled(word, answers) for word in recipe.command)
        command = [word for word in filled if word is not None]
        return {"command": command[0], "args": command[1:], "env": env}

    def _report(self, done: Any) -> int:
        output = self._output
        if output.json:
            server = self._server
            facts = {"name": self.name, "registryName": server.name, "version": server.version}
            output.value({"file": done.file, "servers": [facts], "source": self._recipe.source})
            return Exit.OK
        output.note(f"{self.name}: added to {done.file}")
        if self._can_ask and confirm(
            "Record its tools in a lock file now? It is started for that."
        ):
            from holdfast.cli.app import run

            return run(["lock", self.name])
        output.note(f"Pin its tools, too: holdfast lock {shlex.quote(self.name)}")
        return Exit.OK

    # What is shown and asked

    def _lines(self) -> list[str]:
        """Return all that there is to know, each line escaped."""
        server, recipe = self._server, self._recipe
        lines = [
            f"{server.name} {visible(server.version, 80)}",
            f"  {_line(server.description)}",
            f"  publisher  {visible(server.publisher, 200)}, in {self._registry}",
            f"  kind       {recipe.kind}: {visible(recipe.source, 200)}",
        ]
        if recipe.command:
            lines.append(f"  runs       {shlex.join(map(_template, recipe.command))}")
        if recipe.url:
            lines.append(f"  reaches    {visible(_template(recipe.url))}")
        lines += [
            f"  sends      {name}: {_template(word)}" for name, word in recipe.headers.items()
        ]
        lines += [f"  sets       {name}={_template(word)}" for name, word in recipe.env.items()]
        lines += [f"  asks for   {_asked(item)}" for item in recipe.questions()]
        if server.repository.url:
            lines.append(f"  source     {visible(server.repository.url, 200)} (not checked)")
        if self._entry.fact("status") not in ("", "active"):
            message = _line(self._entry.fact("statusMessage"))
            lines.append(f"  careful    {visible(self._entry.fact('status'), 20)}: {message}")
        lines += [f"  left out   {text}" for text in self._refused]
        return lines

    def _answer(self, item: UserInput) -> str | None:
        """Return the value of a question; None leaves it out.

        Nothing is taken from the environment unless the user says so: a publisher may call its
        question ``AWS_SECRET_ACCESS_KEY``.
        """
        if item.name in self._given:
            return self._given[item.name]
        if self._can_ask:
            described = ConfigInput(
                id=item.name,
                description=f"{item.name}: {item.description or 'value'} (Enter: {_skip(item)})",
                password=item.is_secret,
                default=item.default or "",
                options=item.choices,
            )
            typed = ask_input(described)
            return typed or (_reference(item) if item.is_required else None)
        if item.default is not None or not item.is_required:
            return item.default
        name = visible(item.name, 80)
        raise ValidationError(
            f"{self._server.name}: needs {name}: give it with --env; --env {name} without a value "
            "takes it from your environment each time"
        )


def _skip(item: UserInput) -> str:
    if item.default:
        return "the default"
    return f"take it from {_reference(item)} each time" if item.is_required else "leave it out"


def _reference(item: UserInput) -> str:
    return f"${{{_variable(item.name)}}}"


def _variable(name: str) -> str:
    """Return the environment variable for a question: a flag or a header in its usual spelling."""
    return re.sub(r"\W+", "_", name).strip("_").upper() if not name.isidentifier() else name


def _asked(item: UserInput) -> str:
    facts = {"required": item.is_required, "secret": item.is_secret}
    marks = [word for word, is_so in facts.items() if is_so]
    mark = f" ({', '.join(marks)})" if marks else ""
    text = _line(item.description)
    return f"{visible(item.name, 80)}{mark}{': ' if text else ''}{text}"


def _template(word: Word) -> str:
    """Return a word with the names of what is asked for."""
    return "".join(piece if isinstance(piece, str) else f"<{piece.name}>" for piece in word)


def _filled(word: Word, answers: dict[str, str | None]) -> str | None:
    """Return a word with its answers; None if one of them was left out."""
    pieces = [piece if isinstance(piece, str) else answers[piece.name] for piece in word]
    texts = [piece for piece in pieces if piece is not None]
    return "".join(texts) if len(texts) == len(pieces) else None


def _table(words: dict[str, Word], answers: dict[str, str | None]) -> dict[str, str]:
    values = {name: _filled(word, answers) for name, word in words.items()}
    return {name: value for name, value in values.items() if value is not None}
