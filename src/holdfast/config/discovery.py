"""Where configurations are kept: the usual places of a project and of a user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from holdfast.config.entry import Scope
from holdfast.config.environment import Surroundings

VARIABLE: Final = "HOLDFAST_CONFIG"
"""Names the one file to use instead of those that are found."""

OF_A_PROJECT: Final = (
    (".mcp.json", "mcpServers"),
    ("mcp.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".vscode/mcp.json", "vscode"),
    (".gemini/settings.json", "gemini"),
    (".codex/config.toml", "codex"),
)
_PRODUCT_FOLDERS: Final = (".cursor", ".vscode", ".gemini", ".codex", ".claude")


class Place(Struct, frozen=True, kw_only=True):
    """A file to look for, or one section of it."""

    path: str
    scope: Scope
    dialect: str | None
    """None: it depends on what is in it."""
    workspace: str
    section: tuple[str, ...] = ()


def explicit(path: str | os.PathLike[str], around: Surroundings) -> Place:
    """The file that somebody named."""
    given = os.fspath(path)
    expanded = str(around.home) + given[1:] if given.startswith("~/") else given
    full = os.path.normpath(os.path.join(around.start, expanded))
    folder = os.path.dirname(full)
    if os.path.basename(folder) in _PRODUCT_FOLDERS:
        folder = os.path.dirname(folder)
    return Place(path=full, scope="explicit", dialect=None, workspace=folder)


def places(around: Surroundings) -> list[Place]:
    """Where to look, what wins first.

    First what the user keeps for this very project in a file of their own, then the project's
    files, nearest folder first, then the user's.
    """
    return [*_kept_for_the_project(around), *_of_the_project(around), *_of_the_user(around)]


def _of_the_project(around: Surroundings) -> list[Place]:
    return [
        Place(
            path=os.path.join(folder, name),
            scope="project",
            dialect=dialect,
            workspace=str(folder),
        )
        for folder in around.folders()
        for name, dialect in OF_A_PROJECT
    ]


def _kept_for_the_project(around: Surroundings) -> list[Place]:
    """Claude Code keeps servers for one project in the user's file, by the project's path."""
    return [
        Place(
            path=str(_claude_code(around)),
            scope="user",
            dialect="mcpServers",
            workspace=str(folder),
            section=("projects", str(folder)),
        )
        for folder in around.folders()
    ]


def _of_the_user(around: Surroundings) -> list[Place]:
    workspace = str(around.workspace())
    return [
        Place(path=str(path), scope="user", dialect=dialect, workspace=workspace)
        for path, dialect in user_files(around)
    ]


def user_files(around: Surroundings) -> list[tuple[Path, str]]:
    config, home = around.config_home, around.home
    library = home / "Library" / "Application Support"
    return [
        (config / "holdfast" / "mcp.json", "mcpServers"),
        (_claude_code(around), "mcpServers"),
        (config / "Claude" / "claude_desktop_config.json", "mcpServers"),
        (library / "Claude" / "claude_desktop_config.json", "mcpServers"),
        (home / ".cursor" / "mcp.json", "mcpServers"),
        (config / "Code" / "User" / "mcp.json", "vscode"),
        (library / "Code" / "User" / "mcp.json", "vscode"),
        (around.folder("CODEX_HOME", ".codex") / "config.toml", "codex"),
        (home / ".gemini" / "settings.json", "gemini"),
        (config / "goose" / "config.yaml", "goose"),
    ]


def _claude_code(around: Surroundings) -> Path:
    return around.folder("CLAUDE_CONFIG_DIR") / ".claude.json"
