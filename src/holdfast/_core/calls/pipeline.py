"""One tool call, from its arguments to its checked result."""

# A call is a sequence of attempts that share a memory
# -----------------------------------------------------
#
# An attempt finds the tool, checks the arguments, gets leave (from the server to make a task of
# it, from a person to make it at all) and sends. Most calls are one attempt. A call begins anew
#
#   - if the arguments do not fit a definition that may be old: the list is read again, once;
#   - when a person has approved it: that took minutes, and the tool may have changed meanwhile;
#   - after a login that the server, or the authorization server, asked for;
#   - if the link changed on which a guard had seen the tool: what was checked there was another
#     program's promise, perhaps;
#   - if the server can do it only as a task, or refused the headers that repeat its arguments.
#
# The order of these steps is `Pipeline.call_tool`, in one place. Whatever an attempt leaves
# behind for the next one is a field of `ToolCall`, with a sentence each, so that every step can be
# read, and tested, as a function of that value.
#
# The invariant: whether the call may have run
# --------------------------------------------
#
# A caller who gets an error wants to know one thing: may I make the call again? The answer is
# ``error.outcome_unknown``, and it must never be False for a call that may have had an effect.
# Three different things are known about that, at three places:
#
#   - The driver knows it of *one request*: whether a byte of it had left. While an attempt is out
#     (``request``), its error is right by itself.
#   - Before that, errors are about other requests: a list that timed out "may have run", but the
#     call was not sent. The error then says so.
#   - Over attempts nothing but the memory knows: a second attempt that was never sent does not
#     undo a first one that was (``may_have_run``), and a server that asks a question has begun
#     (``rounds``), even if our answer to it never left.
#
# `ToolCall.fail` puts the three together and is the only place that does: there is one way out of
# the `try` below with an error. A step that may leave an effect behind goes through
# `ToolCall._leave_attempt`, so there is one way from an attempt to the next as well.
#
# The same memory decides ``repeatable``: the driver repeats a request over a lost link if the
# tool is annotated as idempotent, but not if an earlier attempt asked questions, since the person
# would answer them for a second run.
#
# Time
# ----
#
# One deadline holds for all attempts, with connecting and listing, if the caller gave a timeout.
# If not, a slow start is not the fault of this call: the clock (``since``) starts again once the
# tool is found. A login is within the call's whole time, but not within its silence (``begun``).
# An approval is in neither: a person thinks as long as a person does.
#
# Why not otherwise
# -----------------
#
# It was one coroutine with thirteen flags among its locals: the order was plain, but who resets
# which flag was not. A state machine in a table (as the engine has) hides the order, which is
# straight here except for ``continue``. A chain of middlewares (find, check, approve, retry, …)
# would make the retry a loop around half of the chain, and each layer would guess from errors
# what the others had done.

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast._core.boundary import LinkChanged
from holdfast._core.calls.cached_reads import CachedReads
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.handlers import Approver
from holdfast._core.calls.options import CallOptions, require_type
from holdfast._core.calls.requester import Requester
from holdfast._core.calls.tool_call import ToolCall
from holdfast._core.calls.tools import CALL, ReadyTool, ToolTable
from holdfast._core.eras.revisions import TASKS
from holdfast._core.observers.observer import hold_arguments
from holdfast.errors import LoginRequired, RpcError
from holdfast.policies import Timeouts
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.calls.once import KeyScope
    from holdfast._core.calls.pending import PendingCall
    from holdfast._core.calls.task_poller import TaskView
    from holdfast._core.calls.tasks import Tasks
    from holdfast._core.eras.tasks import TaskForm


class Pipeline:
    """The tool calls of one client."""

    def __init__(self, requester: Requester, tools: ToolTable, cached: CachedReads) -> None:
        self.requester = requester
        self.tools = tools
        self._cached = cached
        policy = requester.policy
        self.approver = Approver(requester.name, policy.tools, requester.inputs.approval)
        self.timeouts: Timeouts = policy.timeouts
        self.idle: float = self.timeouts.for_method(CALL)
        self.total: float = self.timeouts.total_for(self.idle)
        invalidating = frozenset(policy.cache.invalidate_on)
        self._invalidating: Collection[str] = invalidating or ()  # an empty set takes 216 bytes
        declared = policy.identity.capabilities.get("extensions")
        self._takes_tasks = True if isinstance(declared, dict) and TASKS in declared else None
        self._asks_leave = bool(self._takes_tasks) or self.approver.wanted
        self.key_scope: KeyScope | None = None
        """Whose keys in a ledger are whose; made by the first call with a key."""

    async def call_tool(  # noqa: PLR0912  (one order, seen in one place)
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        options: CallOptions,
        view: TaskView | None = None,
        answers: dict[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool and return its result. ``answers`` are those to a call that was pending.

        An attempt finds the tool, checks the arguments, gets leave and sends. It begins anew if
        the tool or the link changed before anything ran, and after a login.
        """
        if type(name) is not str:
            require_type("name", name)
        requester, ready = self.requester, self.tools.ready
        driver = requester.opener.started
        if driver is None or driver.loop is not asyncio.get_running_loop():
            driver = requester.driver
        if arguments is None:
            arguments = {}
        params, now = {"name": name, "arguments": arguments}, driver.loop.time()
        call = ToolCall(
            self,
            driver,
            name,
            arguments,
            options,
            params,
            now,
            now,
            view,
            answers,
            self._takes_tasks,
            self._asks_leave,
            not self.approver.wanted,
        )
        self._cached.begun_calls += 1
        try:
            if options or requester.progress_handlers:
                call.read_options()
            while True:
                tool = ready.get(name) or await call.find()
                if not call.fits(tool):
                    await call.list_anew()
                    continue
                if call.asks_leave or tool.task:
                    allowed = await call.get_leave(tool)
                    if allowed is None:
                        continue
                    tool = allowed
                # A call with a key is claimed by `once`, or its outcome is known there: after the
                # leave, since nothing may be claimed that is not allowed.
                try:
                    raw, result = await (
                        call.attempt(tool) if call.once is None else call.once.send(call, tool)
                    )
                    break
                except (LoginRequired, LinkChanged, RpcError) as error:
                    await call.recover(error)
            if call.task is not None:
                raw, result = await call.follow_task()
            if tool.returns is not None and not result.is_error and not call.is_pending:
                call.check_result(tool, raw, result)
        except BaseException as error:
            error = call.fail(error)
            if call.once is not None:
                await call.once.fail(call, error)
            raise error
        finally:
            if call.view is not None:
                call.view.end(requester)
            self._cached.writes += 1
            if name in self._invalidating:
                self._cached.cache.invalidate()
        if result.is_error:
            # The tool may repeat a secret argument in what it says of its failure.
            hold_arguments(None, params, tool.tool)
        if call.observed is not None:
            call.observed.end(raw, result)
        return result

    async def resume(
        self, pending: PendingCall, answers: Mapping[str, Any], options: CallOptions
    ) -> ToolResult:
        """Go on with a call that waited for its caller's answers."""
        from holdfast._core.calls.pending import PendingCall, answer_params

        require_type("pending", pending, PendingCall, "a PendingCall")
        params = answer_params(self.requester.name, pending, answers)
        return await self.call_tool(pending.tool, pending.arguments, options, answers=params)

    @cached_property
    def tasks(self) -> Tasks:
        """The calls that servers have made tasks of."""
        from holdfast._core.calls.tasks import Tasks

        return Tasks(self.requester)

    async def task_form(
        self, name: str, tool: ReadyTool, deadline: Deadline
    ) -> tuple[TaskForm | None, ReadyTool]:
        """Return how this call may become a task, if it may; list its tool where that decides."""
        await self.requester.opener.connected(deadline)
        form = self.tasks.form()
        if form is None or not form.core:
            return form, tool
        if tool.tool is None:
            await self.tools.list_for_call(deadline)
            tool = await self.tools.find(name, deadline)
        # 2025-11-25 basic/utilities/tasks, Tool-Level Negotiation.
        return (form if tool.task in ("required", "optional") else None), tool
