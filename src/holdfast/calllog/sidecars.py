"""The folder beside a log for results that are too long for a line.

The file's name is returned at once, so that the line can have it; a thread redacts and writes.
Files are private, never written through a link, never overwritten, and the oldest are deleted when
there are too many.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast._core.files import create_file, open_folder, read_without_links, reason
from holdfast.calllog.results import NotRecorded
from holdfast.errors import ValidationError

log: logging.Logger = logging.getLogger("holdfast")

FOLDER: Final = ".mcp-log"
LONGEST_NAME: Final = 80
MOST_TRIES: Final = 10_000
MOST_WAITING: Final = 32 * 1024 * 1024
"""Characters that may wait to be written, in more than one result; past it, the caller writes."""
LONGEST_READ: Final = 256 * 1024 * 1024

_OURS: Final = re.compile(r"[0-9]+-.*\.(?:txt|json)", re.S)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(tool: str) -> str:
    """Return a tool's name as a part of a file name, on any system."""
    return _UNSAFE.sub("_", tool)[:LONGEST_NAME] or "tool"


class Sidecars:
    """Writes sidecars into one folder, and keeps it within bounds."""

    def __init__(self, shown: str, folder: str, most_bytes: int, most_files: int) -> None:
        if most_bytes < 1 or most_files < 1:
            raise ValidationError("CallLog: max_sidecar_bytes and max_sidecars must be at least 1")
        self._shown = shown.rstrip("/") or "/"
        self._folder = folder
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._suffix = 1
        """The index among several files for the same number: one for each run of a program."""
        self._complained = False
        self._waiting = 0
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None

    def keep(
        self, seq: int, tool: str, ending: str, size: int, make: Callable[[], str]
    ) -> str | None:
        """Write ``make()`` to a new file; return the path to show, None if it cannot be written."""
        if size > self._most_bytes:
            return None
        try:
            name, descriptor = self._create(f"{seq}-{safe_name(tool)}", ending)
        except OSError as error:
            self._complain(error)
            return None
        self._hand_over(name, descriptor, size, make)
        return f"{self._shown}/{name}"

    def close(self) -> None:
        """Wait until everything is written."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True)

    # The file

    def _create(self, stem: str, ending: str) -> tuple[str, int]:
        # A prepared folder must not decide where this writes (CWE-59).
        folder = open_folder(self._folder, create=True)
        try:
            for suffix in range(self._suffix, self._suffix + MOST_TRIES):
                name = f"{stem}{ending}" if suffix == 1 else f"{stem}~{suffix}{ending}"
                try:
                    descriptor = create_file(folder, name)
                except FileExistsError:
                    continue
                self._suffix = suffix
                return name, descriptor
        finally:
            os.close(folder)
        raise FileExistsError(f"too many files like {stem}{ending}")

    # The writing

    def _hand_over(self, name: str, descriptor: int, size: int, make: Callable[[], str]) -> None:
        with self._lock:
            direct = self._waiting > 0 and self._waiting + size > MOST_WAITING
            if not direct:
                self._waiting += size
                if self._worker is None:
                    self._worker = ThreadPoolExecutor(1, "holdfast-log")
                try:
                    self._worker.submit(self._write, name, descriptor, size, make)
                except RuntimeError:  # the interpreter is on its way out
                    self._waiting -= size
                    direct = True
        if direct:
            self._write(name, descriptor, 0, make)

    def _write(self, name: str, descriptor: int, waiting: int, make: Callable[[], str]) -> None:
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(make().encode("utf-8", "replace"))
            self._prune(name)
        except Exception as error:
            self._complain(error)
        finally:
            with self._lock:
                self._waiting -= waiting

    def _prune(self, newest: str) -> None:
        """Remove the oldest until there are few enough; nothing that is not ours."""
        folder = open_folder(self._folder)
        try:
            found = sorted(_files(folder))
            files, size = len(found), sum(one[2] for one in found)
            for _, name, length in found:
                if files <= self._most_files and size <= self._most_bytes:
                    break
                if name != newest:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
                    files, size = files - 1, size - length
        finally:
            os.close(folder)

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            kind = type(error).__name__
            where = f"the call log's folder {self._folder}"
            log.warning("%s: a result was lost: %s: %s", where, kind, error)


def _files(folder: int) -> Iterator[tuple[int, str, int]]:
    """Yield our files: time of writing, name and size."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name):
                # Another process may keep the same folder within the same bounds.
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        yield status.st_mtime_ns, entry.name, status.st_size


def read_sidecar(shown: str, base: Path, folders: tuple[Path, ...]) -> str:
    """Return the text of a sidecar that a log names; it must lie in one of the folders.

    A log may come from anywhere, with a folder beside it: neither decides which file is read. The
    folders are the caller's; below them no link is followed.
    """
    path = Path(os.path.normpath(base / shown))
    folder = next((one for one in folders if path.is_relative_to(one)), None)
    if folder is None:
        raise NotRecorded(
            f"its sidecar {shown} is outside of the log's folder; say where it is with "
            "read_log(…, sidecars=…)"
        )
    if _OURS.fullmatch(path.name) is None:
        raise NotRecorded(f"its sidecar {shown} has a name that no call log gives; not read")
    try:
        data = read_without_links(
            Path(os.path.realpath(folder)) / path.relative_to(folder), LONGEST_READ
        )
    except (OSError, ValueError) as error:
        raise NotRecorded(f"its sidecar {shown} cannot be read: it {reason(error)}") from None
    return data.decode("utf-8", "replace")
