"""Where the lines of a log go: a file, a stream or a function. None of them can fail a call.

An error is logged once, to the logger ``holdfast``. A file or stream that failed is retried
after a while.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from holdfast._core.callbacks import call_plain
from holdfast._core.calls.handlers import require_sync
from holdfast._core.files import (
    PRIVATE_FILE,
    create_file,
    open_folder,
    open_for_append,
    open_without_links,
    read_bytes,
    reason,
    why_not_appendable,
)
from holdfast._core.line_queue import LOSS
from holdfast.calllog.results import NotRecorded
from holdfast.errors import ValidationError

log: logging.Logger = logging.getLogger("holdfast")

PAUSE: Final = 5.0
"""Seconds that a sink which failed is left alone."""

Put: TypeAlias = Callable[[list[bytes]], tuple[int, Exception | None]]
"""Writes lines; returns how many were written, and what happened to the rest."""


class Sink:
    """Takes lines, without their newlines, from any number of threads; never raises.

    ``put`` writes them; ``immediate``: each as it comes, in the order of the program, to which the
    stream or the function belongs. After a failure it is left alone for ``pause`` seconds.
    """

    def __init__(
        self,
        label: str,
        put: Put,
        close: Callable[[], None] = lambda: None,
        immediate: bool = False,
        pause: float = PAUSE,
    ) -> None:
        self.label = label
        self.is_immediate = immediate
        self.lost: int = 0
        """Lines that could not be written."""
        self._put, self._close, self._pause = put, close, pause
        self._again = 0.0
        # A function that takes lines may make a call of its own.
        self._lock = threading.RLock()

    def write(self, lines: list[bytes], now: float) -> None:
        """Write lines; log errors instead of raising them."""
        with self._lock:
            if now < self._again:
                self.lost += len(lines)
                return
            written, error = self._put(lines)
            if error is None:
                return
            if not self.lost:
                kind = type(error).__name__
                log.warning("%s: a line was lost: %s: %s", self.label, kind, error, extra=LOSS)
            self.lost += len(lines) - written
            if self._pause:
                self._again = now + self._pause
                self.close()

    def close(self) -> None:
        """Release what the sink holds."""
        with self._lock, suppress(OSError):
            self._close()

    def begin_in_fork(self) -> None:
        """Take a lock of this process's own: a thread of the parent may hold the other."""
        self._lock = threading.RLock()


def sink_for(to: Any) -> Sink:
    """Return the sink for a path, a stream or a function."""
    if isinstance(to, str | os.PathLike):
        file = LogFile(os.fsdecode(to))
        return Sink(f"the call log {os.fsdecode(to)}", file.append, file.close)
    if callable(getattr(to, "write", None)):
        label = f"the call log {getattr(to, 'name', None) or type(to).__name__}"
        return Sink(label, partial(_write_to_stream, to), immediate=True)
    if callable(to):
        callback = require_sync("log", to)
        label = "the function that takes the call log"
        return Sink(label, partial(_give_to_function, callback), immediate=True, pause=0)
    kind = type(to).__name__
    raise ValidationError(f"log={to!r}: must be a path, a stream or a function, not {kind}")


def _give_to_function(
    callback: Callable[[str], Any], lines: list[bytes]
) -> tuple[int, Exception | None]:
    taken, failure = 0, None
    for line in lines:
        try:
            call_plain(callback, line.decode())
            taken += 1
        except Exception as error:
            failure = error
    return taken, failure


def _write_to_stream(stream: Any, lines: list[bytes]) -> tuple[int, Exception | None]:
    """Write lines to a stream of text or bytes, and flush it; its owner closes it."""
    is_bytes = isinstance(stream, io.RawIOBase | io.BufferedIOBase)
    data = b"".join([line + b"\n" for line in lines])
    try:
        try:
            stream.write(data if is_bytes else data.decode())
        except UnicodeEncodeError:
            # A stream that knows ASCII only: JSON can be written in that as well.
            for line in lines:
                stream.write(json.dumps(json.loads(line), separators=(",", ":")) + "\n")
        if hasattr(stream, "flush"):
            stream.flush()
    except Exception as error:
        return 0, error
    return len(lines), None


class LogFile:
    """A file that is appended to. One write a batch: those of processes do not run together."""

    def __init__(self, text: str) -> None:
        self._descriptor: int | None = None
        self.path: str = os.path.abspath(text)
        self._opened: os.stat_result | None = None
        self._torn = False
        """The last line was not written to its end."""
        if why := why_not_appendable(text):
            raise ValidationError(f"log={text!r}: {why}")

    def append(self, lines: list[bytes]) -> tuple[int, OSError | None]:
        """Append lines; open the file again if it was moved or deleted: logs are rotated.

        Returns:
            How many were written whole, and what happened to the rest.
        """
        written, data = 0, b"\n".join(lines) + b"\n"
        try:
            descriptor = self._open()
            if self._torn:
                os.write(descriptor, b"\n")
                self._torn = False
            while written < len(data):
                written += os.write(descriptor, data[written:])
        except OSError as error:
            whole = data[:written]
            self._torn = self._torn or (bool(whole) and not whole.endswith(b"\n"))
            return whole.count(b"\n"), error
        return len(lines), None

    def _open(self) -> int:
        if self._descriptor is not None and self._is_gone():
            self.close()
        if self._descriptor is None:
            self._torn = self._torn or _ends_torn(self.path)
            self._descriptor = open_for_append(self.path)
            self._opened = os.fstat(self._descriptor)
        return self._descriptor

    def _is_gone(self) -> bool:
        """Return True if the path does not name the open file any more."""
        assert self._opened is not None
        try:
            return not os.path.samestat(os.lstat(self.path), self._opened)
        except OSError:
            return True

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        # A call that ends after its client was closed has opened the file again.
        self.close()


def _ends_torn(path: str) -> bool:
    """Return True if the last line is truncated: its writer died, or the disk was full."""
    try:
        with open(open_without_links(path, os.O_RDONLY), "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False  # there is no file, or it is empty


# Sidecars


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


# Sidecars are written by a thread, after the line that names them: a page snapshot of half a
# megabyte must not hold up the event loop. So the name is chosen first, and the file may appear a
# moment after the line. Three things must hold meanwhile. The folder stays within its bounds,
# though several processes write to it: each looks at what is there before it deletes the oldest.
# No file is overwritten, nor written through a symbolic link: the log's folder may be one that
# others can write to, and a link planted there would have us write elsewhere (CWE-59). And only
# files that a call log could have written are deleted, by their names and their mode.


class Sidecars:
    """Writes sidecars into one folder, and keeps it within bounds."""

    def __init__(self, place: str, folder: str, most_bytes: int, most_files: int) -> None:
        if most_bytes < 1 or most_files < 1:
            raise ValidationError("CallLog: max_sidecar_bytes and max_sidecars must be at least 1")
        self._shown = place.rstrip("/") or "/"
        self._folder = folder
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._suffix = 1
        """The index among several files for the same number: one for each run of a program."""
        self._complained = False
        self._waiting = 0
        self._lock = threading.Lock()
        self._pruning = threading.Lock()
        self._count, self._bytes = most_files, 0
        """What is in the folder, as of the last search and since; at first, it may be full."""
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
        with self._lock:
            direct = self._waiting > 0 and self._waiting + size > MOST_WAITING
            if not direct:
                if self._worker is None:
                    self._worker = ThreadPoolExecutor(1, "holdfast-log")
                try:
                    self._worker.submit(self._write, name, descriptor, size, make)
                    self._waiting += size
                except RuntimeError:  # the interpreter is on its way out
                    direct = True
        if direct:
            self._write(name, descriptor, 0, make)
        return f"{self._shown}/{name}"

    def close(self) -> None:
        """Wait until everything is written."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True)

    def begin_in_fork(self) -> None:
        """Leave what waits to the parent: its thread is not here."""
        self._lock, self._pruning = threading.Lock(), threading.Lock()
        self._worker, self._waiting = None, 0

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

    def _write(self, name: str, descriptor: int, waiting: int, make: Callable[[], str]) -> None:
        try:
            with os.fdopen(descriptor, "wb") as file:
                length = file.write(make().encode("utf-8", "replace"))
            with self._pruning:
                self._prune(length)
        except Exception as error:
            self._complain(error)
        finally:
            with self._lock:
                self._waiting -= waiting

    def _prune(self, size: int) -> None:
        """Remove the oldest if there are too many; nothing that is not ours.

        A search costs as much as there are files: an eighth is freed, so that there are few. Other
        processes may write here too.
        """
        self._count, self._bytes = self._count + 1, self._bytes + size
        if self._count <= self._most_files and self._bytes <= self._most_bytes:
            return
        folder = open_folder(self._folder)
        try:
            files = sorted(_files(folder))
            self._count, self._bytes = len(files), sum(length for _, _, length in files)
            if self._count <= self._most_files and self._bytes <= self._most_bytes:
                return
            most_files = self._most_files - self._most_files // 8
            most_bytes = self._most_bytes - self._most_bytes // 8
            for _, name, length in files[:-1]:
                if self._count <= most_files and self._bytes <= most_bytes:
                    break
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                self._count, self._bytes = self._count - 1, self._bytes - length
        finally:
            os.close(folder)

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            kind = type(error).__name__
            where = f"the call log's folder {self._folder}"
            log.warning("%s: a result was lost: %s: %s", where, kind, error, extra=LOSS)


def _files(folder: int) -> Iterator[tuple[int, str, int]]:
    """Yield our files: time of writing, name and size.

    The folder may hold other files with such names (``2024-report.txt``): ours are private.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name):
                # Another process may keep the same folder within the same bounds.
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_mode == stat.S_IFREG | PRIVATE_FILE:
                        yield status.st_mtime_ns, entry.name, status.st_size


def read_sidecar(place: str, base: Path, folders: tuple[Path, ...]) -> str:
    """Return the text of a sidecar that a log names; it must lie in one of the folders.

    A log may come from anywhere, with a folder beside it: neither decides which file is read. The
    folders are the caller's; below them no link is followed.
    """
    path = Path(os.path.normpath(base / place))
    folder = next((candidate for candidate in folders if path.is_relative_to(candidate)), None)
    if folder is None:
        raise NotRecorded(
            f"its sidecar {place} is outside of the log's folder and of those that were named"
        )
    if _OURS.fullmatch(path.name) is None:
        raise NotRecorded(f"its sidecar {place} has a name that no call log gives; not read")
    try:
        real = Path(os.path.realpath(folder)) / path.relative_to(folder)
        data = read_bytes(real, LONGEST_READ, links=False)
    except OSError as error:
        raise NotRecorded(f"its sidecar {place} cannot be read: it {reason(error)}") from None
    return data.decode("utf-8", "replace")
