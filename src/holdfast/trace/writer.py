"""The file of a trace: rotated by its size, shared by processes. A full disk costs the trace."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from holdfast._core.files import open_for_append, why_not_appendable
from holdfast._core.line_queue import LOSS
from holdfast.calllog.sinks import Sidecars
from holdfast.errors import ValidationError
from holdfast.trace.format import FORMAT, MARK, started_at
from holdfast.trace.recorder import MOST_BYTES, Recorder

log: logging.Logger = logging.getLogger("holdfast")

ROTATE_AT: Final = 64 * 1024 * 1024
"""Bytes of a file, after which another is begun."""
KEPT_FILES: Final = 4
"""Older files that are kept: ``run.jsonl.1`` is the newest of them."""

# Several processes, one file
#
# A file that is there is of an earlier run, and is kept as ``run.jsonl.1``; or another process
# writes to it at this moment, and then it must stay where it is, and this process joins. Two locks
# tell which, both on the file itself, so that nothing else is left in the folder:
#
#   in use       every writer holds a shared lock (flock) as long as it writes. Whoever gets the
#                exclusive one knows that nobody writes any more.
#   turn         an exclusive lock (lockf) for the moment of opening and moving. Without it two
#                processes could both find the file full, and the second would move the new one.
#
# A process that waited for its turn looks whether the name still means the file that it has
# locked. A writer looks the same way before each batch: the other may have begun a new file. Lines
# are appended by one ``write`` a batch, so those of processes do not run into each other. Times
# count from the header's start, whoever wrote it; a process that joins marks its servers with its
# own number, because ids are unique within one client only. Who began the run keeps its names when
# another has begun the next file of it.


class TraceFile(Recorder):
    """A trace of any number of clients, in one file.

    Args:
        path: The file. One that is there is kept as ``path.1``, unless a process writes to it.
        sidecars: Write messages above 64 KiB whole into files beside it, instead of cutting them.
    """

    def __init__(self, path: str | os.PathLike[str], *, sidecars: bool = False) -> None:
        super().__init__()
        self.path: str = os.path.abspath(os.fsdecode(path))
        if why := why_not_appendable(os.fsdecode(path)):
            raise ValidationError(f"trace={os.fsdecode(path)!r}: {why}")
        self.lost: int = 0
        """Lines that could not be written."""
        self._descriptor: int | None = None
        self._sequence = 0
        self._is_torn = False
        """The last line was not written to its end."""
        self._written = 0
        """Bytes of what was appended last that are in the file."""
        self._complained = False
        self._has_begun = False
        """True once it has written: what is there from then on is no earlier run's."""
        self._is_joined = False
        """True if another process began the file, and may still write to it."""
        folder = f"{self.path}.bodies"
        name = os.path.basename(folder)
        self._sidecars = Sidecars(name, folder, MOST_BYTES * 4, 10_000) if sidecars else None

    def __repr__(self) -> str:
        return f"<TraceFile {self.path}>"

    def close(self) -> None:
        """Write everything, and close the file. What comes later is not recorded."""
        super().close()
        if self._sidecars is not None:
            self._sidecars.close()

    def _begin_in_fork(self) -> None:
        super()._begin_in_fork()
        self._is_joined = self._is_joined or self._has_begun

    # Lines

    def _prepare(self) -> None:
        # The names of servers depend on whether others write here.
        try:
            if self._descriptor is not None and not _names(self.path, self._descriptor):
                self._release()
            if self._descriptor is None:
                self._open()
        except OSError as error:
            self._complain(error)
        if self._is_joined:
            for maker in self._makers:
                maker.mark = f" ({os.getpid()})"

    def _without_body(self, line: dict[str, Any], body: Any) -> dict[str, Any]:
        """Put the body of a large message into a sidecar, or keep its beginning alone."""
        cut = super()._without_body(line, body)
        if self._sidecars is None:
            return cut
        self._sequence += 1
        text = msgspec.json.encode(body, enc_hook=str).decode()
        method = str(line.get("method", line["kind"]))
        path = self._sidecars.keep(self._sequence, method, ".json", len(text), lambda: text)
        return {**cut, "sidecar": path or ""}

    def _write(self, lines: list[bytes]) -> None:
        # A line that was cut ends here.
        data, ends = b"".join(lines), int(self._is_torn)
        appended = b""
        try:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            size = os.fstat(descriptor).st_size
            if size == 0 or size + len(data) > ROTATE_AT:
                # Full; or somebody has emptied it, and what follows needs a header.
                descriptor = self._open(is_full=size > 0)
            appended = b"\n" * ends + data
            self._append(descriptor, appended)
        except OSError as error:
            self._complain(error)
            self.lost += len(lines) - max(0, appended.count(b"\n", 0, self._written) - ends)

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            log.warning("the trace %s: lines were lost: %s", self.path, error, extra=LOSS)

    def _append(self, descriptor: int, data: bytes) -> None:
        self._written = 0
        try:
            while self._written < len(data):
                self._written += os.write(descriptor, data[self._written :])
            self._is_torn = False
        except OSError:
            self._is_torn = self._is_torn or self._written > 0
            raise

    # The file

    def _open(self, *, is_full: bool = False) -> int:
        """Open the file, or begin a new one; ``is_full``: the one that is there is."""
        while True:
            descriptor = open_for_append(self.path)
            try:
                _lock_turn(descriptor)
                if _names(self.path, descriptor):
                    is_empty = os.fstat(descriptor).st_size == 0
                    # Another may have begun a new file while this one waited for its turn.
                    is_full = is_full and os.fstat(descriptor).st_size > ROTATE_AT // 2
                    if not is_empty and (is_full or self._is_of_an_earlier_run(descriptor)):
                        self._move_older()
                    else:
                        self._take(descriptor, is_empty)
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _is_of_an_earlier_run(self, descriptor: int) -> bool:
        """Return whether nobody writes to a file any more; one that others began is of this run."""
        return not self._has_begun and _lock(descriptor, exclusive=True)

    def _take(self, descriptor: int, is_empty: bool) -> None:
        """Go on with an open file: begin it by a header, or count time from the one it has."""
        if is_empty:
            mark = f" ({os.getpid()})" if self._is_joined else ""
            servers = {f"{name}{mark}": facts for name, facts in self._servers.items()}
            header = {MARK: FORMAT, "started": _written(self._started), "servers": servers}
            self._append(descriptor, msgspec.json.encode(header) + b"\n")
        _lock(descriptor, exclusive=False)
        if not is_empty:
            # To close a second descriptor ends the turn, which is over by now.
            started = _start_of(self.path)
            is_of_this_run = self._has_begun and started == self._started
            self._is_joined = self._is_joined or not is_of_this_run
            self._count_from(started)
        _end_turn(descriptor)
        self._release()
        self._descriptor, self._has_begun = descriptor, True

    def _count_from(self, started: datetime | None) -> None:
        if started is not None:
            self._since += (started - self._started) / timedelta(seconds=1)
            self._started = started

    def _move_older(self) -> None:
        """Keep the file that is there under another name, and the ones before it."""
        for number in range(KEPT_FILES, 0, -1):
            older = self.path if number == 1 else f"{self.path}.{number - 1}"
            if os.path.lexists(older):
                os.replace(older, f"{self.path}.{number}")

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _names(path: str, descriptor: int) -> bool:
    """Return whether a path still means an open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False


def _lock(descriptor: int, *, exclusive: bool) -> bool:
    """Lock a file as in use; return False if others use it, and it was wanted exclusively."""
    if sys.platform == "win32":
        return True
    try:
        import fcntl

        how = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError:
        return False
    return True


def _lock_turn(descriptor: int) -> None:
    if sys.platform == "win32":
        return
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.lockf(descriptor, fcntl.LOCK_EX)


def _end_turn(descriptor: int) -> None:
    if sys.platform == "win32":
        return
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.lockf(descriptor, fcntl.LOCK_UN)


def _start_of(path: str) -> datetime | None:
    """Return when a trace began; None if its header cannot be read."""
    try:
        return datetime.fromisoformat(started_at(path)).astimezone(UTC)
    except ValueError:
        return None


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


_OPEN: Final[WeakValueDictionary[str, TraceFile]] = WeakValueDictionary()


def open_trace(where: str | os.PathLike[str] | TraceFile) -> TraceFile:
    """Return the trace for a path. Clients of one process that name the same file share it.

    Raises:
        ValidationError: It is neither a path nor a `TraceFile`, or it is a folder.
    """
    if isinstance(where, TraceFile):
        return where
    if not isinstance(where, str | os.PathLike):
        raise ValidationError(f"trace={where!r}: must be a path or a TraceFile")
    path = os.path.abspath(os.fsdecode(where))
    trace = _OPEN.get(path)
    if trace is None or trace.is_closed:
        trace = _OPEN[path] = TraceFile(where)
    return trace
