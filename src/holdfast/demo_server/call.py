"""One request being handled: how it waits, reports and asks the client back."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from .wire import INVALID_PARAMS, Json, Pipe, RequestId, RpcError, is_request_id

if TYPE_CHECKING:
    from .eras import Era
    from .server import Server

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_STOP = object()


class CancelledError(Exception):
    """The client no longer wants the answer: the handler unwinds and nothing is sent."""


class InputRequiredError(Exception):
    """The stateless era's way to ask: the answer is a question, and the client calls again."""

    def __init__(self, requests: Json, state: str) -> None:
        super().__init__("input required")
        self.requests = requests
        self.state = state


class ToolError(Exception):
    """The tool ran and failed: a result with `isError`, for the model to read."""


class Call:
    """What a handler gets.

    Whatever can end a wait arrives in `inbox`: the client's answer to a question, or the order to
    stop. So a waiting handler needs one queue and no polling.
    """

    def __init__(self, request_id: RequestId, params: Json, era: Era, server: Server) -> None:
        self.id = request_id
        self.params = params
        self.era = era
        self.server = server
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.cancelled: bool = False

    @property
    def pipe(self) -> Pipe:
        return self.server.pipe

    def stop(self) -> None:
        """Ends the handler's wait, now or at its next one."""
        self.inbox.put(_STOP)

    def cancel(self) -> None:
        """The client cancelled: stop, and say nothing more about this request."""
        self.cancelled = True
        self.stop()

    def pause(self, seconds: float) -> None:
        """Waits; raises CancelledError at once when told to stop."""
        try:
            self.inbox.get(timeout=seconds)
        except Empty:
            return
        raise CancelledError

    def wait_for_answer(self) -> Json:
        """Waits for the client's answer to a question, for as long as it takes."""
        answer = self.inbox.get()
        if answer is _STOP:
            raise CancelledError
        assert isinstance(answer, dict)
        return answer

    def progress(self, done: float, total: float, message: str) -> None:
        """Reports progress, if the client asked for it with a token."""
        token = meta_of(self.params).get("progressToken")
        if not is_request_id(token) or self.cancelled:
            return
        params: Json = {"progressToken": token, "progress": done, "total": total}
        if self.era.annotates:
            params["message"] = message
        self.pipe.notify("notifications/progress", params)

    def log(self, level: str, text: str) -> None:
        """Sends a log message, if the client wants messages of this level."""
        wanted = self.era.log_level
        if wanted is None or LEVELS.index(level) < LEVELS.index(wanted) or self.cancelled:
            return
        params = {"level": level, "logger": "demo", "data": text}
        self.pipe.notify("notifications/message", params)

    def ask(self, key: str, method: str, params: Json) -> Json:
        """Asks the client something and returns its result; the era knows how that is done."""
        return self.era.ask(self, key, method, params)


def meta_of(params: Json) -> Json:
    """The `_meta` of a request or an empty one."""
    meta = params.get("_meta", {})
    return meta if isinstance(meta, dict) else {}


def check_level(level: Any, where: str) -> str:
    """A log level, or an error that names the field."""
    if not isinstance(level, str) or level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"{where} must be one of {', '.join(LEVELS)}")
    return level
