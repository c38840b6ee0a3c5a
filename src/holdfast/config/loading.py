"""All servers of all files: precedence, shadowed entries, and problems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.text import did_you_mean, join_words, visible
from holdfast.config import dialects, files
from holdfast.config.entry import ConfigProblem, ServerEntry
from holdfast.config.environment import (
    VARIABLE,
    ConfigEnvironment,
    ConfigScope,
    EntrySource,
    named_file,
    usual_files,
)
from holdfast.errors import ValidationError

_MOST_SHOWN: Final = 20


class LoadedFile(Struct, frozen=True, kw_only=True):
    """A configuration file that was found, and the servers in it."""

    path: str
    scope: ConfigScope
    dialect: str
    servers: tuple[str, ...] = ()
    problems: tuple[ConfigProblem, ...] = ()


class Configuration(Struct, frozen=True, kw_only=True):
    """Every configured server, by name. Reading it starts nothing.

    ``config[name]`` is the `ServerEntry` of a name; iterating gives all of them.
    """

    servers: Mapping[str, ServerEntry]
    shadowed: Mapping[str, tuple[ServerEntry, ...]]
    """Entries of the same name that lost, in order."""
    files: tuple[LoadedFile, ...]
    problems: tuple[ConfigProblem, ...]
    """Faults of files; those of a server are in its entry."""
    environment: ConfigEnvironment

    def __repr__(self) -> str:
        return f"<Configuration {', '.join(self.servers) or 'without servers'}>"

    def __iter__(self) -> Iterator[ServerEntry]:
        return iter(self.servers.values())

    def __contains__(self, name: object) -> bool:
        return name in self.servers

    def __getitem__(self, name: str) -> ServerEntry:
        """Return the entry of this name. Raises ValidationError with the names that there are."""
        entry = self.servers.get(name)
        if entry is not None:
            return entry
        hint = did_you_mean(name, self.servers)
        if not hint and self.servers:
            hint = f"there are: {join_words(list(self.servers), _MOST_SHOWN)}"
        elif not hint:
            hint = "no server is configured (holdfast config show lists the files)"
        errors = [problem for problem in self.problems if problem.level == "error"]
        broken = "".join(f"\n{problem}" for problem in errors[:_MOST_SHOWN])
        raise ValidationError(f"no server '{visible(name, 80)}': {hint}{broken}")


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    start: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Configuration:
    """Read the configuration. Starts nothing.

    Args:
        path: The only file to read; by default ``$HOLDFAST_CONFIG``, or else all usual ones.
        start: The folder to begin in, by default the current one.
        environ: Environment variables, by default the process's own.
        home: The home folder, by default ``$HOME``.

    Raises:
        ValidationError: The named file cannot be used. Faults of other files are in
            ``problems``, and the rest is read all the same.

    Example:
        >>> config = load()
        >>> client = config["git"].connect()
    """
    environment = ConfigEnvironment(start=start, environ=environ, home=home)
    named = path or environment.environ.get(VARIABLE)
    if not named:
        return gather(usual_files(environment), environment)
    if not (path or os.path.isabs(named) or str(named).startswith("~/")):
        # It would name, and so trust, a file of every project that one walks into.
        raise ValidationError(f"{VARIABLE}={named!r}: must be an absolute path")
    source = named_file(named, environment)
    found = gather([source], environment)
    if found.problems:
        raise ValidationError(str(found.problems[0]), data=found.problems)
    if not found.files:
        raise ValidationError(f"{visible(source.file)}: there is no such file")
    return found


def gather(sources: list[EntrySource], environment: ConfigEnvironment) -> Configuration:
    """Read these files; of two entries with the same name the first wins."""
    documents: dict[str, Mapping[str, Any] | ConfigProblem | None] = {}
    budget = files.ReadBudget()
    entries: dict[str, list[ServerEntry]] = {}
    found: dict[str, LoadedFile] = {}
    for source in sources:
        path = source.file
        if path not in documents:
            documents[path] = _document(source, budget)
        document = documents[path]
        if document is None:
            continue
        read: list[ServerEntry] = []
        problems = [document] if isinstance(document, ConfigProblem) else []
        if not isinstance(document, ConfigProblem):
            for key in source.section:
                inner = document.get(key)
                document = inner if isinstance(inner, Mapping) else {}
            source = replace(source, dialect=dialects.detect(path, document) or source.dialect)
            if source.dialect:
                read, problems = dialects.read(document, source)
            else:
                text = (
                    "has no servers in it: neither mcpServers, servers, mcp_servers nor extensions"
                )
                problems = [ConfigProblem(file=path, message=text)]
        if source.section and not read:
            continue
        for entry in read:
            entries.setdefault(entry.name, []).append(entry)
        before = found.get(path)
        kept = problems[:_MOST_SHOWN]
        kept += [one for one in (before.problems if before else ()) if one not in kept]
        found[path] = LoadedFile(
            path=path,
            scope=source.scope,
            dialect=source.dialect,
            servers=(*(before.servers if before else ()), *(entry.name for entry in read)),
            problems=tuple(kept),
        )
    return Configuration(
        servers=MappingProxyType(
            {
                name: replace(one, hides=tuple(lost.source for lost in others)) if others else one
                for name, (one, *others) in entries.items()
            }
        ),
        shadowed=MappingProxyType(
            {name: tuple(others) for name, (_, *others) in entries.items() if others}
        ),
        files=tuple(found.values()),
        problems=tuple(problem for file in found.values() for problem in file.problems),
        environment=environment,
    )


def _document(
    source: EntrySource, budget: files.ReadBudget
) -> Mapping[str, Any] | ConfigProblem | None:
    """Return a file's content, a problem, or None if there is no such file."""
    project = source.scope == "project"
    try:
        if project:
            data = files.read(source.file, files.PROJECT_BYTES, inside=source.workspace)
        else:
            data = files.read(source.file, files.USER_BYTES, owned=source.scope == "user")
        return None if data is None else files.parse(source.file, data, budget if project else None)
    except files.UnreadableFileError as error:
        return ConfigProblem(file=source.file, message=str(error))
