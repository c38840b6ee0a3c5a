"""One message of the client while it is handled: report progress, log, ask the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast._core.eras.serving import (
    LEVELS,
    ClientRefused,
    Json,
    ServingEra,
    answers_before,
    request_state,
)
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from holdfast._core.server.server import ServerSession

SILENCE: Final = object()
"""Returned by a handler to give no answer at all."""

Write: TypeAlias = Callable[[bytes], None]
"""Takes one encoded line."""

Handler: TypeAlias = "Callable[[Incoming], Any]"
"""Returns a result or an awaitable of one; raises `RequestError` to refuse."""


class InputRequired(Exception):  # noqa: N818
    """Asks in the stateless era: the result is a question, and the client repeats its request."""

    def __init__(self, requests: Json, state: str) -> None:
        super().__init__("input required")
        self.requests = requests
        self.state = state


class ToolFailure(Exception):  # noqa: N818
    """The tool ran and failed: a result with ``isError``, for the model to read."""


class Incoming:
    """A request or notification of the client.

    Attributes:
        method: The JSON-RPC method.
        params: Its parameters; empty if there were none.
        id: The request's id; None for a notification.
        connection: The number of the connection it came on, from 1.
    """

    def __init__(
        self,
        session: ServerSession,
        era: ServingEra,
        method: str,
        params: Json,
        request_id: int | str | None,
    ) -> None:
        self.session = session
        self.era = era
        self.method: str = method
        self.params: dict[str, Any] = params
        self.id: int | str | None = request_id
        self.connection: int = session.number
        self.cancelled: bool = False
        self.stop: Callable[[], object] = lambda: None
        self.write: Write = session.write
        self.noted: Callable[[str], object] = lambda message: None
        """Called with the message of each progress report."""

    def __repr__(self) -> str:
        return f"<Incoming {self.method} id={self.id!r}>"

    @property
    def meta(self) -> dict[str, Any]:
        """The ``_meta`` of the parameters; empty if there is none."""
        return meta_of(self.params)

    @property
    def stateless(self) -> bool:
        """Return whether the request belongs to the stateless era."""
        return not self.era.asks

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
        self.session.notify("notifications/progress", params, self.write)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message, if the client wants messages of this level."""
        wanted = self.era.log_level
        if wanted is None or LEVELS.index(level) < LEVELS.index(wanted) or self.cancelled:
            return
        named = {} if logger is None else {"logger": logger}
        params = {"level": level, **named, "data": data}
        self.session.notify("notifications/message", params, self.write)

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


def meta_of(params: Json) -> Json:
    """Return the ``_meta`` of some parameters, or an empty object."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def is_id(value: Any) -> bool:
    """Return whether a value can be the id of a request (MCP allows no null)."""
    return isinstance(value, str | int) and not isinstance(value, bool)


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


def outcome(incoming: Incoming, error: Exception) -> Json | RequestError:
    """Return the answer to a request whose handler raised: a result, or an error.

    A failure of a tool that a model could fix is a result (Server: Tools: Error Handling).
    """
    if isinstance(error, InputRequired):
        asked = {"inputRequests": error.requests, "requestState": error.state}
        return {"resultType": "input_required", **asked}
    if incoming.method == "tools/call" and isinstance(error, ToolFailure | ClientRefused):
        return error_result(str(error))
    if isinstance(error, RequestError):
        return error
    return RequestError(INTERNAL_ERROR, f"internal error: {error!r}")
