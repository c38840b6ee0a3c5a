"""Write a plan to its file while the host may be writing too.

A running host keeps its settings in memory and writes the whole file whenever it likes. There is no
lock that both of us know. What can be done, in this order:

1. The plan is made from the bytes that are there now, not from those that were shown. If it differs
   from what the person said yes to, nothing is written, and the question is put again.
2. The old bytes go to a backup first.
3. The file is read once more; if it changed since step 1, start again.
4. It is replaced by a rename, so a host reads the old file or the new one, never half of one, and a
   kill at any moment leaves one of the two.
5. It is read again. A host that wrote what it had in memory meanwhile has undone the change: start
   again, a few times.

What is left is the moment between 3 and 4, and a host that writes an old copy seconds later: then
``install`` again says so, because it shows the change anew.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from holdfast._core.files import locked, make_private_folder, reason, write_atomic
from holdfast._core.text import visible
from holdfast.config import files
from holdfast.config.environment import ConfigEnvironment
from holdfast.config.files import UnreadableFileError
from holdfast.config.hosts import Host, user_paths
from holdfast.errors import StateError, ValidationError
from holdfast.hosts.backups import Backups
from holdfast.hosts.document import HostDocument, HostFile, HostServer
from holdfast.hosts.plan import FilePlan

ATTEMPTS: Final = 5

MakePlan = Callable[[HostFile], FilePlan]


class Written(NamedTuple):
    """What was written, and where the old bytes are."""

    plan: FilePlan
    backup: Path | None
    """None if nothing had to be written."""


class PlanChangedError(Exception):
    """The file changed, and what would be done is no longer what was shown."""


class HostFiles:
    """The files of one host: the user's, or the project's."""

    def __init__(self, host: Host, environment: ConfigEnvironment, *, project: bool) -> None:
        self.host = host
        self._environment = environment
        self.root: str | None = str(environment.workspace()) if project else None
        """The folder of the project; None for the user's files."""
        if project and not environment.folders():
            raise ValidationError("the home folder is not a project; leave out --project")
        if project and not host.project:
            raise ValidationError(f"{host.product} has no file in a project")

    def paths(self) -> list[str]:
        """Return where the host looks for its files."""
        if self.root is not None:
            return [os.path.join(self.root, *name.split("/")) for name in self.host.project]
        environment = self._environment
        return user_paths(
            self.host, environment.platform, environment.environ, str(environment.home)
        )

    def present(self) -> list[str]:
        """Return those that are there."""
        return [path for path in self.paths() if os.path.lexists(path)]

    def read(self, path: str) -> HostFile:
        """Read a file. Raises ValidationError if it cannot be used."""
        try:
            return HostFile(self.host, path, self._bytes(path))
        except UnreadableFileError as error:
            raise ValidationError(f"{visible(path)} {error}") from None

    def _bytes(self, path: str) -> bytes | None:
        if self.root is not None:
            return files.read(path, files.PROJECT_BYTES, inside=self.root)
        return files.read(path, files.USER_BYTES, owned=True)

    def servers(self, path: str) -> list[HostServer]:
        """Return the servers of a file. Raises ValidationError if it cannot be used."""
        file = self.read(path)
        try:
            return HostDocument(file).servers()
        except UnreadableFileError as error:
            raise ValidationError(f"{visible(path)} {error}") from None

    @property
    def is_project(self) -> bool:
        """True if these are the files of a project."""
        return self.root is not None

    def backups(self, path: str) -> Backups:
        """Return the copies of a file from before each change."""
        return Backups(self.host.name, path, self._environment)

    def plan(self, path: str, make: MakePlan) -> FilePlan:
        """Return what would be done to a file as it is now. Raises ValidationError."""
        file = self.read(path)
        try:
            return make(file)
        except UnreadableFileError as error:
            raise ValidationError(f"{visible(path)} {error}") from None

    def write(self, seen: FilePlan, make: MakePlan) -> Written:
        """Do what was shown.

        Args:
            seen: The plan that the person agreed to.
            make: Makes it again, from the bytes that are there now.

        Raises:
            PlanChangedError: The file changed, and something else would be done.
            StateError: The file cannot be written, or the host writes it all the time.
        """
        path = seen.file.path
        state = self._environment.state_home / "holdfast"
        try:
            make_private_folder(state)
            with locked(state / "config.lock"):
                return self._write(seen, make)
        except OSError as error:
            text = f"{visible(path)}: cannot be written: {reason(error)}{_elsewhere(error, path)}"
            raise StateError(text) from None

    def _write(self, seen: FilePlan, make: MakePlan) -> Written:
        path = seen.file.path
        backup: Path | None = None
        for _ in range(ATTEMPTS):
            plan = self.plan(path, make)
            if plan.is_empty and backup is not None:
                return Written(plan, backup)
            if plan.changes != seen.changes:
                raise PlanChangedError
            target = self._target(path)
            backups = self.backups(path)
            backup = backups.save(plan.file.data)
            backups.note_added(plan.words_of("add"), ())
            if self.read(path).data != plan.file.data:
                continue
            if plan.after is None:
                target.unlink(missing_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(target, plan.after, private=self._is_new_secret(plan))
            if self.read(path).data == plan.after:
                backups.note_added((), plan.words_of("remove"))
                return Written(plan, backup)
        product = self.host.product
        raise StateError(
            f"{visible(path)}: {product} wrote it {ATTEMPTS} times meanwhile; close {product} and "
            f"try again. The file as it was: {backup}"
        )

    def _is_new_secret(self, plan: FilePlan) -> bool:
        return plan.file.data is None and self.root is None

    def require_writable(self, path: str) -> None:
        """Raise StateError for a file that will not be replaced, before anybody is asked."""
        self._target(path)

    def _target(self, path: str) -> Path:
        """Return the file to replace. Raises StateError if it must not be.

        The user's own file may be a link (dotfiles); one in a project is a stranger's.
        """
        target = Path(os.path.realpath(path))
        if self.root is not None and os.path.islink(path):
            raise StateError(f"{visible(path)} is a symbolic link; nothing was written")
        if target.exists() and not target.stat().st_mode & stat.S_IWUSR:
            # A rename would replace it all the same: its folder can be written.
            raise StateError(f"{visible(path)} is read-only; nothing was written (chmod u+w)")
        return target


def _elsewhere(error: OSError, path: str) -> str:
    """Return the place of an error that is not beside the file: the backup, or the lock."""
    place = str(error.filename or path)
    is_beside = os.path.dirname(place) == os.path.dirname(os.path.realpath(path))
    return "" if place == path or is_beside else f" ({visible(place)})"
