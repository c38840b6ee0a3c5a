"""One client's connection to a server: messages in, handlers run, messages out. Pure.

`ServerSession.feed` takes a frame. A handler that returns a value is answered at once, in order;
one that returns an awaitable is handed to the `HandlerRunner`, which owns tasks and time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol

from msgspec import UNSET, Raw

from holdfast._core.eras.serving import (
    HandshakeServing,
    Json,
    StatelessServing,
    adopt,
    grants,
    is_stateless,
    no_era,
    subscription_meta,
)
from holdfast._core.server.message import (
    ClientMessage,
    Id,
    decode,
    is_id,
    meta_of,
    read,
    read_message,
)
from holdfast._core.server.request import SILENCE, Handler, ServerRequest, Write, outcome
from holdfast._core.server.server import Server
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNENCODABLE,
    CancelReason,
    RequestError,
    cancel_reason,
)
from holdfast._core.wire.jsonrpc import decode_error_object, encode, encode_line

CANCELLED = "notifications/cancelled"
_USUAL_META = 4096
"""Bytes of a ``_meta`` that is kept for the next request."""
_TOKEN = b',"progressToken":'
_NEVER_MET = b"no object begins so"
_LONGEST = 20
"""Bytes of a token of progress that is read without a decoder."""
MOST_EARLY = 100
"""Messages that wait for the answer to ``initialize``."""
MOST_EARLY_BYTES = 1024 * 1024
"""Bytes of their parameters."""


class HandlerRunner(Protocol):
    """Runs handlers that wait."""

    def start(self, request: ServerRequest, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, and set ``request.stop`` to what cancels it."""

    def answer(self) -> Any:
        """Return an awaitable that is settled once, like a future of asyncio."""

    def sleep(self, seconds: float) -> Awaitable[None]: ...


class ServerSession:
    """One connection.

    Args:
        server: What is served.
        write: Takes one encoded line.
        runner: Runs handlers that wait.
        number: The number of the connection.
    """

    def __init__(
        self, server: Server, write: Write, runner: HandlerRunner, number: int = 1
    ) -> None:
        self.server = server
        self.write = write
        self.runner = runner
        self.number = number
        self.era: HandshakeServing | None = None
        self._running: dict[Id, ServerRequest] = {}
        self._early: list[tuple[ClientMessage, Write]] = []
        """Messages that came before the answer to ``initialize``."""
        self._questions: dict[str, Any] = {}
        """The answers that handlers wait for, by the ids of their questions."""
        self._question_count = 0
        self._last_meta = b""
        self._before_token = _NEVER_MET
        """What is in it before a number as the token of progress, if that is the last of it."""
        self._last_claim: tuple[Json, StatelessServing | None] = {}, None
        """What was made of the ``_meta`` that came last."""
        self.subscribed: set[str] = set()
        self.streams: dict[Id, Json] = {}
        """The filters of ``subscriptions/listen``, by the ids of the requests."""
        server.sessions.add(self)

    def __repr__(self) -> str:
        return f"<ServerSession #{self.number} {self.era!r} {len(self._running)} running>"

    # Out

    def send(self, write: Write | None = None, **message: Any) -> None:
        """Encode and write a message; ``write`` is that of the request it belongs to."""
        (write or self.write)(encode_line({"jsonrpc": "2.0", **message}))

    def notify(
        self, method: str, params: Json | Raw | None = None, write: Write | None = None
    ) -> None:
        """Send a notification, regardless of subscriptions."""
        self.send(write, method=method, **({} if params is None else {"params": params}))

    def announce(self, method: str, params: Json | None = None, watched: str | None = None) -> None:
        """Send a change notification to the session, and to the streams that asked for it.

        ``watched`` is the resource that must be subscribed to, if it is not that of ``params``.
        """
        fields = params or {}
        subject = fields if watched is None else {"uri": watched}
        if self.era is not None and (
            method != "notifications/resources/updated" or subject.get("uri") in self.subscribed
        ):
            self.notify(method, params)
        for stream, filters in self.streams.items():
            if grants(filters, method, subject):
                meta = subscription_meta(stream, fields.get("_meta"))
                self.notify(method, {**fields, **meta}, self._running[stream].write)

    async def ask(
        self, method: str, params: Json | Raw | None = None, write: Write | None = None
    ) -> Any:
        """Send the client a request and return its result, whatever the era.

        Raises:
            RequestError: The client answered with an error.
        """
        return decode(await self.ask_raw(method, params, write))

    async def ask_raw(
        self, method: str, params: Json | Raw | None = None, write: Write | None = None
    ) -> Raw:
        """Send the client a request and return its result as it came."""
        self._question_count += 1
        question = f"server-{self._question_count}"
        answer = self._questions[question] = self.runner.answer()
        fields = {} if params is None else {"params": params}
        self.send(write, id=question, method=method, **fields)
        reason = None
        try:
            raw: Raw = await answer
            return raw
        except BaseException as error:
            reason = cancel_reason(error)
            raise
        finally:
            if self._questions.pop(question, None) is not None:
                why = {} if reason is None else {"reason": reason}
                self.notify(CANCELLED, {"requestId": question, **why}, write)

    # In

    def feed(self, frame: bytes) -> None:
        """Take one line; a blank one is ignored."""
        if not frame or frame.isspace():
            return
        if self.era is None or not self.era.batches:
            message = read_message(frame)
            if type(message) is ClientMessage and message.method is not UNSET:
                self._take(message, self.write)
            else:
                self.take(message)
            return
        for message in read(frame, batches=True):
            self.take(message)

    def take(self, message: ClientMessage | RequestError, write: Write | None = None) -> None:
        """Handle a message.

        Args:
            message: What `message.read` made of it.
            write: Takes the answer and what else belongs to the request; `ServerSession.write` if
                there is one channel for all.
        """
        write = write or self.write
        if isinstance(message, RequestError):
            self._send_error(message.request_id, message, write)
        elif message.is_answer or (message.method is UNSET and self._is_question(message.id)):
            self._settle(message)
        else:
            self._take(message, write)

    @property
    def is_busy(self) -> bool:
        """True while a request waits for its answer, other than a stream of changes."""
        return any(request_id not in self.streams for request_id in self._running)

    def is_running(self, request_id: Id, write: Write) -> bool:
        """Return whether a request, of which ``write`` takes the answer, waits for that."""
        request = self._running.get(request_id)
        return request is not None and request.write == write

    def _take(self, message: ClientMessage, write: Write) -> None:
        try:
            fields = message.checked_fields()
            meta, claimed = self._claim(fields) if "_meta" in fields else ({}, None)
            era = claimed or self.era
            if era is None and self._must_wait(message):
                self._early.append((message, write))
                return
            request = ServerRequest(self, era or HandshakeServing(), message, fields, meta)
            request.write = write
            self._dispatch(request)
        except RequestError as error:
            # JSON-RPC 2.0, section 4.1: a notification is never answered.
            if message.request_id is not None or error.code == INVALID_REQUEST:
                self._send_error(message.request_id, error, write)

    def _must_wait(self, message: ClientMessage) -> bool:
        """Return whether a message came too early, and may wait.

        Lifecycle, Initialization: a client "SHOULD NOT send requests other than pings before the
        server has responded". One that does means the session that it has asked for, and a server
        that is just started, behind a relay, may take seconds to answer.
        """
        if not self.server.strict or message.method in ("initialize", "ping"):
            return False
        if not any(request.method == "initialize" for request in self._running.values()):
            return False
        size = sum(_size(early) for early, _ in self._early) + _size(message)
        return len(self._early) < MOST_EARLY and size <= MOST_EARLY_BYTES

    def _claim(self, fields: dict[str, Raw]) -> tuple[Json, StatelessServing | None]:
        """Return the ``_meta`` of a message, and the stateless era if it claims that.

        Whether it may is checked by `_find`. Clients send the same with most of their requests,
        but for the token of progress, which many write last.
        """
        raw = bytes(fields["_meta"])
        if raw == self._last_meta:
            return self._last_claim
        number = raw[len(self._before_token) : -1]
        if number.isdigit() and len(number) < _LONGEST and raw.startswith(self._before_token):
            meta, era = self._last_claim
            return {**meta, "progressToken": int(number)}, era
        meta = meta_of(fields)
        is_claimed = is_stateless(meta, self.server.versions)
        claim = meta, StatelessServing(meta) if is_claimed else None
        if len(raw) <= _USUAL_META:
            self._last_meta, self._last_claim = raw, claim
            before, mark, token = raw.rpartition(_TOKEN)
            is_number = token[:-1].isdigit() and "progressToken" in meta
            self._before_token = before + mark if is_number else _NEVER_MET
        return claim

    def _dispatch(self, request: ServerRequest) -> None:
        handler = self.server.overrides.get(request.method)
        self.server.heard(request)
        if request.id is None:
            self._notice(request, handler or self.server.handlers.get(request.method))
            return
        if handler is None:
            handler = self._find(request)
        if request.id in self._running:
            text = f"id {request.id!r} is in use by a running request"
            raise RequestError(INVALID_REQUEST, text)
        self._running[request.id] = request
        self._run(request, handler)

    def _notice(self, request: ServerRequest, handler: Handler | None) -> None:
        """Handle a notification; the ids in a cancellation mean nothing to anybody else."""
        if request.method == CANCELLED:
            self._cancel(request.params.get("requestId"), request.params.get("reason"))
        elif handler is None:
            handler = self.server.default
        if handler is not None:
            self._run(request, handler)

    def _cancel(self, request_id: Any, reason: Any) -> None:
        cancelled = self._running.pop(request_id, None) if is_id(request_id) else None
        if cancelled is not None:
            self.streams.pop(request_id, None)
            cancelled.cancelled = True
            cancelled.end(*([CancelReason(reason)] if isinstance(reason, str) else []))

    def _is_question(self, wire_id: Any) -> bool:
        return isinstance(wire_id, str) and wire_id in self._questions

    def _settle(self, message: ClientMessage) -> None:
        """Settle a question with the client's answer."""
        question = message.id
        answer = self._questions.pop(question, None) if isinstance(question, str) else None
        if answer is None or answer.done():
            return
        if message.error is UNSET:
            if message.result is UNSET:
                text = "the client's answer has neither a result nor an error"
                answer.set_exception(RequestError(INTERNAL_ERROR, text))
            else:
                answer.set_result(message.result)
            return
        fault = decode_error_object(message.error)
        if fault is None:
            text = bytes(message.error).decode("utf-8", "replace")
            answer.set_exception(RequestError(INTERNAL_ERROR, text))
            return
        code = fault.code if isinstance(fault.code, int) else INTERNAL_ERROR
        answer.set_exception(RequestError(code, str(fault.message or ""), fault.data))

    def _find(self, request: ServerRequest) -> Handler:
        """Return the handler of a request, or raise what is wrong with it."""
        method, era = request.method, request.era
        handler = self.server.handlers.get(method) or self.server.default
        if isinstance(era, StatelessServing):
            if not era.is_checked:
                era.check(self.server.versions)
        elif self.era is None and self.server.strict and method not in ("initialize", "ping"):
            raise no_era(method, handler is not None, self.server.versions)
        if handler is None or method in era.absent:
            raise RequestError(METHOD_NOT_FOUND, f"method not found: {method}")
        return handler

    def _run(self, request: ServerRequest, handler: Handler) -> None:
        try:
            result = handler(request)
        except Exception as error:
            result = outcome(request, error)
        if result is SILENCE:
            return
        if isinstance(result, Awaitable):
            self.wait_for(request, result)
        else:
            self.finish(request, result)

    def wait_for(self, request: ServerRequest, work: Awaitable[Any]) -> None:
        """Answer a request with what an awaitable returns or raises."""
        if isinstance(work, Coroutine):
            request.work = work
        self.runner.start(request, self._wait(request, work))

    async def _wait(self, request: ServerRequest, work: Awaitable[Any]) -> None:
        try:
            result = await work
        except Exception as error:
            result = outcome(request, error)
        self.finish(request, result)

    def finish(self, request: ServerRequest, result: Any) -> None:
        """Answer a request with a result or a `RequestError`, if it still waits for an answer.

        A handler that returned `SILENCE` may do this later.
        """
        if request.id is None or result is SILENCE:
            return
        # A cancelled id may already belong to a newer request.
        if self._running.get(request.id) is not request:
            return
        del self._running[request.id]
        self._answer(request, request.id, result)
        if self._early and request.method == "initialize":
            self._go_on(result if isinstance(result, RequestError) else None)

    def _go_on(self, fault: RequestError | None) -> None:
        """Take what waited for the answer to ``initialize``; refuse it as that was refused."""
        early, self._early = self._early, []
        for message, write in early:
            if fault is None:
                self._take(message, write)
            elif message.request_id is not None:
                self._send_error(message.request_id, fault, write)

    def _answer(self, request: ServerRequest, request_id: Id, result: Any) -> None:
        if isinstance(result, RequestError):
            self._send_error(request_id, result, request.write)
            return
        try:
            completed = self._completed(request, result)
            request.write(_response(request_id, completed))
        except UNENCODABLE as error:
            fault = RequestError(INTERNAL_ERROR, f"the result is not JSON: {error}")
            self._send_error(request_id, fault, request.write)

    def pass_result(self, request: ServerRequest, result: Raw) -> None:
        """Answer a request with a result as it came, if it still waits for an answer."""
        request_id, running = request.id, self._running
        if running.get(request_id) is request:  # type: ignore[arg-type]
            del running[request_id]  # type: ignore[arg-type]
            request.write(_response(request_id, result))  # type: ignore[arg-type]

    def _completed(self, request: ServerRequest, result: Any) -> Any:
        """Return a result as the revision has it; one that is raw passes as it is."""
        if request.method == "initialize":
            fields = decode(result) if isinstance(result, Raw) else result
            if isinstance(fields, dict):
                self.era = adopt(request.params, fields)
            return result
        if not isinstance(result, dict) or (request.era.asks and self.server.verbatim):
            return result
        hints = self.server.hints.get(request.method, {})
        return request.era.finish(request.method, result, self.server.info, hints)

    def _send_error(self, request_id: Id | None, error: RequestError, write: Write) -> None:
        # MCP, Basic: Requests: ids are never null, so an unreadable one is left out.
        self.send(write, **({} if request_id is None else {"id": request_id}), error=error.fault)

    def close(self) -> None:
        """Cancel running handlers, and answer the requests that opened streams."""
        for stream in self.streams:
            self.finish(self._running[stream], subscription_meta(stream))
        self.streams.clear()
        for request in list(self._running.values()):
            request.end()
        self._running.clear()
        questions, self._questions = self._questions, {}
        for answer in questions.values():
            if not answer.done():
                answer.set_exception(RequestError(INTERNAL_ERROR, "the client is gone"))
        self.server.sessions.discard(self)
        self.server.left(self)


def _size(message: ClientMessage) -> int:
    return 0 if message.params is UNSET else len(message.params)


def _response(request_id: Id, result: Any) -> bytes:
    """Return the line that answers a request, with one copy of what is raw in it.

    Results may have many megabytes, and a relay should not need them three times.
    """
    number = encode(request_id)
    if type(result) is Raw:
        return b"".join((b'{"jsonrpc":"2.0","id":', number, b',"result":', result, b"}\n"))
    parts: list[Any] = [b'{"jsonrpc":"2.0","id":', number, b',"result":']
    if isinstance(result, dict) and any(isinstance(value, Raw) for value in result.values()):
        mark = b"{"
        for key, value in result.items():
            parts += (mark, encode(key), b":")
            parts.append(value if isinstance(value, Raw) else encode(value))
            mark = b","
        parts.append(b"}")
    else:
        parts.append(encode(result))
    parts.append(b"}\n")
    return b"".join(parts)
