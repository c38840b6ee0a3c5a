"""Make lines of what a tap sees. Redaction happens here, in the thread that writes.

A line says which request it belongs to (``of``), so that a reader can pair lines without knowing
the protocol: the id of an answer, the token of progress, the id in a cancellation. The client knows
how a request ended that got no answer; that becomes a line of its own (``outcome``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.boundary import Ticket
from holdfast._core.redact.redactor import Redactor
from holdfast._core.tap import Direction, TraceEvent
from holdfast._core.wire.jsonrpc import MALFORMED, Junk, decode_lines, decode_text
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
"""Requests whose ids are remembered, at least: one of them may end without an answer."""

MOST_METHODS: Final = 64
"""Methods whose lines are prepared: a server may make up others."""

HEADERS: Final = frozenset({"content-type", "retry-after", "www-authenticate"})
"""The headers of a response that are kept, besides ``Mcp-*``; others may be anybody's secrets."""
LONGEST_HEADER: Final = 1000

_DIRECTIONS: Final = {"→": ">", "←": "<", None: ""}


class _Params(Struct):
    progressToken: int | str | UnsetType = UNSET  # noqa: N815  (names of the wire)
    requestId: int | str | UnsetType = UNSET  # noqa: N815
    reason: str | UnsetType = UNSET


class _Head(Struct, gc=False):
    id: int | str | None = None
    method: str | None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Request(Struct):
    params: Raw | UnsetType = UNSET


_encode: Final = msgspec.json.Encoder().encode
_head_of: Final = msgspec.json.Decoder(_Head).decode
_heads_of: Final = msgspec.json.Decoder(_Head).decode_lines
_request_of: Final = msgspec.json.Decoder(_Request).decode
_params_of: Final = msgspec.json.Decoder(_Params).decode
_RELATED: Final = {"notifications/progress", "notifications/cancelled"}


# What waits to be written is not seen by the garbage collector (``gc=False``), and has nothing in
# it that is: some hundred messages gather before they are written, and each would be looked at
# several times meanwhile, which takes as long as to write it.


class Messages(Struct, gc=False):
    """What crossed at once: a message to the server, or some from it."""

    maker: LineMaker
    data: bytes
    at: float
    """The time, by `time.perf_counter`."""
    link: int
    direction: Direction
    ticket: Ticket | None = None
    """The call that it is the request of."""
    is_whole: bool = True
    """``data`` is one message; False: lines, each of them a message."""

    def split(self) -> list[bytes]:
        """Return the messages, one by one."""
        if self.is_whole:
            data = self.data.strip()
            return [_on_one_line(data) if data[:1] == b"{" else data]
        return [line for line in self.data.split(b"\n") if line and not line.isspace()]


def read_together(
    crossed: list[Messages], redactor: Redactor
) -> Iterator[tuple[Messages, bytes, _Head | None]]:
    """Yield messages one by one: with its head if it is JSON in which nothing has to be hidden."""
    crossed, frames = _split(crossed)
    are_plain = redactor.are_plain(frames)
    if all(are_plain):
        return zip(crossed, *_decoded(frames), strict=True)
    plain = zip(*_decoded(list(compress(frames, are_plain))), strict=True)
    pairs = zip(frames, are_plain, strict=True)
    read = (next(plain) if is_plain else (frame, None) for frame, is_plain in pairs)
    return ((messages, *pair) for messages, pair in zip(crossed, read, strict=True))


def _split(crossed: list[Messages]) -> tuple[list[Messages], list[bytes]]:
    """Return messages one by one, each beside what it crossed with."""
    data = [messages.data for messages in crossed]
    frames = b"".join(data).split(b"\n")
    if len(frames) == len(data) + 1 and all(map(bytes.endswith, data, repeat(b"\n"))):
        frames.pop()
        return crossed, frames  # as most of them: each is one line
    pairs = [(messages, frame) for messages in crossed for frame in messages.split()]
    return [messages for messages, _ in pairs], [frame for _, frame in pairs]


def _decoded(frames: list[bytes]) -> tuple[list[bytes], Iterable[_Head | None]]:
    """Return messages, each on one line, and their heads.

    They are decoded together if each of them is one object. Where ``{`` comes after ``}`` and the
    end of a line, no object is under way: so none of them reaches into the next, and if there are
    as many objects as lines, each is one.
    """
    text = b"\n".join(frames)
    if b"\r" in text:
        frames = list(map(_on_one_line, frames))
    elif all(map(bytes.startswith, frames, repeat(b"{"))) and all(
        map(bytes.endswith, frames, repeat(b"}"))
    ):
        with suppress(*MALFORMED):
            heads = _heads_of(text)
            if len(heads) == len(frames):
                return frames, heads
    return frames, map(_head_or_none, frames)


def _parts(frame: bytes, *, is_whole: bool, batches: bool) -> list[bytes]:
    """Return what a client makes of junk: the messages that are in it, or itself.

    A client reads some lines that are no message by themselves: two on one line, half of a
    character, a batch where its revision has them, and text that was printed before a message, with
    which the line is junk as well.
    """
    if b'"jsonrpc"' not in frame:
        return [frame]
    parts = (decode_text if is_whole else decode_lines)(frame, batches=batches)
    messages = [
        b'{"jsonrpc":"2.0",' + _encode(part)[1:] for part in parts if type(part) is not Junk
    ]
    return messages if len(messages) == len(parts) else [frame, *messages]


def _head_or_none(frame: bytes) -> _Head | None:
    try:
        return _head_of(frame)
    except MALFORMED:
        return None


class LineMaker:
    """Makes the lines of one server."""

    def __init__(self, server: str, redactor: Redactor) -> None:
        self.name = server
        self.has_batches: Callable[[], bool] = lambda: False
        """Tells whether the client reads batches, as one revision has them."""
        self._mark = ""
        self._redactor = redactor
        self._generation = 0
        self._link = -1
        """The link that `_forms` are of."""
        self._forms: dict[Direction, dict[str | None, bytes]] = {}
        """What lines of requests look like, by direction and method; None: those of results."""
        self._sent: dict[Ticket, tuple[int | str, int]] = {}
        """The ids of requests that have been sent, and the links, by call."""
        self._sent_before: dict[Ticket, tuple[int | str, int]] = {}
        """Those before them: with `MOST_TICKETS`, the others are forgotten."""

    @property
    def mark(self) -> str:
        """What stands behind the server's name, if other processes write to the same trace."""
        return self._mark

    @mark.setter
    def mark(self, mark: str) -> None:
        if mark != self._mark:
            self._mark, self._link = mark, -1

    @property
    def server(self) -> str:
        """The server's name in the lines."""
        return self.name + self.mark

    def plain_line(
        self, messages: Messages, frame: bytes, head: _Head, since: float
    ) -> bytes | None:
        """Return the line of a short message in which nothing has to be hidden.

        None: it is not one of those that most are. Its id is a text, or it belongs to a request in
        another way than by its id.
        """
        if messages.link != self._link:
            self._begin_link(messages.link)
        method, wire_id = head.method, head.id
        if type(wire_id) is not int:
            return self._notification(messages, frame, head, since)
        if method is None and (head.result is UNSET or head.error is not UNSET):
            return None
        form = self._forms[messages.direction].get(method) or self._form(messages, method)
        if method is None:
            return form % (messages.at - since, len(frame), wire_id, wire_id, frame)
        if messages.ticket is not None:
            self._remember(messages.ticket, wire_id, messages.link)
        return form % (messages.at - since, len(frame), wire_id, frame)

    def _notification(
        self, messages: Messages, frame: bytes, head: _Head, since: float
    ) -> bytes | None:
        method, t = head.method, messages.at - since
        if head.id is not None or method is None or method in _RELATED:
            return None
        facts = t, *self._place(messages), len(frame), _encode(method), frame
        return (
            b'{"t":%.6f,"server":%b,"link":%d,"dir":"%b","bytes":%d,"kind":"notification"'
            b',"method":%b,"body":%b}\n' % facts
        )

    def _form(self, messages: Messages, method: str | None) -> bytes:
        """Return the line of a request, or of a result, for all but what differs."""
        forms, kind = self._forms[messages.direction], b'"result","id":%d,"of":%d'
        if method is not None:
            kind = b'"request","method":%b,"id":%%d' % _encode(method).replace(b"%", b"%%")
        server, link, direction = self._place(messages)
        facts = server.replace(b"%", b"%%"), link, direction, kind
        if len(forms) >= MOST_METHODS:
            forms.clear()
        form = forms[method] = (
            b'{"t":%%.6f,"server":%b,"link":%d,"dir":"%b","bytes":%%d,"kind":%b,"body":%%b}\n'
            % facts
        )
        return form

    def _place(self, messages: Messages) -> tuple[bytes, int, bytes]:
        return _encode(self.server), messages.link, _DIRECTIONS[messages.direction].encode()

    def _begin_link(self, link: int) -> None:
        self._generation = max(self._generation, link)
        self._link, self._forms = link, {"→": {}, "←": {}}

    def fields(self, messages: Messages, frame: bytes, since: float) -> list[dict[str, Any]]:
        """Return the fields of the line of any message, or of those that a client finds in it."""
        self._generation = max(self._generation, messages.link)
        common = self._common(messages.at - since, messages.link)
        line = self._message(messages, frame)
        if line["kind"] != "junk":
            return [common | line]
        parts = _parts(frame, is_whole=messages.is_whole, batches=self.has_batches())
        return [
            common | (line if part is frame else self._message(messages, part)) for part in parts
        ]

    def event(self, event: TraceEvent, since: float) -> dict[str, Any] | None:
        """Return the fields of what is no message; None for what a trace does not have."""
        self._generation = max(self._generation, event.generation)
        make = _MAKE.get(event.kind)
        line = None if make is None else make(self, event)
        return None if line is None else self._common(event.at - since, event.generation) | line

    def _common(self, t: float, link: int) -> dict[str, Any]:
        return {"t": round(t, 6), "server": self.server, "link": link}

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
            if note.request is not None and (wire_id := _head_of(note.request).id) is not None:
                present["of"] = self._safe_id(wire_id)  # It may be of a request of the server.
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
            f"/result/structuredContent{self._redactor.text(place)}": self._redactor.text(text)
            for place, text in event.faults
        }
        return {"kind": "check", "of": event.wire_id, "faults": faults}

    def _why(self, error: HoldfastError | None) -> str:
        return "" if error is None else self._redactor.text(error.message)

    def _message(self, messages: Messages, frame: bytes) -> dict[str, Any]:
        line: dict[str, Any] = {"dir": _DIRECTIONS[messages.direction], "bytes": len(frame)}
        try:
            head = _head_of(frame)
        except MALFORMED:
            return {**line, "kind": "junk", **self._junk(frame)}
        kind = _kind_of(head)
        line["kind"] = kind
        # A server chooses the words of these, too: a secret may be one of them.
        if head.method is not None:
            line["method"] = self._redactor.text(head.method)
        if head.id is not None:
            line["id"] = self._safe_id(head.id)
        if kind == "request" and messages.ticket is not None and head.id is not None:
            self._remember(messages.ticket, head.id, messages.link)
        if kind in ("result", "error"):
            line["of"] = self._safe_id(head.id)
        elif head.method in _RELATED:
            line |= self._related(_request_of(frame).params)
        return {**line, **self._body(frame)}

    def _body(self, frame: bytes) -> dict[str, Any]:
        if len(frame) > LARGEST_BODY:
            return {}
        if len(frame) <= LARGE_BODY and self._redactor.is_plain(frame):
            # Nothing to hide, and JSON already: it is copied as it is.
            return {"body": Raw(_on_one_line(frame.strip()))}
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
            fields = _params_of(params)
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
        wire_id, link = self._forget(event.ticket) or (None, event.generation)
        if isinstance(event.error, RpcError):
            return None  # It is the server's answer, which has a line.
        line = {"kind": "outcome", "dir": ">", "outcome": outcome_of(event.error)}
        return {**line, "link": link, "of": wire_id, "why": self._why(event.error)}

    def _remember(self, ticket: Ticket, wire_id: int | str, link: int) -> None:
        self._sent[ticket] = (wire_id, link)
        if len(self._sent) >= MOST_TICKETS:
            self._sent_before, self._sent = self._sent, {}

    def _forget(self, ticket: Ticket | None) -> tuple[int | str, int] | None:
        """Return the id of a call's last request, and its link; forget them."""
        if ticket is None:
            return None
        before = self._sent_before.pop(ticket, None)
        return self._sent.pop(ticket, before)


_MAKE: Final = {
    "state": LineMaker._state,
    "failed": LineMaker._outcome,
    "refused": LineMaker._refused,
    "checked": LineMaker._checked,
}


def _on_one_line(frame: bytes) -> bytes:
    """Return JSON without ends of lines, which it has between its parts only."""
    return frame.replace(b"\n", b" ").replace(b"\r", b" ")


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
