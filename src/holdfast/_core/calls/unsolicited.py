"""Dispatch what a server sends unasked: notifications, requests, violations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import (
    Asked,
    Dismissed,
    Generation,
    Moved,
    Starting,
    Violated,
    Waiting,
)
from holdfast._core.calls.cache import UPDATED, ResponseCache
from holdfast._core.calls.handlers import (
    Notification,
    NotificationHandler,
    add_removable,
    require_callable,
)
from holdfast._core.calls.inputs import refusal
from holdfast._core.calls.requester import Requester, in_context
from holdfast._core.calls.tools import ToolTable
from holdfast._core.engine.state import State
from holdfast._core.mailbox import handling
from holdfast._core.wire.codes import INTERNAL_ERROR, CancelReason
from holdfast._core.wire.jsonrpc import Id
from holdfast.errors import RpcError
from holdfast.types.base import decode
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast._core.calls.subscriptions import Subscriptions
    from holdfast.events import Events

log: logging.Logger = logging.getLogger("holdfast")

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
TASK_CHANGED = "notifications/tasks"
TOOLS_CHANGED = "notifications/tools/list_changed"
_OF_TASK = b"related-task"


class Unsolicited(Struct, eq=False):
    """Dispatches what the driver receives; never makes it wait."""

    _requester: Requester
    _cache: ResponseCache
    _tools: ToolTable
    events: Events | None = None
    """The events of the client; None until the application asks for them."""
    _subscriptions: Subscriptions | None = None
    reconnected: Callable[[], object] | None = None
    """Called once the server is there again after a lost connection."""
    _ready_before: bool = False
    _registered: list[tuple[str | None, NotificationHandler]] = []
    """Handlers, each with the method that it is for, or None for all."""
    _asks: dict[asyncio.Task[None], tuple[Generation, Id]] = {}
    """Handlers at work. A server may use the same id for any number of questions."""

    @property
    def subscriptions(self) -> Subscriptions:
        """The subscriptions, made when the first one is wanted."""
        if self._subscriptions is None:
            from holdfast._core.calls.subscriptions import Subscriptions

            self._subscriptions = Subscriptions(self._requester, self._tools, self._registered)
        return self._subscriptions

    def add(self, handler: NotificationHandler, method: str | None) -> Callable[[], None]:
        """Register a handler, to be run in the current context; return its removal."""
        entry = (method, in_context(copy_context(), require_callable("handler", handler)))
        remove = add_removable(self._registered, entry)
        self.subscriptions.changes_wanted()
        return remove

    def close(self) -> None:
        """Cancel subscriptions and handlers, but not the handler that is closing the client."""
        if self._subscriptions is not None:
            self._subscriptions.close()
        self._withdraw()

    def leave_session(self) -> None:
        """Drop the cache and the session of the account that was logged in before."""
        self._cache.change_owner()
        if self._requester.opener.started is not None:
            self._requester.opener.started.renew_session("another person has logged in")

    def notified(self, method: str, count: int) -> None:
        """Tell subscribers of notifications, also of those that go to their own request."""
        if self.events is not None and self.events.active:
            for _ in range(count):
                self.events.noticed(method)

    def noticed(self, method: str, params: Raw | None) -> None:
        self.notified(method, 1)
        if method == PROGRESS:
            self._pass_task_progress(params)
            return
        self._cache.noticed(method, params)
        if method == TASK_CHANGED:
            self._wake_poller(params)
        elif method == TOOLS_CHANGED:
            self._tools.forget()
        subscriptions = self._subscriptions
        if method == UPDATED and subscriptions is not None and subscriptions.is_unwanted(params):
            # Sent before the server had read that the subscription ended.
            return
        if self._registered:
            self._post_to_handlers(method, params)

    def _pass_task_progress(self, params: Raw | None) -> None:
        """Pass on the progress of a call that became a task; any other comes too late."""
        if self._requester.task_progress and params is not None:
            progress = decode(params, Progress)
            sink = self._requester.task_progress.get(progress.progress_token)  # type: ignore[call-overload]
            if sink is not None:
                sink([progress])

    def _wake_poller(self, params: Raw | None) -> None:
        """Have a task asked for at once that the server says has changed."""
        if self._requester.task_changes:
            from holdfast._core.eras import tasks

            wake = self._requester.task_changes.get(tasks.changed(params) or "")
            if wake is not None:
                wake()

    def _post_to_handlers(self, method: str, params: Raw | None) -> None:
        # A copy: the parameters keep everything that was read with them in memory.
        params = None if params is None else params.copy()
        size = 0 if params is None else len(params)
        notification = Notification(method, params)
        for only, handler in self._registered:
            if only is None or only == method:
                self._requester.post(handler, notification, size)

    def asked(self, request: Asked) -> None:
        driver = self._requester.driver
        limit = self._requester.policy.limits.asks
        if len(self._asks) >= limit:
            text = f"too many requests at once (more than {limit})"
            driver.refuse(request, INTERNAL_ERROR, text)
            return
        task = driver.loop.create_task(
            self._answer(request),
            name=f"holdfast-{request.method}",
            context=driver.caller_context(),
        )
        self._asks[task] = (request.generation, request.id)
        task.add_done_callback(self._asks.pop)

    def dismissed(self, dismissed: Dismissed) -> None:
        self.notified(CANCELLED, 1)
        for task, key in list(self._asks.items()):
            if key == (dismissed.generation, dismissed.id):
                task.cancel(None if dismissed.reason is None else CancelReason(dismissed.reason))

    def moved(self, moved: Moved) -> None:
        log.debug("%s: %s → %s %s", self._requester.name, moved.old, moved.new, moved.reason or "")
        if self._requester.observers.all:
            self._requester.observers.moved(moved)
        if moved.old == State.READY:
            self._tools.disconnected()
            if moved.new != State.CLOSING:
                self._withdraw()
        if moved.new == State.READY:
            if self._ready_before:
                # The server may have changed meanwhile.
                self._cache.invalidate()
                if self.reconnected is not None:
                    self.reconnected()
            self._ready_before = True
            if self._subscriptions is not None or self._requester.policy.cache.watch:
                self.subscriptions.restore()

    def _withdraw(self) -> None:
        """Cancel the handlers that answer a server which is gone: a person may be asked in vain.

        One may itself be closing the client.
        """
        for task in list(self._asks):
            if task is not handling.get():
                task.cancel()

    def starting(self, starting: Starting) -> None:
        if self.events is not None and self.events.active:
            self.events.starting(starting)

    def waiting(self, waiting: Waiting) -> None:
        """Tell subscribers that a call waits for a place under a limit."""
        name, limit = self._requester.name, waiting.limit or 'the server said "later"'
        log.debug("%s: %s %s waits: %s", name, waiting.method, waiting.about, limit)
        if self.events is not None and self.events.active:
            self.events.waiting(waiting)

    def store_down(self, error: Exception) -> None:
        """Tell that the store of shared limits cannot be reached."""
        text = "%s: the store of its limits cannot be reached, this process goes on with a part: %s"
        log.warning(text, self._requester.name, error)
        if self.events is not None and self.events.active:
            self.events.limits_unshared(error)

    def violated(self, violated: Violated) -> None:
        level = logging.WARNING if violated.count == 1 else logging.DEBUG
        if log.isEnabledFor(level):
            self._requester.hold_under_way(self._tools.tools)
        text = "%s: dropped: %s: %s"
        log.log(level, text, self._requester.name, violated.reason, violated.detail)
        if self.events is not None and self.events.active:
            self.events.violated(violated)

    async def _answer(self, request: Asked) -> None:
        handling.set(asyncio.current_task())
        driver = self._requester.driver
        try:
            result = await self._requester.inputs.answer(request.method, request.params)
            is_raw = self._requester.inputs.answerer is not None
            if request.params is not None and not is_raw and _OF_TASK in bytes(request.params):
                result = _related(request.params, result)
        except Exception as error:
            fault = error if isinstance(error, RpcError) else refusal(request.method, error)
            driver.refuse(request, fault.code or INTERNAL_ERROR, fault.message, fault.data)
            if error.__cause__ is not None or fault is not error or fault.hints:
                log.warning("%s: %s: %s", self._requester.name, request.method, fault)
        else:
            driver.answer(request, result)


def _related(params: Raw, result: Any) -> Any:
    """Return an answer that names the task which its question belongs to.

    2025-11-25 basic/utilities/tasks, Associating Task-Related Messages.
    """
    from holdfast.types.lifecycle import RELATED_TASK

    meta = msgspec.json.decode(params).get("_meta")
    mark = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    if mark is None:
        return result
    plain = msgspec.json.decode(result)
    entries = plain.get("_meta")
    entries = entries if isinstance(entries, dict) else {}
    return {**plain, "_meta": {**entries, RELATED_TASK: mark}}
