"""The tasks of one host: whose they are, and how they pass between two eras."""

# In 2025-11-25 the host says which call becomes a task, and gets its result by ``tasks/result``,
# which waits; questions are requests meanwhile. In the extension of 2026-07-28 the server says it,
# and a poll has the result, or the questions. Ids are always the server's own: they outlive this
# process as they outlive the host.
#
# | host | server | a call | a poll | the result | questions |
# |---|---|---|---|---|---|
# | core | extension | declared for a call that asks for a task; one that the server answers at once
#   is a task that has ended (`KeptTasks`) | passed | polled for | asked by requests |
# | extension | core | asks for a task where the tool allows it | passed | fetched with the poll
#   that says "ended" | shown by polls (`AskingTasks`) |
# | of neither | either | asks for a task only where the tool can do nothing else; polled here, and
#   answered with the result | | | as of any call |
#
# A server sees one client. A task is of the host that it was named to; another host that is there
# at the same time is told that it does not exist. When the host is gone its tasks are for whoever
# brings the id, which nobody can guess: a host that comes back is another one to the relay.

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.boundary import Call
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.task_poller import TaskPoller, TaskView
from holdfast._core.calls.tasks import Tasks
from holdfast._core.eras import tasks as wire
from holdfast._core.eras.base import Invalid
from holdfast._core.eras.serving import Json
from holdfast._core.eras.tasks import LONGEST_ID, TaskForm, TaskState
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RequestError,
)
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.errors import HoldfastError, RpcError
from holdfast.relay.envelope import broken, fields_of, items_of, may_be_asked, passing_meta
from holdfast.relay.tasks.core import CorePolls, Poll, as_core
from holdfast.relay.tasks.extension import ExtensionPolls
from holdfast.relay.tasks.shapes import created
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast.relay.passing import Relay

MOST_NAMED: Final = 10_000
"""Tasks of a host that are known to be its own."""
MOST_REQUIRING: Final = 1_000
"""Tools that are remembered to need a task."""
STATUS: Final = "notifications/tasks/status"
CHANGED: Final = "notifications/tasks"


class HostTasks:
    """The tasks of the host of a relay.

    Args:
        relay: Of the host.
        is_offered: Tasks are promised to the host, if the server has any.
    """

    def __init__(self, relay: Relay, *, is_offered: bool = True) -> None:
        self.relay = relay
        self._is_offered = is_offered
        self._shared = relay.shared
        self._client = relay.shared.client
        self._named: dict[str, Json] = {}
        """The tasks that the host was named, and what it could do then, the latest last."""
        self._driven: set[str] = set()
        """Those that are polled here, for a call without a task."""
        self._views: dict[str, TaskView] = {}
        """What has the tokens under which tasks report progress."""
        self._requiring: set[str] = set()
        """Tools of a server of the extension that can only be called as tasks."""
        self._core = CorePolls(self)
        self._extension = ExtensionPolls(self)
        self._facts: object = None
        self._form: TaskForm | None = None

    def __repr__(self) -> str:
        return f"<HostTasks {len(self._named)} named {self._core!r} {self._extension!r}>"

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._named or task_id in self._driven

    @property
    def upstream(self) -> Tasks:
        """The tasks of the client."""
        return self._client._pipeline.tasks

    @property
    def form(self) -> TaskForm | None:
        """How the server does tasks; None: it does not."""
        driver = self._client._requester.opener.started
        facts = None if driver is None else driver.engine.facts
        if facts is not self._facts:
            self._facts, self._form = facts, self.upstream.form()
        return self._form

    def close(self) -> None:
        """End what is done for the host here. Its tasks go on at the server."""
        self._core.close()
        self._extension.asking.close()
        for view in self._views.values():
            view.end(self._client._requester)
        self._views.clear()
        self._named.clear()

    # Calls

    def concern(self, request: ServerRequest) -> bool:
        """Return whether a request is about tasks, may become one, or can only be made as one."""
        if request.method != "tools/call":
            return request.method.startswith("tasks/")
        form = self.form
        if form is None:
            return False
        if request.stateless:
            return form.core or request.era.takes_task({})
        if "task" in request.fields:
            return True
        if form.core:
            return not (self._is_offered and _has_core_tasks(request))
        return bool(self._requiring) and request.get("name") in self._requiring

    def is_required(self, request: ServerRequest, error: object) -> bool:
        """Return whether a server of the extension refused a call because it has to be a task.

        A host of its era that was promised tasks should declare them itself.
        """
        if not isinstance(error, RpcError) or not self.upstream.required_by(error):
            return False
        if request.stateless and self._is_offered:
            return False
        name = request.get("name")
        if request.method != "tools/call" or self.form is None or not isinstance(name, str):
            return False
        if len(self._requiring) < MOST_REQUIRING:
            self._requiring.add(name)
        return True

    async def call(self, request: ServerRequest) -> Raw:
        """Call a tool; the result may be a task, in the form of the host."""
        form = self.form
        if form is None:
            return await self.relay.forward(request)
        is_task_wanted = request.era.takes_task({"task": request.get("task")})
        is_same = request.stateless is not form.core
        if is_task_wanted and is_same:
            return await self._call_same(request, form)
        if is_same and self._is_offered and _has_core_tasks(request):
            return await self.relay.forward(request)  # it does not want a task
        if form.core:
            return await self._call_core(request, form, is_task_wanted)
        return await self._call_extension(request, form, is_task_wanted)

    async def _call_extension(
        self, request: ServerRequest, form: TaskForm, is_task_wanted: bool
    ) -> Raw:
        """Call a tool of a server with the extension for a host that has no tasks of that form."""
        if is_task_wanted:
            with self._core.results.place():
                return await self._create(request, form, is_task_wanted)
        if request.get("name") not in self._requiring:
            try:
                return await self.relay.forward(request)
            except RpcError as error:
                if not self.is_required(request, error):
                    raise
        return await self._create(request, form, is_task_wanted)

    async def _call_same(self, request: ServerRequest, form: TaskForm) -> Raw:
        """Pass a call of a host that has tasks as the server has them."""
        view = TaskView()
        sink = self._progress_of(request) if form.core else None
        sent = view.tracking(None, sink, self._client._requester)
        is_named = False
        try:
            result = await self.relay.forward(request, on_sent=sent)
            state = form.created(result)
            if isinstance(state, TaskState):
                self.name(state.task.task_id, request)
                is_named = True
                if sink is not None:
                    self._views[state.task.task_id] = view
            return result
        finally:
            if not is_named:
                view.end(self._client._requester)

    def _progress_of(self, request: ServerRequest) -> Callable[[list[Progress]], None] | None:
        if "progressToken" not in request.meta:
            return None

        def sink(reports: list[Progress]) -> None:
            for progress in reports:
                self.relay.report(request, progress)

        return sink

    async def _call_core(self, request: ServerRequest, form: TaskForm, is_task_wanted: bool) -> Raw:
        """Call a tool of a handshake server for a host that has no tasks of that form."""
        name = request.get("name")
        support = "" if not isinstance(name, str) else await self._support(name)
        if support == "required" or (support == "optional" and is_task_wanted):
            return await self._create(request, form, is_task_wanted)
        return await self.relay.forward(request, fields=_without_wish(request))

    async def _support(self, name: str) -> str:
        """Return whether a tool may be called as a task: that is in the list alone."""
        deadline = self._client._requester.deadline("tools/call")
        table = self._client._tools
        try:
            tool = await table.find(name, deadline)
            if tool.tool is None and await table.list_for_call(deadline):
                tool = await table.find(name, deadline)
        except HoldfastError:
            return ""  # the call itself says what is wrong
        return tool.task

    async def _create(self, request: ServerRequest, form: TaskForm, is_task_wanted: bool) -> Raw:
        """Call a tool as a task; name it to a host that takes one, or poll it."""
        view = TaskView(meta=self.relay.hop(request))
        sink = None if is_task_wanted else self._progress_of(request)
        total = self.relay.time_for("tools/call")
        began = asyncio.get_running_loop().time()
        try:
            result = await self.relay.forward(
                request,
                fields=form.augment(_without_wish(request)),
                extensions=form.extensions,
                on_sent=view.tracking(None, sink, self._client._requester),
            )
            state = form.created(result)
            if state is None:
                return self._ended(request, result) if is_task_wanted and not form.core else result
            if isinstance(state, Invalid):
                raise self.broken("tools/call", state)
            if is_task_wanted:
                self.name(state.task.task_id, request)
                return created(result, state, form)
            deadline = self.deadline(max(0.001, began + total - asyncio.get_running_loop().time()))
            return await self._drive(request, state, deadline, view)
        finally:
            view.end(self._client._requester)

    def _ended(self, request: ServerRequest, result: Raw) -> Raw:
        """Return the task of a call that the server has answered at once."""
        return Raw(encode({"task": self._core.results.keep(result, request.get("task"))}))

    async def _drive(
        self, request: ServerRequest, state: TaskState, deadline: Deadline, view: TaskView
    ) -> Raw:
        """Poll a task for a call without one. It ends with the call, and its server is told."""
        task_id = state.task.task_id
        self._check_owner(task_id, is_new=True)
        self._driven.add(task_id)
        self._shared.begin_call(self.relay)
        try:
            subject = f"tools/call {request.get('name')!r}"
            poller = TaskPoller(self.upstream, task_id, subject, deadline, view)
            return (await poller.run(state))[0]
        finally:
            self.relay.open_calls -= 1
            self._driven.discard(task_id)

    def deadline(self, total: float) -> Deadline:
        idle = self._client._policy.timeouts.for_method("tasks/get")
        return Deadline(idle, total, asyncio.get_running_loop().time())

    # Whose it is

    def name(self, task_id: str, request: ServerRequest) -> None:
        """Note that the host knows a task."""
        self._check_owner(task_id, is_new=True)
        self._named.pop(task_id, None)
        self._named[task_id] = (request.era if request.stateless else self.relay).capabilities or {}
        if len(self._named) > MOST_NAMED:
            self._forget(next(iter(self._named)))

    def _forget(self, task_id: str) -> None:
        self._named.pop(task_id, None)
        self.end(task_id)

    def end(self, task_id: str) -> None:
        """Drop what is needed of a task only while it runs."""
        self._extension.asking.forget(task_id)
        view = self._views.pop(task_id, None)
        if view is not None:
            view.end(self._client._requester)

    def _check_owner(self, task_id: str, *, is_new: bool = False) -> None:
        owner = self._shared.task_owner(task_id)
        if owner is None or owner is self.relay:
            return
        if is_new:
            raise broken("the server named a task that it has named to another host")
        raise RequestError(INVALID_PARAMS, f"task not found: {task_id!r}")

    # Requests about tasks

    async def handle(self, request: ServerRequest) -> Raw:
        """Answer a request of the host about tasks.

        Raises:
            RequestError: The host may not ask this, or there is no such task.
        """
        form = self.form
        is_same = request.stateless is self._shared.is_stateless
        if request.method == "tasks/list" and is_same:
            return self._listed(await self.relay.forward(request))
        if not is_same:
            self._check_other_era(request, form)
        task_id = _task_id(request)
        self._check_owner(task_id)
        if is_same:
            return await self._pass_same(request, task_id, form)
        assert form is not None
        return await self._handlers(form)[request.method](request, task_id, form)

    def _handlers(self, form: TaskForm) -> dict[str, Poll]:
        """Return what answers requests about the tasks of a server with this form."""
        return (self._extension if form.core else self._core).handlers

    def _check_other_era(self, request: ServerRequest, form: TaskForm | None) -> None:
        request.era.require_tasks()
        if form is None:
            text = f"{request.method}: the server behind this relay offers no tasks"
            raise RequestError(METHOD_NOT_FOUND, text)
        if not _has_core_tasks(request):
            text = f"{request.method}: there are no tasks in {request.era.version}"
            raise RequestError(METHOD_NOT_FOUND, text)
        if request.method not in self._handlers(form):
            text = (
                f"{request.method}: the tasks of the server behind this relay have no such method"
            )
            raise RequestError(METHOD_NOT_FOUND, text)

    async def _pass_same(self, request: ServerRequest, task_id: str, form: TaskForm | None) -> Raw:
        result = await self.relay.forward(request)
        state = (
            None if form is None or request.method != "tasks/get" else form.read(result, task_id)
        )
        if isinstance(state, TaskState):
            self._note(request, state)
        elif request.method == "tasks/result":
            self.end(task_id)
        return result

    def _note(self, request: ServerRequest, state: TaskState) -> None:
        self.name(state.task.task_id, request)
        if state.task.done:
            self.end(state.task.task_id)

    def _listed(self, page: Raw) -> Raw:
        """Return a page of tasks without those of other hosts."""
        if len(self._shared.hosts) < 2:
            return page
        try:
            fields: dict[str, Any] = dict(fields_of.decode(page))
            tasks = items_of.decode(fields["tasks"])
            ids = [msgspec.json.decode(fields_of.decode(task)["taskId"]) for task in tasks]
        except (*MALFORMED, KeyError):
            raise RequestError(INTERNAL_ERROR, "the server's list of tasks is malformed") from None
        owners = [self._shared.task_owner(task_id) for task_id in ids]
        mine = [
            task
            for task, owner in zip(tasks, owners, strict=True)
            if owner is None or owner is self.relay
        ]
        return Raw(encode({**fields, "tasks": mine}))

    async def send(self, request: ServerRequest, method: str, task_id: str, form: TaskForm) -> Raw:
        """Ask the server about a task; doing so twice does no harm."""
        span = self.relay.time_for(method)
        call = Call(
            method,
            {"taskId": task_id},
            {**passing_meta(request), **self.relay.hop(request)} or None,
            idle=span,
            total=span,
            about=task_id,
            since=asyncio.get_running_loop().time(),
            place_within=span,
            extensions=form.extensions,
            repeatable=True,
        )
        return await self._client._requester.forward(call, passes_questions=True)

    async def get(
        self, request: ServerRequest, task_id: str, form: TaskForm
    ) -> tuple[Raw, TaskState]:
        """Poll a task."""
        try:
            answer = await self.send(request, "tasks/get", task_id, form)
        except RpcError as error:
            if error.code == INVALID_PARAMS:
                self._forget(task_id)
            raise
        state = form.read(answer, task_id)
        if isinstance(state, Invalid):
            raise self.broken("tasks/get", state)
        self.name(task_id, request)
        return answer, state

    def broken(self, method: str, invalid: Invalid) -> RequestError:
        return broken(f"{method}: the server's answer breaks the protocol: {invalid.reason}")

    # From the server

    async def ask(self, task_id: str, method: str, params: Raw) -> Raw:
        """Ask a stateless host what a task asks.

        Raises:
            RpcError: It cannot be asked.
        """
        if not may_be_asked(method, self._named[task_id]):
            raise RpcError(f"the client does not offer {method}", code=METHOD_NOT_FOUND)
        return await self._extension.asking.ask(task_id, method, params)

    def is_named(self, task_id: str | None) -> bool:
        """Return whether the host knows a task, and follows it itself."""
        return task_id in self._named

    def status(self, method: str, params: Raw, *, in_core: bool) -> tuple[str, Raw] | None:
        """Return what the host is told of a task that has changed; None: nothing.

        Args:
            method: The server's notification.
            params: Its parameters.
            in_core: The host has tasks in the core of its revision.
        """
        form, task_id = self.form, wire.changed(params)
        if form is None or task_id is None or not in_core:
            return None
        owner = self._shared.task_owner(task_id)
        if owner is not self.relay and (owner is not None or len(self._shared.hosts) > 1):
            return None
        if form.core:
            return method, params
        state = form.read(params, task_id)
        return None if isinstance(state, Invalid) else (STATUS, as_core(params, state, form))


def _has_core_tasks(request: ServerRequest) -> bool:
    """Return whether the host's revision has tasks in its core, or as an extension."""
    return request.era.knows("initialize", "tasks")


def _without_wish(request: ServerRequest) -> Json:
    """Return the parameters of a call without the wish for a task: a server may not expect it."""
    return {name: value for name, value in request.fields.items() if name != "task"}


def _task_id(request: ServerRequest) -> str:
    task_id = request.get("taskId")
    if not isinstance(task_id, str):
        raise RequestError(INVALID_PARAMS, "taskId must be a string")
    if not 0 < len(task_id) <= LONGEST_ID:
        text = f"task not found: an id has 1 to {LONGEST_ID} characters, not {len(task_id)}"
        raise RequestError(INVALID_PARAMS, text)
    return task_id
