"""What Tab offers: servers from the configuration, tools and parameters as they were last seen.

Nothing is started, and whatever is wrong with a file offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from holdfast.cli import manifests
from holdfast.cli.render import first_line

Suggest = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def servers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of the configured servers."""
    return [CompletionItem(name) for name in _servers(ctx) if name.startswith(incomplete)]


def tools(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """``server.tool`` for every server that was seen; tools alone where the server is given."""
    url = ctx.params.get("url")
    if url:
        return list(_tools(url, "", incomplete))
    found: list[CompletionItem] = []
    for name in _servers(ctx):
        if f"{name}.".startswith(incomplete) or incomplete.startswith(f"{name}."):
            known = list(_tools(name, f"{name}.", incomplete))
            found += known or [CompletionItem(f"{name}.")]
    return found


def parameters(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """``name=`` for the parameters of the tool that was named before."""
    tool = _named(ctx)
    schema = tool.get("inputSchema") if tool else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    used = {str(word).partition("=")[0].rstrip(":") for word in ctx.params.get("words") or ()}
    return [
        CompletionItem(f"{name}=", help=first_line(_words(part)))
        for name, part in properties.items()
        if name.startswith(incomplete) and name not in used
    ]


def _servers(ctx: click.Context) -> list[str]:
    from holdfast.configuration import load

    try:
        return list(load(ctx.params.get("config")).servers)
    except Exception:  # whatever it is: a person is typing, this is no time for it
        return []


def _tools(key: str, prefix: str, incomplete: str) -> Iterator[CompletionItem]:
    for tool in manifests.recall(key) or ():
        name = f"{prefix}{tool['name']}"
        if name.startswith(incomplete):
            yield CompletionItem(name, help=first_line(_words(tool)))


def _named(ctx: click.Context) -> dict[str, Any] | None:
    word = str(ctx.params.get("tool") or "")
    url = ctx.params.get("url")
    places = [(url, "")] if url else [(name, f"{name}.") for name in _servers(ctx)]
    for key, prefix in sorted(places, key=lambda place: len(place[1]), reverse=True):
        if word.startswith(prefix):
            for tool in manifests.recall(key) or ():
                if tool["name"] == word[len(prefix) :]:
                    return tool
    return None


def _words(part: Any) -> str:
    return str(part.get("description") or "") if isinstance(part, dict) else ""
