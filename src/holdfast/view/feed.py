"""The rows of a run that goes on, and what changed since anybody looked."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from holdfast.trace.format import Line, decode_line
from holdfast.trace.recorder import Recorder
from holdfast.view.index import Index, Row
from holdfast.view.page import body_of, server_facts

MOST_ROWS: Final = 100_000
"""Rows that are kept; beyond that the older half is left out."""
MOST_BYTES: Final = 128 * 1024 * 1024
"""Bytes of bodies that are kept; beyond that the oldest are forgotten."""
MOST_SERVERS: Final = 1000
"""Servers of which more is known than their names; each page is told all of it."""
LONGEST_NAME: Final = 1000
"""Characters of a method, a name, an id or a reason: they are kept when their body is not."""
SMALL_BODY: Final = 2048
"""Bytes of a body that goes along with its row; a larger one is asked for."""
CHUNK: Final = 1000
"""Rows of one event."""

# No row is lost, none is doubled
#
# A page may join late, lose its connection and come back, or read slowly. So the feed does not
# send events: it keeps, for each change, the number of the row that changed, and a page has a
# cursor into that list. What it gets are the rows that changed behind its cursor, each once and as
# they are now, and its next cursor. A slow page costs nothing but one integer; one that comes back
# says where it was (``Last-Event-ID``) and goes on there; and since a row carries its number, to
# get it twice changes nothing.
#
# The list of changes is as long as the rows, so it needs no bound of its own: when there are too
# many rows, the older half is left out, the numbers begin anew and so does the *epoch*. A page
# whose cursor is of another epoch is told to forget what it has.


class Feed:
    """What a live page shows, within bounds; used from one event loop."""

    def __init__(self, title: str, now: Callable[[], float]) -> None:
        self.title = title
        self.started = ""
        self.now = now
        """Returns the time of the trace, in seconds since its start."""
        self.epoch = 1
        self.servers: dict[str, dict[str, Any]] = {}
        self.servers_version = 0
        """Another one whenever the servers are others."""
        self.left_out = 0
        """Rows that were there, and are kept no more."""
        self.skipped = 0
        """Lines that could not be read."""
        self._lines: list[Line] = []
        self._index = Index()
        self._changes = array("I")
        self._bytes = 0
        self._forgotten = 0
        """The rows below this number have no body any more."""
        self._waiting: set[asyncio.Event] = set()

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, lines: Iterable[Line]) -> None:
        """Take the next lines of the trace."""
        for line in lines:
            _cut_names(line)
            if line.kind == "server":
                self.know(line.server, {"transport": line.transport, "target": line.target})
            else:
                self._take(line)
        if len(self._lines) > MOST_ROWS:
            self._begin_anew(self._lines[MOST_ROWS // 2 :])
        self._forget()
        self.wake()

    def know(self, server: str, facts: dict[str, Any]) -> None:
        """Take what is known of a server."""
        if server in self.servers or len(self.servers) < MOST_SERVERS:
            self.servers[server] = facts
            self.servers_version += 1

    def clear(self) -> None:
        """Forget everything: another run has begun."""
        self.servers.clear()
        self.servers_version += 1
        self._begin_anew([])
        self.wake()

    def wake(self) -> None:
        """Tell everybody who waits that something is new."""
        for event in self._waiting:
            event.set()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait until something may be new, for as long at most."""
        self._waiting.add(event)
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(event)
            event.clear()

    # What a page gets

    def since(self, cursor: int) -> tuple[list[Raw], int]:
        """Return the rows that changed behind a cursor, at most `CHUNK`, and the next cursor."""
        end = min(len(self._changes), cursor + CHUNK)
        numbers = sorted(set(self._changes[cursor:end]))
        return [self._encoded(number) for number in numbers], end

    @property
    def end(self) -> int:
        """The cursor of a page that has everything."""
        return len(self._changes)

    def facts(self) -> dict[str, Any]:
        """Return what concerns the whole trace."""
        return {
            "title": self.title,
            "started": self.started,
            "dropped": self._index.dropped,
            "leftOut": self.left_out,
            "skipped": self.skipped,
            "now": round(self.now(), 3),
        }

    def known_servers(self) -> list[dict[str, Any]]:
        """Return the servers with what is known of each."""
        return [server_facts(name, facts) for name, facts in self.servers.items()]

    def body(self, epoch: int, number: int) -> bytes | None:
        """Return the body of a row; None if there is no such row any more."""
        if epoch != self.epoch or not 0 <= number < len(self._lines):
            return None
        return body_of(self._lines[number])

    def lines(self) -> list[Line]:
        """Return all that is kept, for a page that is saved."""
        return list(self._lines)

    # Rows

    def _take(self, line: Line) -> None:
        self._lines.append(line)
        self._bytes += _size(line)
        self._changes.extend(self._index.add(line))
        row = self._index.rows[-1]
        row.name = row.name[:LONGEST_NAME]

    def _begin_anew(self, lines: list[Line]) -> None:
        dropped = self._index.dropped
        self.left_out += len(self._lines) - len(lines)
        self.epoch += 1
        self._lines, self._index, self._changes = [], Index(), array("I")
        self._bytes = self._forgotten = 0
        for line in lines:
            self._take(line)
        self._index.dropped = dropped

    def _forget(self) -> None:
        while self._bytes > MOST_BYTES and self._forgotten < len(self._lines):
            line = self._lines[self._forgotten]
            self._bytes -= _size(line)
            line.body, line.text = UNSET, "(this message is not kept any more)"
            line.sidecar = ""
            # The row of the request has the same faults.
            line.faults.clear()
            line.headers.clear()
            self._forgotten += 1

    def _encoded(self, number: int) -> Raw:
        row, line = self._index.rows[number], self._lines[number]
        body: Any = -1
        if _size(line) <= SMALL_BODY:
            body = Raw(body_of(line))
        return Raw(msgspec.json.encode([number, *_values(row), body], enc_hook=str))


def _values(row: Row) -> tuple[Any, ...]:
    """Return a row in the order in which the page reads it."""
    end = -1 if row.end < 0 else round(row.end, 6)
    wire_id = "" if row.id is None else str(row.id)
    return (
        *(round(row.t, 6), end, row.server, row.link, row.dir, row.kind, row.name, row.method),
        *(wire_id, row.bytes, row.of, row.answer, row.late, row.outcome, row.note),
        row.faults or None,
    )


_NAMES: Final = (
    *("method", "server", "why", "kind", "to_state", "from_state", "id", "of"),
    *("transport", "target"),
)


def _cut_names(line: Line) -> None:
    """Cut what a row keeps as long as it is there: a method may have as many bytes as a message."""
    for name in _NAMES:
        text = getattr(line, name)
        if isinstance(text, str) and len(text) > LONGEST_NAME:
            setattr(line, name, f"{text[:LONGEST_NAME]}…")


def _size(line: Line) -> int:
    size = len(line.text) if line.body is UNSET else len(bytes(line.body))
    others = (*line.faults.items(), *line.headers.items(), (line.sidecar, ""))
    return size + sum(len(name) + len(text) for name, text in others)


class FeedRecorder(Recorder):
    """Records clients of this process into a feed, by the same lines as those of a file."""

    def __init__(self, feed: Feed, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._feed, self._loop = feed, loop
        feed.started = self._started.isoformat(timespec="microseconds").replace("+00:00", "Z")
        feed.now = lambda: time.perf_counter() - self._since

    def _write(self, lines: list[bytes]) -> None:
        decoded = [decode_line(line) for line in lines]
        try:
            self._loop.call_soon_threadsafe(self._feed.add, decoded)
        except RuntimeError:
            pass  # The loop is closed: nobody looks any more.

    def _without_body(self, line: dict[str, Any], body: Any) -> dict[str, Any]:
        # A page shows pictures: a large body is kept whole, within the bounds of the feed.
        return {**line, "body": body}
