"""Requests of a host of 2025-11-25 about tasks of a server with the extension."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Raw, Struct

from holdfast._core.calls.task_poller import TaskPoller, TaskView
from holdfast._core.eras.tasks import TaskForm, TaskState
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.codes import INVALID_PARAMS, RequestError
from holdfast._core.wire.jsonrpc import encode
from holdfast.relay.envelope import full
from holdfast.relay.tasks.kept import KeptTasks
from holdfast.relay.tasks.shapes import ENDED, is_failure, of_task, task_fields

if TYPE_CHECKING:
    from holdfast.relay.tasks.host import HostTasks

Poll: TypeAlias = Callable[[ServerRequest, str, TaskForm], Awaitable[Raw]]
"""Answers a request about a task."""

MOST_FOLLOWED: Final = 100
"""Tasks whose result a host waits for at once."""

following: ContextVar[str | None] = ContextVar("holdfast_relay_following", default=None)
"""The task whose questions are asked, in the task that follows it for a host."""


class Following(Struct, eq=False):
    """A task that is polled until it has a result, and the number of requests that wait for it."""

    work: asyncio.Task[Raw]
    waiting: int = 0


class CorePolls:
    """The tasks of one host that it asks about in the form of 2025-11-25.

    Args:
        tasks: The tasks of the host.

    Attributes:
        results: Those that had ended before they could begin.
    """

    def __init__(self, tasks: HostTasks) -> None:
        self._tasks = tasks
        self._following: dict[str, Following] = {}
        self.results: KeptTasks = KeptTasks()
        self.handlers: dict[str, Poll] = {
            "tasks/get": self._get,
            "tasks/result": self._result,
            "tasks/cancel": self._cancel,
        }

    def __repr__(self) -> str:
        return f"<CorePolls {len(self._following)} followed {self.results!r}>"

    def close(self) -> None:
        """End everything: the host is gone. The tasks go on."""
        self.results.clear()
        for follower in self._following.values():
            follower.work.cancel()

    async def _get(self, request: ServerRequest, task_id: str, form: TaskForm) -> Raw:
        ended = self.results.find(task_id)
        if ended is not None:
            return Raw(encode(ended.fields))
        return as_core(*await self._tasks.get(request, task_id, form), form)

    async def _result(self, request: ServerRequest, task_id: str, form: TaskForm) -> Raw:
        """Wait for the end of a task; its questions are asked meanwhile, each once."""
        ended = self.results.find(task_id)
        if ended is not None:
            ended.is_fetched = True
            return of_task(ended.result, task_id)
        follower = self._following.get(task_id) or self._begin(request, task_id)
        follower.waiting += 1
        try:
            result = await asyncio.shield(follower.work)
        finally:
            follower.waiting -= 1
            if not follower.waiting:
                # Nobody waits: the task goes on, and what it asks is asked again next time.
                self._drop(task_id, follower)
                follower.work.cancel()
        self._tasks.name(task_id, request)
        return of_task(result, task_id)

    def _begin(self, request: ServerRequest, task_id: str) -> Following:
        if len(self._following) >= MOST_FOLLOWED:
            raise full(f"{MOST_FOLLOWED} results of tasks are waited for already: use tasks/get")
        work = asyncio.get_running_loop().create_task(self._follow(request, task_id))
        follower = self._following[task_id] = Following(work)
        work.add_done_callback(lambda _: self._drop(task_id, follower))
        return follower

    def _drop(self, task_id: str, follower: Following) -> None:
        if self._following.get(task_id) is follower:
            del self._following[task_id]

    async def _follow(self, request: ServerRequest, task_id: str) -> Raw:
        following.set(task_id)
        relay = self._tasks.relay
        relay.shared.begin_call(relay)
        try:
            view = TaskView(detached=True, meta=relay.hop(request))
            deadline = self._tasks.deadline(relay.time_for("tasks/result"))
            poller = TaskPoller(self._tasks.upstream, task_id, "tasks/result", deadline, view)
            return (await poller.run(None))[0]
        finally:
            relay.open_calls -= 1

    async def _cancel(self, request: ServerRequest, task_id: str, form: TaskForm) -> Raw:
        """Cancel a task, and show it: the extension only says that it was heard."""
        ended = self.results.find(task_id)
        status = None if ended is None else ended.fields["status"]
        if status is None:
            status = (await self._tasks.get(request, task_id, form))[1].task.status
        if status in ENDED:
            # 2025-11-25 basic/utilities/tasks, Task Cancellation.
            raise RequestError(INVALID_PARAMS, f"task {task_id!r} is already {status}")
        await self._tasks.send(request, "tasks/cancel", task_id, form)
        return as_core(*await self._tasks.get(request, task_id, form), form)


def as_core(answer: Raw, state: TaskState, form: TaskForm) -> Raw:
    """Return the answer to a poll as 2025-11-25 has it."""
    shape = task_fields(answer, state, form)
    if state.result is not None and is_failure(state.result):
        # 2025-11-25 basic/utilities/tasks, Task Status: "failed" includes tools that failed.
        shape["status"] = "failed"
    return Raw(encode(shape))
