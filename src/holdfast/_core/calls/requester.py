"""The requests of one client: its driver, its deadlines, and the rounds of questions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from holdfast._core.boundary import Call, WireId
from holdfast._core.callbacks import EXITS, call_plain
from holdfast._core.calls.deadline import Deadline, make_deadline
from holdfast._core.calls.handlers import ProgressHandler
from holdfast._core.calls.inputs import Inputs
from holdfast._core.calls.opener import Opener
from holdfast._core.calls.options import require_type
from holdfast._core.calls.waits import Waits
from holdfast._core.engine import messages
from holdfast._core.engine.state import State
from holdfast._core.eras.base import (
    COMPLETE,
    Era,
    Invalid,
    NeedsInput,
    OutgoingRequest,
    Reading,
)
from holdfast._core.eras.revisions import TASKS
from holdfast._core.mailbox import handling, log
from holdfast._core.observers.observer import TOOL_CALL, ObservedCall, Observers, hold_arguments
from holdfast.errors import (
    Hint,
    HoldfastError,
    ProtocolError,
    ValidationError,
)
from holdfast.policies import Policy
from holdfast.types.base import Wire, decode
from holdfast.types.lifecycle import LOG_LEVELS, Progress
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast._core.driver import Driver

T = TypeVar("T")
W = TypeVar("W", bound=Wire)

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that decoding raises for malformed bytes."""
ENDED: Final = (State.CLOSING, State.CLOSED)


class Requester(Struct, eq=False):
    """Sends the requests of one client over its driver, which the first of them starts."""

    opener: Opener
    inputs: Inputs
    observers: Observers
    waits: Waits = field(default_factory=Waits)
    progress_handlers: list[ProgressHandler] = []
    """Handlers for the progress of every call."""
    task_progress: dict[WireId, Callable[[list[Progress]], None]] = {}
    """The handlers of progress of calls that became tasks, by progress token."""
    task_changes: dict[str, Callable[[], None]] = {}
    """The functions to call when the server says that a task has changed, by its id."""

    @property
    def name(self) -> str:
        return self.opener.name

    @property
    def policy(self) -> Policy:
        return self.opener.policy

    @property
    def driver(self) -> Driver:
        """The driver, on the loop that runs now; it stays with that loop."""
        return self.opener.driver

    @property
    def is_busy(self) -> bool:
        """True while a call waits for a connection, an answer, a task or a login."""
        opener = self.opener
        return (
            (opener.started is not None and opener.started.is_calling)
            or opener.state in (State.STARTING, State.INITIALIZING)
            or bool(self.task_changes)
            or opener.logins.is_busy
        )

    def post(self, handler: Callable[[Any], Any], value: Any, size: int = 0) -> None:
        """Run ``handler(value)`` off the reading path, in order."""
        self.driver.mailbox.post(handler, value, size)

    def deadline(
        self,
        method: str,
        timeout: float | None = None,
        total_timeout: float | None = None,
        since: float | None = None,
        *,
        about: str = "",
    ) -> Deadline:
        """Return the deadline of a call that begins now, or began at ``since``."""
        since = self.driver.loop.time() if since is None else since
        timeouts = self.policy.timeouts
        return make_deadline(timeouts, method, timeout, total_timeout, since=since, about=about)

    # Requests

    def call(
        self, method: str, params: dict[str, Any] | None, deadline: Deadline, **fields: Any
    ) -> Call:
        """Return a call with this deadline; ``fields`` are other ones of `Call`."""
        return Call(
            method,
            params,
            idle=deadline.idle,
            total=deadline.total,
            since=deadline.since,
            total_name=deadline.total_name,
            progress=bool(self.progress_handlers),
            place_within=deadline.idle if deadline.by_caller else None,
            **fields,
        )

    async def read(
        self,
        method: str,
        params: dict[str, Any],
        deadline: Deadline,
        kind: type[W],
        *,
        about: str,
    ) -> W:
        """Send a request that may be repeated; return its result as ``kind``."""
        call = self.call(method, params, deadline, about=about, repeatable=True)
        return self.decode(call, (await self.request(call, deadline))[0], kind)

    async def request_any(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        total_timeout: float | None,
    ) -> Any:
        """Send a request that may have no verb of its own; return its result as plain JSON."""
        require_type("method", method)
        require_type("params", params, Mapping | None, "a mapping")
        deadline = self.deadline(method, timeout, total_timeout)
        call = self.call(method, None if params is None else dict(params), deadline)
        raw, _ = await self.request(call, deadline)
        try:
            return msgspec.json.decode(raw)
        except UNREADABLE as error:
            raise self.broken(call, str(error)) from error

    async def ping(self, timeout: float | None) -> None:
        deadline = self.deadline("ping", timeout)
        await self.opener.in_era(deadline, lambda era: self.send(era.ping(), deadline))

    async def set_log_level(self, level: str, timeout: float | None) -> None:
        if level not in LOG_LEVELS:
            raise ValidationError(f"log level {level!r}: must be one of {', '.join(LOG_LEVELS)}")
        deadline = self.deadline("logging/setLevel", timeout)

        async def tell(era: Era) -> None:
            if (request := era.log_level(level)) is not None:
                await self.send(request, deadline)

        await self.opener.in_era(deadline, tell)
        self.driver.set_log_level(level)

    async def send(self, outgoing: OutgoingRequest, deadline: Deadline, about: str = "") -> None:
        """Send a request of the current era, on the current connection only."""
        epoch = self.driver.epoch
        call = self.call(outgoing.method, outgoing.params, deadline, about=about, epoch=epoch)
        await self.request(call, deadline)

    async def forward(
        self,
        call: Call,
        *,
        on_progress: ProgressHandler | None = None,
        passes_questions: bool = False,
        on_sent: Callable[[WireId], None] | None = None,
    ) -> Raw:
        """Send the request of another client, and return its result as it came.

        For a relay: nothing is checked, and no handler but the raw one (`Inputs.answerer`) sees a
        question of the server. Without one, or with ``passes_questions``, the questions of the
        stateless revisions are the result. A call that is cancelled is cancelled at the server.
        Where the tasks extension is declared, a result may be a task. ``on_sent`` is called with
        the id of each message.
        """
        passes = passes_questions or self.inputs.answerer is None
        deadline = self._deadline_of(call)
        raw, _ = await self.request(
            call, deadline, on_progress, passes_questions=passes, on_sent=on_sent
        )
        return raw

    async def go_on(self, call: Call, raw: Raw, on_progress: ProgressHandler | None = None) -> Raw:
        """Answer the questions that a forwarded call was answered with; return its final result."""
        deadline = self._deadline_of(call)
        work = self._exchange(deadline, self.sink(on_progress), False, call, raw=raw)
        return (await work)[0]

    def _deadline_of(self, call: Call) -> Deadline:
        return self.deadline(call.method, call.idle, call.total, call.since, about=call.about)

    async def request(
        self,
        call: Call,
        deadline: Deadline,
        on_progress: ProgressHandler | None = None,
        *,
        passes_questions: bool = False,
        on_sent: Callable[[WireId], None] | None = None,
    ) -> tuple[Raw, int]:
        """Send a request and answer the server's questions.

        Args:
            call: The request.
            deadline: Its time.
            on_progress: Called with its progress, besides the handlers of all calls.
            passes_questions: Return a result that is questions.
            on_sent: Called with the id of each message.

        Returns:
            The final result, and the number of rounds of questions before it.
        """
        sink = None
        if on_progress is not None or self.progress_handlers:
            sink = self.sink(on_progress)
        exchange = partial(self._exchange, deadline, sink, passes_questions)
        if not self.observers.all:
            self.hold_shown(call)
            return await exchange(call, on_sent)

        def observe(observed: ObservedCall) -> Awaitable[tuple[Raw, int]]:
            meta = {**observed.meta, **(call.meta or {})} or None

            listeners = [listen for listen in (observed.sent, on_sent) if listen is not None]

            def sent(wire_id: WireId) -> None:
                for listen in listeners:
                    listen(wire_id)

            return exchange(msgspec.structs.replace(call, meta=meta), sent)

        return await self.observe(call.method, call.about, _readable(call.params), observe)

    async def observe(
        self,
        method: str,
        about: str,
        params: dict[str, Any] | None,
        work: Callable[[ObservedCall], Awaitable[tuple[Raw, T]]],
    ) -> tuple[Raw, T]:
        """Do the work of a request; tell the observers how it begins and ends."""
        observed = self.observers.begin(method, about, params)
        try:
            raw, value = await work(observed)
        except BaseException as error:
            observed.end(error=error)
            raise
        observed.end(raw, _tool_result(method, raw))
        return raw, value

    async def _exchange(
        self,
        deadline: Deadline,
        sink: Callable[[list[Progress]], None] | None,
        passes_questions: bool,
        call: Call,
        on_sent: Callable[[WireId], None] | None = None,
        *,
        raw: Raw | None = None,
    ) -> tuple[Raw, int]:
        """Send a request, log in if it needs that, answer the questions, send it again.

        ``raw`` is the answer of one that was sent already.
        """
        driver, rounds, first = self.driver, 0, call.params

        def attempt(logins: int) -> Awaitable[Raw]:
            present = self.again(call, deadline) if logins else call
            return driver.request(present, on_progress=sink, on_sent=on_sent)

        while True:
            try:
                if raw is None:
                    raw = await self.opener.with_logins(attempt, deadline.until, deadline.idle)
            except HoldfastError as error:
                hold_arguments(error, _readable(first), None)
                raise
            reading = driver.read(call.method, raw)
            if reading is COMPLETE or passes_questions or _is_task(call, raw):
                return raw, rounds
            rounds += 1
            call, raw = await self.answer(call, first, reading, rounds, deadline), None

    def hold_shown(self, call: Call) -> None:
        """Hide the secret arguments of a request, if the server's messages or stderr are shown."""
        if self.driver.shows_messages:
            hold_arguments(None, _readable(call.params), None)

    def hold_under_way(self, tools: Mapping[str, Tool]) -> None:
        """Hide the secret arguments of all requests that wait for their answers."""
        for call in self.driver.calls_under_way():
            tool = tools.get(call.about) if call.method == TOOL_CALL else None
            hold_arguments(None, _readable(call.params), tool)

    def hold_secrets(self, error: HoldfastError, call: Call) -> None:
        """Hide the secret arguments of a forwarded call while its error lives."""
        hold_arguments(error, _readable(call.params), None)

    async def answer(
        self,
        call: Call,
        first: dict[str, Any] | None,
        reading: Reading,
        rounds: int,
        deadline: Deadline,
    ) -> Call:
        """Get the application's answers to the server's questions; return the next call.

        Specification 2026-07-28, "Multi Round-Trip Requests": the request is sent again with
        ``inputResponses``, and with ``requestState`` exactly as it came.
        """
        if isinstance(reading, Invalid):
            raise messages.bad_answer(self.name, call, reading.reason)
        assert isinstance(reading, NeedsInput)
        limit = self.policy.limits.rounds
        if rounds > limit:
            text = f"{self.name}: {messages.subject(call)}: still asking after {limit} rounds"
            raise ProtocolError(text, outcome_unknown=True)
        params = dict(first or {})
        if reading.requests:
            try:
                closed = messages.shut(self.name, call, sent=True)
                async with self.waits.until_closed(closed, deadline.until):
                    answers = await self.inputs.answer_all(self.name, reading.requests)
            except TimeoutError as error:
                if isinstance(error, HoldfastError):
                    raise
                raise messages.unanswered(self.name, call) from None
            params["inputResponses"] = answers
        if reading.state is not None:
            params["requestState"] = reading.state
        return self.again(msgspec.structs.replace(call, params=params, answers=True), deadline)

    def again(self, call: Call, deadline: Deadline) -> Call:
        """Return a call to be sent again, in the time that is left of its deadline."""
        rest = max(0.001, deadline.until - self.driver.loop.time())
        return msgspec.structs.replace(call, total=rest, since=None)

    def sink(self, on_progress: ProgressHandler | None) -> Callable[[list[Progress]], None] | None:
        """Return the receiver of the progress of one call; None if there is no handler."""
        handlers = [*self.progress_handlers, *(() if on_progress is None else (on_progress,))]
        return progress_sink(self.name, handlers, self.post) if handlers else None

    def decode(self, call: Call, raw: Raw | bytes, kind: type[W]) -> W:
        """Return a result as the type that the call expects."""
        try:
            return decode(raw, kind)
        except UNREADABLE as error:
            raise self.broken(call, str(error)) from error

    def broken(self, call: Call, reason: str, *hints: Hint) -> HoldfastError:
        return messages.bad_answer(self.name, call, reason, *hints)


def _readable(params: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return parameters for those who look into them; forwarded ones are raw.

    Secrets are found by the names of arguments, so what cannot be read is left out.
    """
    if params is None or not any(isinstance(value, Raw) for value in params.values()):
        return params
    readable = {}
    for name, value in params.items():
        with suppress(*UNREADABLE):
            readable[name] = msgspec.json.decode(value) if isinstance(value, Raw) else value
    return readable


def _tool_result(method: str, raw: Raw) -> ToolResult | None:
    """Return the result of a forwarded tool call for those who look into it."""
    if method == "tools/call":
        with suppress(*UNREADABLE):
            return decode(raw, ToolResult)
    return None


def _is_task(call: Call, raw: Raw) -> bool:
    """Return whether the result of a call that declared the tasks extension is a task."""
    if TASKS not in call.extensions:
        return False
    from holdfast._core.eras.tasks import TaskForm

    return TaskForm(core=False).created(raw) is not None


def progress_sink(
    name: str, handlers: Sequence[Callable[[Any], Any]], post: Callable[..., None]
) -> Callable[[Sequence[Any]], None]:
    """Return a function that passes progress to handlers.

    Plain functions are called at once, async ones through the mailbox. They run in the context
    (contextvars) of the call: the output of a handler in a notebook appears below the cell that
    made the call.
    """
    context = copy_context()
    plain = [handler for handler in handlers if not inspect.iscoroutinefunction(handler)]
    posted = [
        in_context(context, handler) for handler in handlers if inspect.iscoroutinefunction(handler)
    ]

    def pass_on(values: Sequence[Any]) -> None:
        ending: BaseException | None = None
        for value in values:
            for handler in plain:
                try:
                    result = call_plain(handler, value)
                except EXITS as error:
                    ending = error
                except BaseException:
                    log.exception("%s: the handler %r failed", name, handler)
                else:
                    if result is not None and inspect.isawaitable(result):
                        post(lambda awaitable: awaitable, result)
        if ending is not None:
            raise ending

    def sink(values: Sequence[Any]) -> None:
        for handler in posted:
            for value in values:
                post(handler, value, len(getattr(value, "message", None) or ""))
        if plain:
            context.run(pass_on, values)

    return sink


def in_context(context: Context, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an async function that runs ``handler`` in this context."""

    @wraps(handler)
    async def run(value: Any) -> Any:
        context.run(handling.set, handling.get())
        result = context.run(call_plain, handler, value)
        if not inspect.isawaitable(result):
            return result
        # A task that is cancelled before it starts closes only its own coroutine.
        if not inspect.iscoroutine(result):
            return await result
        return await asyncio.get_running_loop().create_task(result, context=context)

    return run
