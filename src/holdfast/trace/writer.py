"""The file of a trace, and the thread that writes it.

The way of a call does one thing: it puts an event into a bounded queue. A thread takes what has
come, decodes, redacts and writes it. A queue that is full counts what it cannot take, and a line
says how many were dropped: a trace is never silently incomplete. A disk that is full costs the
trace, never a call.
"""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import msgspec

from holdfast._core.files import open_for_append
from holdfast._core.redact.redactor import default_redactor
from holdfast._core.tap import TraceEvent
from holdfast._core.transports.stdio import Stdio
from holdfast.calllog.sinks import Sidecars
from holdfast.errors import ValidationError
from holdfast.trace.format import FORMAT, MARK
from holdfast.trace.lines import SHOWN_OF_LARGE, LineMaker

if TYPE_CHECKING:
    from holdfast.client import Client

log: logging.Logger = logging.getLogger("holdfast")

MOST_EVENTS: Final = 20_000
"""Events that wait to be written."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of messages that wait to be written."""
ROTATE_AT: Final = 64 * 1024 * 1024
"""Bytes of a file, after which another is begun."""
KEPT_FILES: Final = 4
"""Older files that are kept: ``run.jsonl.1`` is the newest of them."""
GATHER: Final = 0.05
"""Seconds in which events gather before they are written together."""

_Job = Callable[[], dict[str, Any] | None]


class TraceFile:
    """A trace of any number of clients, in one file.

    Args:
        path: The file. One that is there is kept as ``path.1``.
        sidecars: Write messages above 64 KiB whole into files beside it, instead of cutting them.
    """

    def __init__(self, path: str | os.PathLike[str], *, sidecars: bool = False) -> None:
        self.path: str = os.path.abspath(os.fsdecode(path))
        if os.path.isdir(self.path):
            raise ValidationError(f"trace={os.fsdecode(path)!r}: this is a folder, not a file")
        self.lost: int = 0
        """Lines that could not be written."""
        self._queue: deque[tuple[int, _Job]] = deque()
        self._waiting = 0
        self._dropped = 0
        """Events that were not taken; only `_put` counts them."""
        self._reported = 0
        """Those of them that a line has told of; only the writer counts them."""
        self._since = time.perf_counter()
        self._started = datetime.now(UTC)
        self._servers: dict[str, dict[str, str]] = {}
        self._descriptor: int | None = None
        self._size = 0
        self._sequence = 0
        folder = f"{self.path}.bodies"
        name = os.path.basename(folder)
        self._sidecars = Sidecars(name, folder, MOST_BYTES * 4, 10_000) if sidecars else None
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<TraceFile {self.path}>"

    # What clients use

    def watch(self, client: Client) -> None:
        """Record what crosses between a client and its server, from its first use on."""
        transport = client.transport
        facts = {"transport": type(transport).__name__.lower(), "target": _target(transport)}
        client._attach_tap(self.tap(client.name, **facts), self.flush)
        if isinstance(client.transport, Stdio):
            client.transport.watch_stderr(self.stderr(client.name))

    def tap(self, server: str, **facts: str) -> Callable[[TraceEvent], None]:
        """Return a tap for the driver of one client; ``facts`` are what is known of its server."""
        maker = LineMaker(server, default_redactor())
        self._servers[server] = facts
        joined = {"t": round(self._now(), 6), "server": server, "kind": "server", **facts}
        self._put(0, lambda: joined)
        zero = 0.0

        def take(event: TraceEvent) -> None:
            nonlocal zero
            # Events carry the time of their event loop, each of which has its own zero.
            zero = zero or event.at - self._now()
            since = zero
            size = 0 if event.frame is None else len(event.frame)
            self._put(size, lambda: maker.lines(event, since))

        return take

    def stderr(self, server: str) -> Callable[[str], None]:
        """Return a function that takes the lines of a server's stderr."""
        maker = LineMaker(server, default_redactor())

        def take(line: str) -> None:
            at = self._now()
            self._put(len(line), lambda: maker.stderr(line, at))

        return take

    @property
    def is_closed(self) -> bool:
        return self._closed

    def flush(self) -> None:
        """Write everything that waits, now."""
        with self._lock:
            self._write_all()

    def close(self) -> None:
        """Write everything, and close the file. What comes later is not recorded."""
        self._closed = True
        self.flush()
        if self._sidecars is not None:
            self._sidecars.close()
        with self._lock:
            self._close_file()
        self._wake.set()
        atexit.unregister(self.close)

    # The queue

    def _now(self) -> float:
        return time.perf_counter() - self._since

    def _put(self, size: int, job: _Job) -> None:
        if self._closed:
            return
        if len(self._queue) >= MOST_EVENTS or self._waiting + size > MOST_BYTES:
            self._dropped += 1
            return
        self._waiting += size
        self._queue.append((size, job))
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="holdfast-trace", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            time.sleep(GATHER)
            self._wake.clear()
            with self._lock:
                self._write_all()

    # Writing; under the lock

    def _write_all(self) -> None:
        lines: list[bytes] = []
        while self._queue:
            size, job = self._queue.popleft()
            self._waiting -= size
            try:
                line = job()
            except Exception:
                log.exception("the trace %s: an event could not be made a line", self.path)
                continue
            if line is not None:
                lines.append(self._encode(line))
        if count := self._dropped - self._reported:
            self._reported += count
            lines.append(
                self._encode({"t": round(self._now(), 6), "kind": "dropped", "count": count})
            )
        if lines:
            self._write(lines)

    def _encode(self, line: dict[str, Any]) -> bytes:
        if "large" in line:
            line = self._without_body(line)
        return msgspec.json.encode(line, enc_hook=str) + b"\n"

    def _without_body(self, line: dict[str, Any]) -> dict[str, Any]:
        """Put the body of a large message into a sidecar, or keep its beginning alone."""
        text = msgspec.json.encode(line.pop("large"), enc_hook=str).decode()
        if self._sidecars is None:
            return {**line, "text": text[:SHOWN_OF_LARGE]}
        self._sequence += 1
        method = str(line.get("method", line["kind"]))
        path = self._sidecars.keep(self._sequence, method, ".json", len(text), lambda: text)
        return {**line, "text": text[:SHOWN_OF_LARGE], "sidecar": path or ""}

    def _write(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        try:
            if self._descriptor is not None and self._size + len(data) > ROTATE_AT:
                self._close_file()
            if self._descriptor is None:
                self._open_file()
            written = 0
            while written < len(data) and self._descriptor is not None:
                written += os.write(self._descriptor, data[written:])
            self._size += len(data)
        except OSError as error:
            if not self.lost:
                log.warning("the trace %s: lines were lost: %s", self.path, error)
            self.lost += len(lines)
            self._close_file()

    def _open_file(self) -> None:
        self._rotate()
        self._descriptor = open_for_append(self.path)
        started = self._started.isoformat(timespec="microseconds").replace("+00:00", "Z")
        header = {MARK: FORMAT, "started": started, "servers": self._servers}
        self._size = os.write(self._descriptor, msgspec.json.encode(header) + b"\n")

    def _rotate(self) -> None:
        """Keep the file that is there under another name, and the ones before it."""
        if not os.path.lexists(self.path):
            return
        for number in range(KEPT_FILES, 0, -1):
            older = self.path if number == 1 else f"{self.path}.{number - 1}"
            if os.path.lexists(older):
                os.replace(older, f"{self.path}.{number}")

    def _close_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


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


def _target(transport: Any) -> str:
    """Return a server's command or address, without secrets."""
    words = getattr(transport, "command", None)
    text = shlex.join(words) if words else str(getattr(transport, "url", "") or "")
    return default_redactor().text(text)
