"""Tools by their names, those near them, and where they were last seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast._core.text import close_matches, did_you_mean
from holdfast.cli.tool_cache import CachedTools, load
from holdfast.errors import ValidationError


def seen_with(servers: Iterable[str], tool: str) -> list[str]:
    """Return ``server.tool`` for the servers that were last seen with this tool, or one near it."""
    known: dict[str, list[str]] = {}
    for server in servers:
        found = load(server)
        for one in found.tools if found is not None else ():
            known.setdefault(one["name"], []).append(f"{server}.{one['name']}")
    near = [tool] if tool in known else close_matches(tool, known, 1)
    return known[near[0]][:3] if near else []


def require(key: str) -> CachedTools:
    """Return the same. Raises ValidationError if the server was never seen."""
    found = load(key)
    if found is None:
        raise ValidationError(
            f"{key}: not seen yet, so nothing is known of it offline; "
            "list its tools once without --offline"
        )
    return found


def pick(tools: Iterable[dict[str, Any]], name: str, verbs: Iterable[str] = ()) -> dict[str, Any]:
    """Return the tool of that name. Raises ValidationError with the nearest names."""
    known = {tool["name"]: tool for tool in tools}
    if name in known:
        return known[name]
    if near := did_you_mean(name, [*known, *verbs], 3):
        hint = f"D{near[1:]}"
    elif known:
        some = ", ".join(list(known)[:20])
        hint = f"There are: {some}{', …' if len(known) > 20 else ''}"
    else:
        hint = "The server has no tools at all."
    raise ValidationError(f"There is no tool {name!r}. {hint}")
