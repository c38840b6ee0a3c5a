"""Tasks of a server: calls that go on while clients poll for their outcome, in both forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from holdfast._core.eras.serving import Json, request_state
from holdfast._core.server.request import Handler, InputRequired, ServerRequest, outcome
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, RequestError

MOST: Final = 1000
"""Tasks that are kept; the oldest go first."""


class TaskCancelled(Exception):  # noqa: N818
    """Raised by a handler that cancels its own task."""


class ServerTask:
    """One call: its state, and what waits for its end."""

    def __init__(self, task_id: str, created: str, request: ServerRequest, call: Handler) -> None:
        self.id = task_id
        self.created = created
        self.request = request
        self.call = call
        self.status = "working"
        self.message = ""
        self.fields: Json = {}
        """What the status comes with: ``result``, ``error`` or ``inputRequests``."""
        self.waiters: list[Any] = []
        request.noted = self.note

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    def note(self, message: str) -> None:
        """Use the message of a progress report as that of the status."""
        self.message = message

    def become(self, status: str, **fields: Any) -> None:
        """Change the status, unless the task has ended."""
        if self.ended:
            return
        self.status, self.fields, self.message = status, fields, ""
        if self.ended:
            for waiter in self.waiters:
                waiter.set_result(None)

    def start(self) -> None:
        """Run the call, from its beginning."""
        self.request.session.runner.start(self.request, self._work())

    async def _work(self) -> None:
        try:
            result = self.call(self.request)
            if isinstance(result, Awaitable):
                result = await result
        except InputRequired as question:
            return self.become("input_required", inputRequests=question.requests)
        except TaskCancelled:
            return self.become("cancelled")
        except Exception as error:
            result = outcome(self.request, error)
        if isinstance(result, RequestError):
            self.become("failed", error=result.fault)
        else:
            self.become("completed", result=result)


class TaskTable:
    """The tasks of one server.

    Args:
        call: Runs a tool.
        tools: The names of tools whose calls become tasks where the client takes them.
        new_id: Makes the id of a task, which nobody can guess.
        now: Returns the time, in ISO 8601.
    """

    def __init__(
        self,
        call: Handler,
        tools: set[str],
        *,
        new_id: Callable[[], str],
        now: Callable[[], str],
    ) -> None:
        self._call = call
        self._tools = tools
        self._new_id = new_id
        self._now = now
        self._tasks: dict[str, ServerTask] = {}

    def handlers(self) -> dict[str, Handler]:
        return {
            "tools/call": self.call,
            "tasks/get": lambda request: self._view(request, self._find(request)),
            "tasks/update": self.update,
            "tasks/cancel": self.cancel,
            "tasks/result": self.result,
            "tasks/list": lambda request: {
                "tasks": [self._view(request, task) for task in self._tasks.values()]
            },
        }

    def call(self, request: ServerRequest) -> Any:
        """Answer with a task, if the tool makes one and the client takes it."""
        makes_task = request.params.get("name") in self._tools
        if not makes_task or not request.era.takes_task(request.params):
            return self._call(request)
        return self.begin(request, self._call)

    def begin(self, request: ServerRequest, call: Handler, task_id: str | None = None) -> Json:
        """Run ``call`` as a task; return the answer that names it."""
        task = ServerTask(task_id or self._new_id(), self._now(), request, call)
        self._tasks[task.id] = task
        while len(self._tasks) > MOST:
            del self._tasks[next(iter(self._tasks))]
        task.start()
        return request.era.created(self._view(request, task))

    def knows(self, task_id: str) -> bool:
        return task_id in self._tasks

    def update(self, request: ServerRequest) -> Json:
        """Take answers, and run the call again from its beginning."""
        task = self._find(request)
        answers = request.params.get("inputResponses")
        if not isinstance(answers, dict):
            raise RequestError(INVALID_PARAMS, "inputResponses must be an object")
        open_keys = task.fields.get("inputRequests", {})
        fitting = {key: value for key, value in answers.items() if key in open_keys}
        if fitting:
            params = task.request.params
            params["requestState"] = request_state(params, {})
            params["inputResponses"] = {**params.get("inputResponses", {}), **fitting}
            task.become("working")
            task.start()
        return {}

    def cancel(self, request: ServerRequest) -> Json:
        task = self._find(request)
        if request.era.asks and task.ended:
            raise RequestError(INVALID_PARAMS, f"the task is already {task.status}")
        task.request.stop()
        task.become("cancelled")
        return self._view(request, task) if request.era.asks else {}

    async def result(self, request: ServerRequest) -> Any:
        """Return what the call returns, once it does."""
        task = self._find(request)
        if not task.ended:
            waiter = request.session.runner.answer()
            task.waiters.append(waiter)
            await waiter
        if task.status == "completed":
            return task.fields["result"]
        error = task.fields.get("error", {"code": INTERNAL_ERROR, "message": "cancelled"})
        raise RequestError(error["code"], error["message"], error.get("data"))

    def _find(self, request: ServerRequest) -> ServerTask:
        request.era.require_tasks()
        task = self._tasks.get(str(request.params.get("taskId")))
        if task is None:
            raise RequestError(INVALID_PARAMS, "Task not found")
        return task

    def _view(self, request: ServerRequest, task: ServerTask) -> Json:
        times = {"createdAt": task.created, "lastUpdatedAt": self._now()}
        message = {"statusMessage": task.message} if task.message else {}
        view = {"taskId": task.id, "status": task.status, **message, **times}
        return request.era.task(view, task.fields)
