"""A small MCP server over stdio, to try clients against: ``python -m holdfast.demo.server``."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any, Final

from holdfast._core.eras.revisions import SKILLS, TASKS
from holdfast._core.eras.serving import Json, select
from holdfast._core.serve.stdio import run
from holdfast._core.server.catalog import Catalog, Offered, resource, user_message
from holdfast._core.server.server import Server
from holdfast._core.server.tasks import TaskTable
from holdfast._core.wire.codes import INVALID_PARAMS, RequestError
from holdfast.demo.tools import NOTE_NAME, NOTE_PREFIX, gradient, offer_tools

INSTRUCTIONS: Final = (
    "A server to try MCP clients against. Every tool does what its description says; "
    "`crash` ends the server, `sleep` and `countdown` take the time they are given."
)

_ABOUT = """This is the demo server that comes with Holdfast.
It runs no model, opens no file and no connection; its notes live until it ends.
"""
_TIDES = """The tide comes in, the tide goes out,
the weed holds on to the stone.
"""
_PLANETS = '{"inner": ["Mercury", "Venus", "Earth", "Mars"], "outer": ["Jupiter", "Saturn"]}\n'

_SKILL: Final = {
    "name": "tide-watch",
    "description": "Reports on the tide. Use it when somebody asks how the sea is doing.",
}
_SKILL_FILES: Final = {
    "SKILL.md": f"""---
name: {_SKILL["name"]}
description: {_SKILL["description"]}
---
1. Read the resource `demo://tides`.
2. Count its words with the tool `word_count`.
3. Report in the style of `style.md`.
""",
    "style.md": "Two short lines, about the sea.\n",
}

_FIXED: Final = {"ttlMs": 60_000, "cacheScope": "public"}
_HINTS: Final = {
    "server/discover": _FIXED,
    "tools/list": _FIXED,
    "prompts/list": _FIXED,
    "resources/templates/list": _FIXED,
}

_CAPABILITIES: Final[Json] = {
    "tools": {},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "logging": {},
    "completions": {},
    "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}},
    "extensions": {TASKS: {}, SKILLS: {}},
}

_TEMPLATE: Final = {
    "uriTemplate": NOTE_PREFIX + "{name}",
    "name": "note",
    "description": "A note written with the `note` tool",
    "mimeType": "text/plain",
}

_STYLES: Final = {
    "formal": "Write a formal greeting to {name}.",
    "friendly": "Write a friendly greeting to {name}.",
    "pirate": "Greet {name} the way a pirate would.",
    "poem": "Greet {name} in four rhyming lines.",
}


def make_server(eras: str = "both", page_size: int | None = None) -> Server:
    """Return the demo server.

    Args:
        eras: ``handshake``, ``stateless`` or ``both``.
        page_size: The number of items on a page of a list; None for all.
    """
    catalog = Catalog(page_size)
    offer_tools(catalog)
    _offer_resources(catalog)
    _offer_prompts(catalog)
    tasks = TaskTable(
        catalog.call_tool,
        {name for name, offer in catalog.tools.items() if "execution" in offer.definition},
        new_id=lambda: os.urandom(16).hex(),
        now=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    handlers = {
        **catalog.handlers(),
        **tasks.handlers(),
        "completion/complete": lambda request: _complete(catalog, request.params),
    }
    server = Server(
        "holdfast-demo",
        handlers,
        versions=select(eras),
        capabilities=_CAPABILITIES.copy,
        instructions=INSTRUCTIONS,
        hints=_HINTS,
    )
    server.watchable = lambda uri: uri in catalog.resources or _note_name(uri) is not None
    return server


# Resources


def _offer_resources(catalog: Catalog) -> None:
    fixed = (
        ("about", "What this server is", "text/plain", _ABOUT),
        ("tides", "A short poem", "text/plain", _TIDES),
        ("planets", "Some planets, as JSON", "application/json", _PLANETS),
    )
    for name, description, mime, text in fixed:
        uri = f"demo://{name}"
        described = {"name": name, "description": description, "mimeType": mime}
        catalog.resources[uri] = resource(uri, text, hints=_FIXED, **described)
    picture = {"uri": "demo://picture", "mimeType": "image/png"}
    catalog.resources[picture["uri"]] = Offered(
        {"name": "picture", "description": "A colour gradient", **picture},
        # Drawn when it is read.
        lambda request, arguments: {"contents": [{**picture, "blob": gradient(64, 64)}], **_FIXED},
    )
    catalog.templates.append(_TEMPLATE)
    catalog.add_skill(f"skill://{_SKILL['name']}", _SKILL_FILES, _SKILL)


def _note_name(uri: str) -> str | None:
    """Return the name in a note's uri, or None if it is not one."""
    name = uri.removeprefix(NOTE_PREFIX)
    return name if name != uri and re.fullmatch(NOTE_NAME, name) else None


# Prompts and completion


def _offer_prompts(catalog: Catalog) -> None:
    arguments = [
        {"name": "name", "description": "Whom to greet", "required": True},
        {"name": "style", "description": f"One of {', '.join(_STYLES)}", "required": False},
    ]
    about = "Asks a model to greet somebody"
    greeting = {"name": "greeting", "description": about, "arguments": arguments}
    tour = {"name": "tour", "description": "Asks a model to try out the tools of this server"}
    text = "Try each tool of the demo server once and tell what it did."
    catalog.prompts["greeting"] = Offered(greeting, lambda request, values: _greeting(values))
    catalog.prompts["tour"] = Offered(tour, lambda request, values: user_message(text, "A tour"))


def _greeting(arguments: Json) -> Json:
    name, style = arguments.get("name"), arguments.get("style", "friendly")
    if not isinstance(name, str):
        raise RequestError(INVALID_PARAMS, "argument 'name' is missing or not a string")
    if not isinstance(style, str) or style not in _STYLES:
        raise RequestError(INVALID_PARAMS, f"argument 'style' must be one of {', '.join(_STYLES)}")
    return user_message(_STYLES[style].format(name=name), "A greeting")


def _complete(catalog: Catalog, params: Json) -> Json:
    """Return the values that begin with what was typed so far."""
    argument = params.get("argument")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RequestError(INVALID_PARAMS, "argument must be an object with a name and a value")
    candidates = _known_values(catalog, params.get("ref"), argument.get("name"))
    values = sorted(value for value in candidates if value.startswith(argument["value"]))
    page = values[:100]  # Server: Completion: at most 100 values
    counts = {"total": len(values), "hasMore": len(page) < len(values)}
    return {"completion": {"values": page, **counts}}


def _known_values(catalog: Catalog, ref: Any, name: Any) -> list[str]:
    match ref, name:
        case {"type": "ref/prompt", "name": "greeting"}, "style":
            return list(_STYLES)
        case {"type": "ref/prompt", "name": "greeting"}, "name":
            return []
        case {"type": "ref/resource", "uri": uri}, "name" if uri == _TEMPLATE["uriTemplate"]:
            return [note for uri in catalog.resources if (note := _note_name(uri)) is not None]
    raise RequestError(INVALID_PARAMS, f"nothing to complete: ref {ref!r}, argument {name!r}")


# The command line


def main(arguments: list[str]) -> None:
    """Serve on standard input and output; argparse is loaded only if there are options."""
    if not arguments:
        run(make_server())
        return
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m holdfast.demo.server", description="An MCP server over stdio, to try out."
    )
    parser.add_argument(
        "--eras",
        choices=("handshake", "stateless", "both"),
        default="both",
        help="the eras of the protocol to speak (default: both)",
    )
    parser.add_argument(
        "--page-size", type=_positive, metavar="N", help="give every list in pages of N"
    )
    parser.add_argument(
        "--http",
        type=int,
        metavar="PORT",
        help="serve on http://127.0.0.1:PORT/mcp instead, for any number of clients",
    )
    options = parser.parse_args(arguments)
    server = make_server(options.eras, options.page_size)
    if options.http is None:
        run(server)
    else:
        _serve_http(server, options.http)


def _serve_http(server: Server, port: int) -> None:
    import asyncio
    from contextlib import suppress

    from holdfast._core.serve.http import HttpServer

    async def serve() -> None:
        bound_port = await HttpServer(server).start(port=port)
        print(f"http://127.0.0.1:{bound_port}/mcp", file=sys.stderr, flush=True)
        await asyncio.Event().wait()

    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(serve())
    except OSError as error:
        sys.exit(f"holdfast.demo.server: {error.strerror}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


if __name__ == "__main__":
    main(sys.argv[1:])
