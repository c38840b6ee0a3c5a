"""Shell completion: servers from the configuration, tools and parameters from the cache.

No server is started. A broken file completes to nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.text import has_unseen, visible
from holdfast.cli import tool_cache
from holdfast.cli.main import VARIABLE
from holdfast.cli.views import first_line
from holdfast.schema.signature import resolve
from holdfast.schema.types import admitted_types
from holdfast.schema.walk import properties as schema_properties

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# What is offered here is inserted into a line that a person is about to run. Names of servers come
# from files of projects, tools and choices from servers: all of them may be hostile. Three things
# follow. Only words of plain characters are offered (see `_completer`). Descriptions are escaped.
# And nothing is read but our own cache and the configuration, within their bounds: Tab starts no
# server, and waits for none.

_AT_FILE = ("=@", ":=@")
_PLAIN = re.compile(r"[\w@%+:,./](?:[\w@%+=:,./ -]*[\w@%+=:,./-])?")

Offers = Iterable[tuple[str, str]]
"""Words, each with its description."""
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _completer(suggest: Callable[[click.Context, click.Parameter, str], Offers]) -> Complete:
    """Wrap a completer: after ``--`` is a command, for which the shell completes files.

    Only words are offered that are made of characters that no shell acts on, but for spaces.
    Servers, schemas and checkouts name what is offered: behind an open double quote, Tab on
    ``docs$(…)`` would insert a command that the shell runs. Spaces are quoted by the shell.
    """

    @wraps(suggest)
    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # loaded at Tab alone

        words, place = os.environ.get("COMP_WORDS", "").split(), os.environ.get("COMP_CWORD", "")
        if "--" in words[: int(place) if place.isdecimal() else None]:
            return [CompletionItem(incomplete, "file")]
        return [
            CompletionItem(word, help=visible(about))
            for word, about in suggest(ctx, param, incomplete)
            if _PLAIN.fullmatch(word) and not has_unseen(word)
        ]

    return offer


@_completer
def servers(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offers:
    """The names of the configured servers, until one is given."""
    if param.nargs == -1 and ctx.params.get(param.name or ""):
        return []
    return [(name, "") for name in _servers(ctx) if name.startswith(incomplete)]


@_completer
def tools(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offers:
    """``server.tool`` for every server that was seen; tools alone where the server is given."""
    before = [str(word) for word in ctx.params.get("words") or ()]
    if before:
        is_server = len(before) == 1 and before[0] in _servers(ctx)
        return _beginning(_tools([(before[0], "")]), incomplete) if is_server else []
    return [
        offer for key, prefix in _places(ctx) for offer in _tools_below(key, prefix, incomplete)
    ]


def _tools_below(key: str, prefix: str, incomplete: str) -> Offers:
    """Offer the tools of a server, or its prefix alone where no tool is known."""
    if not (prefix.startswith(incomplete) or incomplete.startswith(prefix)):
        return []
    return _beginning(_tools([(key, prefix)]), incomplete) or ([(prefix, "")] if prefix else [])


@_completer
def prefixes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offers:
    """``server.``, where what follows is not known before the server was asked."""
    return [(f"{name}.", "") for name in _servers(ctx) if f"{name}.".startswith(incomplete)]


@_completer
def parameters(ctx: click.Context, param: click.Parameter, incomplete: str) -> Offers:
    """``name=`` for the parameters of the tool that was named before, and then their choices.

    After ``call SERVER`` the tools of the server; the next word is one of them.
    """
    words = [str(word) for word in ctx.params.get("words") or ()]
    dotted = str(ctx.params.get("tool") or "")
    if dotted in _servers(ctx):
        if not words:
            return _beginning(_tools([(dotted, "")]), incomplete)
        dotted = f"{dotted}.{words.pop(0)}"
    if incomplete in _AT_FILE:  # bash takes a word apart at these signs, but keeps the last
        return _paths("", "@")
    if words and words[-1] in _AT_FILE:
        return _paths(incomplete.removeprefix("@"), "@")
    return _assignments(_input_schema(ctx, dotted), words, incomplete)


def _input_schema(ctx: click.Context, dotted: str) -> Any:
    """Return the cached schema of ``server.tool``; None if it was not seen."""
    # Of servers, the longest name counts.
    places = sorted(_places(ctx), key=lambda place: len(place[1]), reverse=True)
    tools = (tool for name, tool in _tools(places) if name == dotted)
    return next((tool.get("inputSchema") for tool in tools), None)


def _assignments(schema: Any, words: list[str], incomplete: str) -> Offers:
    """``name=`` for parameters that are not given yet; ``name=value`` where the name is."""
    properties = schema_properties(schema)
    name, sign, begun = incomplete.partition("=")
    if sign and begun.startswith("@"):
        return _paths(begun[1:], f"{name}=@")
    if sign and name:
        return _choices(properties.get(name), schema, begun, f"{name}=")
    before = [word for word in words if word != "="][-1:]
    if before and before[0] in properties:  # bash takes a word apart at this sign
        return _choices(properties[before[0]], schema, incomplete, "")
    return _unused_names(properties, words, incomplete)


def _unused_names(properties: Mapping[str, Any], words: list[str], incomplete: str) -> Offers:
    used = {word.partition("=")[0].rstrip(":") for word in words}
    return [
        (f"{name}=", _words(part))
        for name, part in properties.items()
        if name.startswith(incomplete) and name not in used
    ]


def _choices(part: Any, schema: Any, begun: str, prefix: str) -> Offers:
    """The values of a parameter, where there are few."""
    part = resolve(part, schema)
    values = part.get("enum")
    if not isinstance(values, list):
        values = [True, False] if admitted_types(part) == {"boolean"} else []
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return [(f"{prefix}{text}", "") for text in texts if text.startswith(begun)]


def _paths(begun: str, prefix: str) -> Offers:
    """Files whose names begin so; the shell would not find them behind the sign."""
    from glob import escape, iglob

    paths = sorted(iglob(f"{escape(begun)}*"))
    return [(f"{prefix}{path}{'/' * os.path.isdir(path)}", "") for path in paths]


def _places(ctx: click.Context) -> list[tuple[str, str]]:
    """Where tools may be: what the server is remembered under, what stands before its tools."""
    if url := ctx.params.get("url"):
        return [(str(url), "")]
    places = [(name, f"{name}.") for name in _servers(ctx)]
    variable = os.environ.get(VARIABLE)
    return [*places, (variable, "")] if variable else places


def _servers(ctx: click.Context) -> list[str]:
    from holdfast.config import is_safe_name, load

    try:
        return list(filter(is_safe_name, load(ctx.params.get("config")).servers))
    except Exception:  # an error message would land in the line that a person is typing
        return []


def _tools(places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tools that were seen in these places, with their names as they are written."""
    for key, prefix in places:
        cached = tool_cache.load(key)
        for tool in cached.raw if cached is not None else ():
            yield f"{prefix}{tool['name']}", tool


def _beginning(tools: Iterable[tuple[str, dict[str, Any]]], begun: str) -> list[tuple[str, str]]:
    return [(name, _words(tool)) for name, tool in tools if name.startswith(begun)]


def _words(part: Any) -> str:
    return first_line(str(part.get("description") or "")) if isinstance(part, dict) else ""
