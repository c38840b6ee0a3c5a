"""Find and read all configuration files; of two entries with the same name the first wins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.text import did_you_mean, join_words, visible
from holdfast.config import dialects, files
from holdfast.config.entry import ConfigProblem, ServerEntry
from holdfast.config.environment import ConfigEnvironment, ConfigScope, EntrySource
from holdfast.config.hosts import HOSTS, OTHERS, Place, base_folders, place_path
from holdfast.errors import ValidationError

VARIABLE: Final = "HOLDFAST_CONFIG"
"""The environment variable that names the only file to read."""
MOST_FOLDERS: Final = 64
"""Folders between the start and the repository's root whose files are read."""

PROJECT_FILES: Final = (
    *(".mcp.json", "mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"),
    *(".gemini/settings.json", ".codex/config.toml"),
)
_PRODUCT_FOLDERS: Final = (".cursor", ".vscode", ".gemini", ".codex", ".claude")
READ: Final = (
    *("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "goose"),
    *("windsurf", "zed", "copilot", "kiro", "opencode"),
)
"""Hosts in the order in which their files count, after Holdfast's own."""
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
            hint = "no server is configured (holdfast servers --files lists the files)"
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
    file = path or environment.environ.get(VARIABLE)
    if not file:
        return gather(usual_files(environment), environment)
    if not (path or os.path.isabs(file) or str(file).startswith("~/")):
        # It would name, and so trust, a file of every project that one walks into.
        raise ValidationError(f"{VARIABLE}={file!r}: must be an absolute path")
    source = named_file(file, environment)
    configuration = gather([source], environment)
    if configuration.problems:
        raise ValidationError(str(configuration.problems[0]), data=configuration.problems)
    if not configuration.files:
        raise ValidationError(f"{visible(source.file)}: there is no such file")
    return configuration


# The first entry of a name wins, so the order of sources decides who may replace whom: the user's
# entries for this very project, then the project's files from the nearest folder up, then the
# user's. A project may thus hide a server of the user's, which is useful, and a way to be handed
# its calls. That is why a hidden entry is kept (`ServerEntry.hides`), why the refusal of an entry
# that nobody approved says whose server it hides, and why no setting of a hidden entry is merged.


def gather(sources: list[EntrySource], environment: ConfigEnvironment) -> Configuration:
    """Read these files; of two entries with the same name the first wins."""
    reading = _Reading()
    entries: dict[str, list[ServerEntry]] = {}
    loaded: dict[str, LoadedFile] = {}
    for source in sources:
        contents = reading.read(source)
        if contents is None:
            continue
        for entry in contents.entries:
            entries.setdefault(entry.name, []).append(entry)
        path = source.file
        file = loaded.get(path) or LoadedFile(
            path=path, scope=source.scope, dialect=contents.dialect
        )
        loaded[path] = replace(
            file,
            servers=(*file.servers, *(entry.name for entry in contents.entries)),
            problems=(*file.problems, *contents.problems[:_MOST_SHOWN]),
        )
    servers = {
        name: replace(first, hides=tuple(hidden)) if hidden else first
        for name, (first, *hidden) in entries.items()
    }
    return Configuration(
        servers=MappingProxyType(servers),
        files=tuple(loaded.values()),
        problems=tuple(problem for file in loaded.values() for problem in file.problems),
        environment=environment,
    )


class _Contents(NamedTuple):
    """The servers of one source, and what is wrong with the file itself."""

    dialect: str
    entries: list[ServerEntry]
    problems: list[ConfigProblem]


class _Reading:
    """Reads files once each, and the project's within a budget for all of them."""

    def __init__(self) -> None:
        self._documents: dict[str, Mapping[str, Any] | None] = {}
        """By path; None if there is no such file, or it cannot be used."""
        self._budget = files.ReadBudget()

    def read(self, source: EntrySource) -> _Contents | None:
        """Return what a source holds; None if there is nothing to say about it."""
        try:
            document = self._document(source)
        except files.UnreadableFileError as error:
            problem = ConfigProblem(file=source.file, message=str(error))
            return _Contents("", [], [problem])
        if document is None:
            return None
        for key in source.section:
            inner = document.get(key)
            document = inner if isinstance(inner, Mapping) else {}
        contents = self._servers(document, source)
        is_silent = bool(source.section) and not (contents.entries or contents.problems)
        return None if is_silent else contents

    def _document(self, source: EntrySource) -> Mapping[str, Any] | None:
        """Return the document of a file, read at the first use."""
        path = source.file
        if path in self._documents:
            return self._documents[path]
        self._documents[path] = None
        limit, inside, budget = files.USER_BYTES, None, None
        if source.scope == "project":
            limit, inside, budget = files.PROJECT_BYTES, source.workspace, self._budget
        data = files.read(path, limit, inside=inside, owned=source.scope == "user")
        if data is not None:
            self._documents[path] = files.parse(path, data, budget)
        return self._documents[path]

    @staticmethod
    def _servers(document: Mapping[str, Any], source: EntrySource) -> _Contents:
        dialect = dialects.detect(source.file, document) or ""
        if dialect:
            entries, problems = dialects.read(document, replace(source, dialect=dialect))
            return _Contents(dialect, entries, problems)
        if source.scope != "explicit":
            return _Contents("", [], [])
        keys = "neither mcpServers, servers, mcp_servers nor extensions"
        problem = ConfigProblem(file=source.file, message=f"has no servers in it: {keys}")
        return _Contents("", [], [problem])


# The files


def named_file(path: str | os.PathLike[str], environment: ConfigEnvironment) -> EntrySource:
    """Return the file that a caller names."""
    name = os.fspath(path)
    expanded = str(environment.home) + name[1:] if name.startswith("~/") else name
    full = os.path.normpath(os.path.join(environment.start, expanded))
    folder = os.path.dirname(full)
    if os.path.basename(folder) in _PRODUCT_FOLDERS:
        folder = os.path.dirname(folder)
    return EntrySource(file=full, scope="explicit", workspace=folder, environment=environment)


def usual_files(environment: ConfigEnvironment) -> list[EntrySource]:
    """Return the files to look for, in order of precedence.

    The user's own entries for this project, the project's files (nearest folder first), the user's.
    """
    folders = [str(folder) for folder in environment.folders()[:MOST_FOLDERS]]
    users = user_files(environment)
    code = next(file for file in users if file.product == "Claude Code")
    # Claude Code keeps servers for one project in the user's file, by the project's path.
    private = [replace(code, workspace=folder, section=("projects", folder)) for folder in folders]
    projects = [
        EntrySource(
            file=f"{folder}/{name}", scope="project", workspace=folder, environment=environment
        )
        for folder in folders
        for name in PROJECT_FILES
    ]
    return [*private, *projects, *users]


def user_files(environment: ConfigEnvironment) -> list[EntrySource]:
    """Return the files of the user that are always read."""
    own = EntrySource(
        file=f"{environment.config_home}/holdfast/mcp.json",
        scope="user",
        workspace=str(environment.workspace()),
        environment=environment,
        product="Holdfast",
    )
    return [own, *host_files(environment, READ)]


def importable_files(environment: ConfigEnvironment) -> list[EntrySource]:
    """Return the files of other products that servers can be imported from."""
    return host_files(environment, READ, OTHERS)


def host_files(
    environment: ConfigEnvironment,
    names: Iterable[str],
    others: tuple[tuple[str, Place], ...] = (),
) -> list[EntrySource]:
    """Return the user's files of these hosts, and of other products."""
    platform, home = environment.platform, str(environment.home)
    folders = base_folders(platform, environment.environ, home)
    hosts = [HOSTS[name] for name in names]
    places = [(host.product, place) for host in hosts for place in host.user]
    return [
        EntrySource(
            file=place_path(place, platform, folders),
            scope="user",
            workspace=str(environment.workspace()),
            environment=environment,
            product=product,
        )
        for product, place in (*places, *others)
    ]
