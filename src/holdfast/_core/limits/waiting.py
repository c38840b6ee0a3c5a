"""A call that waits for its place under the limits of a server, within its own time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from holdfast._core.boundary import Call, DriverListener, Waiting
from holdfast._core.engine import messages
from holdfast._core.engine.connection import Connection
from holdfast._core.engine.state import State
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast._core.limits.gate import Gate, Places, Wait


class Sender(Protocol):
    """The driver, as far as a gate needs it."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def engine(self) -> Connection: ...
    @property
    def listener(self) -> DriverListener: ...


async def wait_for_place(driver: Sender, gate: Gate, call: Call) -> tuple[Call, Places]:
    """Wait for the places of a call; return it with what is left of its time.

    Raises:
        RequestTimeout: There was no place in time.
        BackpressureError: The server takes calls again only after that.
        ShutdownError: The client was closed meanwhile.
    """
    loop, name = driver.loop, driver.engine.name
    since = loop.time() if call.since is None else call.since
    span = call.total if call.place_within is None else call.place_within
    waits: list[Wait] = []

    def on_wait(wait: Wait) -> None:
        rest = since + span - loop.time()
        if wait.seconds is not None and wait.seconds > rest:
            raise messages.turned_away(name, call, wait.seconds, rest)
        if not waits:
            driver.listener.waiting(Waiting(call.method, call.about, *wait))
        waits.append(wait)

    scope, turns = asyncio.timeout_at(since + span), gate.turns_of(driver)
    turns[scope] = None
    try:
        async with scope:
            places = await gate.enter(call, id(driver), on_wait)
    except TimeoutError as error:
        if isinstance(error, HoldfastError):
            raise
        if driver.engine.state in (State.CLOSING, State.CLOSED):
            raise messages.shut(name, call, sent=False) from None
        raise messages.no_place(name, call, waits[-1].reason, waits[-1].limit, span) from None
    except asyncio.CancelledError as cancelled:
        cancelled.__cause__ = messages.cancelled(name, call, sent=False)
        raise
    finally:
        del turns[scope]
    return _with_rest(call, since, loop.time()), places


def _with_rest(call: Call, since: float, now: float) -> Call:
    """Return a call with the time that is left: its silence is the server's only from now on.

    A caller who named a timeout means all of it.
    """
    if call.place_within is not None:
        return call
    waited = now - since
    return replace(call, since=now, total=call.total - waited, spent=call.spent + waited)
