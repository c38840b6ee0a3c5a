"""Requests of a stateless host about tasks of a server of 2025-11-25."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from holdfast._core.eras.base import Invalid
from holdfast._core.eras.serving import Json
from holdfast._core.eras.tasks import TaskForm
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.codes import INVALID_PARAMS, RequestError
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.errors import RpcError
from holdfast.relay.envelope import fault_of, fields_of, of_other_era
from holdfast.relay.tasks.asking import AskingTasks
from holdfast.relay.tasks.core import Poll
from holdfast.relay.tasks.shapes import task_fields

if TYPE_CHECKING:
    from holdfast.relay.tasks.host import HostTasks


class ExtensionPolls:
    """The tasks of one host that it asks about in the form of the extension.

    Args:
        tasks: The tasks of the host.

    Attributes:
        asking: Those that ask the host something.
    """

    def __init__(self, tasks: HostTasks) -> None:
        self._tasks = tasks
        self.asking: AskingTasks = AskingTasks()
        self.handlers: dict[str, Poll] = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }

    def __repr__(self) -> str:
        return f"<ExtensionPolls {self.asking!r}>"

    async def _get(self, request: ServerRequest, task_id: str, form: TaskForm) -> Raw:
        """Poll a task: the result, or the questions, come with the answer."""
        answer, state = await self._tasks.get(request, task_id, form)
        shape = task_fields(answer, state, form)
        if state.task.status == "cancelled":
            self._tasks.end(task_id)
        elif state.task.done:
            shape |= await self._outcome(request, task_id, state.task.status, form)
            self._tasks.end(task_id)
        else:
            shape |= await self._questions(request, task_id, state.task.status, form)
        return Raw(encode(shape))

    async def _questions(
        self, request: ServerRequest, task_id: str, status: str, form: TaskForm
    ) -> Json:
        if status == "input_required":
            self.asking.listen(
                task_id, lambda: self._tasks.send(request, "tasks/result", task_id, form)
            )
            await self.asking.wait(task_id)
        questions = self.asking.requests(task_id)
        if not questions:
            return {"status": "working"}
        return {"status": "input_required", "inputRequests": questions}

    async def _outcome(
        self, request: ServerRequest, task_id: str, status: str, form: TaskForm
    ) -> Json:
        """Return the result of a task that has ended, or its error."""
        try:
            result = await self.asking.result(task_id)
            if result is None:
                result = await self._tasks.send(request, "tasks/result", task_id, form)
        except RpcError as error:
            if status != "failed":
                raise
            return {"status": "failed", "error": fault_of(error).fault}
        fields = of_other_era(result)
        if not isinstance(fields, dict):
            raise self._tasks.broken("tasks/result", Invalid("the result is no object"))
        # Tasks extension, Task Execution Errors: a result is "completed", whatever it says.
        return {"status": "completed", "result": {**fields, "resultType": "complete"}}

    async def _update(self, request: ServerRequest, task_id: str, form: TaskForm) -> Raw:
        try:
            answers = fields_of.decode(request.fields.get("inputResponses", b""))
        except MALFORMED:
            raise RequestError(INVALID_PARAMS, "inputResponses must be an object") from None
        if not self._tasks.is_named(task_id):
            await self._tasks.get(request, task_id, form)  # it may be unknown
        self.asking.answer(task_id, answers)
        return Raw(b"{}")

    async def _cancel(self, request: ServerRequest, task_id: str, form: TaskForm) -> Raw:
        """Cancel a task, where the server does that: to hear is all that the extension promises."""
        try:
            method = "tasks/cancel" if form.cancels else "tasks/get"
            await self._tasks.send(request, method, task_id, form)
        except RpcError:
            # In 2025-11-25 that is an error for a task that has ended; here it is not.
            await self._tasks.get(request, task_id, form)
        if form.cancels:
            self._tasks.end(task_id)
        return Raw(b"{}")
