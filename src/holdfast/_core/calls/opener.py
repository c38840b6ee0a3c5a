"""Start the driver of one client, wait for its connection, and log in where that is needed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from holdfast._core.boundary import Call, DriverListener, LinkChanged, Transport
from holdfast._core.calls.deadline import Deadline, seconds
from holdfast._core.calls.logins import CallLogins
from holdfast._core.engine.state import State
from holdfast._core.eras.base import Era
from holdfast.errors import HoldfastError, LoginRequired, StateError, TransportError
from holdfast.policies import Policy

if TYPE_CHECKING:
    from holdfast._core.driver import Driver
    from holdfast._core.eras.conversation import Plan
    from holdfast._core.limits.gate import Gate
    from holdfast._core.tap import Watcher

T = TypeVar("T")


class Opener(Struct, eq=False):
    """Opens the connection of one client, which the first request starts."""

    name: str
    transport: Transport
    policy: Policy
    plan: Plan
    logins: CallLogins
    listener: DriverListener | None = None
    """Receives what the server sends unasked. The client sets it when all its parts exist."""
    started: Driver | None = None
    """The driver; None before the first request."""
    tap: Watcher | None = None
    """Sees what crosses between the client and its transport."""
    gate: Gate | None = None
    """The limits of the server."""

    @property
    def driver(self) -> Driver:
        """The driver, on the loop that runs now; it stays with that loop."""
        driver = self.started
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:
            text = f"{self.name}: no event loop of asyncio is running here; trio is not supported"
            raise StateError(text, state=self.state) from error
        if driver is None:
            from holdfast._core.driver import Driver

            assert self.listener is not None
            driver = self.started = Driver(
                self.name,
                self.transport,
                self.policy,
                self.plan,
                self.listener,
                tap=self.tap,
                gate=self.gate,
            )
        elif driver.loop is not loop:
            raise StateError(
                f"{self.name}: this client belongs to another event loop; open one client per loop",
                state=driver.state,
            )
        return driver

    @property
    def state(self) -> State:
        return State.NEW if self.started is None else self.started.state

    def era(self) -> Era | None:
        """Return the revision agreed last; None before the first connection."""
        return None if self.started is None else self.started.era

    # Connecting

    async def open(self, *, wait: bool = False, timeout: float | None = None) -> None:
        """Connect, even if attempts have ended with an error that only a person can fix."""
        driver = self.driver
        until = math.inf
        if timeout is not None:
            timeout = seconds("timeout", timeout)
            until = driver.loop.time() + timeout
        if driver.reason is not None and driver.reason.final:
            driver.retry_now()
        await self._open(Call("open", wait=wait), timeout, until)

    async def connected(self, deadline: Deadline, *, persist: bool = False) -> Era:
        """Wait for a connection as a call would, and return its era.

        ``persist`` waits over failed attempts until the end of the deadline.
        """
        driver = self.driver
        if driver.state is not State.READY:
            wait, span = persist or self.policy.when_down == "wait", deadline.total
            if not persist and (deadline.by_caller or wait):
                span = min(deadline.idle, span)
            rest = max(0.0, deadline.since + span - driver.loop.time())
            call = Call(deadline.method, about=deadline.about, wait=wait)
            await self._open(call, rest, deadline.until, deadline.idle)
        assert driver.era is not None
        return driver.era

    async def in_era(self, deadline: Deadline, work: Callable[[Era], Awaitable[None]]) -> None:
        """Run ``work``, which differs by era, again if the server is replaced meanwhile."""
        while True:
            era = await self.connected(deadline)
            try:
                return await work(era)
            except LinkChanged:
                continue

    async def _open(
        self, call: Call, timeout: float | None, until: float, idle: float | None = None
    ) -> None:
        """Connect for a call before ``until``; log in first if that is needed and allowed."""
        driver = self.driver

        def attempt(logins: int) -> Awaitable[None]:
            rest = timeout
            if rest is not None:
                rest = max(0.0, min(rest, until - driver.loop.time()))
            return driver.open(call, timeout=rest)

        await self.with_logins(attempt, until, idle)

    # Logins

    async def with_logins(
        self, attempt: Callable[[int], Awaitable[T]], until: float, idle: float | None = None
    ) -> T:
        """Return what an attempt returns; make another after each login that it needs.

        ``attempt`` is called with the number of logins before it.
        """
        logins = 0
        while True:
            try:
                return await attempt(logins)
            except LoginRequired as error:
                logins += 1
                await self.log_in_again(error, logins, until, idle)

    async def log_in_again(
        self, error: LoginRequired, logins: int, until: float, idle: float | None = None
    ) -> None:
        """Log in before ``until``, so that what failed with ``error`` can be tried again."""
        await self.logins.recover(error, logins, until, idle)
        self.driver.retry_now()

    async def log_in(self, *, fresh: bool) -> None:
        """Log in, whether or not the server has asked for it yet."""
        driver = self.driver
        if self.logins.authorizer.need is None:
            # What the server says when it refuses tells where to log in, and for what.
            try:
                await driver.open(Call("open"))
            except TransportError as error:
                if error.code is None:
                    raise  # It says nothing: it cannot be reached.
            except HoldfastError:
                pass
        await self.logins.log_in(fresh=fresh)
        driver.retry_now()
