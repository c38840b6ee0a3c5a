"""The tools that servers were last seen to offer, for completion and ``--offline``.

One small file per server in the user's cache folder. It may be missing, old or broken at any
time, so it is only ever a convenience.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast._core.files import make_private_folder, read_bytes, write_atomic, xdg_folder
from holdfast._core.text import close_matches, did_you_mean
from holdfast.cli.target import VARIABLE, ServerTarget, is_url
from holdfast.errors import RpcError, ValidationError

if TYPE_CHECKING:
    from holdfast import Client


MOST_BYTES: Final = 64 * 1024 * 1024


def folder() -> Path:
    """Return the folder of the cache."""
    return xdg_folder("cache") / "holdfast" / "manifests"


def path_for(key: str) -> Path:
    """Return the file of a server: by name if configured, else by a hash."""
    if len(key) <= 60 and key.isascii() and key.replace("-", "").replace("_", "").isalnum():
        return folder() / f"server-{key}.json"
    from hashlib import sha256

    return folder() / f"{sha256(key.encode()).hexdigest()[:32]}.json"


class CachedTools(NamedTuple):
    """The tools of a server, when they were seen, and the file that named the server, if any."""

    tools: list[dict[str, Any]]
    seen: float
    source: str

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.seen))
        return f"as seen on {when}{f', configured in {self.source}' if self.source else ''}"


def save(key: str, tools: Iterable[dict[str, Any]], source: str = "") -> None:
    """Store a list of tools; ignore a failure. An unchanged list only gets a new time."""
    path = path_for(key)
    try:
        data = json.dumps({"server": key, "source": source, "tools": list(tools)}).encode()
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            os.utime(path)
            return
        make_private_folder(path.parent)
        write_atomic(path, data, private=True)
    except (OSError, UnicodeError):
        return


def load(key: str) -> CachedTools | None:
    """Return what a server was last seen with; None if it never was."""
    path = path_for(key)
    try:
        found = json.loads(read_bytes(path, MOST_BYTES))
        tools, seen, source = found["tools"], path.stat().st_mtime, str(found["source"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(tools, list):
        return None
    sound = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    return CachedTools(sound, seen, source)


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


# Of one command


def key_of(target: ServerTarget, server: str | None) -> str:
    """Return the key that a server is remembered under."""
    if target.command is not None:
        return shlex.join(target.command)
    if server is not None and not is_url(server) and not target.is_configured(server):
        return os.path.abspath(server)
    return target.url or server or os.environ.get(VARIABLE, "")


async def listed(target: ServerTarget, server: str | None, client: Client) -> list[dict[str, Any]]:
    """Return the tools as the server describes them, and store them."""
    found = [tool.raw for tool in await client.list_tools()]
    keep(target, server, found)
    return found


def keep(target: ServerTarget, server: str | None, tools: list[dict[str, Any]]) -> None:
    """Store tools for completion and ``--offline``."""
    source = ""
    if server is not None and target.is_configured(server):
        source = target.configuration[server].source.file
    save(key_of(target, server), tools, source)


async def schema_of(
    target: ServerTarget, server: str | None, client: Client, tool: str
) -> dict[str, Any]:
    """Return the input schema of a tool; empty if the server has no list."""
    from holdfast._core.wire.codes import METHOD_NOT_FOUND

    try:
        found = await listed(target, server, client)
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return {}
    names = [one["name"] for one in found]
    if not target.given and tool not in names and not close_matches(tool, names, 1):
        others = seen_with(target.configuration.servers, tool)
        if others:
            where = f"{server} has" if server else "There is"
            raise ValidationError(
                f"{where} no tool {tool!r}. Did you mean {' or '.join(map(repr, others))}?"
            )
    schema = pick(found, tool).get("inputSchema")
    return schema if isinstance(schema, dict) else {}


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
