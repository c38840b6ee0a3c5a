"""Reads messages, finds who handles them, answers.

One thread reads. It answers what takes no time by itself, in order; each tool call runs in a
thread of its own, so that a slow one holds up nobody.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any, BinaryIO

from .call import Call, CancelledError, InputRequiredError, meta_of
from .eras import (
    HANDSHAKE,
    SERVER_INFO,
    SUPPORTED,
    VERSION_KEY,
    Era,
    Handshake,
    Stateless,
    looks_stateless,
    unsupported,
)
from .handlers import (
    HANDSHAKE_METHODS,
    IN_A_THREAD,
    INSTRUCTIONS,
    STATELESS_METHODS,
    Handler,
    capabilities,
)
from .questions import Questions
from .resources import Shelf
from .subscriptions import Subscriptions
from .wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Json,
    Pipe,
    RequestId,
    RpcError,
    check_envelope,
    is_request_id,
    parse,
    request_id_of,
)
from .workers import Workers

LAST_ANSWERS = 0.5  # seconds that running tools have to finish once stdin has ended


class Server:
    """One client's server, from the first line of stdin to its end."""

    def __init__(self, out: BinaryIO, eras: str = "both", page_size: int | None = None) -> None:
        self.pipe: Pipe = Pipe(out)
        self.questions: Questions = Questions(self.pipe)
        self.subscriptions: Subscriptions = Subscriptions(self.pipe)
        self.shelf: Shelf = Shelf()
        self.eras = eras
        self.supported = SUPPORTED[eras]
        self.page_size = page_size
        self._session: Handshake | None = None
        self._running: dict[RequestId, Call] = {}
        self._lock = threading.Lock()
        self._workers = Workers()

    def serve(self, lines: Iterable[bytes]) -> None:
        """Handles each line until there are no more, then lets go."""
        for line in lines:
            if line.strip():
                self._take_line(line)
        self._close()

    def _take_line(self, line: bytes) -> None:
        try:
            message = parse(line)
        except RpcError as error:
            self.pipe.error(None, error)
            return
        if isinstance(message, list) and message and self._session and self._session.batches:
            for part in message:
                self._take(part)
        else:
            self._take(message)

    def _take(self, message: Any) -> None:
        """Handles one message: an answer, a notification or a request."""
        if isinstance(message, dict) and ("result" in message or "error" in message):
            self.questions.answered(message)
            return
        request_id = request_id_of(message)
        try:
            check_envelope(message)
            if request_id is None:
                self._take_notification(message["method"], message.get("params", {}))
            else:
                self._take_request(request_id, message["method"], message.get("params", {}))
        except RpcError as error:
            # A notification is never answered, but what is no message at all is refused.
            if request_id is not None or error.code == INVALID_REQUEST:
                self.pipe.error(request_id, error)

    def _take_notification(self, method: str, params: Json) -> None:
        """Heeds cancellations; the others, known or not, change nothing here."""
        if method == "notifications/cancelled" and is_request_id(params.get("requestId")):
            with self._lock:
                call = self._running.pop(params["requestId"], None)
            if call is not None:
                call.cancel()
                self.subscriptions.drop_stream(call.id)

    def _take_request(self, request_id: RequestId, method: str, params: Json) -> None:
        if method == "initialize":
            self.pipe.result(request_id, self._initialize(params))
            return
        era, methods = self._era_of(method, params)
        handler = methods.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {method}")
        call = Call(request_id, params, era, self)
        with self._lock:
            if request_id in self._running:
                raise RpcError(INVALID_REQUEST, f"id {request_id!r} is in use by a running request")
            self._running[request_id] = call
        if method in IN_A_THREAD:
            self._workers.run(lambda: self._answer(call, method, handler))
        else:
            self._answer(call, method, handler)

    # Answering

    def _answer(self, call: Call, method: str, handler: Handler) -> None:
        """Runs the handler and sends what comes of it, unless the call was cancelled meanwhile."""
        try:
            result = _run(call, method, handler)
        except CancelledError:
            self._settle(call)
        except RpcError as error:
            if self._settle(call):
                self.pipe.error(call.id, error)
        else:
            if result is not None and self._settle(call):
                self.pipe.result(call.id, call.era.finish(method, result))

    def _settle(self, call: Call) -> bool:
        """Takes the call off the list; False if it was no longer there to be answered."""
        with self._lock:
            # A cancelled id may already belong to a newer request.
            if self._running.get(call.id) is not call:
                return False
            del self._running[call.id]
            return True

    def _close(self) -> None:
        """Stops what waits, lets the rest finish for a moment, and ends subscriptions politely."""
        with self._lock:
            for call in self._running.values():
                call.stop()
        # Not from this thread: where the client has stopped reading, a write never returns.
        self._workers.run(self.subscriptions.end_streams)
        self._workers.wait(LAST_ANSWERS)

    # Eras

    def _era_of(self, method: str, params: Json) -> tuple[Era, dict[str, Handler]]:
        """Which era a request speaks, and the methods there are in it."""
        meta = meta_of(params)
        if self.eras != "handshake" and looks_stateless(meta):
            return Stateless(meta, self.supported), STATELESS_METHODS
        if self._session is not None:
            return self._session, HANDSHAKE_METHODS
        if method == "ping" and self.eras != "stateless":
            return Handshake(HANDSHAKE[0], {}), HANDSHAKE_METHODS  # allowed before `initialize`
        raise self._no_era(method)

    def _no_era(self, method: str) -> RpcError:
        """Why a request that speaks no era cannot be served."""
        stateless = self.eras != "handshake" and method in STATELESS_METHODS
        if not stateless and method not in HANDSHAKE_METHODS:
            return RpcError(METHOD_NOT_FOUND, f"method not found: {method}")
        if self.eras == "handshake":
            return RpcError(INVALID_REQUEST, f"{method} came before initialize")
        return RpcError(INVALID_PARAMS, f"params._meta lacks {VERSION_KEY}")

    def _initialize(self, params: Json) -> Json:
        """Begins the session of the handshake era."""
        requested = params.get("protocolVersion")
        if self.eras == "stateless":
            # Clients of that era know no way forward: this message is all they can show.
            raise unsupported(str(requested), self.supported)
        for name, kind in (("protocolVersion", str), ("capabilities", dict), ("clientInfo", dict)):
            if not isinstance(params.get(name), kind):
                raise RpcError(INVALID_PARAMS, f"{name} is missing or of the wrong type")
        if self._session is not None:
            raise RpcError(INVALID_REQUEST, "already initialized")
        version = requested if requested in HANDSHAKE else HANDSHAKE[0]
        self._session = Handshake(version, params["capabilities"])
        self.subscriptions.open_session()
        return {
            "protocolVersion": version,
            "capabilities": capabilities(self._session),
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }


def _run(call: Call, method: str, handler: Handler) -> Json | None:
    """The handler's result, or its question; a fault of its own becomes an internal error."""
    try:
        return handler(call)
    except InputRequiredError as question:
        asked = {"inputRequests": question.requests, "requestState": question.state}
        return {"resultType": "input_required", **asked}
    except (CancelledError, RpcError, OSError):
        raise
    except Exception as error:
        print(f"demo server: {method} failed: {error!r}", file=sys.stderr, flush=True)
        raise RpcError(INTERNAL_ERROR, f"internal error: {error!r}") from error
