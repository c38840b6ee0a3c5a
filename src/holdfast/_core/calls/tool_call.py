"""The memory of one tool call, and the steps that its attempts are made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, structs

from holdfast._core.boundary import Call, LinkChanged, WireId
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.options import CallOptions, check_options
from holdfast._core.calls.requester import UNREADABLE
from holdfast._core.calls.tools import CALL, ReadyTool
from holdfast._core.engine import messages
from holdfast._core.eras.base import COMPLETE, FINAL, Invalid, NeedsInput, Reading
from holdfast._core.eras.revisions import MISSING_CAPABILITY
from holdfast._core.observers.observer import hold_arguments
from holdfast.errors import HoldfastError, LoginRequired, RpcError, TransportError
from holdfast.schema.faults import SchemaFault, Unusable
from holdfast.types.base import decode
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.calls.once import OnceCall
    from holdfast._core.calls.pipeline import Pipeline
    from holdfast._core.calls.task_poller import TaskView
    from holdfast._core.driver import Driver
    from holdfast._core.eras.tasks import TaskForm, TaskState
    from holdfast._core.observers.observer import ObservedCall
    from holdfast.types.lifecycle import Progress

_NO_STRUCTURED: Final = (SchemaFault("", "there is no structured result", "required"),)


class ToolCall(Struct, eq=False):
    """One tool call: what its attempts share."""

    pipeline: Pipeline
    """The calls of the client that makes it."""
    driver: Driver
    """The driver that it is sent by."""
    name: str
    """The tool's name."""
    arguments: Mapping[str, Any]
    """The tool's arguments, as the caller gave them."""
    options: CallOptions
    """The caller's options, not checked yet."""
    params: dict[str, Any]
    """The parameters of the request, without answers and task."""
    since: float
    """The time from which its deadline counts, on the loop's clock. It moves when a list that no
    timeout of the caller covers has been read, and when a person has approved the call."""
    begun: float
    """The time at which the present attempt began: ``since``, or the end of a login."""
    view: TaskView | None = None
    """What the caller sees of the task that the call becomes."""
    answers: dict[str, Any] | None = None
    """The answers to a call that was pending, as parameters."""
    takes_task: bool | None = None
    """True: it may become a task. None: only if the server accepts it in no other way."""
    asks_leave: bool = False
    """There is somebody to ask before it is sent: the server about tasks, a person to approve."""
    is_approved: bool = True
    """It needs no approval, or has it."""
    is_restarted: bool = False
    """``since`` has been moved to the end of the first list."""
    deadline: Deadline | None = None
    """The time that the caller's options give it; None: that of the tool, or the policy."""
    meta: Mapping[str, Any] | None = None
    """The entries for ``_meta``: the caller's, and those of observers."""
    sink: Callable[[list[Progress]], None] | None = None
    """The receiver of its progress."""
    observed: ObservedCall | None = None
    """The call as observers see it; None before they are told, or without any."""
    form: TaskForm | None = None
    """The form in which the present attempt may become a task; None: it may not."""
    task: TaskState | Invalid | None = None
    """The task that the server has made of it."""
    request: Call | None = None
    """The request of the present attempt, once it is out: handed to the driver, whose errors know
    whether it was sent."""
    may_have_run: bool = False
    """An earlier attempt may have had an effect."""
    rounds: int = 0
    """The rounds of questions of the server. One that asks has begun."""
    is_answered: bool = False
    """The rounds of questions have come to an answer."""
    is_pending: bool = False
    """The answer is questions for the caller."""
    is_relisted: bool = False
    """The list was read again because of this call; once is enough."""
    once: OnceCall | None = None
    """Its key in the ledger; None: it has none."""
    is_another: bool = False
    """What it ends with is about another call with the same key: nothing of this one was sent."""
    logins: int = 0
    """The logins that it has waited for."""
    refusals: int = 0
    """How often it was turned away for now, over its attempts."""
    wire_id: WireId | None = None
    """The id of its last request; only where a tap looks on, and its result is checked."""

    # Before it is sent

    def read_options(self) -> None:
        """Check the caller's options and apply them."""
        options, requester = self.options, self.pipeline.requester
        check_options(options)
        self.meta = options.get("meta")
        timeout, total = options.get("timeout"), options.get("total_timeout")
        if timeout is not None or total is not None:
            self.deadline = requester.deadline(CALL, timeout, total, self.since, about=self.name)
        self.sink = requester.sink(options.get("on_progress"))
        self.takes_task = self.takes_task or options.get("task")
        self.asks_leave = self.asks_leave or bool(self.takes_task)
        if (key := options.get("once")) is not None:
            from holdfast._core.calls.once import once_call

            self.once = once_call(key, self.arguments, requester.policy.ledger)

    def time(self) -> Deadline:
        """Return the time that it has: the caller's, or else the policy's."""
        if self.deadline is not None:
            return self.deadline
        return self.pipeline.requester.deadline(CALL, since=self.since, about=self.name)

    def _restart_clock(self) -> None:
        """Count the time from now on."""
        self.since = self.begun = self.driver.loop.time()
        if self.deadline is not None:
            self.deadline = structs.replace(self.deadline, since=self.since)

    async def find(self) -> ReadyTool:
        """Return the tool; list the tools first if need be. A slow start costs a given time."""
        tool = await self.pipeline.tools.find(self.name, self.time())
        if not self.is_restarted and self.deadline is None:
            self._restart_clock()
        self.is_restarted = True
        return tool

    def fits(self, tool: ReadyTool) -> bool:
        """Check the arguments. False: they do not fit a definition that may be old.

        Raises:
            ValidationError: The tool is disabled, or the arguments do not fit.
        """
        tools = self.pipeline.tools
        if not tool.settings.enabled:
            raise tools.disabled(self.name)
        if self.once is not None:
            self.once.fill(self, tool)
        if tool.checker is None:
            return True
        try:
            faults = tool.checker.faults(self.arguments)
        except Unusable as error:
            tools.unchecked(self.name, error)
            return True
        if faults and (self.is_relisted or tools.list_is_current):
            raise tools.invalid_arguments(self.name, faults)
        return not faults

    async def list_anew(self) -> None:
        """Read the list of tools again, once for this call."""
        self.is_relisted = True
        await self.pipeline.tools.list_for_call(self.time(), "refresh")

    async def get_leave(self, tool: ReadyTool) -> ReadyTool | None:
        """Find out whether it may become a task, and ask for approval.

        The time that a person takes is not counted, and the tool may change meanwhile.

        Returns:
            The tool; None if a person was asked: then everything is checked once more.
        """
        if self.takes_task or (tool.task == "required" and self.takes_task is None):
            self.form, tool = await self.pipeline.task_form(self.name, tool, self.time())
        if self.is_approved:
            return tool
        requester = self.pipeline.requester
        closed = messages.shut(requester.name, Call(CALL, about=self.name), sent=False)
        async with requester.waits.until_closed(closed):
            await self.pipeline.approver.ask(self.name, self.arguments, tool.tool)
        self.is_approved = True
        self._restart_clock()
        return None

    # Sending

    async def attempt(self, tool: ReadyTool) -> tuple[Raw, ToolResult]:
        """Send it, and answer the server's questions."""
        form, requester = self.form, self.pipeline.requester
        on_sent = self._tell_observers(tool) if requester.observers.all else None
        if self.driver.shows_messages:
            on_sent = self._be_shown(tool, on_sent)
        if form is not None:
            on_sent = self._watch_task(on_sent)
        if self.once is not None:
            on_sent = self.once.watch(on_sent)
        request = self.request = self._make_request(tool)
        try:
            if form is None:
                raw = await self.driver.request(request, self.sink, on_sent)
            else:
                tasks = self.pipeline.tasks
                raw = await tasks.request(request, form, on_sent, on_progress=self.sink)
            result = decode(raw, ToolResult)
            if form is None and result.result_type in FINAL:
                return raw, result
            return await self._answer_questions(request, raw, result, on_sent)
        except UNREADABLE as error:
            raise requester.broken(request, str(error)) from error

    def _make_request(self, tool: ReadyTool) -> Call:
        """Return the request of the present attempt. One deadline holds for all attempts."""
        form, params, place_within = self.form, self.params, None
        idle, total, total_name = self.pipeline.idle, self.pipeline.total, "Timeouts.total"
        if tool.settings.timeout is not None:
            idle = tool.settings.timeout
            total = self.pipeline.timeouts.total_for(idle)
        if self.deadline is not None:
            idle, total, total_name, place_within = self._given_time(self.deadline, idle)
        if form is not None:
            params = form.augment(params)
        if self.answers:
            params = {**params, **self.answers}
        return Call(
            CALL,
            params,
            None if self.meta is None else dict(self.meta),
            idle,
            total - (spent := self.begun - self.since),
            self.name,
            True,
            tool.repeatable and not self.may_have_run,
            self.begun,
            spent,
            total_name,
            place_within,
            tool.epoch,
            None if tool.epoch is None else self.refusals,
            None if tool.headers is None else tool.headers(self.arguments),
            () if form is None else form.extensions,
        )

    def _given_time(
        self, deadline: Deadline, idle: float
    ) -> tuple[float, float, str, float | None]:
        """Return the times that the caller's options give; ``idle`` if they leave it open."""
        by_caller = self.options.get("timeout") is not None
        idle = deadline.idle if by_caller else idle
        return idle, deadline.total, deadline.total_name, idle if by_caller else None

    def _tell_observers(self, tool: ReadyTool) -> Callable[[WireId], None] | None:
        """Tell the observers that the call begins, once; return what wants to know its wire ids."""
        if self.observed is None:
            observers = self.pipeline.requester.observers
            self.observed = observers.begin(CALL, self.name, self.params, tool.tool)
            if self.observed.meta:
                self.meta = {**self.observed.meta, **(self.meta or {})}
        return self.observed.sent

    def _be_shown(
        self, tool: ReadyTool, on_sent: Callable[[WireId], None] | None
    ) -> Callable[[WireId], None] | None:
        """Hide secret arguments where messages or stderr are shown; remember the id for a tap."""
        hold_arguments(None, self.params, tool.tool)
        if self.driver.tap is None or tool.returns is None:
            return on_sent

        def note(wire_id: WireId) -> None:
            self.wire_id = wire_id
            if on_sent is not None:
                on_sent(wire_id)

        return note

    def _watch_task(
        self, on_sent: Callable[[WireId], None] | None
    ) -> Callable[[WireId], None] | None:
        self.view = self.view or self.pipeline.tasks.view(self.options)
        if self.observed is not None:
            self.observed.view = self.view
        return self.view.tracking(on_sent, self.sink, self.pipeline.requester)

    async def _answer_questions(
        self,
        request: Call,
        raw: Raw,
        result: ToolResult,
        on_sent: Callable[[WireId], None] | None,
    ) -> tuple[Raw, ToolResult]:
        """Return the final answer, a task, or the questions that are for the caller."""
        requester = self.pipeline.requester
        while (reading := self._questions(raw, result)) is not None:
            if isinstance(reading, NeedsInput) and requester.inputs.for_caller(reading.requests):
                from holdfast._core.calls.pending import pending_result

                self.is_pending = True
                result = pending_result(self.name, self.arguments, reading)
                break
            self.rounds += 1
            request = await requester.answer(
                request, self.params, reading, self.rounds, self.time()
            )
            raw = await self.driver.request(request, self.sink, on_sent)
            result = decode(raw, ToolResult)
        self.is_answered = True
        return raw, result

    def _questions(self, raw: Raw, result: ToolResult) -> Reading | None:
        """Return what the server wants to know; None if this is its answer, or names a task."""
        if self.form is not None and (task := self.form.created(raw)) is not None:
            self.task = task
            return None
        if result.result_type in FINAL:
            return None
        reading = self.driver.read(CALL, raw)
        return None if reading is COMPLETE else reading

    # After an attempt

    async def recover(self, error: LoginRequired | LinkChanged | RpcError) -> None:
        """Do what an attempt that failed needs before the next; raise what has no remedy."""
        tools = self.pipeline.tools
        if isinstance(error, LoginRequired):
            # Nothing of this attempt has run, unless it repeated a request. A person may log in
            # within the rest of the call's time.
            until = self._until()
            self._leave_attempt(error.outcome_unknown)
            if self.once is not None:
                await self.once.release(self)
            self.logins += 1
            idle = self.time().idle
            await self.pipeline.requester.opener.log_in_again(error, self.logins, until, idle)
            self.begun = self.driver.loop.time()
        elif isinstance(error, LinkChanged):
            # The tool was checked on a link that is gone: check it on this one.
            self._leave_attempt(error.may_have_run)
            self.refusals = error.refusals
            tools.forget()
        elif self.takes_task is None and self._requires_task(error):
            # Nothing has run: the server can only do this as a task.
            self._leave_attempt(False)
            self.takes_task = self.asks_leave = True
        elif not self.is_relisted and tools.headers_changed(error):
            self._leave_attempt(False)
            await self.list_anew()
        else:
            raise error

    def _until(self) -> float:
        """Return the end of its whole time, on the loop's clock."""
        assert self.request is not None
        return self.begun + self.request.total

    def _leave_attempt(self, may_have_run: bool) -> None:
        """Begin anew; remember whether the attempt that ends here may have had an effect."""
        self.request = None
        self.may_have_run = self.may_have_run or may_have_run or self.rounds > 0

    def _requires_task(self, error: RpcError) -> bool:
        return error.code == MISSING_CAPABILITY and self.pipeline.tasks.required_by(error)

    async def follow_task(self) -> tuple[Raw, ToolResult]:
        """Poll the task that it has become to its end, over reconnects and restarts."""
        assert self.task is not None
        assert self.view is not None
        assert self.request is not None
        total = self.pipeline.timeouts.total_for(self.request.idle)
        if self.deadline is not None and self.options.get("total_timeout") is not None:
            total = self.deadline.total
        tasks = self.pipeline.tasks
        raw, result = await tasks.follow_call(self.task, self.request, total, self.view)
        if self.once is not None:
            await self.once.finish_task(raw)
        return raw, result

    def check_result(self, tool: ReadyTool, raw: Raw, result: ToolResult) -> None:
        """Check a structured result; warn, or raise where that is asked for."""
        tools, content = self.pipeline.tools, result.structured_content
        assert tool.returns is not None
        try:
            faults = _NO_STRUCTURED if content is UNSET else tool.returns.faults(content, raw)
        except Unusable as error:
            tools.unchecked_result(self.name, error)
            return
        if faults:
            hold_arguments(None, self.params, tool.tool)
            if self.driver.tap is not None:
                self.driver.show_faults(
                    self.wire_id, [(fault.path, str(fault.message)) for fault in faults]
                )
            tools.report_invalid_result(self.name, result, faults)

    # The end

    def fail(self, error: BaseException) -> BaseException:
        """Return the error that ends it, which says whether the call may have run.

        The only place that decides it: errors of lists, logins and connections know only about
        their own request. The last attempt's own error knows, once it is out.
        """
        requester = self.pipeline.requester
        has_asked = self.rounds > 0 and not self.is_answered
        if self.is_another:
            pass  # it says what is known of the other one
        elif self.task is None and isinstance(error, HoldfastError):
            # A server that asks has begun: an error of ours leaves open what it has done.
            ran = self.may_have_run or (has_asked and not isinstance(error, RpcError))
            if ran or self.request is None:
                about = Call(CALL, about=self.name)
                error = messages.with_outcome(error, about, may_have_run=ran)
        elif self.task is None and isinstance(error, asyncio.CancelledError):
            began = has_asked or self.may_have_run
            if began or self.request is None:
                # Cancelled while listing, or while the application answered a question.
                about = Call(CALL, about=self.name)
                error.__cause__ = messages.cancelled(requester.name, about, sent=began)
        if isinstance(error, TransportError):
            # Over HTTP this may be the only sign that the server was lost or replaced.
            self.pipeline.tools.disconnected()
        tool = self.pipeline.tools.tools.get(self.name)
        if isinstance(error, HoldfastError):
            hold_arguments(error, self.params, tool)
        if requester.observers.all:
            if self.observed is None:
                self.observed = requester.observers.begin(
                    CALL, self.name, self.params, tool, refused=True
                )
            self.observed.end(error=error)
        return error
