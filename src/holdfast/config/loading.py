"""Find and read all configuration files; of two entries with the same name the first wins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.text import did_you_mean, join_words, visible
from holdfast.config import dialects, files
from holdfast.config.entry import ConfigProblem, ServerEntry
from holdfast.config.environment import ConfigEnvironment, ConfigScope, EntrySource
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
USER_FILES: Final = (
    ("Holdfast", "config", "holdfast/mcp.json"),
    ("Claude Code", "claude", ".claude.json"),
    ("Claude Desktop", "config", "Claude/claude_desktop_config.json"),
    ("Claude Desktop", "library", "Claude/claude_desktop_config.json"),
    ("Cursor", "home", ".cursor/mcp.json"),
    ("VS Code", "config", "Code/User/mcp.json"),
    ("VS Code", "library", "Code/User/mcp.json"),
    ("Codex", "codex", "config.toml"),
    ("Gemini", "home", ".gemini/settings.json"),
    ("Goose", "config", "goose/config.yaml"),
)
"""Files of the user that are always read: product, base folder, path in it."""
IMPORTABLE_FILES: Final = (
    *USER_FILES[1:],
    ("Windsurf", "home", ".codeium/windsurf/mcp_config.json"),
    ("Kiro", "home", ".kiro/settings/mcp.json"),
    ("LM Studio", "home", ".lmstudio/mcp.json"),
    ("Amazon Q", "home", ".aws/amazonq/mcp.json"),
    ("Copilot CLI", "home", ".copilot/mcp-config.json"),
)
"""Files of other products that servers can be imported from."""
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
    documents: dict[str, Mapping[str, Any] | None] = {}
    """By path; None if there is no such file, or it cannot be used."""
    project_budget = files.ReadBudget()
    entries: dict[str, list[ServerEntry]] = {}
    found: dict[str, LoadedFile] = {}
    for source in sources:
        path = source.file
        read: list[ServerEntry] = []
        problems: list[ConfigProblem] = []
        if path not in documents:
            documents[path] = None
            limit, inside, budget = files.USER_BYTES, None, None
            if source.scope == "project":
                limit, inside, budget = files.PROJECT_BYTES, source.workspace, project_budget
            try:
                data = files.read(path, limit, inside=inside, owned=source.scope == "user")
                if data is not None:
                    documents[path] = files.parse(path, data, budget)
            except files.UnreadableFileError as error:
                problems = [ConfigProblem(file=path, message=str(error))]
        document = documents[path]
        if document is not None:
            for key in source.section:
                inner = document.get(key)
                document = inner if isinstance(inner, Mapping) else {}
            source = replace(source, dialect=dialects.detect(path, document) or "")
            if source.dialect:
                read, problems = dialects.read(document, source)
            elif source.scope == "explicit":
                keys = "neither mcpServers, servers, mcp_servers nor extensions"
                problems = [ConfigProblem(file=path, message=f"has no servers in it: {keys}")]
        if (document is None or source.section) and not (read or problems):
            continue
        for entry in read:
            entries.setdefault(entry.name, []).append(entry)
        file = found.get(path) or LoadedFile(path=path, scope=source.scope, dialect=source.dialect)
        found[path] = replace(
            file,
            servers=(*file.servers, *(entry.name for entry in read)),
            problems=(*file.problems, *problems[:_MOST_SHOWN]),
        )
    servers = {
        name: replace(one, hides=tuple(others)) if others else one
        for name, (one, *others) in entries.items()
    }
    return Configuration(
        servers=MappingProxyType(servers),
        files=tuple(found.values()),
        problems=tuple(problem for file in found.values() for problem in file.problems),
        environment=environment,
    )


# The files


def named_file(path: str | os.PathLike[str], environment: ConfigEnvironment) -> EntrySource:
    """Return the file that a caller names."""
    given = os.fspath(path)
    expanded = str(environment.home) + given[1:] if given.startswith("~/") else given
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
    own = user_files(environment)
    code = next(file for file in own if file.product == "Claude Code")
    # Claude Code keeps servers for one project in the user's file, by the project's path.
    kept = [replace(code, workspace=one, section=("projects", one)) for one in folders]
    projects = [
        EntrySource(file=f"{one}/{name}", scope="project", workspace=one, environment=environment)
        for one in folders
        for name in PROJECT_FILES
    ]
    return [*kept, *projects, *own]


def user_files(
    environment: ConfigEnvironment, rows: tuple[tuple[str, str, str], ...] = USER_FILES
) -> list[EntrySource]:
    """Return files of the user: those that are always read, or `IMPORTABLE_FILES`."""
    home = environment.home
    folders = {
        "home": home,
        "config": environment.config_home,
        "library": home / "Library" / "Application Support",
        "claude": home,
        "codex": home / ".codex",
    }
    for base, variable in (("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")):
        if os.path.isabs(named := environment.environ.get(variable, "")):
            folders[base] = Path(named)
    source = EntrySource(
        file="", scope="user", workspace=str(environment.workspace()), environment=environment
    )
    return [
        replace(source, file=str(folders[base] / path), product=product)
        for product, base, path in rows
    ]
