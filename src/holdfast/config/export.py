"""From any dialect to a ``mcp.json`` of Holdfast's own, and what was lost on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.config import settings
from holdfast.config.entry import ServerEntry, absolute
from holdfast.config.expansion import Input
from holdfast.config.loading import load


class Imported(Struct, frozen=True, kw_only=True):
    """The text of the new file, the servers in it, and what did not make it."""

    text: str
    servers: tuple[str, ...]
    lost: tuple[str, ...]


def import_(
    path: str | os.PathLike[str],
    *,
    start: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Imported:
    """Read a file of any dialect; variables stay variables, relative paths become absolute."""
    found = load(path, start=start, environ=environ, home=home)
    kept = [_at_home(entry) for entry in found.servers.values() if entry.command or entry.url]
    return Imported(
        text=dump(kept),
        servers=tuple(entry.name for entry in kept),
        lost=tuple(str(problem) for entry in found.servers.values() for problem in entry.problems),
    )


def dump(entries: list[ServerEntry]) -> str:
    """The text of a file with these servers."""
    document: dict[str, Any] = {"mcpServers": {one.name: definition(one) for one in entries}}
    inputs = {name: asked for entry in entries for name, asked in entry.inputs.items()}
    if inputs:
        document["inputs"] = [_input(asked) for asked in inputs.values()]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def definition(entry: ServerEntry) -> dict[str, Any]:
    """An entry as ``mcpServers`` writes it."""
    if entry.url is None:
        own: dict[str, Any] = {
            "command": entry.command,
            "args": list(entry.args),
            "env": dict(entry.env),
            "envFile": entry.env_file,
            "cwd": entry.cwd,
        }
    else:
        own = {
            "type": _TYPES[entry.transport],
            "url": entry.url,
            "headers": dict(entry.headers),
        }
    own["disabled"] = entry.disabled
    own["holdfast"] = settings.changed(entry.settings)
    return {name: value for name, value in own.items() if value}


_TYPES = {"auto": "http", "streamable": "streamable-http", "sse": "sse"}


def _input(asked: Input) -> dict[str, Any]:
    found = {
        "type": asked.type,
        "id": asked.id,
        "description": asked.description,
        "default": asked.default,
        "password": asked.password,
        "options": list(asked.options),
    }
    return {name: value for name, value in found.items() if value}


def _at_home(entry: ServerEntry) -> ServerEntry:
    """With absolute paths: the new file lies elsewhere."""
    said = entry.settings
    lock = said.lock
    return replace(
        entry,
        cwd=_path(entry, entry.cwd),
        env_file=_path(entry, entry.env_file),
        settings=replace(
            said,
            lock=None if lock is None else replace(lock, path=_path(entry, lock.path) or ""),
            log=_path(entry, said.log),
            ca=_path(entry, said.ca),
            cert=_path(entry, said.cert),
            key=_path(entry, said.key),
        ),
    )


def _path(entry: ServerEntry, path: str | None) -> str | None:
    if path is None or path.startswith("${"):
        return path
    source = entry.source
    return absolute(path, source.base, str(source.around.home))
