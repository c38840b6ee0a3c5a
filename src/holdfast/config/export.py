"""Entries as a ``mcp.json`` of Holdfast's own, from any dialect, and what was lost on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.config.entry import ServerEntry, absolute, said
from holdfast.config.expansion import ConfigInput
from holdfast.config.loading import load
from holdfast.config.settings import map_strings, plain

TYPES: Final = {"auto": "http", "streamable": "streamable-http", "sse": "sse"}


class ImportedConfig(Struct, frozen=True, kw_only=True):
    """The text of the new file, the servers in it, and what was lost."""

    text: str
    servers: tuple[str, ...]
    lost: tuple[str, ...]


def import_(
    path: str | os.PathLike[str],
    *,
    start: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> ImportedConfig:
    """Read a file of any dialect; variables stay variables, relative paths become absolute.

    Args:
        path: The file.
        start: As in `load`.
        environ: As in `load`.
        home: As in `load`.

    Raises:
        ValidationError: The file cannot be used.
    """
    found = load(path, start=start, environ=environ, home=home)
    kept = [at_home(entry) for entry in found.servers.values() if entry.command or entry.url]
    return ImportedConfig(
        text=dump(kept),
        servers=tuple(entry.name for entry in kept),
        lost=tuple(str(problem) for entry in found.servers.values() for problem in entry.problems),
    )


def dump(entries: list[ServerEntry]) -> str:
    """Return the text of a file with these servers."""
    document: dict[str, Any] = {"mcpServers": {one.name: definition(one) for one in entries}}
    inputs = {name: asked for entry in entries for name, asked in entry.inputs.items()}
    if inputs:
        document["inputs"] = [input_definition(asked) for asked in inputs.values()]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def definition(entry: ServerEntry) -> dict[str, Any]:
    """Return an entry as ``mcpServers`` writes it."""
    found = {} if entry.url is None else {"type": TYPES[entry.transport]}
    own: dict[str, Any] = {}
    for row, value in said(entry):
        if row.own:
            own[row.name] = plain(value)
        elif row.name != "transport":
            found[row.key or row.name] = plain(value)
    return {**found, "holdfast": own} if own else found


def input_definition(asked: ConfigInput) -> dict[str, Any]:
    """Return an input as a file writes it."""
    fields = {name: plain(getattr(asked, name)) for name in asked.__struct_fields__}
    return {name: value for name, value in fields.items() if value}


def at_home(entry: ServerEntry) -> ServerEntry:
    """Return the entry with absolute paths, for a file that lies elsewhere."""
    source = entry.source

    def move(_: str, path: str) -> str:
        if path.startswith("${"):
            return path
        return absolute(path, source.base, str(source.environment.home))

    moved = {row.name: map_strings(row.name, value, move) for row, value in said(entry) if row.path}
    own = {name: moved.pop(name) for name in list(moved) if name in entry.settings}
    return replace(entry, settings={**entry.settings, **own}, **moved)
