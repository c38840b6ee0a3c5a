"""Copies of hosts' files from before each change, private, a few for each file.

Beside them stands which servers were added: their entries do not tell them from those that a person
wrote.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from holdfast._core.files import make_private_folder, read_bytes, write_atomic
from holdfast.config.environment import ConfigEnvironment
from holdfast.config.files import USER_BYTES

MOST: Final = 6
"""Copies of one file; the oldest goes."""
_ABSENT: Final = ".absent"
"""The ending for "there was no file"."""
_ADDED: Final = "added"
"""The file with the words of servers that were added."""

Words: TypeAlias = tuple[str, ...]
"""The command of a server."""


class Backup(NamedTuple):
    """A file as it was; None: there was none."""

    path: Path
    data: bytes | None


class Backups:
    """The copies of one file."""

    def __init__(self, host: str, file: str, environment: ConfigEnvironment) -> None:
        digest = sha256(os.fsencode(file)).hexdigest()[:12]
        self._host = host
        self._folder = environment.state_home / "holdfast" / "hosts" / f"{host}-{digest}"
        self._ending = os.path.splitext(file)[1] or ".txt"

    def save(self, data: bytes | None) -> Path:
        """Keep a copy, unless the newest has the same bytes; return its path."""
        there = self.newest_first()
        if there and there[0].data == data:
            return there[0].path
        make_private_folder(self._folder)
        seconds, rest = divmod(time.time_ns(), 10**9)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
        number = f"{rest:09}"
        path = self._folder / f"{stamp}.{number}{_ABSENT if data is None else self._ending}"
        write_atomic(path, data or b"", private=True)
        for old in there[MOST - 1 :]:
            old.path.unlink(missing_ok=True)
        return path

    def newest_first(self) -> list[Backup]:
        """Return the copies; those that cannot be read are left out."""
        return _copies(self._folder)

    def of_other_files(self) -> list[Backup]:
        """Return the copies of the host's other files: a project's may have been moved."""
        folders = self._folder.parent.glob(f"{self._host}-*")
        return [
            copy for folder in sorted(folders) if folder != self._folder for copy in _copies(folder)
        ]

    # Servers that were added

    def added(self) -> set[Words]:
        """Return the commands of the servers that were added to the file."""
        try:
            data = read_bytes(self._folder / _ADDED, USER_BYTES, owned=True, links=False)
            return set(msgspec.json.decode(data, type=list[Words]))
        except (OSError, msgspec.DecodeError):
            return set()

    def note_added(self, new: Iterable[Words], gone: Iterable[Words]) -> None:
        """Keep the commands of servers that are added now, and forget those that are removed."""
        before = self.added()
        after = before.union(new).difference(gone)
        if after != before:
            write_atomic(self._folder / _ADDED, msgspec.json.encode(sorted(after)), private=True)


def _copies(folder: Path) -> list[Backup]:
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return []
    backups = []
    for name in names:
        path = folder / name
        if name.startswith(".") or name == _ADDED:
            continue
        try:
            data = read_bytes(path, USER_BYTES, owned=True, links=False)
        except OSError:
            continue
        backups.append(Backup(path, None if name.endswith(_ABSENT) else data))
    return backups
