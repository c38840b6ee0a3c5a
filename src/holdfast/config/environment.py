"""Where we are: the home, the folder and the environment that a configuration is read in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


class Surroundings:
    """Given, not looked up: the same surroundings always lead to the same configuration."""

    def __init__(
        self,
        *,
        start: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        home: str | os.PathLike[str] | None = None,
    ) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.home: Path = Path(_home(self.environ) if home is None else home).absolute()
        self.start: Path = Path(os.path.realpath(os.getcwd() if start is None else start))

    def __repr__(self) -> str:
        # Not the environment: it has secrets in it, and reprs end up in logs.
        return f"Surroundings(start={str(self.start)!r}, home={str(self.home)!r})"

    def folder(self, variable: str, *default: str) -> Path:
        """A base folder that a variable may name; XDG says that a relative one does not count."""
        named = self.environ.get(variable, "")
        return Path(named) if os.path.isabs(named) else self.home.joinpath(*default)

    @property
    def config_home(self) -> Path:
        return self.folder("XDG_CONFIG_HOME", ".config")

    @property
    def state_home(self) -> Path:
        return self.folder("XDG_STATE_HOME", ".local", "state")

    def folders(self) -> list[Path]:
        """The folders whose files are the project's, nearest first.

        From the start up to the repository's root. Without a repository: up to, and without,
        the home; outside the home the start alone, since anybody may write above it (``/tmp``).
        The home itself is never a project.
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
        """The project's root; without a repository the start."""
        folders = self.folders()
        if folders and os.path.lexists(folders[-1] / ".git"):
            return folders[-1]
        return self.start


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")
