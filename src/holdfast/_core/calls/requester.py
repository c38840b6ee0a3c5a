"""The requests of one client: its driver, its deadlines, and the rounds of questions."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast._core.boundary import Call, LinkChanged, WireId
from holdfast._core.callbacks import EXITS
from holdfast._core.calls.handlers import ProgressHandler
from holdfast._core.calls.inputs import Inputs
from holdfast._core.calls.logins import Logins
from holdfast._core.calls.options import Deadline, require_type, seconds
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
from holdfast._core.mailbox import handling, log
from holdfast._core.observers.observer import TOOL_CALL, ObservedCall, Observers
from holdfast.errors import (
    Hint,
    HoldfastError,
    LoginRequired,
    ProtocolError,
    StateError,
    TransportError,
    ValidationError,
)
from holdfast.policies import Policy
from holdfast.types.base import Wire, decode
from holdfast.types.lifecycle import LOG_LEVELS, Progress

if TYPE_CHECKING:
    from holdfast._core.driver import Driver, DriverListener
    from holdfast._core.eras.conversation import Plan
    from holdfast._core.tap import Tap

T = TypeVar("T")
W = TypeVar("W", bound=Wire)

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions that decoding raises for malformed bytes."""
PROGRESS_FACTOR: Final = 3
"""Times a caller's ``timeout`` that a tool call may take in all while progress comes."""
ENDED: Final = (State.CLOSING, State.CLOSED)


class Requester(Struct, eq=False):
    """Sends the requests of one client over its driver, which the first of them starts."""

    name: str
    transport: Any
    policy: Policy
    plan: Plan
    inputs: Inputs
    logins: Logins
    observers: Observers
    listener: DriverListener | None = None
    """Receives what the server sends unasked. The client sets it when all its parts exist."""
    started: Driver | None = None
    """The driver; None before the first request."""
    progress_handlers: list[ProgressHandler] = []
    """Handlers for the progress of every call."""
    task_progress: dict[WireId, Callable[[list[Progress]], None]] = {}
    """The handlers of progress of calls that became tasks, by progress token."""
    task_changes: dict[str, Callable[[], None]] = {}
    """The functions to call when the server says that a task has changed, by its id."""
    tap: Tap | None = None
    """Sees what crosses between the driver and the transport."""
    _waits: dict[asyncio.Timeout, asyncio.Task[Any] | None] = {}
    """What calls wait for besides the server, and their tasks."""
    _closed: bool = False

    @property
    def driver(self) -> Driver:
        """The driver, on the loop that runs now; it stays with that loop."""
        driver = self.started
        if driver is None:
            from holdfast._core.driver import Driver

            assert self.listener is not None
            driver = Driver(
                self.name, self.transport, self.policy, self.plan, self.listener, tap=self.tap
            )
            self.started = driver
        elif driver.loop is not asyncio.get_running_loop():
            raise StateError(
                f"{self.name}: this client belongs to another event loop; open one client per loop",
                state=driver.engine.state,
            )
        return driver

    @property
    def state(self) -> State:
        return State.NEW if self.started is None else self.started.engine.state

    @property
    def is_busy(self) -> bool:
        """True while a call waits for a connection, an answer, a task or a login."""
        calls = () if self.started is None else self.started.engine.inflight
        return (
            any(not pending.call.lasting for pending in calls)
            or self.state in (State.STARTING, State.INITIALIZING)
            or bool(self.task_changes)
            or self.logins.is_busy
        )

    def era(self) -> Era | None:
        """Return the revision agreed last; None before the first connection."""
        return None if self.started is None else self.started.engine.link.era

    def post(self, handler: Callable[[Any], Any], value: Any, size: int = 0) -> None:
        """Run ``handler(value)`` off the reading path, in order."""
        self.driver.mailbox.post(handler, value, size)

    # Deadlines

    def deadline(
        self,
        method: str,
        timeout: float | None = None,
        total_timeout: float | None = None,
        since: float | None = None,
    ) -> Deadline:
        """Return the deadline of a call that begins now, or began at ``since``.

        A caller's ``timeout`` bounds the whole call; a tool that reports progress may take a
        few times as long, or up to its ``total_timeout``. Without either the policy applies.
        """
        times = self.policy.timeouts
        idle = times.for_method(method) if timeout is None else seconds("timeout", timeout)
        if total_timeout is not None:
            total = seconds("total_timeout", total_timeout)
        elif timeout is None:
            total = max(times.total, idle)
        else:
            total = idle * PROGRESS_FACTOR if method == TOOL_CALL else idle
        since = self.driver.loop.time() if since is None else since
        return Deadline(idle, total, since, given=timeout is not None or total_timeout is not None)

    async def connected(self, deadline: Deadline, *, persist: bool = False) -> Era:
        """Wait for a connection as a call would, and return its era.

        ``persist`` waits over failed attempts until the end of the deadline.
        """
        driver = self.driver
        if driver.engine.state is not State.READY:
            wait, span = persist or self.policy.when_down == "wait", deadline.total
            if not persist and (deadline.given or wait):
                span = min(deadline.idle, span)
            left = max(0.0, deadline.since + span - driver.loop.time())
            await self._open(wait=wait, timeout=left, until=deadline.until)
        assert driver.engine.link.era is not None
        return driver.engine.link.era

    async def in_era(self, deadline: Deadline, work: Callable[[Era], Awaitable[None]]) -> None:
        """Run ``work``, which differs by era, again if the server is replaced meanwhile."""
        while True:
            era = await self.connected(deadline)
            try:
                return await work(era)
            except LinkChanged:
                continue

    async def open(self, *, wait: bool = False, timeout: float | None = None) -> None:
        """Connect, even if attempts have ended with an error that only a person can fix."""
        driver = self.driver
        until = math.inf
        if timeout is not None:
            timeout = seconds("timeout", timeout)
            until = driver.loop.time() + timeout
        if driver.engine.reason is not None and driver.engine.reason.final:
            driver.retry_now()
        await self._open(wait=wait, timeout=timeout, until=until)

    async def _open(self, *, wait: bool, timeout: float | None, until: float) -> None:
        """Connect before ``until``; log in first if that is needed and allowed."""
        driver = self.driver

        def attempt(logins: int) -> Awaitable[None]:
            rest = timeout
            if rest is not None:
                rest = max(0.0, min(rest, until - driver.loop.time()))
            return driver.open(wait=wait, timeout=rest)

        await self.with_logins(attempt, until)

    async def with_logins(self, attempt: Callable[[int], Awaitable[T]], until: float) -> T:
        """Return what an attempt returns; make another after each login that it needs.

        ``attempt`` is called with the number of logins before it.
        """
        logins = 0
        while True:
            try:
                return await attempt(logins)
            except LoginRequired as error:
                logins += 1
                await self.log_in_again(error, logins, until)

    async def log_in_again(self, error: LoginRequired, logins: int, until: float) -> None:
        """Log in before ``until``, so that what failed with ``error`` can be tried again."""
        await self.logins.recover(error, logins, until)
        self.driver.retry_now()

    async def log_in(self, *, fresh: bool) -> None:
        """Log in, whether or not the server has asked for it yet."""
        driver = self.driver
        if self.logins.authorizer.need is None:
            # What the server says when it refuses tells where to log in, and for what.
            try:
                await driver.open()
            except TransportError as error:
                if error.code is None:
                    raise  # It says nothing: it cannot be reached.
            except HoldfastError:
                pass
        await self.logins.log_in(fresh=fresh)
        driver.retry_now()

    async def request_shutdown(self, grace: float) -> None:
        """Send a ``shutdown`` request, which is not part of MCP: only where it is asked for.

        Calls that wait for an answer fail first, with the error of a closed client, as new ones do.
        """
        await self.driver.say_goodbye(Call("shutdown", idle=grace, total=grace))

    @asynccontextmanager
    async def until_closed(
        self, error: HoldfastError, until: float | None = None
    ) -> AsyncIterator[None]:
        """Wait in a call for a handler or for time; raise ``error`` when the client is closed.

        Raises:
            TimeoutError: It is later than ``until``.
        """
        if self._closed:
            raise error
        # A handler that closes its client comes to its end: it runs in this task, or below it.
        task = asyncio.current_task()
        before = handling.set(task)
        try:
            async with asyncio.timeout_at(until) as scope:
                self._waits[scope] = task
                yield
        except TimeoutError:
            if self._closed and scope.expired():
                raise error from None
            raise
        finally:
            del self._waits[scope]
            with suppress(ValueError):  # Python closes an abandoned coroutine in another context
                handling.reset(before)

    def end_waits(self) -> None:
        """End what calls wait for besides the server: the client is being closed."""
        self._closed = True
        for scope, task in self._waits.items():
            if task is not handling.get() and not scope.expired():
                scope.reschedule(0.0)

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
            progress=bool(self.progress_handlers),
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
        await self.in_era(deadline, lambda era: self.send(era.ping(), deadline))

    async def set_log_level(self, level: str, timeout: float | None) -> None:
        if level not in LOG_LEVELS:
            raise ValidationError(f"log level {level!r}: must be one of {', '.join(LOG_LEVELS)}")
        deadline = self.deadline("logging/setLevel", timeout)

        async def tell(era: Era) -> None:
            if (request := era.log_level(level)) is not None:
                await self.send(request, deadline)

        await self.in_era(deadline, tell)
        self.driver.engine.log_level = level

    async def send(self, outgoing: OutgoingRequest, deadline: Deadline, about: str = "") -> None:
        """Send a request of the current era, on the current connection only."""
        epoch = self.driver.engine.link.epoch
        call = self.call(outgoing.method, outgoing.params, deadline, about=about, epoch=epoch)
        await self.request(call, deadline)

    async def request(self, call: Call, deadline: Deadline) -> tuple[Raw, int]:
        """Send a request and answer the server's questions.

        Returns:
            The final result, and the number of rounds of questions before it.
        """
        if not self.observers.all:
            return await self._exchange(call, deadline)

        def exchange(observed: ObservedCall) -> Awaitable[tuple[Raw, int]]:
            meta = {**observed.meta, **(call.meta or {})} or None
            again = msgspec.structs.replace(call, meta=meta)
            return self._exchange(again, deadline, observed.sent)

        return await self.observe(call.method, call.about, call.params, exchange)

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
        observed.end(raw)
        return raw, value

    async def _exchange(
        self, call: Call, deadline: Deadline, on_sent: Callable[[WireId], None] | None = None
    ) -> tuple[Raw, int]:
        """Send a request, log in if it needs that, answer the questions, send it again."""
        driver, rounds, first = self.driver, 0, call.params
        sink = self.sink(None) if self.progress_handlers else None

        def attempt(logins: int) -> Awaitable[Raw]:
            present = self.again(call, deadline) if logins else call
            return driver.request(present, on_progress=sink, on_sent=on_sent)

        while True:
            raw = await self.with_logins(attempt, deadline.until)
            reading = driver.engine.link.era.read(call.method, raw)  # type: ignore[union-attr]
            if reading is COMPLETE:
                return raw, rounds
            rounds += 1
            call = await self.answer(call, first, reading, rounds, deadline)

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
                async with self.until_closed(closed, deadline.until):
                    answers = await self.inputs.answer_all(self.name, reading.requests)
            except TimeoutError as error:
                if isinstance(error, HoldfastError):
                    raise
                raise messages.unanswered(self.name, call) from None
            params["inputResponses"] = answers
        if reading.state is not None:
            params["requestState"] = reading.state
        return self.again(msgspec.structs.replace(call, params=params), deadline)

    def again(self, call: Call, deadline: Deadline) -> Call:
        """Return a call to be sent again, in the time that is left of its deadline."""
        left = max(0.001, deadline.until - self.driver.loop.time())
        return msgspec.structs.replace(call, total=left, since=None)

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


def progress_sink(
    name: str, handlers: Sequence[Callable[[Any], Any]], post: Callable[..., None]
) -> Callable[[Sequence[Any]], None]:
    """Return a function that passes progress to handlers.

    Plain functions are called at once, async ones through the mailbox. They run in the context
    (contextvars) of the call: the output of a handler in a notebook appears below the cell that
    made the call.
    """
    context = copy_context()
    plain = [one for one in handlers if not inspect.iscoroutinefunction(one)]
    posted = [in_context(context, one) for one in handlers if inspect.iscoroutinefunction(one)]

    def call_plain(progress: Sequence[Any]) -> None:
        ending: BaseException | None = None
        for one in progress:
            for handler in plain:
                try:
                    result = handler(one)
                except EXITS as error:
                    ending = error
                except BaseException:
                    log.exception("%s: the handler %r failed", name, handler)
                else:
                    if result is not None and inspect.isawaitable(result):
                        post(lambda awaitable: awaitable, result)
        if ending is not None:
            raise ending

    def sink(progress: Sequence[Any]) -> None:
        for handler in posted:
            for one in progress:
                post(handler, one, len(getattr(one, "message", None) or ""))
        if plain:
            context.run(call_plain, progress)

    return sink


def in_context(context: Context, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an async function that runs ``handler`` in this context."""

    @wraps(handler)
    async def run(value: Any) -> Any:
        context.run(handling.set, handling.get())
        result = context.run(handler, value)
        if not inspect.isawaitable(result):
            return result
        # A task that is cancelled before it starts closes only its own coroutine.
        if not inspect.iscoroutine(result):
            return await result
        return await asyncio.get_running_loop().create_task(result, context=context)

    return run
