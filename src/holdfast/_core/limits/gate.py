"""All limits of one server, and its own word that calls should come later."""

# What passes the gate, and in which order
# ----------------------------------------
#
# Every request that the application makes passes it: tool calls, reads, prompts, completions. Lists
# need no place, since a call may need one first, but wait while the server wants no calls. What a
# call under way needs does not even do that (`UNLIMITED`): a ping, the polls and the end of a task,
# a subscription. Otherwise a server with one place could not be told to stop what takes it.
#
# A request waits, in this order, until the server takes calls again, for a place of its tool, and
# for one of the server. The place of a tool comes first: whoever waits for a rare tool must not
# keep others from a place of the server meanwhile. Then it looks once more whether the server has
# said "later" in the meantime.
#
# "Later" is HTTP status 429, or 503 with or without ``Retry-After``, and the JSON-RPC error
# ``-32023``, whose ``data.retryAfterMs`` says the same over stdio. It closes the gate for all, not
# only for the call that heard it, because each of them would be one more reason to refuse us. The
# engine sends the refused call again by itself (`engine.requests`); it keeps its place meanwhile.
# The time is the server's word, so it is bounded (`LONGEST`), and a little is added by chance:
# never less than the server asked for, and not all processes in the same moment.
#
# The breaker is the backoff. A call to a server that is down is refused by the engine at once, or
# waits for the connection, as ``when_down`` says. It is asked before a place or a token is taken.
#
# A call may make calls: a server asks, and the handler calls a tool of the same server while the
# first call has the only place. The second waits until its time is over. Give such servers more
# than one place.

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from holdfast._core.engine.state import State
from holdfast._core.limits.limiter import Limiter, Reason
from holdfast._core.limits.queue import CALLER
from holdfast._core.limits.waiting import Sender, wait_for_place
from holdfast._core.rate import parse_rate
from holdfast.stores.base import store_at

if TYPE_CHECKING:
    from holdfast._core.boundary import Call
    from holdfast.policies import Limits, ToolPolicy

TOOL_CALL: Final = "tools/call"
LIST: Final = "/list"
UNLIMITED: Final = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
    | {"tasks/get", "tasks/result", "tasks/cancel", "tasks/update", "tasks/list"}
)
"""Requests that no limit holds for."""


Places: TypeAlias = tuple[Limiter, ...]
"""The limiters that a call has entered, and leaves at its end."""


class Wait(NamedTuple):
    """What a call waits for."""

    reason: Reason
    limit: str
    """The limit, as it was written; "" if the server said "later"."""
    seconds: float | None = None
    """How long the server said; None: until another call ends."""


class Gate:
    """The limits of one server, for all clients that share them. A new one has none."""

    def __init__(self) -> None:
        self._of_all: Places = ()
        self._fitting: Callable[[str], Places] | None = None
        self._of_tool: dict[str, Places] = {}
        self._turns: dict[Sender, dict[asyncio.Timeout, None]] = {}
        """The clients that have made calls here, and their calls that wait."""
        self.closed_until: float = 0.0
        """The server takes no calls until then, on the loop's clock."""
        self._opened: asyncio.Future[None] | None = None
        """Done when it takes calls again: those who wait for it go on in the order of coming."""
        self._opens: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Gate {self._of_all!r}>"

    def limit(self, server: Limiter | None, fitting: Callable[[str], Places] | None) -> None:
        """Set the limit of all calls, and the function that returns those of a tool."""
        self._of_all = () if server is None else (server,)
        self._fitting = fitting

    def admit(self, driver: Sender, call: Call) -> Places | None:
        """Return the places of a request that a driver is to send now; None if it has to wait.

        Raises:
            StateError: The server is down, and the call does not wait for it.
        """
        if call.lasting or call.method in UNLIMITED:
            return ()
        now, state = driver.loop.time(), driver.engine.state
        if state is not State.READY and state is not State.NEW:
            driver.engine.open(now, call)
        if self.closed_until > now:
            return None
        limiters = self._limiters(call)
        for limiter in limiters:
            if not limiter.try_enter(now):
                for taken in limiters[: limiters.index(limiter)]:
                    taken.give_back()
                return None
        return limiters

    async def wait(self, driver: Sender, call: Call) -> tuple[Call, Places]:
        """Wait for the places of a call; return it with what is left of its time."""
        return await wait_for_place(driver, self, call)

    async def enter(self, call: Call, caller: Hashable, on_wait: Callable[[Wait], None]) -> Places:
        """Wait for the places of a call; tell what it waits for first."""
        loop = asyncio.get_running_loop()
        caller = caller if (name := CALLER.get()) is None else name
        limiters = self._limiters(call)
        taken: list[Limiter] = []
        try:
            await self._opening(loop, on_wait)
            for limiter in limiters:
                if not limiter.try_enter(loop.time()):
                    on_wait(Wait(limiter.reason, limiter.label))
                    await limiter.enter(caller)
                taken.append(limiter)
            await self._opening(loop, on_wait)
        except BaseException:
            for limiter in taken:
                limiter.give_back()
            raise
        return limiters

    async def _opening(
        self, loop: asyncio.AbstractEventLoop, on_wait: Callable[[Wait], None]
    ) -> None:
        """Wait until the server takes calls."""
        while (rest := self.closed_until - loop.time()) > 0:
            on_wait(Wait("later", "", rest))
            if self._opened is None or self._opened.done():
                self._opened = loop.create_future()
                self._opens = loop.call_at(self.closed_until, self._opened.set_result, None)
            await asyncio.shield(self._opened)

    def _limiters(self, call: Call) -> Places:
        """Return the limits that hold for a call, in the order in which they are entered."""
        if call.method != TOOL_CALL:
            return () if call.method.endswith(LIST) else self._of_all
        if self._fitting is None:
            return self._of_all
        limiters = self._of_tool.get(call.about)
        if limiters is None:
            limiters = self._of_tool[call.about] = (*self._fitting(call.about), *self._of_all)
        return limiters

    def close_for(self, seconds: float, now: float, *, told: bool = True) -> None:
        """Let no call pass for a while; ``told``: the server said so to this process."""
        self.closed_until = max(self.closed_until, now + seconds)
        for limiter in self._of_all if told else ():
            limiter.close_for(seconds)

    # The clients that share it

    def turns_of(self, driver: Sender) -> dict[asyncio.Timeout, None]:
        """Return the calls of a client that wait."""
        return self._turns.setdefault(driver, {})

    def has_waiting(self, driver: Sender) -> bool:
        """Return True if a call of a client waits."""
        return bool(self._turns.get(driver))

    def end_waits(self, driver: Sender) -> None:
        """End the calls of a client that wait, because it is closed."""
        for scope in self._turns.get(driver, ()):
            scope.reschedule(-math.inf)

    async def leave(self, driver: Sender) -> None:
        """Forget a client that is closed; give back what other processes could use."""
        self._turns.pop(driver, None)
        if self._opens is not None and not self._turns:
            self._opens.cancel()
            self._opened = None
        await self._release()

    def store_down(self, error: Exception) -> None:
        """Tell the clients that this process goes on with its part of the limits."""
        for driver in list(self._turns):
            driver.listener.store_down(error)

    async def _release(self) -> None:
        """Give back what other processes could use, if nothing is under way."""
        for limiter in {*self._of_all, *chain.from_iterable(self._of_tool.values())}:
            await limiter.release()


def make_gate(limits: Limits, tools: ToolPolicy, server: Hashable) -> Gate:
    """Return the gate of a server.

    Args:
        limits: The limits of the server.
        tools: Those of its tools.
        server: What leads to the server, the same in all processes; a name for the store is made
            of it, unless the limits have one.
    """
    return _Builder(limits, tools, server).gate


class _Builder:
    """Makes the limiters of one gate, which know the gate."""

    def __init__(self, limits: Limits, tools: ToolPolicy, server: Hashable) -> None:
        self.gate = Gate()
        self._limits, self._tools = limits, tools
        self._store = store_at(limits.store) if isinstance(limits.store, str) else limits.store
        self._key = f"limits/{limits.key or _digest(server)}"
        self._by_pattern: dict[str, Limiter] = {}
        limiter = None
        if limits.concurrent is not None or limits.rate is not None:
            limiter = self._limiter("", limits.concurrent, limits.rate)
        self.gate.limit(limiter, self._fitting if tools.is_limited else None)

    def _fitting(self, name: str) -> Places:
        """Return the limits of a tool. Tools that fit one pattern share its limit."""
        patterns = dict.fromkeys(filter(None, self._tools.limits_of(name)))
        return tuple(self._of_pattern(pattern) for pattern in patterns)

    def _of_pattern(self, pattern: str) -> Limiter:
        if pattern not in self._by_pattern:
            concurrent = self._tools.concurrent.get(pattern)
            rate = self._tools.rate.get(pattern)
            self._by_pattern[pattern] = self._limiter(pattern, concurrent, rate)
        return self._by_pattern[pattern]

    def _limiter(self, pattern: str, concurrent: int | None, rate: str | None) -> Limiter:
        parts = (
            None if concurrent is None else f"concurrent={concurrent}",
            None if rate is None else f"rate={rate}",
        )
        of_tool = f" for {pattern}" if pattern else ""
        label = ", ".join(filter(None, parts)) + of_tool
        parsed = None if rate is None else parse_rate(rate)
        if self._store is None:
            return Limiter(label, concurrent, parsed)
        from holdfast._core.limits.shared import SharedLimiter

        return SharedLimiter(
            label,
            concurrent,
            parsed,
            store=self._store,
            key=f"{self._key}/{pattern}" if pattern else self._key,
            lease=self._limits.lease,
            on_down=self.gate.store_down,
            on_closed=self._closed_elsewhere,
        )

    def _closed_elsewhere(self, seconds: float) -> None:
        self.gate.close_for(seconds, asyncio.get_running_loop().time(), told=False)


def _digest(server: Hashable) -> str:
    """Return a name for the store, without the secrets that a command or a URL may have."""
    from hashlib import sha256

    return sha256(repr(server).encode("utf-8", "surrogatepass")).hexdigest()[:32]
