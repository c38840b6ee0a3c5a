"""One message of the client while it is handled: report progress, log, ask the client."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from msgspec import UNSET, Raw

from holdfast._core.eras.serving import (
    LEVELS,
    ClientRefused,
    Json,
    ServingEra,
    answers_before,
    request_state,
)
from holdfast._core.server.message import EMPTY, ClientMessage, Id, decode, is_id, raw_fields
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from holdfast._core.server.session import ServerSession

SILENCE: Final = object()
"""Returned by a handler to give no answer at all."""

Write: TypeAlias = Callable[[bytes], None]
"""Takes one encoded line. Of a request with a channel of its own, an empty one: it has ended."""

Handler: TypeAlias = "Callable[[ServerRequest], Any]"
"""Returns a result or an awaitable of one; raises `RequestError` to refuse."""


class InputRequired(Exception):  # noqa: N818
    """Asks in the stateless era: the result is a question, and the client repeats its request."""

    def __init__(self, requests: Json, state: str) -> None:
        super().__init__("input required")
        self.requests = requests
        self.state = state


class ToolFailure(Exception):  # noqa: N818
    """The tool ran and failed: a result with ``isError``, for the model to read."""


class ServerRequest:
    """A request or notification of the client.

    Attributes:
        method: The JSON-RPC method.
        params: Its parameters, decoded when they are first asked for; empty if there were none.
        params_raw: The same as they came, for a handler that passes them on.
        fields: The same by their names, each as it came.
        meta: The ``_meta`` of the parameters; empty if there is none.
        id: The request's id; None for a notification.
        stateless: It belongs to the stateless era.
        connection: The number of the connection it came on, from 1.
    """

    _params: dict[str, Any] | None = None
    cancelled: bool = False
    is_copy: bool = False
    """Another request was made of it: whoever did that waits for the answer."""
    stop: Callable[..., object] = staticmethod(lambda *reason: None)
    """Ends the work on it; set by whoever does that work."""
    work: Coroutine[Any, Any, Any] | None = None
    """What is waited for, to answer it."""
    noted: Callable[[str], object] = staticmethod(lambda message: None)
    """Called with the message of each progress report."""

    def __init__(
        self,
        session: ServerSession,
        era: ServingEra,
        message: ClientMessage,
        fields: dict[str, Raw],
        meta: Json,
    ) -> None:
        self.session = session
        self.era = era
        self.method: str = message.method
        self.params_raw: Raw = EMPTY if message.params is UNSET else message.params
        self.fields = fields
        self.meta = meta
        self.id: Id | None = None if message.id is UNSET else message.id
        self.stateless: bool = not era.asks
        self.write: Write = session.write

    def end(self, *reason: object) -> None:
        """End the work on it: nobody waits for the answer any more."""
        self.stop(*reason)
        if self.work is not None and inspect.getcoroutinestate(self.work) == inspect.CORO_CREATED:
            self.work.close()  # it has not begun, and never will
        if self.write != self.session.write:
            self.write(b"")

    @property
    def connection(self) -> int:
        return self.session.number

    def __repr__(self) -> str:
        return f"<ServerRequest {self.method} id={self.id!r}>"

    @property
    def params(self) -> dict[str, Any]:
        if self._params is None:
            self._params = _object(decode(self.params_raw), "params")
        return self._params

    def get(self, name: str) -> Any:
        """Return one parameter, decoded alone; None if it is not there.

        What is beside it may be large, or hold numbers that Python does not have (1e400).
        """
        raw = self.fields.get(name)
        return None if raw is None else decode(raw)

    def with_params(self, raw: Raw) -> Self:
        """Return the same request with other parameters, for a handler that passes it on."""
        request = copy.copy(self)
        request.is_copy = True
        request.params_raw, request._params, request.fields = raw, None, raw_fields(raw)
        return request

    def progress(self, progress: float, **fields: Any) -> None:
        """Report progress, if the client asked for it with a token.

        Args:
            progress: The work done so far.
            **fields: ``total`` and ``message``.
        """
        self.noted(fields.get("message") or "")
        token = self.meta.get("progressToken")
        if not is_id(token) or self.cancelled:
            return
        params = {"progressToken": token, "progress": progress, **fields}
        if not self.era.knows("notifications/progress", "message"):
            params.pop("message", None)
        self.notify("notifications/progress", params)

    def notify(self, method: str, params: Json | Raw | None = None) -> None:
        """Send a notification that belongs to this request, on its stream if it has one."""
        self.session.notify(method, params, self.write)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message, if the client wants messages of this level."""
        least = self.era.log_level
        if least is None or LEVELS.index(level) < LEVELS.index(least) or self.cancelled:
            return
        source = {} if logger is None else {"logger": logger}
        params = {"level": level, **source, "data": data}
        self.notify("notifications/message", params)

    async def ask(self, method: str, params: Json, key: str = "input") -> Json:
        """Ask the client something and return its result.

        In the stateless era the request is answered with the question, and the handler runs
        again from its beginning once the client repeats it with the answer.

        Args:
            method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
            params: The parameters of the question.
            key: The name of the question among those of this request.

        Raises:
            ClientRefused: The client refused, or cannot be asked (handshake era).
            RequestError: The client did not declare the capability (stateless era).
        """
        self.era.require(method)
        if self.era.asks:
            try:
                answer = await self.session.ask(method, params, self.write)
            except RequestError as error:
                text = f"the client refused {method}: {error.message}"
                raise ClientRefused(error.code, text, error.data) from None
            return _object(answer, f"the result of {method}")
        answers = self._answers()
        if key not in answers:
            state = request_state(self.params, answers)
            raise InputRequired({key: {"method": method, "params": params}}, state)
        return _object(answers[key], f"inputResponses[{key!r}]")

    def _answers(self) -> Json:
        """Return the answers of this round, and of those before it, by key."""
        if not {"inputResponses", "requestState"} & self.params.keys():
            return {}
        before = answers_before(self.params)
        if before is None:
            raise RequestError(INVALID_PARAMS, "requestState is not the one of this request")
        return {**before, **_object(self.params.get("inputResponses", {}), "inputResponses")}

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Sleep; ends at once when the request is cancelled."""
        return self.session.runner.sleep(seconds)


def _object(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise RequestError(INVALID_PARAMS, f"{where} must be an object")
    return value


def text_result(content: str) -> Json:
    """Return a tool result of one text."""
    return {"content": [{"type": "text", "text": content}]}


def error_result(message: str) -> Json:
    """Return a tool result with ``isError``."""
    return {**text_result(message), "isError": True}


def outcome(request: ServerRequest, error: Exception) -> Json | RequestError:
    """Return the answer to a request whose handler raised: a result, or an error.

    A failure of a tool that a model could fix is a result (Server: Tools: Error Handling).
    """
    if isinstance(error, InputRequired):
        questions = {"inputRequests": error.requests, "requestState": error.state}
        return {"resultType": "input_required", **questions}
    if request.method == "tools/call" and isinstance(error, ToolFailure | ClientRefused):
        return error_result(str(error))
    if isinstance(error, RequestError):
        return error
    return RequestError(INTERNAL_ERROR, f"internal error: {error!r}")
