"""One call, written out plainly: send, answer what the server asks, check, return."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from holdfast._core.boundary import Call, Transport
from holdfast._core.calls.handlers import Handlers, ProgressHandler
from holdfast._core.calls.inbound import Reception
from holdfast._core.calls.inputs import Inputs
from holdfast._core.calls.logins import Logins
from holdfast._core.driver import Driver
from holdfast._core.engine import messages
from holdfast._core.engine.state import State
from holdfast._core.eras.base import COMPLETE, Era, Invalid, NeedsInput
from holdfast._core.eras.negotiation import Opening, Plan
from holdfast._core.mailbox import log
from holdfast._core.observers.observer import Observation, correlation_id
from holdfast.errors import HoldfastError, ProtocolError, StateError, ValidationError
from holdfast.policies import Policy
from holdfast.types.base import Wire, decode
from holdfast.types.notifications import Progress

W = TypeVar("W", bound=Wire)

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are not what they should be."""


class Pipeline:
    """Runs the calls of one client over its driver, which starts with the first of them."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        policy: Policy,
        handlers: Handlers,
        opening: Opening | None = None,
    ) -> None:
        self.name = name
        self.policy = policy
        self.inputs: Inputs = Inputs(handlers)
        self.observation: Observation = Observation(name)
        self.reception: Reception = Reception(
            name, self.inputs, policy.limits.asks, self.observation
        )
        self.watchers: list[ProgressHandler] = []
        """Who hears the progress of every call."""
        self._transport = transport
        self._plan = Plan(
            policy.identity,
            handlers.abilities,
            pin=policy.protocol,
            opening=opening,
            patience=policy.timeouts.probe,
        )
        self._driver: Driver | None = None
        self.logins: Logins = Logins(name, transport, handlers.login)
        if handlers.notification is not None:
            self.reception.add(handlers.notification, None)
        if handlers.progress is not None:
            self.watchers.append(handlers.progress)

    @property
    def started(self) -> Driver | None:
        """The driver, if anything has been asked of it yet."""
        return self._driver

    @property
    def driver(self) -> Driver:
        """The driver, on the loop that runs now; it stays with that loop."""
        driver = self._driver
        if driver is None:
            driver = Driver(self.name, self._transport, self.policy, self._plan, self.reception)
            self._driver = driver
            self.reception.driver = driver
            self.observation.events.post = driver.mailbox.post
        elif driver.loop is not asyncio.get_running_loop():
            raise StateError(
                f"{self.name}: this client belongs to another event loop; open one client per loop",
                state=driver.engine.state,
            )
        return driver

    async def connected(self) -> Era:
        """Wait for a connection as a call would, and say which era it is in."""
        driver = self.driver
        if driver.engine.state is not State.READY:
            wait = self.policy.when_down == "wait"
            await self.open(wait=wait, timeout=self.policy.timeouts.request)
        assert driver.engine.era is not None
        return driver.engine.era

    async def open(self, *, wait: bool = False, timeout: float | None = None) -> None:
        """Connect, logging in first where that is needed and allowed."""
        driver = self.driver
        await self.logins.run(lambda: driver.open(wait=wait, timeout=timeout), driver.retry_now)

    async def log_in(self, *, fresh: bool) -> None:
        """Log in, whether or not the server has asked for it yet."""
        driver = self.driver
        if self.logins.account.need is None:
            try:
                # What the server says when it refuses tells where to log in, and for what.
                await driver.open()
            except HoldfastError:
                pass
        await self.logins.log_in(fresh=fresh)
        driver.retry_now()

    async def _send(self, call: Call, until: float, sink: Callable[[Progress], None] | None) -> Raw:
        """Send a request until ``until``, after a login if the server wants one."""
        driver = self.driver

        def attempt() -> Coroutine[Any, Any, Raw]:
            call.total = max(0.001, until - driver.loop.time())
            return driver.request(call, on_progress=sink)

        return await self.logins.run(attempt, driver.retry_now, until)

    def prepare(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        about: str = "",
        timeout: float | None = None,
        total_timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Call:
        """A call with its deadlines: the caller's own, else those of its kind."""
        times = self.policy.timeouts
        idle = times.for_method(method) if timeout is None else _span("timeout", timeout)
        if total_timeout is None:
            total = max(times.total, idle)
        else:
            total = _span("total_timeout", total_timeout)
        return Call(method, params, None if meta is None else dict(meta), idle, total, about)

    def run(
        self,
        call: Call,
        on_progress: ProgressHandler | None = None,
        correlation: str | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """The final result of a call."""
        work = self._run(call, on_progress)
        if not self.observation.events.requests and self.observation.tracer is None:
            return work
        return self.observation.watch(call, correlation or correlation_id(), work)

    async def _run(self, call: Call, on_progress: ProgressHandler | None) -> Raw:
        driver = self.driver
        sink = None
        if on_progress is not None or self.watchers:
            call.progress = True
            sink = self._sink(driver, on_progress)
        until = driver.loop.time() + call.total
        raw = await self._send(call, until, sink)
        era = driver.engine.era
        assert era is not None
        if era.read(call.method, raw) is COMPLETE:
            return raw
        try:
            async with asyncio.timeout_at(until):
                return await self._rounds(driver, call, raw, until, sink)
        except TimeoutError as error:
            if isinstance(error, HoldfastError):
                raise
            raise messages.unanswered(self.name, call) from None

    async def _rounds(
        self,
        driver: Driver,
        call: Call,
        raw: Raw,
        until: float,
        sink: Callable[[Progress], None] | None,
    ) -> Raw:
        """The server wants answers first: give them and ask again, a bounded number of times."""
        name = driver.engine.name
        first = call.params or {}
        for _ in range(self.policy.limits.rounds):
            era = driver.engine.era
            assert era is not None
            reading = era.read(call.method, raw)
            if isinstance(reading, Invalid):
                raise messages.bad_answer(name, call, reading.reason)
            if not isinstance(reading, NeedsInput):
                return raw
            call.params = await self._with_answers(name, first, reading)
            raw = await self._send(call, until, sink)
        limit = self.policy.limits.rounds
        text = f"{name}: {messages.subject(call)}: still asking after {limit} rounds"
        raise ProtocolError(text, outcome_unknown=True)

    async def _with_answers(
        self, name: str, params: dict[str, Any], reading: NeedsInput
    ) -> dict[str, Any]:
        again = dict(params)
        if reading.requests:
            again["inputResponses"] = await self.inputs.answer_all(name, reading.requests)
        if reading.state is not None:
            again["requestState"] = reading.state
        return again

    def _sink(
        self, driver: Driver, on_progress: ProgressHandler | None
    ) -> Callable[[Progress], None]:
        """Progress goes straight from the read to plain functions, by mailbox to async ones."""
        wanted = [*self.watchers, *(() if on_progress is None else (on_progress,))]
        handlers = [(one, inspect.iscoroutinefunction(one)) for one in wanted]
        post = driver.mailbox.post

        def tell(progress: Progress) -> None:
            for handler, is_async in handlers:
                if is_async:
                    post(handler, progress)
                    continue
                try:
                    result = handler(progress)
                except Exception:
                    log.exception("%s: a progress handler failed", driver.engine.name)
                else:
                    if result is not None and inspect.isawaitable(result):
                        post(_itself, result)

        return tell

    def decode(self, call: Call, raw: Raw | bytes, kind: type[W]) -> W:
        """A result as the type that the call expects."""
        try:
            return decode(raw, kind)
        except UNREADABLE as error:
            raise self.broken(call, str(error)) from error

    def broken(self, call: Call, reason: str) -> HoldfastError:
        return messages.bad_answer(self.name, call, reason)

    async def close(self) -> bool:
        driver = self.driver
        self.reception.close()
        return await driver.close()

    @property
    def state(self) -> State:
        return State.NEW if self._driver is None else self._driver.engine.state


def _itself(result: Any) -> Any:
    """What a plain function returned is to be awaited in its turn."""
    return result


def _span(name: str, value: float) -> float:
    if type(value) not in (int, float) or not value > 0:
        raise ValidationError(f"{name}={value!r}: must be a number of seconds, more than 0")
    return value
