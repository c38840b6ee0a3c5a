"""The engine: one client's connection as a pure machine.

Calls come from above, reports from below, and time as an argument; every method gives back
effects for the driver to carry out. ``due`` says when ``tick`` wants to be called next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.boundary import (
    Asked,
    Busy,
    Call,
    Close,
    Delivered,
    Drained,
    Effect,
    Generation,
    Lost,
    Moved,
    Open,
    Opened,
    Report,
    Send,
    Sound,
    Sounded,
    Ticket,
    WireId,
)
from holdfast.config import Policy
from holdfast.engine import wording
from holdfast.engine.greeting import Greeting
from holdfast.engine.inbox import Inbox
from holdfast.engine.inflight import NEVER, Inflight
from holdfast.engine.line import Line
from holdfast.engine.requests import Requests
from holdfast.engine.state import State, Step, advance
from holdfast.eras.base import Era
from holdfast.eras.negotiation import Agreement, Facts, NoAgreement, Opening, Plan, StartAgain
from holdfast.errors import HoldfastError
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Message

SWEEP = 60.0
"""Seconds between sweeps of the tombstones."""

_LIVE = frozenset({State.STARTING, State.INITIALIZING, State.READY})


class Connection:
    """States, links, negotiation and recovery of one client."""

    def __init__(self, name: str, policy: Policy, plan: Plan, luck: Iterator[float]) -> None:
        self.name = name
        self.policy = policy
        self.state = State.NEW
        self.facts: Facts | None = None
        self.reason: HoldfastError | None = None
        """Why the last link was lost."""
        self.opening = plan.opening
        """How this server wants to be addressed, once known."""
        self.log_level: str | None = None
        """What the server is told on every new link."""
        self.due = NEVER
        self._plan = plan
        self._luck = luck
        self._line = Line()
        self._requests = Requests(name, policy, self._line, luck)
        self._inbox = Inbox(name, self._line, self._requests.inflight, self._hear)
        self._failures = 0
        self._ready_since = 0.0
        self._retry_at = NEVER
        self._handshake_until = NEVER
        self._sweep_at = NEVER
        self._spoilt: HoldfastError | None = None
        """What the first opening of this attempt died of."""
        self._gave_up = False

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.state} #{self.generation} {self.inflight!r}>"

    @property
    def era(self) -> Era | None:
        return self._line.era

    @property
    def generation(self) -> Generation:
        return self._line.generation

    @property
    def inflight(self) -> Inflight:
        return self._requests.inflight

    @property
    def violations(self) -> dict[str, int]:
        """How often the server did what it must not, by kind."""
        return dict(self._inbox.violations)

    # Calls from above

    def open(self, now: float, *, wait: bool = True) -> list[Effect]:
        """Start, if that has not been done; a pause before the next attempt is not cut short.

        Raises if there is nothing to hope for: the client is closed, or down and not to wait.
        """
        out: list[Effect] = []
        if self.state is State.NEW:
            self._start(Step.OPEN, now, out)
        elif self.state is not State.READY:
            self._check_open(Call("open", wait=wait), now)
        return out

    def call(self, call: Call, now: float) -> tuple[Ticket, list[Effect]]:
        """Take a request; raise if this state does not allow it."""
        out: list[Effect] = []
        if self.state is not State.READY:
            self._check_open(call, now)
        pending = self.inflight.admit(call, now)
        self._alarm(pending.deadline)
        if self.state is State.READY:
            self._requests.dispatch(pending, out)
        elif self.state is State.NEW:
            self._start(Step.OPEN, now, out)
        return pending.ticket, out

    def cancel(self, ticket: Ticket, reason: str, now: float) -> list[Effect]:
        """End a request once; the second time there is nothing left to end."""
        out: list[Effect] = []
        self._requests.cancel(ticket, reason, now, out)
        self._watch_tombstones(now)
        return out

    def notify(self, method: str, params: dict[str, Any] | None = None) -> list[Effect]:
        """Tell the server something; it is not worth waiting for a connection."""
        if self.state is not State.READY or self.era is None or not self.era.may_ask:
            return []
        return [Send(jsonrpc.notification(method, params))]

    def answer(self, asked: Asked, result: Any) -> list[Effect]:
        """Answer a request of the server, unless its link is gone."""
        if asked.generation != self.generation:
            return []
        try:
            return [Send(jsonrpc.response(asked.id, result))]
        except jsonrpc.UNENCODABLE as error:
            return self.refuse(asked, jsonrpc.INTERNAL_ERROR, f"unusable result: {error}")

    def refuse(self, asked: Asked, code: int, message: str) -> list[Effect]:
        if asked.generation != self.generation:
            return []
        return [Send(jsonrpc.error_response(asked.id, code, message))]

    def close(self, now: float) -> list[Effect]:
        """End everything at once; any state, any number of times."""
        out: list[Effect] = []
        live = self.state in _LIVE
        self._move(Step.CLOSE, out)
        self._requests.shut(now, out)
        if live:
            out.append(Close(self.generation))
        self._rest()
        return out

    # Reports from below

    def report(self, report: Report, now: float) -> list[Effect]:
        """Take a report; one of an older link is not heard (the generation gate)."""
        out: list[Effect] = []
        if report.generation == self._line.generation:
            _REPORTS[type(report)](self, report, now, out)
        return out

    def _opened(self, report: Opened, now: float, out: list[Effect]) -> None:
        if self.state is not State.STARTING:
            return
        self._move(Step.OPENED, out)
        plan = replace(self._plan, opening=self.opening)
        self._line.greeting = greeting = Greeting(plan, self.inflight)
        greeting.begin(now, out)
        self._alarm(greeting.sound_at)

    def _delivered(self, report: Delivered, now: float, out: list[Effect]) -> None:
        if self.state is State.READY or self.state is State.INITIALIZING:
            self._inbox.take(report, now, out)

    def _busy(self, report: Busy, now: float, out: list[Effect]) -> None:
        self._alarm(self._requests.busy(report.wire_id, now, out))

    def _sounded(self, report: Sounded, now: float, out: list[Effect]) -> None:
        greeting = self._line.greeting
        if greeting is not None:
            self._converse(greeting, lambda: greeting.silence(report.unread, now, out), now, out)

    def _lost(self, report: Lost, now: float, out: list[Effect]) -> None:
        if self.state is State.CLOSING or self.state is State.CLOSED:
            self._move(Step.LOST, out)
        elif self._may_have_died_of_probe():
            self._start_again("initialize", report.error, now, out)
        elif self.state in _LIVE:
            self._lose(report.error, report.unsent, now, out)

    def _drained(self, report: Drained, now: float, out: list[Effect]) -> None:
        if self.state is State.CLOSING:
            self._move(Step.DRAINED, out)

    # Time

    def tick(self, now: float) -> list[Effect]:
        """Do what is due; then ``due`` is the next time to call."""
        out: list[Effect] = []
        if self._handshake_until <= now:
            self._handshake_timeout(now, out)
        if self._retry_at <= now:
            self._start(Step.DUE, now, out)
        greeting = self._line.greeting
        if greeting is not None and greeting.sound_at <= now:
            greeting.sound_at = NEVER
            out.append(Sound())
        if self.state is State.READY:
            self._requests.dispatch_retries(now, out)
        self._requests.expire(now, out)
        if self._sweep_at <= now:
            self.inflight.sweep(now)
            self._sweep_at = NEVER
        self._arm(now)
        return out

    def _arm(self, now: float) -> None:
        self.due = NEVER
        self._watch_tombstones(now)
        if self._line.greeting is not None:
            self._alarm(self._line.greeting.sound_at)
        for at in (
            self._handshake_until,
            self._retry_at,
            self._sweep_at,
            self.inflight.deadline(),
        ):
            self._alarm(at)

    def _alarm(self, at: float) -> None:
        """Be called at ``at``, or earlier."""
        if at < self.due:
            self.due = at

    def _watch_tombstones(self, now: float) -> None:
        if self._sweep_at == NEVER and self.inflight.tombstones:
            self._sweep_at = now + SWEEP
            self._alarm(self._sweep_at)

    def _handshake_timeout(self, now: float, out: list[Effect]) -> None:
        span = self.policy.timeouts.handshake
        greeting = self._line.greeting
        error = (
            wording.slow_start(span)
            if greeting is None
            else wording.slow_handshake(span, greeting.waiting_for)
        )
        self._lose(error, frozenset(), now, out)

    # Connecting

    def _check_open(self, call: Call, now: float) -> None:
        if self.state is State.BACKOFF and not self._requests.waits(call):
            raise wording.down(self.name, call, self.reason, max(0.0, self._retry_at - now))
        if self._gave_up and self.reason is not None:
            raise wording.gave_up(self.name, call, self.reason)
        if self.state is State.CLOSED or self.state is State.CLOSING:
            raise wording.closed(self.name, call, self.state)

    def _start(self, step: Step, now: float, out: list[Effect]) -> None:
        self._move(step, out)
        self._retry_at = NEVER
        self._handshake_until = now + self.policy.timeouts.handshake
        self._alarm(self._handshake_until)
        out.append(Open(self._line.advance()))

    def _hear(self, message: Message, now: float, out: list[Effect]) -> bool:
        """Give an answer to the negotiation, if it is for it."""
        greeting = self._line.greeting
        if greeting is None:
            return False
        wire_id = greeting.question(message.id)
        if wire_id is None:
            return False
        self._converse(greeting, lambda: greeting.hear(wire_id, message, now, out), now, out)
        return True

    def _converse(
        self,
        greeting: Greeting,
        turn: Callable[[], Agreement | None],
        now: float,
        out: list[Effect],
    ) -> None:
        try:
            agreement = turn()
        except StartAgain as again:
            self._start_again(again.opening, None, now, out)
        except NoAgreement as failure:
            if failure.final:
                self._give_up(failure.error, now, out)
            else:
                self._lose(failure.error, frozenset(), now, out)
        else:
            self._alarm(greeting.sound_at)
            if agreement is not None:
                self._agree(greeting, agreement, now, out)

    def _agree(
        self, greeting: Greeting, agreement: Agreement, now: float, out: list[Effect]
    ) -> None:
        for wire_id in greeting.asked:
            self.inflight.bury(wire_id, now)
        self._watch_tombstones(now)
        self._line.greeting = None
        self._line.era = agreement.era
        self.facts, self.opening = agreement.facts, agreement.opening
        self.reason = self._spoilt = None
        self._handshake_until = NEVER
        self._ready_since = now
        out.extend(Send(frame) for frame in agreement.era.greet())
        self._restore_log_level(agreement.era, now, out)
        self._move(Step.AGREED, out)
        self._requests.dispatch_parked(out)

    def _restore_log_level(self, era: Era, now: float, out: list[Effect]) -> None:
        wish = None if self.log_level is None else era.log_level(self.log_level)
        if wish is not None:
            wire_id = self.inflight.number()
            self.inflight.bury(wire_id, now)
            out.append(Send(jsonrpc.request(wire_id, wish.method, wish.params)))

    # Losing

    def _lose(
        self, error: HoldfastError, unsent: frozenset[WireId], now: float, out: list[Effect]
    ) -> None:
        """The link is gone: settle or keep what was under way, and plan the next attempt."""
        if self._spoilt is not None:
            error, self._spoilt = wording.died_of_probe(self._spoilt, error), None
        connected = self.state is State.READY
        if not connected:
            # What we remember of this server may be out of date: find out anew.
            self.opening = None
        elif now - self._ready_since >= self.policy.backoff.healthy_after:
            self._failures = 0
        self._failures += 1
        self.reason = error
        self._requests.lose(error, unsent, connected=connected, now=now, out=out)
        self._watch_tombstones(now)
        self._leave(Step.LOST, out)
        attempts = self.policy.backoff.attempts
        if attempts is not None and self._failures >= attempts:
            self._end(Step.GIVE_UP, error, now, out)
            return
        self._retry_at = now + self.policy.backoff.delay(self._failures, self._luck)
        self._alarm(self._retry_at)

    def _may_have_died_of_probe(self) -> bool:
        """Some old servers die of an unknown first message; once, they get the other opening."""
        greeting = self._line.greeting
        if greeting is None or greeting.answered or self._spoilt is not None:
            return False
        return greeting.plan.opening is None and greeting.plan.pin is None

    def _start_again(
        self, opening: Opening, error: HoldfastError | None, now: float, out: list[Effect]
    ) -> None:
        """A new link at once, without the pause: this was no failure of the server's."""
        self._spoilt = error or self._spoilt
        self.opening = opening
        self._leave(Step.LOST, out)
        self._start(Step.DUE, now, out)

    def _give_up(self, error: HoldfastError, now: float, out: list[Effect]) -> None:
        """Trying again cannot help."""
        self.reason = error
        out.append(Close(self._line.generation))
        self._line.advance()
        self._end(Step.GIVE_UP, error, now, out)

    def _end(self, step: Step, error: HoldfastError, now: float, out: list[Effect]) -> None:
        self._gave_up = True
        self._requests.fail_all(error, now, out)
        self._move(step, out)
        self._rest()

    def _leave(self, step: Step, out: list[Effect]) -> None:
        """Drop the link; nothing of it is heard from here on."""
        out.append(Close(self._line.generation))
        self._handshake_until = NEVER
        self._line.advance()
        self._move(step, out)

    def _rest(self) -> None:
        """No more timers of the connection's own."""
        self._line.greeting = None
        self._retry_at = self._handshake_until = NEVER

    def _move(self, step: Step, out: list[Effect]) -> None:
        old, self.state = self.state, advance(self.state, step)
        if old is not self.state:
            down = self.state is State.BACKOFF or self.state is State.CLOSED
            out.append(Moved(old, self.state, self.reason if down else None))


_REPORTS: dict[type, Callable[[Connection, Any, float, list[Effect]], None]] = {
    Opened: Connection._opened,
    Delivered: Connection._delivered,
    Busy: Connection._busy,
    Sounded: Connection._sounded,
    Lost: Connection._lost,
    Drained: Connection._drained,
}
