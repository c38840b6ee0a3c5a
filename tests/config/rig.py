"""A home and a project in a temporary folder, to configure servers in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.config import Configuration, EntrySource, ServerEntry, load
from holdfast.config import dialects as all_dialects
from holdfast.config.environment import ConfigEnvironment
from holdfast.config.files import parse

DATA = Path(__file__).parent / "data"


@dataclass
class World:
    """``home`` has no configuration yet; ``project`` is a repository below it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.project / ".git").mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.home / "work" / "project"

    def write(self, path: str | Path, content: Any) -> Path:
        """A file in the project (or at a full path): text, bytes, or a value to write as JSON."""
        full = self.project / path
        full.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            full.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            full.write_text(text, encoding="utf-8")
        return full

    def servers(self, path: str | Path, **servers: Any) -> Path:
        return self.write(path, {"mcpServers": servers})

    def own(self, **servers: Any) -> Path:
        """Servers of the user's own."""
        return self.servers(self.home / ".config/holdfast/mcp.json", **servers)

    def load(self, path: str | Path | None = None, start: Path | None = None) -> Configuration:
        return load(path, start=start or self.project, environ=self.environ, home=self.home)

    def entry(self, name: str = "one", **raw: Any) -> ServerEntry:
        """One server of the project's ``.mcp.json``, read anew."""
        self.servers(".mcp.json", **{name: raw})
        return self.load()[name]

    def around(self) -> ConfigEnvironment:
        return ConfigEnvironment(start=self.project, environ=self.environ, home=self.home)


def source(scope: Any = "user", dialect: str = "mcpServers", file: str = "/f.json") -> EntrySource:
    around = ConfigEnvironment(start="/", environ={}, home="/home/me")
    return EntrySource(file=file, scope=scope, dialect=dialect, workspace="/w", environment=around)


def read_data(dialect: str, name: str) -> dict[str, ServerEntry]:
    """The servers of a product's file."""
    path = DATA / name
    document = parse(str(path), path.read_bytes())
    entries, problems = all_dialects.read(document, source(dialect=dialect, file=name))
    assert problems == []
    return {entry.name: entry for entry in entries}


def read_one(dialect: str, document: Any) -> ServerEntry:
    (entry,), problems = all_dialects.read(document, source(dialect=dialect))
    assert problems == []
    return entry


def faults(entry: ServerEntry) -> dict[str | None, str]:
    """Return the errors of an entry, by field."""
    return {problem.field: problem.message for problem in entry.errors}


def warnings(entry: ServerEntry) -> dict[str | None, str]:
    found = [problem for problem in entry.problems if problem.level == "warning"]
    return {problem.field: problem.message for problem in found}
