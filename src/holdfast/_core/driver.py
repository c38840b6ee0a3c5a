"""The thin async shell: carries out the engine's effects and reports what happens.

Everything here runs on one event loop and returns at once, except for the coroutines that
wait for a future. It has no task: a client may be opened and closed from any task in any
order. A loop that ends without a close tears it down, by closing its async generators.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from holdfast._core import boundary as b
from holdfast._core.alarm import Alarm
from holdfast._core.boundary import Call, Effect, Link, Report, Ticket, Transport, WireId
from holdfast._core.callbacks import EXITS
from holdfast._core.engine import messages
from holdfast._core.engine.connection import OPEN, Connection
from holdfast._core.engine.failures import report_of_failure
from holdfast._core.engine.state import State
from holdfast._core.eras.base import Era, Reading
from holdfast._core.eras.conversation import Facts, Plan
from holdfast._core.jitter import JITTER
from holdfast._core.mailbox import Mailbox
from holdfast._core.waiting import Failure, Receiver, Waiter
from holdfast._core.wire.codes import cancel_reason
from holdfast.errors import HoldfastError
from holdfast.policies import Policy
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast._core.limits.gate import Gate, Places
    from holdfast._core.tap import Crossing, Watcher

log: logging.Logger = logging.getLogger("holdfast")


class Driver:
    """Runs one engine over one transport."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        policy: Policy,
        plan: Plan,
        listener: b.DriverListener,
        *,
        jitter: Iterator[float] | None = None,
        tap: Watcher | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.engine: Connection = Connection(name, policy, plan, jitter or JITTER, self._unsent)
        self._timers = self.engine.timers
        self.mailbox: Mailbox = Mailbox(policy.limits.mailbox, self.loop, name)
        self.tap: Watcher | None = tap
        self.shows_messages: bool = tap is not None or transport.traits.shows_stderr
        """What the server sends, or its stderr, is shown to somebody while calls go on."""
        """Sees what crosses between this client and its transport."""
        self.gate: Gate | None = gate
        """The limits of the server; None: there are none, and the server takes calls."""
        self._transport = transport
        self._keeps_context = transport.traits.credentials is None or bool(plan.abilities)
        self.listener: b.DriverListener = listener
        self._waiters: dict[Ticket, Waiter] = {}
        self._failures: dict[Ticket, Failure] = {}
        """The errors of requests whose callers were cancelled, until they go on."""
        self._link: Link | None = None
        self._links: dict[b.Generation, Link] = {}
        """Every link that is not drained yet, the one in use among them."""
        self._withdrawn: Ticket | None = None
        """The request that the link withdrew last, before any byte of it had left."""
        self._alarm = Alarm(self.loop, self._tick, self._received)
        self._changed: asyncio.Future[None] | None = None
        """Done when an attempt to connect is over or a link is drained, if anybody waits."""
        self.pid: int = os.getpid()
        self._keeper: AsyncGenerator[None] | None = self._keep()
        _run(self._keeper.__anext__())

    def __repr__(self) -> str:
        return f"<Driver {self.engine!r} {len(self._links)} links>"

    # What callers use

    async def request(
        self,
        call: Call,
        on_progress: Callable[[list[Progress]], None] | None = None,
        on_sent: Callable[[WireId], None] | None = None,
        on_related: Callable[[Raw], None] | None = None,
    ) -> Raw:
        """Send a request and wait for its one outcome; first for its place under a limit."""
        places: Places = ()
        if self.gate is not None:
            if (entered := self.gate.admit(self, call)) is None:
                call, entered = await self.gate.wait(self, call)
            places = entered
        try:
            future: asyncio.Future[Raw] = self.loop.create_future()
            # A function of the application gives each request its credentials. It may depend on
            # who is calling, so it runs in the caller's context, also if the request waits first.
            context = copy_context() if self._keeps_context else None
            # A link that is ready asks only when the call began.
            now = call.since if self.engine.state is State.READY else None
            ticket, effects = self.engine.call(call, self.loop.time() if now is None else now)
            self._waiters[ticket] = Waiter(future, on_progress, on_related, on_sent, context)
            self._apply(effects)
            del effects  # They hold the frame, which is not needed while waiting.
            return await future
        except asyncio.CancelledError as cancelled:
            # This has no effect if the outcome and the cancellation met.
            reason = cancel_reason(cancelled) or "cancelled"
            self._apply(self.engine.cancel(ticket, reason, self.loop.time()))
            failure = self._failures.pop(ticket, None)
            outcome = failure if future.cancelled() else future.exception()
            cancelled.__cause__ = messages.ended(self.engine.name, call, outcome)
            raise
        finally:
            for limiter in places:
                limiter.leave()

    def begin(
        self,
        call: Call,
        receiver: Receiver,
        on_progress: Callable[[list[Progress]], None] | None = None,
    ) -> Ticket:
        """Send a request and have its outcome given to a receiver; return what `end` takes.

        The same as `request` where no limit is set (there is no `gate`), without a task to wait.
        """
        context = copy_context() if self._keeps_context else None
        ticket, effects = self.engine.call(call, call.since or self.loop.time())
        self._waiters[ticket] = Waiter(receiver, on_progress, None, None, context)
        self._apply(effects)
        return ticket

    def end(self, ticket: Ticket, receiver: Receiver, reason: str = "cancelled") -> None:
        """Cancel a request that was begun: its receiver is given nothing any more."""
        receiver.cancel()
        self._apply(self.engine.cancel(ticket, reason, self.loop.time()))
        self._failures.pop(ticket, None)

    def _throttled(self, outcome: b.Throttled) -> None:
        """Let no call pass for a while."""
        if self.gate is None:
            from holdfast._core.limits.gate import Gate

            self.gate = Gate()
        self.gate.close_for(outcome.seconds, self.loop.time())

    async def open(self, call: Call = OPEN, *, timeout: float | None = None) -> None:
        """Start if need be and wait until the server is ready for a call.

        An attempt that fails is raised, unless ``call.wait`` says to go on with the next.
        """
        self._apply(self.engine.open(self.loop.time(), call))
        try:
            async with asyncio.timeout(timeout):
                while self.engine.state is not State.READY:
                    await self.change()
                    self._check_attempt(call)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise messages.not_ready(self.engine, timeout) from self.engine.reason

    async def say_goodbye(self, call: Call) -> None:
        """Begin to close: end every call, refuse new ones, and send a last one, if connected."""
        if self.engine.state is State.READY:
            future: asyncio.Future[Raw] = self.loop.create_future()
            ticket, effects = self.engine.say_goodbye(call, self.loop.time())
            self._waiters[ticket] = Waiter(future)
            self._apply(effects)
            with suppress(HoldfastError):
                await future

    async def close(self) -> None:
        """End everything. The teardown is bounded and goes on even if this is cancelled."""
        self._apply(self.engine.close(self.loop.time()))
        self.mailbox.close()
        self._rest()
        if self.gate is not None:
            self.gate.end_waits(self)
        while self._links or self.engine.state is State.CLOSING:
            await self.change()
        if self.gate is not None:
            await self.gate.leave(self)

    async def change(self) -> None:
        """Wait until an attempt to connect is over, or a link is drained."""
        if self._changed is None:
            self._changed = self.loop.create_future()
        await asyncio.shield(self._changed)

    def caller_context(self) -> Context | None:
        """Return a copy of the context of the newest call under way; None: nobody is calling.

        The handshake's revisions do not say which call a server's request belongs to.
        """
        for waiter in reversed(self._waiters.values()):
            if waiter.context is not None:
                return waiter.context.copy()
        return None

    def retry_now(self) -> None:
        """Connect at once instead of after the pause, or of never."""
        self._apply(self.engine.retry_now(self.loop.time()))

    def renew_session(self, reason: str) -> None:
        """Have the next requests sent in a new session."""
        self._apply(self.engine.renew_session(reason, self.loop.time()))

    def _rest(self) -> None:
        """Leave no timer behind, nor a keeper, once a closed client has no link."""
        if not self._links and self.engine.state in (State.CLOSING, State.CLOSED):
            self._alarm.stop()
            keeper, self._keeper = self._keeper, None
            if keeper is not None:
                _run(keeper.aclose())

    # What callers know of the connection, and say without waiting

    @property
    def state(self) -> State:
        return self.engine.state

    @property
    def era(self) -> Era | None:
        """The revision agreed last; None before the first connection."""
        return self.engine.link.era

    @property
    def epoch(self) -> int:
        """The number of the server that is connected: another one, or another session, counts."""
        return self.engine.link.epoch

    @property
    def facts(self) -> Facts | None:
        """The server's latest description of itself."""
        return self.engine.facts

    @property
    def reason(self) -> HoldfastError | None:
        """The error that ended the last link; None once connected again."""
        return self.engine.reason

    @property
    def param_headers(self) -> bool:
        """True if tools may ask for arguments to be repeated in headers."""
        return self.engine.param_headers

    @property
    def is_calling(self) -> bool:
        """True while a request waits for its answer, streams apart."""
        is_waiting = self.gate is not None and self.gate.has_waiting(self)
        return is_waiting or any(not pending.call.lasting for pending in self.engine.inflight)

    def calls_under_way(self) -> list[Call]:
        """Return the requests that wait for their answers."""
        return [pending.call for pending in self.engine.inflight]

    def read(self, method: str, result: Raw) -> Reading:
        """Return what a result is in this era: complete, questions, or against the rules."""
        assert self.engine.link.era is not None
        return self.engine.link.era.read(method, result)

    def notify(self, method: str, params: dict[str, Any] | Raw | None = None) -> None:
        """Send a notification, if there is a connection."""
        self._apply(self.engine.notify(method, params))

    def dispatch(self, call: Call) -> None:
        """Send a request whose answer nobody waits for."""
        self._apply(self.engine.call(call, self.loop.time())[1])

    def answer(self, request: b.Asked, result: Any) -> None:
        """Answer a request of the server, unless its link is gone."""
        self._apply(self.engine.answer(request, result))

    def refuse(self, request: b.Asked, code: int, message: str, data: Any = None) -> None:
        """Answer a request of the server with an error, unless its link is gone."""
        self._apply(self.engine.refuse(request, code, message, data))

    def set_log_level(self, level: str) -> None:
        """Tell the server this on every new link."""
        self.engine.log_level = level

    # What transports use

    def report(self, report: Report) -> None:
        if self.tap is not None:
            # Before the engine takes it: a call that is answered is not under way any more.
            self._trace(report)
        outcome = self.engine.settle(report) if type(report) is b.Delivered else None
        if outcome is None:
            effects = self.engine.report(report, self.loop.time())
            outcome = effects[0] if len(effects) == 1 else None
        if type(outcome) is b.Completed:
            waiter = self._waiters.pop(outcome.ticket, None)
            if waiter is not None:
                waiter.resume(outcome.result, self.loop, self.mailbox.task is not None)
            return
        self._apply(effects)
        if type(report) is b.Drained:
            self._links.pop(report.generation, None)
            self._signal()
            self._rest()

    # Inside

    def _apply(self, effects: list[Effect]) -> None:
        """Execute every effect, even if one of them fails."""
        ending: BaseException | None = None
        for effect in effects:
            try:
                _EFFECTS[type(effect)](self, effect)
            except BaseException as error:
                self._recover(effect, error)
                if isinstance(error, EXITS):
                    ending = error
        due = self._timers.due
        if due < self._alarm.at:
            self._alarm.set(due)
        if ending is not None:
            raise ending

    def _recover(self, effect: Effect, error: BaseException) -> None:
        """Replace the report that an effect which failed would have led to."""
        log.error("%s: %s failed", self.engine.name, type(effect).__name__, exc_info=error)
        report = report_of_failure(effect, error, self.engine.link.generation)
        if report is not None:
            self.loop.call_soon(self.report, report)

    def _tick(self, now: float) -> None:
        self._apply(self.engine.tick(now))

    def _received(self) -> int | None:
        return None if self._link is None else self._link.received()

    def _signal(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)

    def _send(self, command: b.Send) -> None:
        link = self._link
        if link is None:
            return
        waiter = self._waiters.get(command.ticket)  # type: ignore[arg-type]
        if waiter is None or waiter.context is None:
            taken = link.send(command.frame, command.wire_id, command.options)
        else:
            taken = waiter.context.run(link.send, command.frame, command.wire_id, command.options)
        if self.tap is not None and taken:
            self._trace(command)
        if not taken:
            self.report(b.Busy(self.engine.link.generation, command))
        elif waiter is not None and waiter.on_sent is not None and command.wire_id is not None:
            waiter.on_sent(command.wire_id)

    def _retract(self, command: b.Retract) -> None:
        link = self._link
        if link is None:
            return
        if link.withdraw(command.wire_id):
            self._withdrawn = command.ticket
            if self.tap is not None:
                self._trace(command)
        elif command.frame is not None:
            self._send(b.Send(command.frame, None, command.options, command.ticket))

    def _unsent(self) -> frozenset[WireId]:
        return frozenset() if self._link is None else self._link.unsent()

    def _unhandled(self, outcome: b.Unhandled) -> None:
        log.error("%s: internal error", self.engine.name, exc_info=outcome.error)

    def _finish(self, command: b.Finish) -> None:
        if self._link is not None:
            self._link.finish(command.wire_id)

    def _listen(self, command: b.OpenStream) -> None:
        if self._link is not None:
            self._link.listen(command.options)

    def _open(self, command: b.Open) -> None:
        generation, limits = command.generation, self.engine.policy.limits
        try:
            link = self._transport.open(generation, limits, self.report, command.variant)
        except HoldfastError as error:
            # It becomes the cause of errors elsewhere, where these frames tell nothing.
            self.loop.call_soon(self.report, b.Lost(generation, error.with_traceback(None)))
            return
        self._links[generation] = self._link = link

    def _check_read(self, command: b.CheckRead) -> None:
        unread = self._link is not None and self._link.unread()
        self.loop.call_soon(self.report, b.ReadChecked(self.engine.link.generation, unread))

    def _close(self, command: b.Close) -> None:
        self._link = None
        link = self._links.get(command.generation)
        if link is not None:
            link.close(command.farewell)
        else:
            self.loop.call_soon(self.report, b.Drained(command.generation))

    def _completed(self, outcome: b.Completed) -> None:
        waiter = self._waiters.pop(outcome.ticket, None)
        if waiter is not None and not waiter.future.done():
            waiter.future.set_result(outcome.result)

    def _failed(self, outcome: b.Failed) -> None:
        waiter = self._waiters.pop(outcome.ticket, None)
        if self.tap is not None:
            self._trace(b.Failed(outcome.ticket, self._truth(outcome)))
        if waiter is not None and waiter.future.done():
            self._failures[outcome.ticket] = self._truth(outcome)
        elif waiter is not None:
            waiter.future.set_exception(self._truth(outcome))

    def _truth(self, outcome: b.Failed) -> Failure:
        """Return the error of a request, which says whether it may have run."""
        withdrawn = self._withdrawn == outcome.ticket and outcome.unsent is not None
        return outcome.unsent if withdrawn else outcome.error  # type: ignore[return-value]

    def _progressed(self, outcome: b.Progressed) -> None:
        self.listener.notified("notifications/progress", len(outcome.progress))
        waiter = self._waiters.get(outcome.ticket)
        if waiter is not None and waiter.on_progress is not None:
            waiter.on_progress(outcome.progress)

    def _related(self, outcome: b.Related) -> None:
        self.listener.notified(outcome.method, 1)
        waiter = self._waiters.get(outcome.ticket)
        if waiter is not None and waiter.on_related is not None:
            waiter.on_related(outcome.params)

    def _moved(self, outcome: b.Moved) -> None:
        if self.tap is not None:
            self._trace(outcome)
        if outcome.new not in _UNDER_WAY:
            self._signal()
        if outcome.new is State.READY and self._link is not None:
            self._link.agreed()
        self.listener.moved(outcome)

    def _trace(self, crossing: Crossing) -> None:
        """Show the tap what crosses here. It cannot disturb what it looks at."""
        generation, ticket_of = self.engine.link.generation, self.engine.inflight.ticket_of
        try:
            if self.tap is not None:
                self.tap(crossing, perf_counter(), generation, ticket_of)
        except Exception:
            self.tap = None
            log.exception("%s: the tap failed and was taken off", self.engine.name)

    def show_faults(self, wire_id: WireId | None, faults: Sequence[tuple[str, str]]) -> None:
        """Show the tap that an answer does not fit its schema: the places, and what is wrong."""
        self._trace(b.Misfit(wire_id, tuple(faults)))

    def _check_attempt(self, call: Call) -> None:
        """Raise why the server is not becoming ready, if it is not."""
        engine = self.engine
        reason = engine.reason
        if engine.state is State.BACKOFF and reason is not None and (reason.final or not call.wait):
            raise messages.unconnected(engine.name, reason)
        if engine.state is State.CLOSING or engine.state is State.CLOSED:
            engine.open(self.loop.time(), call)

    async def _keep(self) -> AsyncGenerator[None]:
        """Be closed at the end of the loop, which closes its async generators.

        A task would do as well, which the loop cancels, but takes more memory and several turns
        of the loop to begin and to end.
        """
        try:
            yield
        finally:
            self._keeper = None
            if self._links:
                self.abandon()

    def abandon(self) -> None:
        """The loop goes away under us: no more waiting, everything ends now."""
        self._alarm.stop()
        # RuntimeError: the loop is closed, so nobody waits on it any more.
        for effect in self.engine.close(self.loop.time()):
            if type(effect) is b.Failed:
                with suppress(RuntimeError):
                    self._failed(effect)
        for link in list(self._links.values()):
            with suppress(RuntimeError):
                link.kill()
        self._links.clear()
        with suppress(RuntimeError):
            self._signal()


def _run(step: Awaitable[None]) -> None:
    """Run to its end, at once, what never waits."""
    for _ in step.__await__():
        raise AssertionError("it waits")


_UNDER_WAY: Final = frozenset({State.STARTING, State.INITIALIZING})

_EFFECTS: Final[dict[type, Callable[[Driver, Any], None]]] = {
    b.Open: Driver._open,
    b.Send: Driver._send,
    b.Finish: Driver._finish,
    b.OpenStream: Driver._listen,
    b.Retract: Driver._retract,
    b.CheckRead: Driver._check_read,
    b.Close: Driver._close,
    b.Completed: Driver._completed,
    b.Failed: Driver._failed,
    b.Related: Driver._related,
    b.Progressed: Driver._progressed,
    b.Noticed: lambda driver, outcome: driver.listener.noticed(outcome.method, outcome.params),
    b.Asked: lambda driver, outcome: driver.listener.asked(outcome),
    b.Dismissed: lambda driver, outcome: driver.listener.dismissed(outcome),
    b.Moved: Driver._moved,
    b.Starting: lambda driver, outcome: driver.listener.starting(outcome),
    b.Throttled: Driver._throttled,
    b.Violated: lambda driver, outcome: driver.listener.violated(outcome),
    b.Unhandled: Driver._unhandled,
}
