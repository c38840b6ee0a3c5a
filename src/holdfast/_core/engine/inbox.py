"""Dispatch what the server sends: answers, notifications, requests of its own, junk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.boundary import (
    Asked,
    Completed,
    Delivered,
    Dismissed,
    Effect,
    Failed,
    Finish,
    Lost,
    Noticed,
    Progressed,
    Refused,
    Related,
    Send,
    Unhandled,
    Violated,
    WireId,
)
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import Inflight, Pending, Stray
from holdfast._core.engine.link_state import LinkState
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import INVALID_REQUEST, PARSE_ERROR
from holdfast._core.wire.jsonrpc import (
    Envelope,
    ErrorObject,
    Id,
    Junk,
    decode_error_object,
    decode_result,
)
from holdfast.errors import HoldfastError
from holdfast.types.base import decoders
from holdfast.types.lifecycle import Progress

Hear = Callable[[Envelope, float, list[Effect]], bool]
Remedied = Callable[[object, ErrorObject, float, list[Effect]], bool]

_NULL: Final = b"null"
_OBJECT: Final = ord("{")
_BEGINNING: Final = 48
"""Bytes in which a notification usually has its method."""
_SHORT: Final = 4096
"""Bytes of an answer that is not worth another look before it is decoded."""
_LONGEST_NUMBER: Final = 19
"""Digits that no id of ours has."""


class Inbox:
    """Gives every caller the outcome of its own request, once, whatever the server sends."""

    def __init__(
        self, name: str, link: LinkState, inflight: Inflight, hear: Hear, remedied: Remedied
    ) -> None:
        self.name = name
        self.violations: Counter[str] = Counter()
        self._link = link
        self._inflight = inflight
        self._hear = hear
        self._remedied = remedied

    def settle(self, report: Delivered) -> Completed | None:
        """Settle the request whose result is all that was read; None: it is for `take`, whole.

        Nearly every read is such a line. All else, and all doubt, goes the other way.
        """
        link, data = self._link, report.data
        if link.streams or report.generation != link.generation or report.ended:
            return None
        if data.find(b'"method"', 0, _BEGINNING) > 0:
            return None
        if data.find(b"\n", 0, _SHORT) != len(data) - 1 or not data.isascii():
            return None
        try:
            answer = decode_result(data)
        except jsonrpc.MALFORMED:
            return None
        if memoryview(answer.result)[0] != _OBJECT:
            return None
        pending = self._inflight.settle(answer.id)
        return None if pending is None else Completed(pending.ticket, answer.result)

    def take(self, report: Delivered, now: float, out: list[Effect]) -> None:
        link, generation = self._link, report.generation
        batches = link.era is not None and link.era.batches
        link.session = report.session
        decode = jsonrpc.decode_text if report.whole else jsonrpc.decode_lines
        for message in decode(report.data, batches=batches):
            if link.generation != generation:
                # An earlier message of this read ended the link.
                return
            try:
                if type(message) is Junk:
                    self._junk(message, report, now, out)
                elif message.method is UNSET:
                    self._answer(message, report.stream, now, out)
                elif message.id is UNSET:
                    _NOTIFICATIONS.get(message.method, Inbox._pass_on)(self, message, now, out)
                elif message.result is UNSET and message.error is UNSET:
                    self._ask(message, out)
                else:
                    # An answer that repeats the method of its request.
                    self._answer(message, report.stream, now, out)
            except Exception as error:
                # One message must not cost the others that came with it.
                out.append(Unhandled(error))

    # Messages that cannot be read

    def _junk(self, junk: Junk, report: Delivered, now: float, out: list[Effect]) -> None:
        """Count it. An answer whose id is readable fails its request at once, not in time."""
        self._violate(junk.reason, junk.snippet, out, times=junk.count, size=junk.size)
        if report.ended:
            # It is the link that is lost, which is reported next.
            return
        if junk.asks:
            if junk.id is not None:
                # JSON-RPC 2.0 section 5.1: a request that cannot be read is answered.
                frame = jsonrpc.error_response(junk.id, INVALID_REQUEST, junk.reason)
                out.append(Send(frame, None, self._link.options("")))
            return
        wire_id, stream = _as_sent(junk.id), report.stream
        if wire_id is None and report.whole and junk.size:
            # All of the response to a request is this.
            wire_id = stream
        if wire_id is None or (stream is not None and wire_id != stream):
            return
        pending, why = self._inflight.settle(wire_id), f"{junk.reason}: {junk.snippet}"
        if pending is not None:
            out.append(self._bad(pending, why))
        else:
            fault = {"code": PARSE_ERROR, "message": f"the answer cannot be read: {why}"}
            if not self._hear(Envelope(wire_id, error=Raw(jsonrpc.encode(fault))), now, out):
                return
        if stream is not None:
            out.append(Finish(stream))

    def oversized(self, report: Refused | Lost, out: list[Effect]) -> None:
        """Count a message above the limit, if that is the reason of a report."""
        if report.frame_size is not None:
            self._violate("message too large", str(report.error), out, size=report.frame_size)

    # Answers

    def _belongs(self, message: Envelope, stream: WireId, out: list[Effect]) -> bool:
        """Return True if an answer came on the stream of its own request.

        2026-07-28 basic/transports/streamable-http, Receiving Messages: the stream carries the
        response to its request. Attack: a server, or a proxy, that mixes up streams would give
        one caller the data of another. An error without an id of ours contains no such data.
        """
        if message.error is not UNSET and not isinstance(message.id, int | float):
            message.id = stream
        if message.id == stream:
            return True
        self._violate("answer on another request's stream", f"id {message.id!r}", out)
        pending = self._inflight.settle(stream)
        if pending is not None:
            out.append(self._bad(pending, f"its stream carried the answer to {message.id!r}"))
            out.append(Finish(stream))
        return False

    def _answer(
        self, message: Envelope, stream: WireId | None, now: float, out: list[Effect]
    ) -> None:
        """Give an answer to the request that waits for it."""
        if type(message.id) is str and message.id != (as_sent := _as_sent(message.id)):
            self._violate("answer with an id of another type", f"id {message.id!r}", out)
            message.id = as_sent
        if stream is not None:
            if _says_nothing(message):
                stream = None
            elif not self._belongs(message, stream, out):
                return
        # 2025-03-26 basic/index, Responses: either a result or an error, never both. Null counts
        # as absent: many servers write both keys.
        result, error = message.result, message.error
        fault = None if error is UNSET or result is not UNSET else decode_error_object(error)
        if fault is not None and self._remedied(message.id, fault, now, out):
            pass
        elif (pending := self._inflight.settle(message.id)) is None:
            if not self._hear(message, now, out):
                self._stray(message, now, out)
        elif error is not UNSET and bytes(error) != _NULL:
            out.append(Failed(pending.ticket, self._fault(pending, result, error)))
        elif result is UNSET:
            out.append(self._bad(pending, "neither result nor error"))
        elif memoryview(result)[0] != _OBJECT:
            beginning = jsonrpc.snippet(bytes(result))
            out.append(self._bad(pending, f"the result is not an object: {beginning}"))
        else:
            out.append(Completed(pending.ticket, result))
        if stream is not None:
            out.append(Finish(stream))

    def _fault(self, pending: Pending, result: Any, error: Raw) -> HoldfastError:
        if result is not UNSET and bytes(result) != _NULL:
            return messages.bad_answer(self.name, pending.call, "both a result and an error")
        fault = decode_error_object(error)
        if fault is None:
            beginning = jsonrpc.snippet(bytes(error))
            return messages.bad_answer(
                self.name, pending.call, f"the error is malformed: {beginning}"
            )
        unusual = jsonrpc.unusual_fields(error)
        return messages.refused_by_server(self.name, pending.call, fault, unusual)

    def _bad(self, pending: Pending, reason: str) -> Failed:
        return Failed(pending.ticket, messages.bad_answer(self.name, pending.call, reason))

    def _stray(self, message: Envelope, now: float, out: list[Effect]) -> None:
        if message.id is UNSET or message.id is None:
            if message.error is UNSET:
                self._violate("not a JSON-RPC message", "no id, no method", out)
            else:
                self._violate("error without an id", jsonrpc.snippet(bytes(message.error)), out)
        elif self._inflight.stray(message.id, now) is Stray.UNKNOWN:
            self._violate("answer to an unknown request", f"id {message.id!r}", out)

    # Notifications

    def _pass_on(self, message: Envelope, now: float, out: list[Effect]) -> None:
        params = None if message.params is UNSET else message.params
        out.append(Noticed(message.method, params))  # type: ignore[arg-type]

    def _progress(self, message: Envelope, now: float, out: list[Effect]) -> None:
        # 2025-11-25 basic/lifecycle, Timeouts: implementations "MAY choose to reset the timeout
        # clock when receiving a progress notification", with a maximum timeout enforced.
        try:
            progress = decoders[Progress].decode(message.params)  # type: ignore[arg-type]
        except (*jsonrpc.MALFORMED, TypeError) as error:
            self._violate("malformed progress", str(error), out)
            return
        pending = self._inflight.sent(progress.progress_token)
        if pending is not None:
            # Its source, as `attach` stores it in an object without parts. A copy: the parameters
            # keep everything that was read with them in memory.
            progress.__dict__ = {"_source": message.params.copy()}  # type: ignore[union-attr]
            if out and type(last := out[-1]) is Progressed and last.ticket == pending.ticket:
                last.progress.append(progress)
                return
            out.append(Progressed(pending.ticket, [progress]))
            if not pending.call.lasting:
                pending.wait_until(now + pending.call.idle)
        else:
            # 2025-11-25 basic/utilities/tasks, Task Progress Notifications: the token of a
            # request lives as long as the task that answers it.
            self._pass_on(message, now, out)

    def _acknowledged(self, message: Envelope, now: float, out: list[Effect]) -> None:
        # 2026-07-28 basic/patterns/subscriptions, Acknowledgment: the first message of a stream.
        era = self._link.era
        raw = message.params
        wire_id = None if era is None or raw is UNSET else era.subscription(raw)
        pending = self._inflight.sent(wire_id)
        if pending is None or raw is UNSET:
            self._violate("acknowledgement of an unknown subscription", f"id {wire_id!r}", out)
        else:
            out.append(Related(pending.ticket, str(message.method), raw))

    def _cancelled(self, message: Envelope, now: float, out: list[Effect]) -> None:
        try:
            cancelled = msgspec.json.decode(message.params, type=_Cancelled)  # type: ignore[arg-type]
        except (*jsonrpc.MALFORMED, TypeError) as error:
            self._violate("malformed cancellation", str(error), out)
            return
        wire_id = cancelled.requestId
        pending = self._inflight.sent(wire_id)
        if pending is not None and pending.call.lasting:
            # 2026-07-28 basic/patterns/subscriptions, Cancellation: the server tears it down.
            self._inflight.settle(wire_id)
            out.append(Completed(pending.ticket, Raw(b"{}")))
            wire_id = None
        elif self._link.era is None or not self._link.era.may_ask:
            wire_id = None
        # 2025-11-25 basic/utilities/cancellation, Behavior Requirements: it may refer to a
        # request of the server's; one that is unknown or completed is ignored.
        reason = cancelled.reason if isinstance(cancelled.reason, str) else None
        out.append(Dismissed(self._link.generation, wire_id, reason))

    # Requests of the server

    def _ask(self, message: Envelope, out: list[Effect]) -> None:
        # 2025-11-25 basic/index, Requests: "the ID MUST NOT be null"; basic/utilities/ping: the
        # receiver "MUST respond promptly". 2026-07-28 basic/patterns/index: "Servers MUST NOT
        # initiate JSON-RPC requests".
        era, wire_id, method = self._link.era, message.id, message.method
        if isinstance(wire_id, float) and wire_id.is_integer():
            wire_id = int(wire_id)
        if not isinstance(wire_id, int | str):
            self._violate("request without a usable id", f"{method} id {wire_id!r}", out)
        elif era is not None and not era.may_ask:
            self._violate("request of the server's own", f"{method}", out)
        elif method == "ping":
            out.append(Send(jsonrpc.response(wire_id, {}), None, self._link.options("")))
        else:
            params = None if message.params is UNSET else message.params
            out.append(Asked(self._link.generation, wire_id, str(method), params))

    def _violate(
        self,
        reason: str,
        detail: str,
        out: list[Effect],
        *,
        times: int = 1,
        size: int | None = None,
    ) -> None:
        before = self.violations[reason]
        self.violations[reason] = before + times
        out.append(Violated(reason, detail, before + 1, size))


def _says_nothing(message: Envelope) -> bool:
    """Return True for an object that is no message."""
    return message.id is UNSET and message.result is UNSET and message.error is UNSET


def _as_sent(wire_id: Id | None) -> Id | None:
    """Return an id as we sent it.

    JSON-RPC 2.0 section 5: the id of an answer "MUST be the same as the value" in the request.
    Some servers make a string of it; the official clients read those.
    """
    if isinstance(wire_id, str) and wire_id.isascii() and wire_id.isdigit():
        return int(wire_id) if len(wire_id) < _LONGEST_NUMBER else wire_id
    return wire_id


class _Cancelled(Struct):
    requestId: int | str | None = None  # noqa: N815
    reason: Any = None


_NOTIFICATIONS: Final[
    dict[str | UnsetType, Callable[[Inbox, Envelope, float, list[Effect]], None]]
] = {
    "notifications/progress": Inbox._progress,
    "notifications/cancelled": Inbox._cancelled,
    "notifications/subscriptions/acknowledged": Inbox._acknowledged,
}
