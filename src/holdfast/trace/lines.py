"""Make lines of what a tap sees. Redaction happens here, in the thread that writes.

A line says which request it belongs to (``of``), so that a reader can pair lines without knowing
the protocol: the id of an answer, the token of progress, the id in a cancellation. The client knows
how a request ended that got no answer; that becomes a line of its own (``outcome``).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.boundary import Ticket
from holdfast._core.redact.redactor import Redactor
from holdfast._core.tap import TraceEvent
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import CancelledCallError, HoldfastError, RequestTimeout, RpcError

LARGE_BODY: Final = 64 * 1024
"""Bytes of a message above which it goes into a sidecar, or is cut."""
LARGEST_BODY: Final = 16 * 1024 * 1024
"""Bytes of a message above which only its size is kept."""
SHOWN_OF_LARGE: Final = 4096
"""Characters of a message that was cut that are kept."""
MOST_TICKETS: Final = 20_000
"""Requests whose ids are remembered until their outcome is known."""

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


_head = msgspec.json.Decoder(_Head)
_params = msgspec.json.Decoder(_Params)
_RELATED: Final = {"notifications/progress", "notifications/cancelled"}


class LineMaker:
    """Makes the lines of one server."""

    def __init__(self, server: str, redactor: Redactor) -> None:
        self.server = server
        self._redactor = redactor
        self._generation = 0
        self._sent: OrderedDict[Ticket, tuple[int | str, int]] = OrderedDict()
        """The ids of requests that have been sent, and the links, by call."""

    def lines(self, event: TraceEvent, since: float) -> dict[str, Any] | None:
        """Return the line of an event; None for those that a trace does not have."""
        self._generation = max(self._generation, int(event.generation))
        common = {
            "t": round(event.at - since, 6),
            "server": self.server,
            "link": int(event.generation),
        }
        if event.frame is not None and event.kind == "message":
            return {**common, **self._message(event)}
        if event.kind == "state":
            why = "" if event.error is None else self._redactor.text(event.error.message)
            return {**common, "kind": "state", "from": event.old, "to": event.new, "why": why}
        if event.kind == "failed" and event.error is not None:
            return self._outcome(common, event, event.error)
        if event.kind == "refused" and event.error is not None:
            status = {} if event.error.code is None else {"status": event.error.code}
            why = self._redactor.text(event.error.message)
            return {**common, "kind": "http", "of": event.wire_id, "dir": "<", "why": why, **status}
        return None

    def stderr(self, text: str, at: float) -> dict[str, Any]:
        """Return a line of the server's stderr."""
        line = {"t": round(at, 6), "server": self.server, "link": self._generation, "dir": "<"}
        return {**line, "kind": "stderr", "bytes": len(text), "text": self._redactor.text(text)}

    def _message(self, event: TraceEvent) -> dict[str, Any]:
        frame = event.frame or b""
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
            return {"body": Raw(frame.strip())}
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

    def _outcome(
        self, common: dict[str, Any], event: TraceEvent, error: HoldfastError
    ) -> dict[str, Any] | None:
        # A link that is lost is gone before its calls are told: the next has its number by then.
        request = self._sent.pop(event.ticket, None) if event.ticket is not None else None
        wire_id, link = request or (None, common["link"])
        if isinstance(error, RpcError):
            return None  # It is the server's answer, which has a line.
        line = {**common, "kind": "outcome", "dir": ">", "outcome": outcome_of(error)}
        return {**line, "link": link, "of": wire_id, "why": self._redactor.text(error.message)}

    def _remember(self, ticket: Ticket, wire_id: int | str, link: int) -> None:
        self._sent[ticket] = (wire_id, link)
        if len(self._sent) > MOST_TICKETS:
            self._sent.popitem(last=False)


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
