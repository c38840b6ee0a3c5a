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
from holdfast.config.dialects.common import DialectResult
from holdfast.config.entry import ConfigProblem, ConfigScope, ServerEntry, source_of
from holdfast.config.environment import (
    VARIABLE,
    ConfigEnvironment,
    ConfigFile,
    named_file,
    usual_files,
)
from holdfast.config.files import ReadBudget, UnreadableFileError, own_budget
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
        try:
            return self.servers[name]
        except KeyError:
            raise ValidationError(self._unknown(name)) from None

    def _unknown(self, name: str) -> str:
        hint = did_you_mean(name, self.servers)
        if not hint and self.servers:
            hint = f"there are: {join_words(list(self.servers), _MOST_SHOWN)}"
        elif not hint:
            hint = "no server is configured (holdfast config show lists the files)"
        errors = [problem for problem in self.problems if problem.level == "error"]
        broken = "".join(f"\n{problem}" for problem in errors[:_MOST_SHOWN])
        return f"no server '{visible(name, 80)}': {hint}{broken}"


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
    named = path or _from_variable(environment)
    if not named:
        return gather(usual_files(environment), environment)
    file = named_file(named, environment)
    found = gather([file], environment)
    if found.problems:
        raise ValidationError(str(found.problems[0]), data=found.problems)
    if not found.files:
        raise ValidationError(f"{visible(file.path)}: there is no such file")
    return found


def _from_variable(environment: ConfigEnvironment) -> str | None:
    named = environment.environ.get(VARIABLE)
    if named and not (os.path.isabs(named) or named.startswith("~/")):
        # It would name, and so trust, a file of every project that one walks into.
        raise ValidationError(f"{VARIABLE}={named!r}: must be an absolute path")
    return named


def gather(wanted: list[ConfigFile], environment: ConfigEnvironment) -> Configuration:
    """Read these files; of two entries with the same name the first wins."""
    documents: dict[str, Mapping[str, Any] | ConfigProblem | None] = {}
    budget = ReadBudget()
    entries: dict[str, list[ServerEntry]] = {}
    found: dict[str, LoadedFile] = {}
    for file in wanted:
        if file.path not in documents:
            documents[file.path] = _document(file, budget)
        document = documents[file.path]
        if document is None:
            continue
        dialect, result = _read(file, document, environment)
        if file.section and not result.entries:
            continue
        for entry in result.entries:
            entries.setdefault(entry.name, []).append(entry)
        _note(found, file, dialect, result)
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


def _document(file: ConfigFile, budget: ReadBudget) -> Mapping[str, Any] | ConfigProblem | None:
    """Return a file's content, a problem, or None if there is no such file."""
    try:
        if file.scope == "project":
            data = files.read(file.path, files.PROJECT_BYTES, inside=file.workspace)
        else:
            data = files.read(file.path, files.USER_BYTES, owned=file.scope == "user")
            budget = own_budget()
        return None if data is None else files.parse(file.path, data, budget)
    except UnreadableFileError as error:
        return ConfigProblem(file=file.path, message=str(error))


def _read(
    file: ConfigFile, document: Mapping[str, Any] | ConfigProblem, environment: ConfigEnvironment
) -> tuple[str, DialectResult]:
    if isinstance(document, ConfigProblem):
        return file.dialect or "", DialectResult(problems=(document,))
    for key in file.section:
        inner = document.get(key)
        document = inner if isinstance(inner, Mapping) else {}
    dialect = dialects.detect(file.path, document) or file.dialect
    if dialect is None:
        text = "has no servers in it: neither mcpServers, servers, mcp_servers nor extensions"
        return "", DialectResult(problems=(ConfigProblem(file=file.path, message=text),))
    return dialect, dialects.read(dialect, document, source_of(file, dialect, environment))


def _note(
    found: dict[str, LoadedFile], file: ConfigFile, dialect: str, result: DialectResult
) -> None:
    before = found.get(file.path)
    names = tuple(entry.name for entry in result.entries)
    problems = result.problems[:_MOST_SHOWN]
    if before is not None:
        names = before.servers + names
        problems += tuple(p for p in before.problems if p not in problems)
    found[file.path] = LoadedFile(
        path=file.path, scope=file.scope, dialect=dialect, servers=names, problems=problems
    )
