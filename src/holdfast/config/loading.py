"""All servers of all files: who wins, who is shadowed, and what is wrong with whom."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.config import dialects, discovery, files
from holdfast.config.dialects.common import Reading
from holdfast.config.discovery import Place
from holdfast.config.entry import Scope, ServerEntry, Source
from holdfast.config.environment import Surroundings
from holdfast.config.files import UnreadableError
from holdfast.config.problems import Problem, visible
from holdfast.errors import ValidationError


class FileFound(Struct, frozen=True, kw_only=True):
    """A configuration file that is there, and the servers that it has."""

    path: str
    scope: Scope
    dialect: str
    servers: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class Configuration(Struct, frozen=True, kw_only=True):
    """Every server that is configured, by name. Reading it has started nothing."""

    servers: Mapping[str, ServerEntry]
    shadowed: Mapping[str, tuple[ServerEntry, ...]]
    """Entries of the same name that lost, in order."""
    files: tuple[FileFound, ...]
    problems: tuple[Problem, ...]
    """What is wrong with files; what is wrong with a server is in its entry."""
    around: Surroundings

    def __repr__(self) -> str:
        return f"<Configuration {', '.join(self.servers) or 'without servers'}>"

    def __iter__(self) -> Iterator[ServerEntry]:
        return iter(self.servers.values())

    def __contains__(self, name: object) -> bool:
        return name in self.servers

    def __getitem__(self, name: str) -> ServerEntry:
        """The entry of this name; an unknown one is refused with what there is."""
        try:
            return self.servers[name]
        except KeyError:
            raise ValidationError(self._unknown(name)) from None

    def _unknown(self, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, self.servers, 1)
        if close:
            hint = f"did you mean {close[0]!r}?"
        elif self.servers:
            hint = f"there are: {', '.join(self.servers)}"
        else:
            hint = "no server is configured (holdfast config show lists the files)"
        broken = "".join(f"\n{problem}" for problem in self.problems if problem.level == "error")
        return f"no server {visible(name)!r}: {hint}{broken}"


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    start: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Configuration:
    """The configuration: the file at ``path`` or ``$HOLDFAST_CONFIG`` alone, or all usual ones.

    A file that was named and cannot be used raises ValidationError; one that was found is told
    in ``problems``, and the others are read all the same.
    """
    around = Surroundings(start=start, environ=environ, home=home)
    named = path or _from_variable(around)
    if not named:
        return _gather(discovery.places(around), around)
    place = discovery.explicit(named, around)
    found = _gather([place], around)
    if found.problems:
        raise ValidationError(str(found.problems[0]), data=found.problems)
    if not found.files:
        raise ValidationError(f"{visible(place.path)}: there is no such file")
    return found


def _from_variable(around: Surroundings) -> str | None:
    named = around.environ.get(discovery.VARIABLE)
    if named and not (os.path.isabs(named) or named.startswith("~/")):
        # It would name, and so trust, a file of every project that one walks into.
        raise ValidationError(f"{discovery.VARIABLE}={named!r}: must be an absolute path")
    return named


class _Files:
    """Each file is read once, however many sections of it are wanted."""

    def __init__(self) -> None:
        self._read: dict[str, Mapping[str, Any] | Problem | None] = {}

    def document(self, place: Place) -> Mapping[str, Any] | Problem | None:
        if place.path not in self._read:
            self._read[place.path] = self._load(place)
        return self._read[place.path]

    def _load(self, place: Place) -> Mapping[str, Any] | Problem | None:
        of_project = place.scope == "project"
        limit = files.MOST_BYTES if of_project else files.MOST_BYTES_OWN
        inside = place.workspace if of_project else None
        try:
            data = files.read(place.path, limit=limit, inside=inside)
            return None if data is None else files.parse(place.path, data)
        except UnreadableError as error:
            return Problem(file=place.path, message=str(error))


def _gather(places: list[Place], around: Surroundings) -> Configuration:
    files = _Files()
    entries: dict[str, list[ServerEntry]] = {}
    found: dict[str, FileFound] = {}
    for place in places:
        document = files.document(place)
        if document is None:
            continue
        dialect, reading = _read(place, document, around)
        if place.section and not reading.entries:
            continue
        for entry in reading.entries:
            entries.setdefault(entry.name, []).append(entry)
        _note(found, place, dialect, reading)
    return Configuration(
        servers=MappingProxyType({name: _first(all_of) for name, all_of in entries.items()}),
        shadowed=MappingProxyType(
            {name: tuple(all_of[1:]) for name, all_of in entries.items() if all_of[1:]}
        ),
        files=tuple(found.values()),
        problems=tuple(problem for file in found.values() for problem in file.problems),
        around=around,
    )


def _first(entries: list[ServerEntry]) -> ServerEntry:
    first, *others = entries
    return replace(first, hides=tuple(entry.source for entry in others)) if others else first


def _read(
    place: Place, document: Mapping[str, Any] | Problem, around: Surroundings
) -> tuple[str, Reading]:
    if isinstance(document, Problem):
        return place.dialect or "", Reading(problems=(document,))
    part = _section(document, place.section)
    dialect = dialects.detect(place.path, part) or place.dialect
    if dialect is None:
        text = "has no servers in it: neither mcpServers, servers, mcp_servers nor extensions"
        return "", Reading(problems=(Problem(file=place.path, message=text),))
    source = Source(
        file=place.path,
        scope=place.scope,
        dialect=dialect,
        workspace=place.workspace,
        around=around,
        section=place.section,
    )
    return dialect, dialects.read(dialect, part, source)


def _section(document: Mapping[str, Any], section: tuple[str, ...]) -> Mapping[str, Any]:
    for key in section:
        inner = document.get(key)
        document = inner if isinstance(inner, Mapping) else {}
    return document


def _note(found: dict[str, FileFound], place: Place, dialect: str, reading: Reading) -> None:
    before = found.get(place.path)
    names = tuple(entry.name for entry in reading.entries)
    problems = reading.problems
    if before is not None:
        names = before.servers + names
        problems += tuple(p for p in before.problems if p not in problems)
    found[place.path] = FileFound(
        path=place.path, scope=place.scope, dialect=dialect, servers=names, problems=problems
    )
