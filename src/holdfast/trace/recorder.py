"""Collect what clients see, and make lines of it in a thread of its own.

The way of a call does one thing: it puts an event into a bounded queue. A thread takes what has
come, decodes, redacts and hands the lines on: to a file (`holdfast.trace.writer`), or to a page
that follows a run (`holdfast.view.live`). A queue that is full counts what it cannot take, and a
line says how many were dropped: a trace is never silently incomplete.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from weakref import ReferenceType, WeakSet, ref

import msgspec

from holdfast._core.boundary import Delivered, Generation, Send
from holdfast._core.line_queue import LineQueue
from holdfast._core.redact.redactor import default_redactor
from holdfast._core.tap import Crossing, Tap, TicketOf, TraceEvent, Watcher, crossing_events
from holdfast.trace.lines import SHOWN_OF_LARGE, LineMaker, Messages, read_together

if TYPE_CHECKING:
    from holdfast._core.transports.http_client import HttpNote
    from holdfast.client import Client

log: logging.Logger = logging.getLogger("holdfast")

MOST_EVENTS: Final = 20_000
"""Events that wait to be written."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of messages that wait to be written."""
BATCH: Final = 512
"""Events of which lines are made at once."""

_Item = Messages | Callable[[], dict[str, Any] | None]
"""Messages; or what makes the line of something else."""


class Recorder:
    """A queue of events of any number of clients, and the thread that makes lines of them.

    A subclass says where the lines go, by `_write`.
    """

    def __init__(self) -> None:
        self._queue: LineQueue[_Item] = LineQueue(
            self._write_items,
            "holdfast-trace",
            most_items=MOST_EVENTS,
            most_bytes=MOST_BYTES,
            batch=BATCH,
            forked=self._begin_in_fork,
        )
        self._dropped = 0
        """Events that were not taken; only `_put` counts them."""
        self._reported = 0
        """Those of them that a line has told of; only the writer counts them."""
        self._since = time.perf_counter()
        self._started = datetime.now(UTC)
        self._servers: dict[str, dict[str, str]] = {}
        """What is known of each server, by its name."""
        self._makers: WeakSet[LineMaker] = WeakSet()
        self._closed = False

    # What clients use

    def watch(self, client: Client) -> None:
        """Record what crosses between a client and its server, from its first use on."""
        transport, maker = client.transport, self._maker(client.name)
        maker.has_batches = _has_batches(ref(client))
        facts = {"transport": type(transport).__name__.lower(), "target": _target(transport)}
        client._attach_tap(self._watcher(maker, facts), self.flush)
        if hasattr(transport, "watch_stderr"):
            transport.watch_stderr(self._stderr(maker))
        if hasattr(transport, "watch_responses"):
            transport.watch_responses(self._responses(maker))

    def tap(self, server: str, **facts: str) -> Tap:
        """Return a tap for the driver of one client; ``facts`` are what is known of its server."""
        return self._tap(self._maker(server), facts)

    def stderr(self, server: str) -> Callable[[str], None]:
        """Return a function that takes the lines of a server's stderr."""
        return self._stderr(self._maker(server))

    def _watcher(self, maker: LineMaker, facts: dict[str, str]) -> Watcher:
        """Return what takes all that crosses between a client and its server."""
        tap, put = self._tap(maker, facts), self._queue.put

        def watch(crossing: Crossing, at: float, link: Generation, ticket_of: TicketOf) -> None:
            if type(crossing) is Send:
                data = crossing.frame
                item = Messages(maker, data, at, link, "→", crossing.ticket)
            elif type(crossing) is Delivered:
                data, link = crossing.data, crossing.generation
                item = Messages(maker, data, at, link, "←", None, crossing.whole)
            else:
                for event in crossing_events(crossing, at, link, ticket_of):
                    tap(event)
                return
            if not self._closed and not put(item, len(data)):
                self._dropped += 1

        return watch

    def _tap(self, maker: LineMaker, facts: dict[str, str]) -> Tap:
        self._servers[maker.name] = facts
        at = time.perf_counter()
        self._put(0, lambda: {"t": self._t(at), "server": maker.server, "kind": "server", **facts})

        def take(event: TraceEvent) -> None:
            frame, at, link = event.frame, event.at, event.generation
            if frame is None or event.direction is None or event.kind != "message":
                self._put(0, lambda: maker.event(event, self._since))
            else:
                ticket = event.ticket
                self._put(len(frame), Messages(maker, frame, at, link, event.direction, ticket))

        return take

    def _stderr(self, maker: LineMaker) -> Callable[[str], None]:
        def take(line: str) -> None:
            at = time.perf_counter()
            self._put(len(line), lambda: maker.stderr(line, self._t(at)))

        return take

    def _responses(self, maker: LineMaker) -> Callable[[HttpNote], None]:
        def take(note: HttpNote) -> None:
            at = time.perf_counter()
            self._put(0, lambda: maker.http(note, self._t(at)))

        return take

    @property
    def is_closed(self) -> bool:
        return self._closed

    def flush(self) -> None:
        """Write everything that waits, now."""
        self._queue.flush()
        with self._queue.lock:
            self._write_dropped()

    def close(self) -> None:
        """Write everything, and release what is held. What comes later is not recorded."""
        self._closed = True
        self._queue.close()
        self.flush()
        with self._queue.lock:
            self._release()

    # What a subclass decides; under the lock

    def _write(self, lines: list[bytes]) -> None:
        """Put lines where they belong. Must not raise."""
        raise NotImplementedError

    def _release(self) -> None:
        """Close what is open."""

    def _begin_in_fork(self) -> None:
        """Let go of what belongs to the parent; no lock is held."""
        self._dropped = self._reported = 0
        self._release()

    def _prepare(self) -> None:
        """Get ready for lines: what is decided here, such as their names of servers, holds."""

    def _without_body(self, line: dict[str, Any], body: Any) -> dict[str, Any]:
        """Return the line of a message above 64 KiB: its beginning alone."""
        text = msgspec.json.encode(body, enc_hook=str).decode()
        return {**line, "text": text[:SHOWN_OF_LARGE]}

    # The queue

    def _maker(self, server: str) -> LineMaker:
        maker = LineMaker(server, default_redactor())
        self._makers.add(maker)
        return maker

    def _t(self, at: float) -> float:
        """Return a time of `time.perf_counter` as seconds since the start of the trace."""
        return round(at - self._since, 6)

    def _put(self, size: int, item: _Item) -> None:
        if not self._closed and not self._queue.put(item, size):
            self._dropped += 1

    def _write_items(self, items: list[_Item]) -> None:
        self._prepare()
        lines = self._lines(items)
        if lines:
            self._write(lines)
        self._write_dropped()

    def _lines(self, items: list[_Item]) -> list[bytes]:
        """Return the lines of some items; messages that follow each other are read together."""
        lines: list[bytes] = []
        for kind, group in groupby(items, type):
            if kind is Messages:
                self._add_messages(lines, group)  # type: ignore[arg-type]
            else:
                self._add_others(lines, group)  # type: ignore[arg-type]
        return lines

    def _add_messages(self, lines: list[bytes], group: Iterable[Messages]) -> None:
        since = self._since
        for messages, frame, head in read_together(list(group), default_redactor()):
            try:
                maker, line = messages.maker, None
                if head is not None:
                    line = maker.plain_line(messages, frame, head, since)
                elif not frame or frame.isspace():
                    continue
                if line is not None:
                    lines.append(line)
                else:
                    lines += map(self._encode, maker.fields(messages, frame, since))
            except Exception:
                log.exception("the trace: something could not be made a line")

    def _add_others(
        self, lines: list[bytes], group: Iterable[Callable[[], dict[str, Any] | None]]
    ) -> None:
        for make in group:
            try:
                line = make()
                if line is not None:
                    lines.append(self._encode(line))
            except Exception:
                log.exception("the trace: something could not be made a line")

    def _write_dropped(self) -> None:
        """Tell of what was not taken, behind the last that was."""
        if count := self._dropped - self._reported:
            self._prepare()
            self._reported += count
            at = self._t(time.perf_counter())
            self._write([self._encode({"t": at, "kind": "dropped", "count": count})])

    def _encode(self, line: dict[str, Any]) -> bytes:
        if "large" in line:
            body = line.pop("large")
            line = self._without_body(line, body)
        return msgspec.json.encode(line, enc_hook=str) + b"\n"


def _has_batches(client_ref: ReferenceType[Client]) -> Callable[[], bool]:
    """Return what tells whether a client reads batches; a trace does not keep a client."""

    def has_batches() -> bool:
        client = client_ref()
        era = None if client is None else client._requester.opener.era()
        return era is not None and era.batches

    return has_batches


def _target(transport: Any) -> str:
    """Return a server's command or address, without secrets."""
    words = getattr(transport, "command", None)
    text = shlex.join(words) if words else str(getattr(transport, "url", "") or "")
    return default_redactor().text(text)
