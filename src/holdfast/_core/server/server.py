"""A server, and one client's connection to it: messages in, handlers run, messages out. Pure.

`ServerSession.feed` takes a frame. A handler that returns a value is answered at once, in order;
one that returns an awaitable is handed to the `HandlerRunner`, which owns tasks and time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol
from weakref import WeakSet

from holdfast._core.eras.revisions import VERSIONS
from holdfast._core.eras.serving import (
    HandshakeServing,
    Json,
    ServingEra,
    StatelessServing,
    adopt,
    begin,
    check_level,
    granted,
    grants,
    is_stateless,
    no_era,
    subscription_meta,
)
from holdfast._core.server.incoming import (
    SILENCE,
    Handler,
    Incoming,
    Write,
    is_id,
    meta_of,
    outcome,
)
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNENCODABLE,
    RequestError,
)


class Server:
    """A server: handlers, capabilities and revisions, for every client that connects.

    Args:
        name: The name that clients are given.
        handlers: A handler for each method, of both eras.
        versions: The revisions to speak.
        capabilities: What to declare, made for each client.
        instructions: Text for the model.
        hints: Cache hints (``ttlMs``, ``cacheScope``) by method, for the stateless era.
    """

    def __init__(
        self,
        name: str,
        handlers: dict[str, Handler],
        *,
        versions: tuple[str, ...] = VERSIONS,
        capabilities: Callable[[], Json] = dict,
        instructions: str | None = None,
        hints: dict[str, Json] | None = None,
    ) -> None:
        self.info: Json = {"name": name, "version": "1.0.0"}
        self.handlers: dict[str, Handler] = {**_LIFECYCLE, **handlers}
        self.overrides: dict[str, Handler] = {}
        """Handlers that are called whatever the era, even before ``initialize``."""
        self.versions = versions
        self.capabilities = capabilities
        self.instructions = instructions
        self.hints: dict[str, Json] = hints or {}
        self.strict: bool = True
        """Refuse requests before ``initialize`` that name no revision."""
        self.verbatim: bool = False
        """Send handshake clients results as they are, with fields of later revisions."""
        self.heard: Callable[[Incoming], object] = lambda incoming: None
        """Called with every request and notification before it is handled."""
        self.sessions: WeakSet[ServerSession] = WeakSet()
        self.watchable: Callable[[str], bool] = bool
        """Return whether a resource can be subscribed to."""

    def announce(self, method: str, params: Json | None = None) -> None:
        """Send a change notification to every session and stream that asked for it."""
        for session in list(self.sessions):
            session.announce(method, params)

    def grant(self, wanted: Json) -> Json:
        """Return the part of a ``subscriptions/listen`` filter that is honoured."""
        kept = granted(wanted, self.capabilities())
        if "resourceSubscriptions" in kept:
            kept["resourceSubscriptions"] = [*filter(self.watchable, kept["resourceSubscriptions"])]
        return kept

    def introduction(self) -> Json:
        """Return what the answers to ``initialize`` and ``server/discover`` have in common."""
        more = {} if self.instructions is None else {"instructions": self.instructions}
        return {"capabilities": self.capabilities(), **more}


class HandlerRunner(Protocol):
    """Runs handlers that wait, and reads and writes JSON."""

    def start(self, incoming: Incoming, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, and set ``incoming.stop`` to what cancels it."""

    def answer(self) -> Any:
        """Return an awaitable that is settled once, like a future of asyncio."""

    def sleep(self, seconds: float) -> Awaitable[None]: ...

    def encode(self, message: Any) -> bytes: ...

    def decode(self, frame: bytes) -> Any:
        """Return the JSON value of a frame; raise `RequestError` for what is none."""


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
        self._running: dict[int | str, Incoming] = {}
        self._asked: dict[str, Any] = {}
        self._questions = 0
        self.subscribed: set[str] = set()
        self.streams: dict[int | str, Json] = {}
        server.sessions.add(self)

    # Out

    def send(self, write: Write | None = None, **message: Any) -> None:
        """Encode and write a message; ``write`` is that of the request it belongs to."""
        (write or self.write)(self.runner.encode({"jsonrpc": "2.0", **message}) + b"\n")

    def notify(self, method: str, params: Json | None = None, write: Write | None = None) -> None:
        """Send a notification, regardless of subscriptions."""
        self.send(write, method=method, **({} if params is None else {"params": params}))

    def announce(self, method: str, params: Json | None = None) -> None:
        """Send a change notification to the session, and to the streams that asked for it."""
        params = params or {}
        if self.era is not None and (
            method != "notifications/resources/updated" or params.get("uri") in self.subscribed
        ):
            self.notify(method, params)
        for stream, wanted in self.streams.items():
            if grants(wanted, method, params):
                self.notify(
                    method, {**params, **subscription_meta(stream)}, self._running[stream].write
                )

    async def ask(self, method: str, params: Json | None = None, write: Write | None = None) -> Any:
        """Send the client a request and return its result, whatever the era.

        Raises:
            RequestError: The client answered with an error.
        """
        self._questions += 1
        question = f"server-{self._questions}"
        answer = self._asked[question] = self.runner.answer()
        given = {} if params is None else {"params": params}
        self.send(write, id=question, method=method, **given)
        try:
            return await answer
        finally:
            if self._asked.pop(question, None) is not None:
                self.notify("notifications/cancelled", {"requestId": question}, write)

    # In

    def feed(self, frame: bytes) -> None:
        """Take one line; a blank one is ignored."""
        if not frame.strip():
            return
        try:
            message = self.runner.decode(frame)
        except RequestError as error:
            self._send_error(None, error, self.write)
        else:
            self.take(message)

    def take(self, message: Any, write: Write | None = None) -> None:
        """Handle a message, or a batch where the revision has them.

        Args:
            message: The decoded message.
            write: Takes the answer and what else belongs to the request; `ServerSession.write` if
                there is one channel for all.
        """
        batch = isinstance(message, list) and message and self.era and self.era.batches
        for one in message if batch else [message]:
            self._take(one, write or self.write)

    def is_running(self, request_id: int | str) -> bool:
        """Return whether a request waits for its answer."""
        return request_id in self._running

    def _take(self, message: Any, write: Write) -> None:
        fields = message if isinstance(message, dict) else {}
        if "method" not in fields and {"result", "error"} & fields.keys():
            self._answered(fields)
            return
        request_id = fields.get("id") if is_id(fields.get("id")) else None
        try:
            _check_envelope(message)
            params = message.get("params") or {}
            # The era that the message claims; `_find` checks it.
            era: ServingEra = self.era or HandshakeServing()
            if is_stateless(meta_of(params), self.server.versions):
                era = StatelessServing(meta_of(params))
            incoming = Incoming(self, era, message["method"], params, request_id)
            incoming.write = write
            self._dispatch(incoming)
        except RequestError as error:
            # JSON-RPC 2.0, section 4.1: a notification is never answered.
            if request_id is not None or error.code == INVALID_REQUEST:
                self._send_error(request_id, error, write)

    def _dispatch(self, incoming: Incoming) -> None:
        handler = self.server.overrides.get(incoming.method)
        self.server.heard(incoming)
        if incoming.id is None:
            if incoming.method == "notifications/cancelled":
                self._cancel(incoming.params.get("requestId"))
            handler = handler or self.server.handlers.get(incoming.method)
            if handler is not None:
                self._run(incoming, handler)
            return
        if handler is None:
            handler = self._find(incoming)
        if incoming.id in self._running:
            text = f"id {incoming.id!r} is in use by a running request"
            raise RequestError(INVALID_REQUEST, text)
        self._running[incoming.id] = incoming
        self._run(incoming, handler)

    def _cancel(self, request_id: Any) -> None:
        cancelled = self._running.pop(request_id, None) if is_id(request_id) else None
        if cancelled is not None:
            self.streams.pop(request_id, None)
            cancelled.cancelled = True
            cancelled.stop()

    def _answered(self, message: Json) -> None:
        """Settle a question with the client's answer."""
        question = message.get("id")
        answer = self._asked.pop(question, None) if isinstance(question, str) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error is None:
            answer.set_result(message.get("result"))
            return
        fault = error if isinstance(error, dict) else {"message": str(error)}
        code = fault.get("code")
        code = code if isinstance(code, int) else INTERNAL_ERROR
        answer.set_exception(RequestError(code, str(fault.get("message")), fault.get("data")))

    def _find(self, incoming: Incoming) -> Handler:
        """Return the handler of a request, or raise what is wrong with it."""
        method, era = incoming.method, incoming.era
        handler = self.server.handlers.get(method)
        if isinstance(era, StatelessServing):
            era.check(self.server.versions)
        elif self.era is None and self.server.strict and method not in ("initialize", "ping"):
            raise no_era(method, handler is not None, self.server.versions)
        if handler is None or method in era.absent:
            raise RequestError(METHOD_NOT_FOUND, f"method not found: {method}")
        return handler

    def _run(self, incoming: Incoming, handler: Handler) -> None:
        try:
            result = handler(incoming)
        except Exception as error:
            result = outcome(incoming, error)
        if isinstance(result, Awaitable):
            self.runner.start(incoming, self._wait(incoming, result))
        else:
            self._finish(incoming, result)

    async def _wait(self, incoming: Incoming, work: Awaitable[Any]) -> None:
        try:
            result = await work
        except Exception as error:
            result = outcome(incoming, error)
        self._finish(incoming, result)

    def _finish(self, incoming: Incoming, result: Any) -> None:
        """Answer a request with a result or a `RequestError`, if it still waits for an answer."""
        if incoming.id is None or result is SILENCE:
            return
        # A cancelled id may already belong to a newer request.
        if self._running.get(incoming.id) is not incoming:
            return
        del self._running[incoming.id]
        if isinstance(result, RequestError):
            self._send_error(incoming.id, result, incoming.write)
            return
        if isinstance(result, dict) and incoming.method == "initialize":
            self.era = adopt(incoming.params, result)
        elif isinstance(result, dict) and not (incoming.era.asks and self.server.verbatim):
            hints = self.server.hints.get(incoming.method, {})
            result = incoming.era.finish(incoming.method, result, self.server.info, hints)
        try:
            self.send(incoming.write, id=incoming.id, result=result)
        except UNENCODABLE as error:
            fault = RequestError(INTERNAL_ERROR, f"the result is not JSON: {error}")
            self._send_error(incoming.id, fault, incoming.write)

    def _send_error(self, request_id: int | str | None, error: RequestError, write: Write) -> None:
        # MCP, Basic: Requests: ids are never null, so an unreadable one is left out.
        self.send(write, **({} if request_id is None else {"id": request_id}), error=error.fault)

    def close(self) -> None:
        """Cancel running handlers, and answer the requests that opened streams."""
        for stream in self.streams:
            self._finish(self._running[stream], subscription_meta(stream))
        self.streams.clear()
        for incoming in list(self._running.values()):
            incoming.stop()
        self._running.clear()
        self.server.sessions.discard(self)


def _check_envelope(message: Any) -> None:
    """Refuse what is not a JSON-RPC message; whether the method exists is checked later."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RequestError(INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
    if "id" in message and not is_id(message["id"]):
        raise RequestError(INVALID_REQUEST, "id must be a string or an integer")
    if not isinstance(message.get("method"), str):
        raise RequestError(INVALID_REQUEST, "method must be a string")
    if not isinstance(message.get("params", {}), dict):
        raise RequestError(INVALID_PARAMS, "params must be an object")


# The methods that every server has


def uri_of(incoming: Incoming) -> str:
    """Return the ``uri`` parameter of a request."""
    uri = incoming.params.get("uri")
    if not isinstance(uri, str):
        raise RequestError(INVALID_PARAMS, "uri must be a string")
    return uri


def not_found(incoming: Incoming, uri: str) -> RequestError:
    """Return the error for a resource that does not exist."""
    text = f"resource not found: {uri}"
    return RequestError(incoming.era.resource_not_found, text, {"uri": uri})


def _initialize(incoming: Incoming) -> Json:
    server = incoming.session.server
    if incoming.session.era is not None:
        raise RequestError(INVALID_REQUEST, "already initialized")
    era = begin(incoming.params, server.versions)
    return {**server.introduction(), **era.introduce(server.capabilities(), server.info)}


def _discover(incoming: Incoming) -> Json:
    server = incoming.session.server
    return {"supportedVersions": list(server.versions), **server.introduction()}


def _set_level(incoming: Incoming) -> Json:
    incoming.era.log_level = check_level(incoming.params.get("level"), "level")
    return {}


def _subscribe(incoming: Incoming) -> Json:
    uri = uri_of(incoming)
    if not incoming.session.server.watchable(uri):
        raise not_found(incoming, uri)
    incoming.session.subscribed.add(uri)
    return {}


def _unsubscribe(incoming: Incoming) -> Json:
    incoming.session.subscribed.discard(uri_of(incoming))
    return {}


def _listen(incoming: Incoming) -> Any:
    """Open a stream of notifications; it is answered when the server ends it."""
    wanted = incoming.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RequestError(INVALID_PARAMS, "notifications must be an object")
    assert incoming.id is not None
    agreed = incoming.session.server.grant(wanted)
    # Basic: Subscriptions: the acknowledgement comes before anything else on the stream.
    params = {"notifications": agreed, **subscription_meta(incoming.id)}
    method = "notifications/subscriptions/acknowledged"
    incoming.session.notify(method, params, incoming.write)
    incoming.session.streams[incoming.id] = agreed
    return SILENCE


_LIFECYCLE: Final[dict[str, Handler]] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "ping": lambda incoming: {},
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
    "subscriptions/listen": _listen,
}
