"""The user, the folder and the files that a configuration depends on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from holdfast._core.files import xdg_folder

ConfigScope = Literal["explicit", "project", "user"]


class ConfigEnvironment:
    """The home, the starting folder and the environment variables that a configuration depends on.

    Args:
        start: The folder to begin in. Default: the current one.
        environ: Environment variables. Default: those of the process.
        home: The home folder. Default: ``$HOME``.
        platform: As `sys.platform`, which is the default: products keep their files elsewhere
            on each.
    """

    def __init__(
        self,
        *,
        start: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        home: str | os.PathLike[str] | None = None,
        platform: str = sys.platform,
    ) -> None:
        self.platform: str = platform
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        default_home = self.environ.get("HOME") or os.path.expanduser("~")
        self.home: Path = Path(default_home if home is None else home).absolute()
        self.start: Path = Path(os.path.realpath(os.getcwd() if start is None else start))

    @property
    def config_home(self) -> Path:
        """``$XDG_CONFIG_HOME``, or its default."""
        return xdg_folder("config", self.environ, self.home)

    @property
    def state_home(self) -> Path:
        """``$XDG_STATE_HOME``, or its default."""
        return xdg_folder("state", self.environ, self.home)

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


class EntrySource(Struct, frozen=True, kw_only=True):
    """The file, and the section of it, that entries come from."""

    file: str
    scope: ConfigScope
    workspace: str
    """The folder that ``${workspaceFolder}`` means."""
    environment: ConfigEnvironment
    dialect: str = ""
    """Detected from the content."""
    section: tuple[str, ...] = ()
    """Keys that lead to it, where it is not at the top of the file."""
    product: str = ""
    """The program whose file it is."""

    def __str__(self) -> str:
        return " › ".join((self.file, *self.section))

    @property
    def base(self) -> str:
        """The folder that relative paths start at."""
        return str(self.environment.home) if self.scope == "user" else self.workspace
