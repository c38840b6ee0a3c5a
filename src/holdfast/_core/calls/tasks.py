"""Tasks: calls that the server works on while the client polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct, structs

from holdfast._core.boundary import Call, WireId
from holdfast._core.calls.cached_reads import CachedReads, Listing
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.options import CallOptions
from holdfast._core.calls.requester import Requester
from holdfast._core.calls.task_poller import TaskPoller, TaskView
from holdfast._core.engine import messages
from holdfast._core.eras import tasks
from holdfast._core.eras.base import Invalid
from holdfast._core.eras.tasks import TaskForm, TaskState
from holdfast._core.text import visible
from holdfast.errors import HoldfastError, RpcError, StateError, ValidationError
from holdfast.types.lifecycle import Task
from holdfast.types.tools import ToolResult

GET: Final = "tasks/get"
LIST: Final = "tasks/list"
CANCEL: Final = "tasks/cancel"
CANCEL_TIME: Final = 5.0
"""Seconds for a cancellation that nobody waits for."""
NAMING: Final = 0.5
"""Seconds that a server has to name the task of a call whose caller has given up."""


class Tasks(Struct, eq=False):
    """The tasks of one client."""

    requester: Requester

    def form(self) -> TaskForm | None:
        """Return the form of tasks on the current connection; None: the server has none."""
        driver = self.requester.driver
        if driver.era is None or driver.facts is None:
            return None
        return driver.era.tasks(driver.facts.capabilities)

    async def request(
        self,
        call: Call,
        form: TaskForm,
        on_sent: Callable[[WireId], None] | None,
        **callbacks: Any,
    ) -> Raw:
        """Send a call that may become a task.

        If the caller is cancelled before the server has named the task, wait shortly for the
        name and cancel the task: nobody else could. A request that is not sent by then is dropped.
        """
        driver, sent = self.requester.driver, False
        caller = asyncio.current_task()
        assert caller is not None
        before = caller.cancelling()

        def note(wire_id: WireId) -> None:
            nonlocal sent
            sent = True
            if on_sent is not None:
                on_sent(wire_id)

        async def ask() -> Raw:
            if caller.cancelling() > before:
                # Its caller was cancelled between the start of this task and its first step.
                raise asyncio.CancelledError
            return await driver.request(call, on_sent=note, **callbacks)

        asking = asyncio.ensure_future(ask())
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError as error:
            if sent:
                asking.add_done_callback(partial(self._named_late, form))
                driver.loop.call_later(NAMING, asking.cancel)
            else:
                asking.cancel()
            error.__cause__ = messages.cancelled(self.requester.name, call, sent=sent)
            raise

    def _named_late(self, form: TaskForm, asking: asyncio.Future[Raw]) -> None:
        if not asking.cancelled() and asking.exception() is None:
            created = form.created(asking.result())
            if isinstance(created, TaskState):
                self.send_cancel(created.task.task_id)

    def send_cancel(self, task_id: str) -> None:
        """Send ``tasks/cancel`` where there is such a request, without waiting for its answer."""
        form, driver = self.form(), self.requester.driver
        if form is None or not form.cancels:
            return
        params, time = {"taskId": task_id}, CANCEL_TIME
        call = Call(
            CANCEL, params, idle=time, total=time, about=task_id, extensions=form.extensions
        )
        with suppress(HoldfastError):
            driver.dispatch(call)

    def view(self, options: CallOptions) -> TaskView:
        """Return the caller's view of the task that a call with these options may become."""
        return TaskView(options.get("on_task"))

    def required_by(self, error: RpcError) -> bool:
        """Return True if a server refused a call because it has to become a task."""
        return tasks.requires_tasks(error.code, error.data)

    async def follow_call(
        self, state: TaskState | Invalid, call: Call, total: float, view: TaskView
    ) -> tuple[Raw, ToolResult]:
        """Return the result of the task that answered a call; ``call.idle`` is for one poll."""
        if isinstance(state, Invalid):
            raise self.requester.broken(call, state.reason)
        deadline = Deadline(call.idle, total, self.requester.driver.loop.time())
        subject = messages.subject(call)
        return await TaskPoller(self, state.task.task_id, subject, deadline, view).run(state)

    async def take_up(
        self, task_id: str, name: str, deadline: Deadline, view: TaskView
    ) -> tuple[Raw, ToolResult]:
        """Return the result of a task that an earlier call of a tool has started."""
        subject = messages.subject(Call("tools/call", about=name))
        return await TaskPoller(self, task_id, subject, deadline, view).run(None)

    async def resume(
        self,
        task_id: str,
        timeout: float | None,
        total_timeout: float | None,
        on_task: Callable[[Task], Any] | None,
    ) -> ToolResult:
        """Follow a task that another call, or another process, has started."""
        requester = self.requester
        self._check(task_id)
        deadline = requester.deadline(GET, timeout, total_timeout)
        total = deadline.total
        if total_timeout is None:
            total = requester.policy.timeouts.total_for(deadline.idle)
        whole = structs.replace(deadline, total=total, by_caller=False)
        following = TaskPoller(self, task_id, "resume_task", whole, TaskView(on_task))
        params = {"taskId": task_id}
        _, result = await requester.observe(GET, task_id, params, lambda _: following.run(None))
        return result

    async def list(self, cached: CachedReads, timeout: float | None) -> Listing[Task]:
        deadline = self.requester.deadline(LIST, timeout)
        await self.requester.opener.connected(deadline)
        if not (await self.require(deadline)).lists:
            raise StateError(f"{self.requester.name}: the server does not offer {LIST}")
        return await cached.listing(LIST, "tasks", Task, deadline, "bypass")

    async def get(self, task_id: str, timeout: float | None) -> Task:
        """Ask for a task once."""
        form, call = await self._request(task_id, GET, timeout)
        state = form.read(await self.requester.driver.request(call), task_id)
        if isinstance(state, Invalid):
            raise self.requester.broken(call, state.reason)
        return state.task

    async def cancel(self, task_id: str, timeout: float | None) -> None:
        form, call = await self._request(task_id, CANCEL, timeout)
        if not form.cancels:
            raise StateError(f"{self.requester.name}: the server does not offer {CANCEL}")
        await self.requester.driver.request(call)

    async def require(self, deadline: Deadline) -> TaskForm:
        """Connect, over failed attempts too, and return the form of tasks.

        Raises:
            StateError: The server does not offer tasks.
        """
        await self.requester.opener.connected(deadline, persist=True)
        form = self.form()
        if form is None:
            raise StateError(f"{self.requester.name}: the server does not offer tasks")
        return form

    async def _request(
        self, task_id: str, method: str, timeout: float | None
    ) -> tuple[TaskForm, Call]:
        self._check(task_id)
        deadline = self.requester.deadline(method, timeout)
        await self.requester.opener.connected(deadline)
        form = await self.require(deadline)
        params = {"taskId": task_id}
        call = self.requester.call(
            method, params, deadline, about=task_id, repeatable=True, extensions=form.extensions
        )
        return form, call

    def _check(self, task_id: Any) -> None:
        if not isinstance(task_id, str) or not 0 < len(task_id) <= tasks.LONGEST_ID:
            text = f"{visible(repr(task_id), 80)} is not the id of a task; nothing was sent"
            raise ValidationError(f"{self.requester.name}: {text}")
