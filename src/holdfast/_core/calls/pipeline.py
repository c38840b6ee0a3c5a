"""One tool call, from its arguments to its checked result, as one straight line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, structs

from holdfast._core.boundary import Call, LinkChanged, WireId
from holdfast._core.calls.cached import Cached
from holdfast._core.calls.channel import UNREADABLE, Channel
from holdfast._core.calls.handlers import Approver
from holdfast._core.calls.options import CallOptions, Deadline, check_options, of_type
from holdfast._core.calls.running import PendingCall, answered, pending_result
from holdfast._core.calls.tools import CALL, ReadyTool, ToolTable
from holdfast._core.engine import messages
from holdfast._core.eras.base import COMPLETE, FINAL, NeedsInput
from holdfast._core.eras.revisions import MISSING_CAPABILITY, TASKS
from holdfast.errors import HoldfastError, LoginRequired, RpcError, TransportError
from holdfast.schema.explain import SchemaFault, Unusable
from holdfast.types.base import decode
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.calls.following import TaskView
    from holdfast._core.calls.tasks import Tasks
    from holdfast._core.eras.tasks import TaskForm

_NO_STRUCTURED: Final = (SchemaFault("", "there is no structured result", "required"),)


class Pipeline:
    """The tool calls of one client."""

    def __init__(self, channel: Channel, tools: ToolTable, cached: Cached) -> None:
        self._channel = channel
        self._tools = tools
        self._cached = cached
        self._approval = Approver(channel.name, channel.policy.tools, channel.inputs.approval)
        self._idle = channel.policy.timeouts.for_method(CALL)
        self._total = channel.policy.timeouts.total
        named = frozenset(channel.policy.cache.invalidate_on)
        self._invalidates: Collection[str] = named or ()  # an empty set takes 216 bytes
        declared = channel.policy.identity.capabilities.get("extensions")
        self._takes_tasks = True if isinstance(declared, dict) and TASKS in declared else None

    async def call_tool(  # noqa: PLR0912, PLR0915  (one order, seen in one place)
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        options: CallOptions,
        view: TaskView | None = None,
        answers: dict[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool and return its result. ``answers`` are those to a call that was pending.

        Find the tool, check the arguments, ask for approval, notify the observers, send, answer
        the server's questions and send again, check the result, notify the observers, return. The
        loop returns to the check if the link changed before the call was sent, or if the tool did.
        """
        if type(name) is not str:
            of_type("name", name)
        channel, tools, inputs = self._channel, self._tools, self._channel.inputs
        driver = channel.started
        if driver is None or driver.loop is not asyncio.get_running_loop():
            driver = channel.driver
        observers, since = channel.observers.all, driver.loop.time()
        begun = entered = since
        given: Mapping[str, Any] = {} if arguments is None else arguments
        params: dict[str, Any] = {"name": name, "arguments": given}
        deadline = meta = sink = watch = call = None
        on_sent: Callable[[WireId], None] | None
        rounds, logins, may_have_run, relisted, pending = 0, 0, False, False, False
        sending, refusals = False, 0
        approved = not self._approval.wanted
        form, task, takes_task = None, None, self._takes_tasks
        try:
            if options:
                check_options(options)
                meta, timeout = options.get("meta"), options.get("timeout")
                deadline = channel.deadline(CALL, timeout, options.get("total_timeout"))
                sink = channel.sink(options.get("on_progress"))
                takes_task = takes_task or options.get("task")
            elif channel.progress_handlers:
                sink = channel.sink(None)

            while True:
                # Find the tool and check the arguments.
                sending = False
                tool = tools.ready.get(name)
                if tool is None:
                    tool = await tools.find(name, deadline or channel.deadline(CALL, since=since))
                    if since == entered and (deadline is None or not deadline.given):
                        since = begun = driver.loop.time()
                if not tool.own["_enabled"]:
                    raise tools.disabled(name)
                if tool.checker is not None:
                    try:
                        faults = tool.checker.faults(given)
                    except Unusable as error:
                        if (refusal := tools.unchecked(name, error)) is not None:
                            raise refusal from None
                        faults = ()
                    if faults:
                        if relisted or tools.is_certain:
                            raise tools.invalid_arguments(name, faults)
                        relisted = True
                        await tools.list("refresh", deadline or channel.deadline(CALL, since=since))
                        continue

                # Find out whether it may, or must, become a task.
                if takes_task or (tool.task == "required" and takes_task is None):
                    left = deadline or channel.deadline(CALL, since=since)
                    form, tool = await self._task_form(name, tool, left)

                # Ask for approval. The time that a person takes is not counted.
                if not approved:
                    closed = messages.shut(channel.name, Call(CALL, about=name), sent=False)
                    async with channel.until_closed(closed):
                        await self._approval.ask(name, given, tool.tool)
                    approved = True
                    since = begun = driver.loop.time()
                    if deadline is not None:
                        deadline = structs.replace(deadline, since=since)
                    continue

                # Notify the observers.
                on_sent = None
                if observers and watch is None:
                    watch = channel.observers.begin(CALL, name, params, tool.tool)
                    if watch.meta:
                        meta = {**watch.meta, **(meta or {})}

                if watch is not None:
                    on_sent = watch.sent
                if form is not None:
                    view = view or self.tasks.view(options)
                    on_sent = view.tracking(on_sent, sink, channel)
                    if watch is not None:
                        watch.view = view

                # Send. One deadline holds for all of it, connecting and listing included.
                if deadline is None:
                    idle = tool.own["_timeout"] or self._idle
                    total = self._total if self._total > idle else idle
                else:
                    idle, total = deadline.idle, deadline.total
                sent = params if form is None else form.augment(params)
                call = Call(
                    CALL,
                    {**sent, **answers} if answers else sent,
                    None if meta is None else dict(meta),
                    idle=idle,
                    total=total - (begun - since),
                    since=begun,
                    about=name,
                    progress=True,
                    repeatable=tool.repeatable and not may_have_run,
                    param_headers=None if tool.headers is None else tool.headers(given),
                    extensions=() if form is None else form.extensions,
                    epoch=tool.epoch,
                    refusals=None if tool.epoch is None else refusals,
                )
                sending = True
                try:
                    if form is None:
                        raw = await driver.request(call, on_progress=sink, on_sent=on_sent)
                    else:
                        raw = await self.tasks.request(call, form, on_sent, on_progress=sink)
                    result = decode(raw, ToolResult)

                    # Answer the server's questions, and send again.
                    while True:
                        if form is not None and (task := form.created(raw)) is not None:
                            break
                        if result.result_type in FINAL:
                            break
                        reading = driver.engine.link.era.read(CALL, raw)  # type: ignore[union-attr]
                        if reading is COMPLETE:
                            break
                        if isinstance(reading, NeedsInput) and inputs.for_caller(reading.requests):
                            result, pending = pending_result(name, given, reading), True
                            break
                        rounds += 1
                        left = deadline or channel.deadline(CALL, since=since)
                        call = await channel.answer(call, params, reading, rounds, left)
                        raw = await driver.request(call, on_progress=sink, on_sent=on_sent)
                        result = decode(raw, ToolResult)
                    break
                except UNREADABLE as error:
                    raise channel.broken(call, str(error)) from error
                except LoginRequired as error:
                    # Nothing has run, unless this repeats a call. A person may log in within the
                    # rest of the call's time.
                    may_have_run = may_have_run or error.outcome_unknown
                    sending = False
                    logins += 1
                    until = since + total
                    await channel.logins.recover(error, logins, until)
                    driver.retry_now()
                    begun = driver.loop.time()
                except LinkChanged as error:
                    # The tool was checked on a link that is gone: check it on this one.
                    may_have_run = may_have_run or error.outcome_unknown or rounds > 0
                    refusals = error.refusals
                    tools.forget()
                except RpcError as error:
                    if takes_task is None and self._requires_task(error):
                        # Nothing has run: the server can only do this as a task.
                        takes_task = True
                        continue
                    if relisted or not tools.headers_changed(error):
                        raise
                    relisted, sending = True, False
                    await tools.list("refresh", deadline or channel.deadline(CALL, since=since))

            rounds = 0  # It is answered.

            # A task is followed to its end, over reconnects and restarts.
            if task is not None and view is not None:
                time = max(self._total, call.idle)
                if deadline is not None and options.get("total_timeout") is not None:
                    time = deadline.total
                raw, result = await self.tasks.follow_call(task, call, time, view)

            # Check the result.
            if tool.returns is not None and not result.is_error and not pending:
                content = result.structured_content
                try:
                    faults = (
                        _NO_STRUCTURED if content is UNSET else tool.returns.faults(content, raw)
                    )
                except Unusable as error:
                    faults = tools.unchecked_result(name, error)
                if faults:
                    tools.report_invalid_result(name, result, faults)
        except BaseException as error:
            if isinstance(error, HoldfastError) and task is None:
                # A server that asks has begun: an error of ours leaves open what it has done.
                may_have_run = may_have_run or (rounds > 0 and not isinstance(error, RpcError))
                if may_have_run or not sending:
                    if error.outcome_unknown and not may_have_run:
                        # It is the list of tools that may have been read.
                        error.message = f"{error.message}; {CALL} {name!r} was not sent"
                    error.outcome_unknown = may_have_run
            began = rounds > 0 or may_have_run
            unsettled = task is None and (began or not sending)
            if isinstance(error, asyncio.CancelledError) and unsettled:
                # Cancelled while listing, or while the application answered a question.
                about = Call(CALL, about=name)
                error.__cause__ = messages.cancelled(channel.name, about, sent=began)
            if isinstance(error, TransportError):
                # Over HTTP this may be the only sign that the server was lost or replaced.
                tools.disconnected()
            if observers:
                if watch is None:
                    known = tools.tools.get(name)
                    watch = channel.observers.begin(CALL, name, params, known, refused=True)
                watch.end(error=error)
            raise
        finally:
            if view is not None:
                view.end(channel)
            self._cached.writes += 1
            if name in self._invalidates:
                self._cached.cache.invalidate()

        if watch is not None:
            watch.end(raw, result)
        return result

    async def resume(
        self, pending: PendingCall, answers: Mapping[str, Any], options: CallOptions
    ) -> ToolResult:
        """Go on with a call that waited for its caller's answers."""
        of_type("pending", pending, PendingCall, "a PendingCall")
        given = answered(self._channel.name, pending, answers)
        return await self.call_tool(pending.tool, pending.arguments, options, answers=given)

    @cached_property
    def tasks(self) -> Tasks:
        """The calls that servers have made tasks of."""
        from holdfast._core.calls.tasks import Tasks

        return Tasks(self._channel)

    def _requires_task(self, error: RpcError) -> bool:
        return error.code == MISSING_CAPABILITY and self.tasks.required_by(error)

    async def _task_form(
        self, name: str, tool: ReadyTool, deadline: Deadline
    ) -> tuple[TaskForm | None, ReadyTool]:
        """Return how this call may become a task, if it may; list its tool where that decides."""
        await self._channel.connected(deadline)
        form = self.tasks.form()
        if form is None or not form.core:
            return form, tool
        if tool.tool is None:
            await self._tools.list(None, deadline)
            tool = await self._tools.find(name, deadline)
        # 2025-11-25 basic/utilities/tasks, Tool-Level Negotiation.
        return (form if tool.task in ("required", "optional") else None), tool
