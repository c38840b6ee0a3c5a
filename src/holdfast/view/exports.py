"""A trace in the forms that other viewers open: HAR, OTLP JSON, Chrome trace events.

These are forms for pairs: a change of state, a late answer or junk has a place in the last of them
only. The trace itself has everything.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import msgspec

from holdfast._version import __version__
from holdfast.trace.format import Line, Reading
from holdfast.view.index import TROUBLE, Index, Row
from holdfast.view.page import body_of

Json = dict[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR: Final = 2200
"""OTLP counts nanoseconds since 1970 in 64 bits, which are full in 2554."""
_METHODS_ABOUT: Final = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}


class Recording:
    """A trace in memory: its rows with their bodies."""

    def __init__(self, reading: Reading, lines: Iterable[Line]) -> None:
        self._index = Index()
        self.bodies: list[bytes] = []
        for line in lines:
            self._index.add(line)
            self.bodies.append(body_of(line))
        self._index.close()
        self.rows = self._index.rows
        self.servers = dict.fromkeys(row.server for row in self.rows if row.server)
        self.targets = {
            name: str(facts.get("target", "")) for name, facts in reading.header.servers.items()
        }
        self.started = _moment(reading.header.started)

    def requests(self) -> Iterator[tuple[int, Row]]:
        """Yield the requests of either side with their numbers."""
        return ((n, row) for n, row in enumerate(self.rows) if row.kind == "request")

    def body(self, number: int) -> Any:
        """Return the body of a row as plain JSON; None if it has none, its text if it is odd."""
        if number < 0:
            return None
        try:
            return msgspec.json.decode(self.bodies[number])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.text(number)  # As 1e999: JSON, and no number.

    def text(self, number: int) -> str:
        return self.bodies[number].decode("utf-8", "replace") if number >= 0 else ""

    def at(self, t: float) -> datetime:
        return self.started + timedelta(seconds=t)

    def nanos(self, t: float) -> str:
        return str((self.at(t) - _EPOCH) // timedelta(microseconds=1) * 1000)


def _moment(text: str) -> datetime:
    """Return when a trace began; a date that no span of it can count from is none."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        # In UTC: in another zone the first hours of 1970 are before it.
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return _EPOCH
    return moment if moment >= _EPOCH and moment.year <= _LAST_YEAR else _EPOCH


def _span_of(row: Row) -> float:
    return max(0.0, row.end - row.t)


# HAR 1.2


def to_har(recording: Recording) -> Json:
    """Return the requests and their answers as an HTTP archive, which browsers' tools open."""
    entries = [_har_entry(recording, number, row) for number, row in recording.requests()]
    creator = {"name": "holdfast", "version": __version__}
    return {"log": {"version": "1.2", "creator": creator, "pages": [], "entries": entries}}


def _har_entry(recording: Recording, number: int, row: Row) -> Json:
    sent, received = recording.text(number), recording.text(row.answer)
    milliseconds = round(_span_of(row) * 1000, 3)
    plain: Json = {"httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "headersSize": -1}
    answer = recording.rows[row.answer] if row.answer >= 0 else None
    return {
        "startedDateTime": recording.at(row.t).isoformat().replace("+00:00", "Z"),
        "time": milliseconds,
        "request": {
            **plain,
            "method": "POST",
            "url": _har_url(recording, row),
            "queryString": [],
            "postData": {"mimeType": "application/json", "text": sent},
            "bodySize": max(-1, row.bytes),
        },
        "response": {
            **plain,
            "status": 200 if row.answer >= 0 else 0,
            "statusText": row.outcome,
            "content": {
                "size": max(0, answer.bytes) if answer else 0,
                "mimeType": "application/json",
                "text": received,
            },
            "redirectURL": "",
            "bodySize": max(-1, answer.bytes) if answer else -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds, "receive": 0},
        "comment": row.note,
        "_outcome": row.outcome,
        "_server": row.server,
        "_link": row.link,
        "_direction": row.dir,
    }


def _har_url(recording: Recording, row: Row) -> str:
    """Return an address that shows the server and the call; no request can be made to it."""
    target = recording.targets.get(row.server, "")
    base = target if target.startswith(("http://", "https://")) else f"mcp://{quote(row.server)}"
    name = "" if row.name == row.method else f"/{quote(row.name, safe='')}"
    return f"{base.partition('#')[0]}#{quote(row.method)}{name}"


# OTLP JSON


def to_otlp(recording: Recording) -> Json:
    """Return the requests as spans, named by the MCP semantic conventions of OpenTelemetry."""
    spans = [_otlp_span(recording, number, row) for number, row in recording.requests()]
    scope = {"name": "holdfast", "version": __version__}
    resource = {"attributes": _attributes({"service.name": "holdfast"})}
    scoped = [{"scope": scope, "spans": spans}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scoped}]}


def _otlp_span(recording: Recording, number: int, row: Row) -> Json:
    about = _METHODS_ABOUT.get(row.method)
    facts: Json = {
        "mcp.method.name": row.method,
        "jsonrpc.request.id": None if row.id is None else str(row.id),
        "server.address": row.server,
        "holdfast.outcome": row.outcome,
        "holdfast.link": row.link,
    }
    if about is not None:
        facts[about] = row.name
    answer = recording.body(row.answer)
    if isinstance(answer, dict) and isinstance(error := answer.get("error"), dict):
        facts["rpc.response.status_code"] = str(error.get("code", ""))
    if row.outcome in TROUBLE:
        facts["error.type"] = row.outcome
    span: Json = {
        "traceId": _digest(recording, f"{row.server}/{row.link}")[:32],
        "spanId": _digest(recording, f"{row.server}/{row.link}/{number}")[:16],
        "name": row.method if row.name == row.method else f"{row.method} {row.name}",
        "kind": 3 if row.dir == ">" else 2,
        "startTimeUnixNano": recording.nanos(row.t),
        "endTimeUnixNano": recording.nanos(max(row.t, row.end)),
        "attributes": _attributes(facts),
        "status": {"code": 2, "message": row.note} if row.outcome in TROUBLE else {},
    }
    if row.late >= 0:
        late = recording.rows[row.late]
        span["events"] = [{"timeUnixNano": recording.nanos(late.t), "name": "late answer"}]
    return span


def _attributes(facts: Json) -> list[Json]:
    return [
        {
            "key": key,
            "value": {"intValue": str(value)}
            if isinstance(value, int) and abs(value) < 2**63
            else {"stringValue": str(value)},
        }
        for key, value in facts.items()
        if value is not None
    ]


def _digest(recording: Recording, about: str) -> str:
    return sha256(f"{recording.started.isoformat()} {about}".encode()).hexdigest()


# Chrome trace events


def to_chrome(recording: Recording) -> Json:
    """Return all of it for Perfetto and speedscope: a process per server, a thread per slot."""
    events: list[Json] = []
    rows: dict[str, list[tuple[int, Row]]] = {server: [] for server in recording.servers}
    for number, row in enumerate(recording.rows):
        if row.server:
            rows[row.server].append((number, row))
    for process, server in enumerate(rows, 1):
        events += _process(recording, process, server, rows[server])
    started = recording.started.isoformat()
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"started": started}}


# Perfetto has a thread 0 of its own.
_STATE_THREAD: Final = 1
_STDERR_THREAD: Final = 2
_FIRST_SLOT: Final = 3


class _Slots:
    """Threads for calls that overlap: each takes the first one that is free at its time."""

    def __init__(self) -> None:
        self.count = 0
        self._free: list[int] = []
        self._busy: list[tuple[float, int]] = []

    def take(self, row: Row) -> int:
        while self._busy and self._busy[0][0] <= row.t:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        if self._free:
            slot = heapq.heappop(self._free)
        else:
            slot, self.count = self.count, self.count + 1
        heapq.heappush(self._busy, (row.end, slot))
        return slot


def _process(
    recording: Recording, process: int, server: str, rows: list[tuple[int, Row]]
) -> Iterator[Json]:
    def named(kind: str, thread: int, name: str) -> Json:
        arguments = {"name": name}
        return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": arguments}

    yield named("process_name", _STATE_THREAD, server)
    yield named("thread_name", _STATE_THREAD, "state")
    yield named("thread_name", _STDERR_THREAD, "stderr and junk")
    yield from _state_events(process, [row for _, row in rows if row.kind == "state"], recording)
    slots = _Slots()
    for number, row in rows:
        if row.kind in ("stderr", "junk"):
            yield _event("i", process, _STDERR_THREAD, row, recording.body(number), s="t")
        elif row.kind == "request":
            arguments = {
                "outcome": row.outcome,
                "request": recording.body(number),
                "answer": recording.body(row.answer),
            }
            span = round(_span_of(row) * 1e6, 3)
            yield _event("X", process, _FIRST_SLOT + slots.take(row), row, arguments, dur=span)
    for slot in range(slots.count):
        yield named("thread_name", _FIRST_SLOT + slot, f"calls {slot + 1}")


def _state_events(process: int, states: list[Row], recording: Recording) -> Iterator[Json]:
    end = recording.rows[-1].t if recording.rows else 0.0
    for row, following in itertools.zip_longest(states, states[1:]):
        span = round(((following.t if following else end) - row.t) * 1e6, 3)
        yield _event("X", process, _STATE_THREAD, row, {"why": row.note}, dur=span)


def _event(phase: str, process: int, thread: int, row: Row, facts: Any, **fields: Any) -> Json:
    arguments = facts if isinstance(facts, dict) else {"body": facts}
    name, at = row.name or row.kind, round(row.t * 1e6, 3)
    event = {"ph": phase, "name": name, "cat": row.kind, "pid": process, "tid": thread, "ts": at}
    return {**event, "args": arguments, **fields}


FORMS: Final[dict[str, Callable[[Recording], Json]]] = {
    "har": to_har,
    "otlp": to_otlp,
    "chrome": to_chrome,
}
