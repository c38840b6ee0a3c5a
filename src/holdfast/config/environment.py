"""The home, the folder and the variables that a configuration is read in, and its files there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from holdfast._core.files import xdg_folder

if TYPE_CHECKING:
    from holdfast.config.entry import ConfigScope

VARIABLE: Final = "HOLDFAST_CONFIG"
"""Names the one file to use instead of those that are found."""
MOST_FOLDERS: Final = 64
"""Folders between the start and the repository's root whose files are read."""

PROJECT_FILES: Final = (
    (".mcp.json", "mcpServers"),
    ("mcp.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".vscode/mcp.json", "vscode"),
    (".gemini/settings.json", "gemini"),
    (".codex/config.toml", "codex"),
)
_PRODUCT_FOLDERS: Final = (".cursor", ".vscode", ".gemini", ".codex", ".claude")


class ConfigEnvironment:
    """Home, start and variables, given once: the same ones give the same configuration."""

    def __init__(
        self,
        *,
        start: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        home: str | os.PathLike[str] | None = None,
    ) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        own = self.environ.get("HOME") or os.path.expanduser("~")
        self.home: Path = Path(own if home is None else home).absolute()
        self.start: Path = Path(os.path.realpath(os.getcwd() if start is None else start))

    def __repr__(self) -> str:
        # Not the variables: they have secrets in them, and reprs end up in logs.
        return f"ConfigEnvironment(start={str(self.start)!r}, home={str(self.home)!r})"

    @property
    def config_home(self) -> Path:
        """``$XDG_CONFIG_HOME``, or its default."""
        return xdg_folder("config", self.environ, self.home)

    @property
    def state_home(self) -> Path:
        """``$XDG_STATE_HOME``, or its default."""
        return xdg_folder("state", self.environ, self.home)

    @property
    def own_file(self) -> Path:
        """The user's own file of Holdfast."""
        return self.config_home / "holdfast" / "mcp.json"

    def product_folder(self, variable: str, *default: str) -> Path:
        """Return the folder of a product, which an absolute path in a variable may move."""
        named = self.environ.get(variable, "")
        return Path(named) if os.path.isabs(named) else self.home.joinpath(*default)

    def folders(self) -> list[Path]:
        """Return the folders of the project, nearest first.

        From the start up to the repository's root. Without a repository: up to the home, exclusive;
        outside the home only the start, since others may write above it (``/tmp``).
        """
        chain = [self.start, *self.start.parents]
        home = Path(os.path.realpath(self.home))
        below_home = home in chain
        if below_home:
            chain = chain[: chain.index(home)]
        for place, folder in enumerate(chain):
            if os.path.lexists(folder / ".git"):
                return chain[: place + 1]
        return chain if below_home else chain[:1]

    def workspace(self) -> Path:
        """Return the project's root; without a repository the start."""
        folders = self.folders()
        if folders and os.path.lexists(folders[-1] / ".git"):
            return folders[-1]
        return self.start


class ConfigFile(Struct, frozen=True, kw_only=True):
    """A file to look for, or one section of it."""

    path: str
    scope: ConfigScope
    dialect: str | None
    """None: it depends on the content."""
    workspace: str
    section: tuple[str, ...] = ()
    product: str = ""
    """The program whose file it is."""


def named_file(path: str | os.PathLike[str], environment: ConfigEnvironment) -> ConfigFile:
    """Return the file that a caller names."""
    given = os.fspath(path)
    expanded = str(environment.home) + given[1:] if given.startswith("~/") else given
    full = os.path.normpath(os.path.join(environment.start, expanded))
    folder = os.path.dirname(full)
    if os.path.basename(folder) in _PRODUCT_FOLDERS:
        folder = os.path.dirname(folder)
    return ConfigFile(path=full, scope="explicit", dialect=None, workspace=folder)


def usual_files(environment: ConfigEnvironment) -> list[ConfigFile]:
    """Return the files to look for, in order of precedence.

    The user's own entries for this project, the project's files (nearest folder first), the user's.
    """
    folders = environment.folders()[:MOST_FOLDERS]
    code = str(_claude_code(environment))
    kept = [_section(code, str(folder)) for folder in folders]
    projects = [
        ConfigFile(path=f"{folder}/{name}", scope="project", dialect=kind, workspace=str(folder))
        for folder in folders
        for name, kind in PROJECT_FILES
    ]
    return [*kept, *projects, *user_files(environment)]


def _section(path: str, folder: str) -> ConfigFile:
    """Claude Code keeps servers for one project in the user's file, by the project's path."""
    return ConfigFile(
        path=path,
        scope="user",
        dialect="mcpServers",
        workspace=folder,
        section=("projects", folder),
        product="Claude Code",
    )


def user_files(environment: ConfigEnvironment) -> list[ConfigFile]:
    """Return the user's files that are always read: Holdfast's own and other products'."""
    home, config = environment.home, environment.config_home
    library = home / "Library" / "Application Support"
    codex = environment.product_folder("CODEX_HOME", ".codex")
    places = [
        ("Holdfast", environment.own_file, "mcpServers"),
        ("Claude Code", _claude_code(environment), "mcpServers"),
        ("Claude Desktop", config / "Claude" / "claude_desktop_config.json", "mcpServers"),
        ("Claude Desktop", library / "Claude" / "claude_desktop_config.json", "mcpServers"),
        ("Cursor", home / ".cursor" / "mcp.json", "mcpServers"),
        ("VS Code", config / "Code" / "User" / "mcp.json", "vscode"),
        ("VS Code", library / "Code" / "User" / "mcp.json", "vscode"),
        ("Codex", codex / "config.toml", "codex"),
        ("Gemini", home / ".gemini" / "settings.json", "gemini"),
        ("Goose", config / "goose" / "config.yaml", "goose"),
    ]
    return _of_user(environment, places)


def importable_files(environment: ConfigEnvironment) -> list[ConfigFile]:
    """Return the files of other products that servers can be imported from."""
    home, config = environment.home, environment.config_home
    more = [
        ("Windsurf", home / ".codeium" / "windsurf" / "mcp_config.json", "mcpServers"),
        ("Zed", config / "zed" / "settings.json", "zed"),
        ("Kiro", home / ".kiro" / "settings" / "mcp.json", "mcpServers"),
        ("LM Studio", home / ".lmstudio" / "mcp.json", "mcpServers"),
        ("Amazon Q", home / ".aws" / "amazonq" / "mcp.json", "mcpServers"),
        ("Copilot CLI", home / ".copilot" / "mcp-config.json", "mcpServers"),
    ]
    others = [file for file in user_files(environment) if file.product != "Holdfast"]
    return [*others, *_of_user(environment, more)]


def _of_user(
    environment: ConfigEnvironment, places: list[tuple[str, Path, str]]
) -> list[ConfigFile]:
    workspace = str(environment.workspace())
    return [
        ConfigFile(
            path=str(path), scope="user", dialect=dialect, workspace=workspace, product=product
        )
        for product, path, dialect in places
    ]


def _claude_code(environment: ConfigEnvironment) -> Path:
    return environment.product_folder("CLAUDE_CONFIG_DIR") / ".claude.json"
