"""A server's tools as the command line has them: plain, and remembered for the next time."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.cli import manifests
from holdfast.cli.target import VARIABLE, Aim, is_url
from holdfast.errors import RpcError, ValidationError

if TYPE_CHECKING:
    from holdfast import Client


def key_of(aim: Aim, server: str | None) -> str:
    """What a server is remembered under."""
    if aim.command is not None:
        return shlex.join(aim.command)
    return aim.url or server or os.environ.get(VARIABLE, "")


async def listed(aim: Aim, server: str | None, client: Client) -> list[dict[str, Any]]:
    """The tools, as the server describes them."""
    found = [tool.raw for tool in await client.list_tools()]
    keep(aim, server, found)
    return found


def keep(aim: Aim, server: str | None, tools: list[dict[str, Any]]) -> None:
    """Remember them for the next time that nobody wants to ask the server."""
    source = ""
    if server is not None and not is_url(server):
        source = aim.configuration[server].source.file
    manifests.save(key_of(aim, server), tools, source)


async def schema_of(aim: Aim, server: str | None, client: Client, tool: str) -> dict[str, Any]:
    """What a tool takes; anything, if the server has no list to say so."""
    from holdfast._core.wire.codes import METHOD_NOT_FOUND

    try:
        found = await listed(aim, server, client)
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return {}
    schema = pick(found, tool).get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def pick(tools: Iterable[dict[str, Any]], name: str, verbs: Iterable[str] = ()) -> dict[str, Any]:
    """The tool of that name, or an error that says what there is; one of ``verbs``, perhaps."""
    known = {tool["name"]: tool for tool in tools}
    if name in known:
        return known[name]
    from difflib import get_close_matches

    near = get_close_matches(name, [*known, *verbs], 3)
    if near:
        hint = f"Did you mean {' or '.join(map(repr, near))}?"
    elif known:
        some = ", ".join(list(known)[:20])
        hint = f"There are: {some}{', …' if len(known) > 20 else ''}"
    else:
        hint = "The server has no tools at all."
    raise ValidationError(f"There is no tool {name!r}. {hint}")
