"""One request on the straight way: to the server and back, without a task."""

# Most requests need nothing of a relay but another id. For them, each step of the general way
# (`Relay.pass_request`) is idle: a task that waits, a deadline that the engine has as well, rounds
# of questions that do not come, rules that are not there. They go straight:
#
#   host ─▶ ServerSession ─▶ begin, Passage ─▶ Driver.begin ─▶ server       in the host's read
#   host ◀─ ServerSession ◀─ Passage.ended ◀─ Driver.report ◀ server        in the server's read
#
# `begin` says whether a request may. It may not
#
# - where something has to be waited for or done before: the server is not connected, a limit, a
#   list of allowed tools, a lock file, another log level, headers for arguments (HTTP, which also
#   has logins);
# - where something looks at the call: an observer, a handler of all progress;
# - where it is about a task, or may become one; where its answer may be there already;
# - where it goes on with another: a request that brings a ``requestState``;
# - where somebody waits for the answer to do more with it: a request made of the host's.
#
# A stateless host is asked by results, a handshake server by requests, and the two meet in
# `Questions`. A call between them goes straight, too, until the server asks something. Then it is
# parked: a future takes the place of the host, and whoever follows the call waits for that.
#
# What is the same on both ways, because hosts and servers can tell: the parameters that are sent,
# the order of what the host gets (its progress comes before its answer, and so do notifications:
# the driver does not hurry past a handler that waits), errors, time limits, and that a cancelled
# call is cancelled at the server. A result of a stateless server that asks a handshake host
# something leaves the straight way: a task goes on with the rounds.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from holdfast._core.boundary import Call
from holdfast._core.engine.state import State
from holdfast._core.eras.base import COMPLETE
from holdfast._core.server.request import SILENCE, ServerRequest, outcome
from holdfast._core.waiting import Receiver
from holdfast._core.wire.codes import cancel_reason
from holdfast.errors import ValidationError
from holdfast.relay.questions import MAY_ASK, OpenCall, Questions
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast._core.boundary import Ticket
    from holdfast._core.driver import Driver
    from holdfast._core.waiting import Failure
    from holdfast.relay.passing import Relay


class Passage(Receiver):
    """A request that is at the server: making one sends it.

    Args:
        relay: Of the host that sent it.
        request: What it sent.
        call: What the server is sent.
        driver: Of the client that sends it.
    """

    __slots__ = ("_call", "_driver", "_parked", "_relay", "_request", "_ticket")

    def __init__(self, relay: Relay, request: ServerRequest, call: Call, driver: Driver) -> None:
        self._loop = driver.loop
        self._is_done = self._is_over = False
        self._relay = relay
        self._request = request
        self._call = call
        self._driver = driver
        self._parked: asyncio.Future[Raw] | None = None
        """Takes the outcome in the place of the host."""
        relay.followed[request] = self
        relay.open_calls += 1
        request.stop = self.stop
        if driver.shows_messages:
            relay.requester.hold_shown(call)
        on_progress = self._progressed if call.progress else None
        self._ticket: Ticket = driver.begin(call, self, on_progress)

    def stop(self, reason: str = "cancelled") -> None:
        """Cancel it at the server: nobody waits for its answer any more."""
        self._leave()
        self._driver.end(self._ticket, self, str(reason))

    def park(self) -> asyncio.Future[Raw]:
        """Give the outcome to a future from now on; cancelling that cancels the call."""
        self._parked = parked = self._loop.create_future()
        parked.add_done_callback(self._unpark)
        del self._request.stop
        return parked

    def _unpark(self, parked: asyncio.Future[Raw]) -> None:
        self._relay.open_calls -= 1
        try:
            parked.exception()
        except asyncio.CancelledError as cancelled:
            self._driver.end(self._ticket, self, cancel_reason(cancelled) or "cancelled")

    def _leave(self) -> None:
        relay, request = self._relay, self._request
        del relay.followed[request]
        relay.open_calls -= 1
        # A request that leads back to itself would be left to the garbage collector.
        del request.stop

    def _progressed(self, reports: list[Progress]) -> None:
        for progress in reports:
            self._relay.report(self._request, progress)

    def ended(self, result: Raw | None, error: Failure | None) -> None:
        """Answer the host."""
        if self._parked is not None:
            self._settle(self._parked, result, error)
            return
        request, era = self._request, self._driver.engine.link.era
        self._leave()
        # Not the era in which it was sent first: the server may have been replaced meanwhile.
        if result is not None and era is not None and request.stateless is era.listens:
            request.session.pass_result(request, result)
            return
        try:
            answer = self._answer(result, error)
        except Exception as defect:
            answer = outcome(request, defect)
        request.session.finish(request, answer)

    def _settle(
        self, parked: asyncio.Future[Raw], result: Raw | None, error: Failure | None
    ) -> None:
        if parked.done():
            return  # it was cancelled in this turn of the loop
        if result is not None:
            parked.set_result(result)
        elif error is not None:
            parked.set_exception(self._relay.fault(self._call, error))

    def _answer(self, result: Raw | None, error: Failure | None) -> Any:
        """Return what the host is answered with; SILENCE if it has to wait."""
        relay, request, call = self._relay, self._request, self._call
        if result is None:
            assert error is not None
            if relay.tasks.is_required(request, error):
                request.session.wait_for(request, relay.pass_request(request))
                return SILENCE
            return relay.fault(call, error)
        if not request.stateless and self._driver.read(call.method, result) is not COMPLETE:
            request.session.wait_for(request, relay.go_on(request, call, result))
            return SILENCE
        return relay.returned(request, result)


def follow_all(
    relay: Relay, followed: dict[ServerRequest, Passage | None], questions: Questions
) -> None:
    """Have tasks follow the requests that went straight: the server asks the host something."""
    for request, passage in followed.items():
        if passage is not None and request.stateless and request.method in MAY_ASK:
            followed[request] = None
            call = questions.take(request, passage.park())
            request.session.wait_for(request, _follow(relay, request, call, followed, questions))
            # The call, not its follower: that may not have had its first turn yet.
            request.stop = call.work.cancel


async def _follow(
    relay: Relay,
    request: ServerRequest,
    call: OpenCall,
    followed: dict[ServerRequest, Passage | None],
    questions: Questions,
) -> Any:
    try:
        result = await questions.follow(call)
    finally:
        del followed[request]
    return relay.returned(request, result)


def begin(relay: Relay, request: ServerRequest) -> object | None:
    """Send a request on the straight way; None if it needs another, or is not to be sent."""
    requester = relay.requester
    driver = requester.opener.started
    if driver is None or driver.gate is not None or relay.rules.are_there:
        return None
    engine = driver.engine
    if engine.state is not State.READY or engine.link.streams:
        return None
    if requester.observers.all or requester.progress_handlers or _needs_more(relay, request):
        return None
    try:
        call = relay.call(request, driver.loop.time())
    except ValidationError:
        return None  # it is refused where that is explained
    Passage(relay, request, call, driver)
    return SILENCE


def _needs_more(relay: Relay, request: ServerRequest) -> bool:
    """Return whether a request goes on with another, or has to wait for something."""
    if request.is_copy or (relay.log_level is not None and relay.shared.is_level_new):
        return True
    if relay.tasks.concern(request):
        return True
    if relay.shared.cache is not None and relay.shared.cache.holds(request):
        return True
    if not request.stateless or request.method not in MAY_ASK:
        return False
    return "requestState" in request.fields or "inputResponses" in request.fields
