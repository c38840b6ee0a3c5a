"""Pair the lines of a trace: which answer belongs to which request, and how each request ended."""

from __future__ import annotations

import heapq
from collections import OrderedDict, defaultdict
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.trace.format import Line

# One row for each line, in the order of the file; a row never moves. A request's row learns its
# answer, its end and its outcome later, from other lines:
#
#   result, error       an answer; "late" if the request had ended before, by whatever means
#   outcome             the client gave the request up and knows why: the only sure source
#   cancelled           the server was told to stop; an outcome line may say more (a timeout)
#   state               a link that is lost takes its requests along: each may have run, because
#                       it had been sent and nothing will answer any more
#
# Ids are unique only within one connection and one direction: a restarted server counts its own
# questions from 1 again. So requests are found by (server, link, direction, id).
#
# The same object serves a file, which is read once, and a page that follows a trace: `add` returns
# the numbers of the rows that it changed.

OUTCOMES: Final = (
    *("", "ok", "tool", "rpc", "timeout", "cancelled", "unknown", "failed", "pending"),
)
"""How a request ended; "" for rows that are no request."""
TROUBLE: Final = frozenset({"tool", "rpc", "timeout", "unknown", "failed"})
_ENDS: Final = frozenset(OUTCOMES) - {"", "pending"}

MOST_ANSWERED: Final = 1000
_GONE: Final = frozenset({"backoff", "closed"})
"""The states in which a link has no requests any more."""
_CANCEL: Final = "notifications/cancelled"
_PROBE, _HANDSHAKE = "server/discover", "initialize"
_STREAM: Final = "subscriptions/listen"
_STREAM_ENDED: Final = "the stream ended with its connection"
_OLDER: Final = (
    "it does not know this request, as servers of older revisions; the handshake follows"
)
_OTHER_WAY: Final = {">": "<", "<": ">", "": ""}


class Row(Struct, gc=False):
    """One line as the page lists it."""

    t: float
    kind: str
    server: str
    link: int
    dir: str
    name: str
    """The tool, else the method; the new state of a change of state."""
    method: str
    id: int | str | None
    bytes: int
    of: int = -1
    """The row of the request that it belongs to."""
    answer: int = -1
    late: int = -1
    """The row of an answer that came after the request had ended."""
    end: float = -1.0
    outcome: str = ""
    note: str = ""
    """Why: of a change of state, or of an outcome."""
    faults: dict[str, str] | None = None


class _Params(Struct):
    name: str | UnsetType = UNSET


class _Request(Struct):
    params: _Params | UnsetType = UNSET


class _Result(Struct):
    is_error: bool | UnsetType = msgspec.field(default=UNSET, name="isError")
    result_type: str | UnsetType = msgspec.field(default=UNSET, name="resultType")


class _Response(Struct):
    result: _Result | UnsetType = UNSET


_request = msgspec.json.Decoder(_Request)
_response = msgspec.json.Decoder(_Response)


class Index:
    """The rows of a trace, and what each request became."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.dropped = 0
        self._open: dict[tuple[str, int, str, int | str], int] = {}
        """The requests that have not ended, by connection, direction and id."""
        self._sent: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """The requests of each server as a heap: the lowest link first, answered ones among them.

        What a lost link takes along is found without a look at all that are open.
        """
        self._ended: dict[tuple[str, int, str, int | str], int] = {}
        """Those that ended without an answer: one may still come."""
        self._answered: OrderedDict[tuple[str, int, str, int | str], int] = OrderedDict()
        """The last that were answered: the check of an answer comes behind it."""
        self._refused: dict[tuple[str, int], int] = {}
        """The probe that was refused on a link: no trouble, if the handshake follows."""

    def add(self, line: Line) -> list[int]:
        """Take the next line; return the numbers of the rows that are new or changed."""
        number = len(self.rows)
        row = Row(
            max(line.t, self.rows[-1].t if self.rows else 0.0),
            line.kind,
            line.server,
            line.link,
            line.dir,
            line.to_state or line.method or line.kind,
            line.from_state or line.method,
            line.id,
            line.bytes,
            note=line.why,
        )
        self.rows.append(row)
        changed = _TAKE.get(line.kind, Index._take_other)(self, number, row, line)
        return [number, *changed]

    def close(self) -> None:
        """Let the requests that have no outcome reach to the end of the trace."""
        last = self.rows[-1].t if self.rows else 0.0
        for row in self.rows:
            if row.outcome == "pending":
                row.end = last

    def _take_request(self, number: int, row: Row, line: Line) -> list[int]:
        if line.method == "tools/call":
            row.name = _tool_name(line.body) or row.name
        row.outcome = "pending"
        if line.id is not None:
            self._open[line.server, line.link, line.dir, line.id] = number
            heapq.heappush(self._sent[line.server], (line.link, number))
        if line.method != _HANDSHAKE:
            return []
        probe_number = self._refused.pop((line.server, line.link), None)
        if probe_number is None:
            return []
        self.rows[probe_number].outcome, self.rows[probe_number].note = "ok", _OLDER
        return [probe_number]

    def _take_answer(self, number: int, row: Row, line: Line) -> list[int]:
        if line.id is None:
            return []
        key = (line.server, line.link, _OTHER_WAY[line.dir], line.id)
        request_number = self._open.pop(key, None)
        if request_number is None:
            return self._take_late(number, row, self._ended.get(key))
        self._answered[key] = request_number
        if len(self._answered) > MOST_ANSWERED:
            self._answered.popitem(last=False)
        request = self.rows[request_number]
        row.of, row.name, row.method = request_number, request.name, request.method
        request.answer, request.end = number, row.t
        request.faults = line.faults or None
        request.outcome, note = ("rpc", "") if line.kind == "error" else _verdict(line.body)
        request.note = note or request.note
        if request.outcome == "rpc" and request.method == _PROBE:
            self._refused[line.server, line.link] = request_number
        return [request_number]

    def _take_late(self, number: int, row: Row, request_number: int | None) -> list[int]:
        if request_number is None:
            return []
        request = self.rows[request_number]
        row.of, row.name, row.outcome = request_number, request.name, "late"
        request.late = number
        return [request_number]

    def _take_notification(self, number: int, row: Row, line: Line) -> list[int]:
        if line.of is None:
            return []
        # Progress comes from the side that was asked; a cancellation from the one that asks.
        way = line.dir if line.method == _CANCEL else _OTHER_WAY[line.dir]
        request_number = self._open.get((line.server, line.link, way, line.of))
        if request_number is None:
            return []
        row.of, row.name = request_number, self.rows[request_number].name
        if line.method == _CANCEL:
            return self._end(request_number, row.t, "cancelled", line.why)
        return []

    def _take_outcome(self, number: int, row: Row, line: Line) -> list[int]:
        if line.of is None:
            return []
        key = (line.server, line.link, line.dir or ">", line.of)
        request_number = self._open.get(key, self._ended.get(key))
        if request_number is None:
            return []
        row.of, row.name = request_number, self.rows[request_number].name
        outcome = line.outcome if line.outcome in _ENDS else "failed"
        return self._end(request_number, row.t, outcome, line.why)

    def _take_related(self, number: int, row: Row, line: Line) -> list[int]:
        """A check of an answer, or the head of an HTTP response, belongs to a request of ours."""
        if line.of is None:
            return []
        key = (line.server, line.link, ">", line.of)
        request_number = self._open.get(key, self._ended.get(key, self._answered.get(key)))
        if request_number is None:
            return []
        row.of, row.name = request_number, self.rows[request_number].name
        if line.kind == "check" and line.faults:
            self.rows[request_number].faults = line.faults
            return [request_number]
        return []

    def _take_state(self, number: int, row: Row, line: Line) -> list[int]:
        if line.to_state not in _GONE:
            return []
        sent, changed = self._sent[line.server], list[int]()
        while sent and sent[0][0] <= line.link:
            _, request_number = heapq.heappop(sent)
            request = self.rows[request_number]
            if request.id is None:
                continue
            key = (request.server, request.link, request.dir, request.id)
            if self._open.get(key) == request_number:
                changed += self._end(request_number, row.t, "unknown", line.why)
        return changed

    def _take_dropped(self, number: int, row: Row, line: Line) -> list[int]:
        self.dropped += max(0, line.count)
        return []

    def _take_other(self, number: int, row: Row, line: Line) -> list[int]:
        return []

    def _end(self, request_number: int, t: float, outcome: str, why: str) -> list[int]:
        request = self.rows[request_number]
        if request.method == _STREAM and outcome == "unknown":
            # It does nothing, so there is nothing that may have run, and it has no other end.
            outcome, why = "ok", _STREAM_ENDED
        request.outcome, request.note = outcome, why or request.note
        if request.end < 0:
            request.end = t
        if request.id is not None:
            key = (request.server, request.link, request.dir, request.id)
            self._open.pop(key, None)
            self._ended[key] = request_number
        return [request_number]


_TAKE: Final = {
    "request": Index._take_request,
    "result": Index._take_answer,
    "error": Index._take_answer,
    "notification": Index._take_notification,
    "outcome": Index._take_outcome,
    "state": Index._take_state,
    "dropped": Index._take_dropped,
    "check": Index._take_related,
    "http": Index._take_related,
}


def _tool_name(body: Raw | UnsetType) -> str:
    if body is UNSET:
        return ""
    try:
        request = _request.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    params = request.params
    return params.name if params is not UNSET and params.name is not UNSET else ""


def _verdict(body: Raw | UnsetType) -> tuple[str, str]:
    """Return how a result ended its request, and what is to be said of it."""
    if body is UNSET:
        return "ok", ""
    try:
        result = _response.decode(body).result
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "ok", ""
    if result is UNSET:
        return "ok", ""
    asks = result.result_type == "input_required"
    note = "the server asks back, and the call goes on in a further request" if asks else ""
    return ("tool" if result.is_error is True else "ok"), note
