"""Tools by their names, those near them, and where they were last seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast._core.text import close_matches, did_you_mean, visible
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
    """Return the cached tools. Raises ValidationError if the server was never seen."""
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
    hint = suggestion(name, known, "The server has no tools at all.", verbs)
    raise ValidationError(f"There is no tool {name!r}. {hint}")


def suggestion(
    name: str,
    known: Iterable[str],
    none: str = "There are none at all.",
    also: Iterable[str] = (),
) -> str:
    """Return the known names that may be meant, or else some of those that there are."""
    names = list(known)
    if near := did_you_mean(name, [*names, *also], 3):
        return f"D{near[1:]}"
    more = ", …" if len(names) > 20 else ""
    return f"There are: {', '.join(map(visible, names[:20]))}{more}" if names else none
