"""Follow one task to its end: poll it, answer its questions, fetch its result.

A poll is a read: it is repeated over lost links and restarts of the server, so a task has one
outcome, known or reported as unknown, within the call's total time. Whatever the server answers,
there is at most one poll under way, no faster than `eras.tasks` allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec
from msgspec import Raw, Struct, field

from holdfast._core.boundary import Call, WireId
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.requester import UNREADABLE, Requester, progress_sink
from holdfast._core.engine import messages
from holdfast._core.eras import tasks
from holdfast._core.eras.base import Invalid
from holdfast._core.eras.tasks import TaskForm, TaskState
from holdfast._core.mailbox import log
from holdfast._core.text import truncate, visible
from holdfast._core.wire.codes import INVALID_PARAMS
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import (
    BackpressureError,
    CancelledCallError,
    Hint,
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    RpcError,
    ShutdownError,
    StateError,
    TransportError,
)
from holdfast.types.base import decode
from holdfast.types.lifecycle import Progress, Task
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast._core.calls.tasks import Tasks
    from holdfast.errors import ErrorFields

MOST_QUESTIONS: Final = 1000
"""Questions of one task."""
MOST_STREAMS: Final = 8
"""Tasks of one client with a stream of changes; the others are only polled."""
MOST_ERRORS: Final = 3
"""Polls in a row that a server may answer with an internal error."""

_PASSING: Final = (TransportError, BackpressureError, RequestTimeout)
"""Failures after which the same poll is worth another try."""


class TaskView(Struct, eq=False):
    """A task as its caller sees it, and the caller's wish to leave it running."""

    on_task: Callable[[Task], Any] | None = None
    task: Task | None = None
    detached: bool = False
    """The task goes on when nobody waits for it any more."""
    meta: dict[str, Any] | None = None
    """Entries of ``_meta`` for the requests about it."""
    created: asyncio.Event = field(default_factory=asyncio.Event)
    _tokens: list[WireId] = []

    def tracking(
        self,
        on_sent: Callable[[WireId], None] | None,
        sink: Callable[[list[Progress]], None] | None,
        requester: Requester,
    ) -> Callable[[WireId], None]:
        """Return a callback that notes the token of a call, under which its task has progress."""

        def sent(wire_id: WireId) -> None:
            if sink is not None:
                self._tokens.append(wire_id)
                requester.task_progress[wire_id] = sink
            if on_sent is not None:
                on_sent(wire_id)

        return sent

    def end(self, requester: Requester) -> None:
        """Forget the tokens of a call that has ended."""
        for token in self._tokens:
            requester.task_progress.pop(token, None)

    def show(self, task: Task, requester: Requester) -> None:
        if task != self.task:
            self.task = task
            self.created.set()
            if self.on_task is not None:
                progress_sink(requester.name, [self.on_task], requester.post)([task])


class TaskPoller:
    """One task, followed to its end: ``deadline.idle`` is the time for each poll."""

    def __init__(
        self, owner: Tasks, task_id: str, subject: str, deadline: Deadline, view: TaskView
    ) -> None:
        self._owner = owner
        self._requester = owner.requester
        self._loop = owner.requester.driver.loop
        self._id = task_id
        self._subject = subject
        self._deadline = deadline
        self._view = view
        self._form: TaskForm
        """That of the connection that answered last."""
        self._began = self._loop.time()
        self._questions: dict[str, bytes] = {}
        """A digest of each question that was answered, by key."""
        self._answers: dict[str, Any] = {}
        """Answers that the server has not confirmed."""
        self._errors = 0
        self._changed = asyncio.Event()
        """Set when the server says that the task has changed."""
        self._stream: asyncio.Task[None] | None = None

    async def run(self, state: TaskState | None) -> tuple[Raw, ToolResult]:
        """Return the result. ``state`` is the task as the first answer showed it, if any."""
        try:
            if state is not None:
                self._view.show(state.task, self._requester)
                if state.task.status == "working":
                    await self._pause(state)
            while True:
                if (polled := await self._poll()) is not None:
                    state = polled
                    self._view.show(state.task, self._requester)
                    if (result := await self._advance(state)) is not None:
                        return result, self._read(result)
                await self._pause(state)
        except asyncio.CancelledError as error:
            text = "no longer waited for, and goes on"
            if not self._view.detached:
                self._owner.send_cancel(self._id)
                text = "cancelled; the server was told to stop"
            error.__cause__ = self._error(CancelledCallError, text)
            raise
        except HoldfastError as error:
            if error.task_id is not None:
                raise
            raise messages.of_task(error, self._id)  # noqa: B904  (with the same cause)
        finally:
            if self._stream is not None:
                self._stream.cancel()

    def _error(
        self, kind: type[HoldfastError], text: str, **fields: Unpack[ErrorFields]
    ) -> HoldfastError:
        name = f"{self._requester.name}: {self._subject}: task {self._id!r}"
        fields.setdefault("hints", (Hint("client.resume_task", "asks for it again", self._id),))
        fields["outcome_unknown"], fields["task_id"] = True, self._id
        return kind(f"{name}: {text}", **fields)

    def _refused(self, error: RpcError, text: str = "") -> HoldfastError:
        fields: ErrorFields = {"code": error.code, "data": error.data}
        fields["server_message"] = error.server_message
        if error.code == INVALID_PARAMS:
            fields["hints"] = ()
        return self._error(type(error), text + _server_words(error), **fields)

    def _shut(self) -> HoldfastError:
        return self._error(ShutdownError, "the client was closed; the task goes on")

    def _invalid(self, reason: str) -> HoldfastError:
        return self._error(ProtocolError, f"the server's answer breaks the protocol: {reason}")

    # Asking

    async def _poll(self) -> TaskState | None:
        """Return the current state of the task; None if the server could not be asked now."""
        try:
            raw = await self._ask("tasks/get", self._deadline.idle)
        except RpcError as error:
            self._errors += 1
            # Tasks, Protocol Errors: -32602 is the answer for a task that is unknown or expired.
            gone = error.code == INVALID_PARAMS
            if not gone and self._errors < MOST_ERRORS:
                return None
            raise self._refused(error, "the server no longer knows it: " if gone else "") from error
        if raw is None:
            return None
        self._errors = 0
        state = self._form.read(raw, self._id)
        if isinstance(state, Invalid):
            raise self._invalid(state.reason)
        return state

    async def _ask(self, method: str, idle: float, **params: Any) -> Raw | None:
        """Send a request that may be repeated; None if the server could not be reached."""
        try:
            self._form = await self._owner.require(self._deadline)
            rest = self._deadline.until - self._loop.time()
            if rest <= 0:
                return None
            driver = self._requester.driver
            call = Call(
                method,
                {"taskId": self._id, **params},
                self._view.meta,
                idle=min(idle, rest),
                total=rest,
                about=self._id,
                repeatable=True,
                wait=True,
                extensions=self._form.extensions,
            )
            return await self._requester.opener.with_logins(
                lambda logins: driver.request(
                    self._requester.again(call, self._deadline) if logins else call
                ),
                self._deadline.until,
                self._deadline.idle,
            )
        except _PASSING as error:
            if error.final:
                raise
        return None

    async def _pause(self, state: TaskState | None) -> None:
        """Wait until the next poll; raise once the time of the call, or of the task, is over."""
        now, until = self._loop.time(), self._deadline.until
        wait = tasks.POLL if state is None else state.poll
        if state is not None and state.task.ttl is not None:
            # By our own clock from the first answer: the server's may be set differently.
            end = self._began + state.task.ttl / 1000
            if now >= end:
                raise self._error(RequestTimeout, "its time to live is over, without an outcome")
            wait = min(wait, end - now)
        wait = max(0.0, min(wait, until - now))
        async with self._requester.waits.until_closed(self._shut()):
            await asyncio.sleep(min(wait, tasks.SHORTEST))
            if wait > tasks.POLL:
                self._listen()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait - tasks.SHORTEST):
                    # A change ends the pause early. What has changed is for the next poll to say.
                    await self._changed.wait()
        self._changed.clear()
        if self._loop.time() >= until:
            ending = "it goes on" if self._view.detached else "the server was told to stop"
            if not self._view.detached:
                self._owner.send_cancel(self._id)
            text = f"not done in the time for the whole (total_timeout); {ending}"
            raise self._error(RequestTimeout, text)

    def _listen(self) -> None:
        """Subscribe to changes of the task, if its poll interval is long."""
        form, waiting = self._owner.form(), self._requester.task_changes
        if self._stream is not None or form is None or form.core:
            return
        if self._id not in waiting and len(waiting) < MOST_STREAMS:
            waiting[self._id] = self._changed.set
            self._stream = self._loop.create_task(self._hold_stream(form))
            self._stream.add_done_callback(lambda _: waiting.pop(self._id))

    async def _hold_stream(self, form: TaskForm) -> None:
        """Keep the stream of the task's changes open. Without one, polling alone goes on."""

        def acknowledged(params: Raw) -> None:
            if tasks.will_tell(self._id, params):
                self._changed.set()  # it may have changed before the stream was open
            elif self._stream is not None:
                self._stream.cancel()

        request = tasks.listen(self._id)
        call = Call(request.method, request.params, lasting=True, extensions=form.extensions)
        try:
            await self._requester.driver.request(call, on_related=acknowledged)
        except TransportError:
            self._stream = None
        except HoldfastError as error:
            log.debug("%s: no stream of task %r: %s", self._requester.name, self._id, error)

    async def _advance(self, state: TaskState) -> Raw | None:
        """Return the result, if the task has one; answer the server's questions otherwise."""
        status = state.task.status
        if status == "cancelled":
            words = state.task.status_message
            why = f" ({visible(words, 200)})" if words else ""
            raise self._error(CancelledCallError, f"was cancelled{why}")
        if self._form.core:
            return None if status == "working" else await self._fetch(failed=status == "failed")
        if state.error is not None and status == "failed":
            raise messages.refused_by_server(self._requester.name, Call(self._subject), state.error)
        if state.requests is not None and status == "input_required":
            await self._answer(state.requests)
        return state.result if status == "completed" else None

    def _read(self, raw: Raw) -> ToolResult:
        if not tasks.is_result(raw):
            raise self._invalid("the result is not one of a call")
        try:
            return decode(raw, ToolResult)
        except UNREADABLE as error:
            raise self._invalid(str(error)) from error

    async def _fetch(self, *, failed: bool) -> Raw | None:
        """Fetch a result; the questions of a task come while the server holds the answer."""
        try:
            return await self._ask("tasks/result", self._deadline.until - self._loop.time())
        except RpcError as error:
            if failed or error.code != INVALID_PARAMS:
                raise RpcError(
                    f"{self._requester.name}: {self._subject}: {_server_words(error)}",
                    code=error.code,
                    data=error.data,
                    server_message=error.server_message,
                ) from error
            raise self._refused(error, "it does not give the result: ") from error

    async def _answer(self, questions: dict[str, Raw]) -> None:
        """Answer each question once, and send the answers that are not confirmed yet."""
        if self._requester.inputs.for_caller(questions):
            text = "it waits for answers, which Handlers(elicitation='return') does not return"
            raise self._error(StateError, f"{text} for tasks; a handler function gives them")
        new = {key: raw for key, raw in questions.items() if self._is_new(key, raw)}
        if new and not await self._ask_application(new):
            return
        waiting = {key: self._answers[key] for key in questions if key in self._answers}
        if waiting:
            await self._send_answers(waiting)

    async def _send_answers(self, waiting: dict[str, Any]) -> None:
        try:
            idle = self._deadline.idle
            if await self._ask("tasks/update", idle, inputResponses=waiting) is None:
                return
        except RpcError as error:
            if error.code != INVALID_PARAMS:
                raise self._refused(error) from error
            # An unknown task, or a question that is no longer open: the next poll tells.
        for key in waiting:
            del self._answers[key]

    async def _ask_application(self, questions: dict[str, Raw]) -> bool:
        """Get the answers to new questions; return False if the time is up before."""
        inputs, name = self._requester.inputs, self._requester.name
        try:
            async with self._requester.waits.until_closed(self._shut(), self._deadline.until):
                self._answers |= await inputs.answer_all(name, questions)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            return False
        except ProtocolError as error:
            text = error.message.removeprefix(f"{name}: ")
            raise self._error(ProtocolError, text, hints=error.hints) from error
        return True

    def _is_new(self, key: str, question: Raw) -> bool:
        """Note a question; refuse one that comes under the key of another."""
        from hashlib import sha256

        try:
            plain = msgspec.json.encode(msgspec.json.decode(question), order="sorted")
        except MALFORMED as error:
            raise self._error(
                ProtocolError, f"input request {truncate(key, 80)!r}: {error}"
            ) from None
        digest = sha256(plain).digest()
        if key not in self._questions:
            self._questions[key] = digest
            if len(self._questions) > MOST_QUESTIONS:
                raise self._error(ProtocolError, f"more than {MOST_QUESTIONS} questions")
            return True
        if self._questions[key] != digest:
            raise self._error(
                ProtocolError, f"the key {truncate(key, 80)!r} came for two questions"
            )
        return False


def _server_words(error: RpcError) -> str:
    """Return the server's words in an error, without the subject of our request."""
    before, start, words = error.message.partition("the server answered with ")
    return start + words or before
