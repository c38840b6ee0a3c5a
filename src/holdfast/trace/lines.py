"""Make lines of what a tap sees. Redaction happens here, in the thread that writes.

A line says which request it belongs to (``of``), so that a reader can pair lines without knowing
the protocol: the id of an answer, the token of progress, the id in a cancellation. The client knows
how a request ended that got no answer; that becomes a line of its own (``outcome``).
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.boundary import Ticket
from holdfast._core.redact.redactor import Redactor
from holdfast._core.tap import Direction, TraceEvent
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import CancelledCallError, HoldfastError, RequestTimeout, RpcError

if TYPE_CHECKING:
    from holdfast._core.transports.http_client import HttpNote

LARGE_BODY: Final = 64 * 1024
"""Bytes of a message above which it goes into a sidecar, or is cut."""
LARGEST_BODY: Final = 16 * 1024 * 1024
"""Bytes of a message above which only its size is kept."""
SHOWN_OF_LARGE: Final = 4096
"""Characters of a message that was cut that are kept."""
MOST_TICKETS: Final = 20_000
"""Requests whose ids are remembered until their outcome is known."""

HEADERS: Final = frozenset({"content-type", "retry-after", "www-authenticate"})
"""The headers of a response that are kept, besides ``Mcp-*``; others may be anybody's secrets."""
LONGEST_HEADER: Final = 1000

_DIRECTIONS: Final = {"→": ">", "←": "<", None: ""}


class _Params(Struct):
    progressToken: int | str | UnsetType = UNSET  # noqa: N815  (names of the wire)
    requestId: int | str | UnsetType = UNSET  # noqa: N815
    reason: str | UnsetType = UNSET


class _Head(Struct):
    id: int | str | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_encode: Final = msgspec.json.Encoder().encode
_head = msgspec.json.Decoder(_Head)
_params = msgspec.json.Decoder(_Params)
_RELATED: Final = {"notifications/progress", "notifications/cancelled"}


class LineMaker:
    """Makes the lines of one server."""

    def __init__(self, server: str, redactor: Redactor) -> None:
        self.name = server
        self.mark = ""
        """What stands behind the server's name, if other processes write to the same trace."""
        self._redactor = redactor
        self._places: dict[tuple[str, int, Direction | None], bytes] = {}
        self._generation = 0
        self._sent: OrderedDict[Ticket, tuple[int | str, int]] = OrderedDict()
        """The ids of requests that have been sent, and the links, by call."""

    @property
    def server(self) -> str:
        """The server's name in the lines."""
        return self.name + self.mark

    def line(
        self, event: TraceEvent, since: float, *, is_plain: bool = False
    ) -> bytes | dict[str, Any] | None:
        """Return the line of an event, or its fields; None for those that a trace does not have.

        ``is_plain``: it is known that nothing in its message has to be hidden.
        """
        frame = event.frame
        if frame is None or event.kind != "message":
            return self._fields(event, since)
        if is_plain or self._redactor.is_plain(frame):
            line = self._plain_line(event, frame, event.at - since)
            if line is not None:
                return line
        return self._fields(event, since)

    def _plain_line(self, event: TraceEvent, frame: bytes, t: float) -> bytes | None:
        """Return the line of a short message in which nothing has to be hidden.

        None: it is not one of those that most are, such as no JSON.
        """
        try:
            head = _head.decode(frame)
        except MALFORMED:
            return None
        about = _plain_fields(head)
        if about is None:
            return None
        link = int(event.generation)
        if link > self._generation:
            self._generation = link
        if head.method is not None and head.id is not None and event.ticket is not None:
            self._remember(event.ticket, head.id, link)
        where, body = self._where(link, event.direction), _on_one_line(frame)
        return b'{"t":%.6f%b%d,"kind":%b,"body":%b}\n' % (t, where, len(frame), about, body)

    def _where(self, link: int, direction: Direction | None) -> bytes:
        """Return the fields of a line that are the same for most."""
        key = (self.mark, link, direction)
        place = self._places.get(key)
        if place is None:
            fields = (_encode(self.server), link, _DIRECTIONS[direction].encode())
            place = b',"server":%b,"link":%d,"dir":"%b","bytes":' % fields
            if len(self._places) >= 8:
                self._places.clear()  # links of old
            self._places[key] = place
        return place

    def _fields(self, event: TraceEvent, since: float) -> dict[str, Any] | None:
        self._generation = max(self._generation, int(event.generation))
        common = {
            "t": round(event.at - since, 6),
            "server": self.server,
            "link": int(event.generation),
        }
        make = _MAKE.get(event.kind)
        line = None if make is None else make(self, event)
        return None if line is None else {**common, **line}

    def stderr(self, text: str, at: float) -> dict[str, Any]:
        """Return a line of the server's stderr."""
        line = {"t": round(at, 6), "server": self.server, "link": self._generation, "dir": "<"}
        return {**line, "kind": "stderr", "bytes": len(text), "text": self._redactor.text(text)}

    def http(self, note: HttpNote, at: float) -> dict[str, Any]:
        """Return the line of an HTTP response, or of a step of a login."""
        line = {"t": round(at, 6), "server": self.server, "link": self._generation, "dir": "<"}
        facts = {"method": note.method, "status": note.status, "why": self._redactor.text(note.why)}
        headers = {
            name: self._redactor.text(value)[:LONGEST_HEADER]
            for name, value in note.headers
            if name.lower() in HEADERS or name.lower().startswith("mcp-")
        }
        present = {name: value for name, value in {**facts, "headers": headers}.items() if value}
        with suppress(*MALFORMED):
            if note.request is not None and (wire_id := _head.decode(note.request).id) is not None:
                present["of"] = wire_id
        return {**line, "kind": note.kind, **present}

    def _state(self, event: TraceEvent) -> dict[str, Any]:
        return {"kind": "state", "from": event.old, "to": event.new, "why": self._why(event.error)}

    def _refused(self, event: TraceEvent) -> dict[str, Any] | None:
        if event.error is None:
            return None
        status = {} if event.error.code is None else {"status": event.error.code}
        why = self._why(event.error)
        return {"kind": "http", "of": event.wire_id, "dir": "<", "why": why, **status}

    def _checked(self, event: TraceEvent) -> dict[str, Any]:
        faults = {
            f"/result/structuredContent{place}": self._redactor.text(text)
            for place, text in event.faults
        }
        return {"kind": "check", "of": event.wire_id, "faults": faults}

    def _why(self, error: HoldfastError | None) -> str:
        return "" if error is None else self._redactor.text(error.message)

    def _message(self, event: TraceEvent) -> dict[str, Any] | None:
        if event.frame is None:
            return None
        frame = event.frame
        line: dict[str, Any] = {"dir": _DIRECTIONS[event.direction], "bytes": len(frame)}
        try:
            head = _head.decode(frame)
        except MALFORMED:
            return {**line, "kind": "junk", **self._junk(frame)}
        kind = _kind_of(head)
        line["kind"] = kind
        # A server chooses the words of these, too: a secret may be one of them.
        if head.method is not None:
            line["method"] = self._redactor.text(head.method)
        if head.id is not None:
            line["id"] = self._safe_id(head.id)
        if kind == "request" and event.ticket is not None and head.id is not None:
            self._remember(event.ticket, head.id, int(event.generation))
        if kind in ("result", "error"):
            line["of"] = self._safe_id(head.id)
        elif head.method in _RELATED:
            line |= self._related(head.params)
        return {**line, **self._body(frame)}

    def _body(self, frame: bytes) -> dict[str, Any]:
        if len(frame) > LARGEST_BODY:
            return {}
        if len(frame) <= LARGE_BODY and self._redactor.is_plain(frame):
            # Nothing to hide, and JSON already: it is copied as it is.
            return {"body": Raw(_on_one_line(frame))}
        try:
            value = self._redactor.value(msgspec.json.decode(frame))
        except MALFORMED:
            return self._junk(frame)
        if len(frame) <= LARGE_BODY:
            return {"body": value}
        return {"large": value}

    def _junk(self, frame: bytes) -> dict[str, Any]:
        # A secret may go on behind the cut, so more is searched than is shown.
        text = frame[: 4 * SHOWN_OF_LARGE].decode("utf-8", "replace")
        return {"text": self._redactor.beginning(text, SHOWN_OF_LARGE)}

    def _safe_id(self, wire_id: int | str | None) -> int | str | None:
        return self._redactor.text(wire_id) if isinstance(wire_id, str) else wire_id

    def _related(self, params: Raw | UnsetType) -> dict[str, Any]:
        """Return the request that a notification belongs to, and the reason of a cancellation."""
        if params is UNSET:
            return {}
        try:
            fields = _params.decode(params)
        except MALFORMED:
            return {}
        request = fields.requestId if fields.progressToken is UNSET else fields.progressToken
        related: dict[str, Any] = {} if request is UNSET else {"of": self._safe_id(request)}
        if fields.reason is not UNSET:
            related["why"] = self._redactor.text(fields.reason)
        return related

    def _outcome(self, event: TraceEvent) -> dict[str, Any] | None:
        if event.error is None:
            return None  # It goes back to its caller, and has not ended.
        # A link that is lost is gone before its calls are told: the next has its number by then.
        request = self._sent.pop(event.ticket, None) if event.ticket is not None else None
        wire_id, link = request or (None, int(event.generation))
        if isinstance(event.error, RpcError):
            return None  # It is the server's answer, which has a line.
        line = {"kind": "outcome", "dir": ">", "outcome": outcome_of(event.error)}
        return {**line, "link": link, "of": wire_id, "why": self._why(event.error)}

    def _remember(self, ticket: Ticket, wire_id: int | str, link: int) -> None:
        self._sent[ticket] = (wire_id, link)
        if len(self._sent) > MOST_TICKETS:
            self._sent.popitem(last=False)


_MAKE: Final = {
    "message": LineMaker._message,
    "state": LineMaker._state,
    "failed": LineMaker._outcome,
    "refused": LineMaker._refused,
    "checked": LineMaker._checked,
}


def _plain_fields(head: _Head) -> bytes | None:
    """Return the fields of a message from its kind on, as they stand in a line.

    None: it has an id that is a text, or belongs to a request in another way than by its id.
    """
    method, wire_id = head.method, head.id
    if isinstance(wire_id, str) or method in _RELATED:
        return None
    if method is None:
        kind = _kind_of(head)
        if kind == "junk" or wire_id is None:
            return None
        return b'"%b","id":%d,"of":%d' % (kind.encode(), wire_id, wire_id)
    if wire_id is None:
        return b'"notification","method":%b' % _encode(method)
    return b'"request","method":%b,"id":%d' % (_encode(method), wire_id)


def _on_one_line(frame: bytes) -> bytes:
    """Return JSON without ends of lines, which it has between its parts only."""
    frame = frame.strip()
    if b"\n" in frame or b"\r" in frame:
        return frame.replace(b"\n", b" ").replace(b"\r", b" ")
    return frame


def _kind_of(head: _Head) -> str:
    if head.method is not None:
        return "notification" if head.id is None else "request"
    if head.error is not UNSET:
        return "error"
    return "result" if head.result is not UNSET else "junk"


def outcome_of(error: HoldfastError) -> str:
    """Return how a request ended without an answer."""
    if isinstance(error, RequestTimeout):
        return "timeout"
    if isinstance(error, CancelledCallError):
        return "cancelled"
    return "unknown" if error.outcome_unknown else "failed"
