"""The engine: one client's connection as a pure machine.

Calls come from above, reports from below, and time as an argument; every method gives back
effects for the driver to carry out. ``due`` says when ``tick`` wants to be called next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from holdfast._core import boundary as b
from holdfast._core.boundary import Call, Effect, Generation, Ticket, WireId
from holdfast._core.engine import messages
from holdfast._core.engine.inbox import Inbox
from holdfast._core.engine.inflight import NEVER, Inflight, Pending
from holdfast._core.engine.link_state import LinkState
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.engine.outbox import Outbox
from holdfast._core.engine.recovery import Recovery
from holdfast._core.engine.requests import Requests
from holdfast._core.engine.state import State, Step, advance
from holdfast._core.engine.timers import Timers
from holdfast._core.eras.base import Era
from holdfast._core.eras.negotiation import Agreement, Facts, NoAgreement, Opening, Plan, StartAgain
from holdfast._core.wire.jsonrpc import Envelope
from holdfast.errors import HoldfastError, ProtocolError, TransportError
from holdfast.policies import Policy

_LIVE = frozenset({State.STARTING, State.INITIALIZING, State.READY})


class Connection:
    """States, links, negotiation and recovery of one client."""

    def __init__(self, name: str, policy: Policy, plan: Plan, jitter: Iterator[float]) -> None:
        self.name = name
        self.policy = policy
        self.state: State = State.NEW
        self.facts: Facts | None = None
        self._recovery = Recovery(plan, policy.backoff, jitter)
        self._link = LinkState()
        self._requests = Requests(name, policy, self._link, jitter)
        self._outbox = Outbox(self._link, self.inflight)
        self._timers = Timers()
        self._inbox = Inbox(name, self._link, self._requests.inflight, self._hear)

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.state} #{self.generation} {self.inflight!r}>"

    @property
    def era(self) -> Era | None:
        return self._link.era

    @property
    def generation(self) -> Generation:
        return self._link.generation

    @property
    def epoch(self) -> int:
        """Count of the agreements so far: another one means another server, or session."""
        return self._link.epoch

    @property
    def reason(self) -> HoldfastError | None:
        """Why the last link was lost; None once there is a good one again."""
        return self._recovery.reason

    @property
    def opening(self) -> Opening | None:
        """How this server wants to be addressed, once known."""
        return self._recovery.opening

    @property
    def param_headers(self) -> bool:
        """Whether tools may want arguments repeated in headers."""
        return self._link.streams and self.era is not None and self.era.param_headers

    @property
    def due(self) -> float:
        """When ``tick`` wants to be called next."""
        return self._timers.due

    @property
    def log_level(self) -> str | None:
        return self._outbox.log_level

    @log_level.setter
    def log_level(self, level: str) -> None:
        """Tell the server this on every new link."""
        self._outbox.log_level = level

    @property
    def inflight(self) -> Inflight:
        return self._requests.inflight

    @property
    def violations(self) -> dict[str, int]:
        """How often the server did what it must not, by kind."""
        return dict(self._inbox.violations)

    # Calls from above

    def open(self, now: float, *, wait: bool = True) -> list[Effect]:
        """Start if need be; raise if the client is closed, or down and not to wait."""
        out: list[Effect] = []
        if self.state is State.NEW:
            self._start(Step.OPEN, now, out)
        elif self.state is not State.READY:
            self._check_open(Call("open", wait=wait), now)
        return out

    def retry_now(self, now: float) -> list[Effect]:
        """Connect at once if the next attempt is due later, or never."""
        self._timers.retry_at(now if self.state is State.BACKOFF else NEVER)
        return self.tick(now)

    def call(self, call: Call, now: float) -> tuple[Ticket, list[Effect]]:
        """Take a request; raise if this state does not allow it."""
        out: list[Effect] = []
        if self.state is not State.READY:
            self._check_open(call, now)
        pending = self.inflight.admit(call, now)
        self._timers.alarm(pending.deadline)
        if self.state is State.READY:
            self._requests.dispatch(pending, out)
        elif self.state is State.NEW:
            self._start(Step.OPEN, now, out)
        return pending.ticket, out

    def cancel(self, ticket: Ticket, reason: str, now: float) -> list[Effect]:
        """End a request once; the second time there is nothing left to end."""
        out: list[Effect] = []
        self._requests.cancel(ticket, reason, now, out)
        self._timers.watch(self.inflight, now)
        return out

    def notify(self, method: str, params: dict[str, Any] | None = None) -> list[Effect]:
        """Tell the server something; it is not worth waiting for a connection."""
        if self.state is not State.READY or self.era is None or not self.era.may_ask:
            return []
        return self._outbox.notify(method, params)

    def answer(self, asked: b.Asked, result: Any) -> list[Effect]:
        """Answer a request of the server, unless its link is gone."""
        if asked.generation != self.generation or self.state not in _LIVE:
            return []
        return self._outbox.answer(asked, result)

    def refuse(self, asked: b.Asked, code: int, message: str) -> list[Effect]:
        if asked.generation != self.generation or self.state not in _LIVE:
            return []
        return self._outbox.refuse(asked, code, message)

    def end_calls(self, now: float) -> list[Effect]:
        """End every request under way, and leave the link for a last one."""
        out: list[Effect] = []
        self._requests.shut(now, out)
        return out

    def close(self, now: float) -> list[Effect]:
        """End everything at once; any state, any number of times."""
        out: list[Effect] = []
        live = self.state in _LIVE
        self._move(Step.CLOSE, out)
        self._requests.shut(now, out)
        if live:
            farewell = self.era.farewell() if self._link.streams and self.era else None
            out.append(b.Close(self.generation, farewell))
        self._rest()
        return out

    # Reports from below

    def report(self, report: b.Report, now: float) -> list[Effect]:
        """Take a report; one of an older link is not heard (the generation gate)."""
        out: list[Effect] = []
        if report.generation == self._link.generation:
            _REPORTS[type(report)](self, report, now, out)
        return out

    def _opened(self, report: b.Opened, now: float, out: list[Effect]) -> None:
        if self.state is not State.STARTING:
            return
        self._link.streams = report.streams
        self._move(Step.OPENED, out)
        self._negotiate(now, out)

    def _negotiate(self, now: float, out: list[Effect]) -> None:
        plan = self._recovery.plan(streams=self._link.streams)
        self._link.negotiator = negotiator = Negotiator(plan, self.inflight)
        negotiator.begin(now, out)
        self._timers.alarm(negotiator.check_at)

    def _delivered(self, report: b.Delivered, now: float, out: list[Effect]) -> None:
        if self.state is State.READY or self.state is State.INITIALIZING:
            self._inbox.take(report, now, out)

    def _refused(self, report: b.Refused, now: float, out: list[Effect]) -> None:
        negotiator = self._link.negotiator
        if negotiator is not None and report.wire_id in negotiator.asked:
            if negotiator.can_go_on(report):
                self._converse(negotiator, lambda: negotiator.refuse(report, now, out), now, out)
            else:
                self._lose(report.error, frozenset(), now, out)
        elif self._link.outdated_by(report) and (pending := self._requests.renew(report.wire_id)):
            self._outdated(pending, report, now, out)
        else:
            self._timers.alarm(self._requests.refused(report, now, out))

    def _outdated(self, pending: Pending, report: b.Refused, now: float, out: list[Effect]) -> None:
        """Negotiate again, unless that has been done since, and send the request then."""
        if self.state is not State.READY:
            return
        if pending.epoch != self._link.epoch:
            self._requests.dispatch(pending, out)
        elif report.meaning is b.Meaning.NO_SUCH_SESSION:
            self._renew("the server ended the session", now, out)
        else:
            self._recovery.opening = None
            self._renew("the server speaks another protocol revision now", now, out)

    def _expired(self, report: b.Expired, now: float, out: list[Effect]) -> None:
        """Start a new session, unless the news is old: it may have been renewed already."""
        if self.state is State.READY and self.era and report.session == self.era.session:
            self._renew("the server ended the session", now, out)

    def _renew(self, reason: str, now: float, out: list[Effect]) -> None:
        """Negotiate again over the same link; what is under way on it stays there."""
        self._recovery.reason = TransportError(reason)
        self._move(Step.EXPIRED, out)
        self._timers.expect_agreement(now + self.policy.timeouts.handshake)
        self._negotiate(now, out)

    def _starting(self, report: b.Starting, now: float, out: list[Effect]) -> None:
        if self.state is State.STARTING or self.state is State.INITIALIZING:
            self._timers.expect_agreement(now + report.again + self.policy.timeouts.handshake)
            out.append(report)

    def _busy(self, report: b.Busy, now: float, out: list[Effect]) -> None:
        self._timers.alarm(self._requests.busy(report.wire_id, now, out))

    def _read_checked(self, report: b.ReadChecked, now: float, out: list[Effect]) -> None:
        negotiator = self._link.negotiator
        if negotiator is not None:
            unread = report.unread
            self._converse(negotiator, lambda: negotiator.silence(unread, now, out), now, out)

    def _lost(self, report: b.Lost, now: float, out: list[Effect]) -> None:
        if self.state is State.CLOSING or self.state is State.CLOSED:
            self._move(Step.LOST, out)
        elif self._recovery.died_of_probe(self._link.negotiator):
            self._restart(StartAgain("initialize", None, report.error), now, out)
        elif self.state in _LIVE:
            self._lose(report.error, report.unsent, now, out)

    def _drained(self, report: b.Drained, now: float, out: list[Effect]) -> None:
        if self.state is State.CLOSING:
            self._move(Step.DRAINED, out)

    # Time

    def tick(self, now: float) -> list[Effect]:
        """Do what is due; then ``due`` is the next time to call."""
        out: list[Effect] = []
        timers = self._timers
        if timers.handshake <= now:
            self._handshake_timeout(now, out)
        if timers.retry <= now:
            self._start(Step.DUE, now, out)
        negotiator = self._link.negotiator
        if negotiator is not None and negotiator.check_at <= now:
            negotiator.check_at = NEVER
            out.append(b.CheckRead())
        self._requests.expire(now, out)
        if self.state is State.READY:
            self._requests.dispatch_retries(now, out)
        if timers.sweep <= now:
            self.inflight.sweep(now)
            timers.sweep = NEVER
        timers.arm(self._link, self.inflight, now)
        return out

    def _handshake_timeout(self, now: float, out: list[Effect]) -> None:
        negotiator = self._link.negotiator
        waiting_for = None if negotiator is None else negotiator.waiting_for
        error = messages.slow_handshake(self.policy.timeouts.handshake, waiting_for)
        self._lose(error, frozenset(), now, out)

    # Connecting

    def _check_open(self, call: Call, now: float) -> None:
        waits, retry_in = self._requests.waits(call), max(0.0, self._timers.retry - now)
        self._recovery.check(self.name, call, self.state, waits=waits, retry_in=retry_in)

    def _start(self, step: Step, now: float, out: list[Effect]) -> None:
        self._move(step, out)
        self._timers.expect_agreement(now + self.policy.timeouts.handshake)
        out.append(b.Open(self._link.advance(), self._recovery.variant))

    def _hear(self, message: Envelope, now: float, out: list[Effect]) -> bool:
        """Give an answer to the negotiation, if it is for it."""
        negotiator = self._link.negotiator
        if negotiator is None:
            return False
        wire_id = negotiator.question(message.id)
        if wire_id is None:
            return False
        self._converse(negotiator, lambda: negotiator.hear(wire_id, message, now, out), now, out)
        return True

    def _converse(
        self,
        negotiator: Negotiator,
        turn: Callable[[], Agreement | None],
        now: float,
        out: list[Effect],
    ) -> None:
        try:
            agreement = turn()
        except StartAgain as again:
            self._restart(again, now, out)
        except NoAgreement as failure:
            if failure.final:
                self._give_up(failure.error, now, out)
            else:
                self._lose(failure.error, frozenset(), now, out)
        else:
            self._timers.alarm(negotiator.check_at)
            if agreement is not None:
                self._agree(negotiator, agreement, now, out)

    def _restart(self, again: StartAgain, now: float, out: list[Effect]) -> None:
        """A new link at once, without the pause: this was no failure of the server's."""
        if not self._recovery.restart(again.opening, again.variant, again.error):
            text = "the server answers each way of connecting by asking for the other"
            self._lose(again.error or ProtocolError(text), frozenset(), now, out)
            return
        # A renewal may have left requests on the link that closes now.
        loss = again.error or TransportError("the connection had to be opened again")
        self._requests.lose(loss, frozenset(), connected=True, now=now, out=out)
        self._leave(Step.LOST, out)
        self._start(Step.DUE, now, out)

    def _agree(
        self, negotiator: Negotiator, agreement: Agreement, now: float, out: list[Effect]
    ) -> None:
        for wire_id in negotiator.asked:
            self.inflight.bury(wire_id, now)
            if self._link.streams:
                out.append(b.Retract(wire_id, None))
        self._timers.watch(self.inflight, now)
        self._link.negotiator = None
        self._link.era = agreement.era
        self._link.epoch += 1
        self.facts = agreement.facts
        self._recovery.agreed(agreement.opening, now)
        self._timers.handshake = NEVER
        if self._link.streams and agreement.era.may_ask:
            agreement.era.session = self._link.session
        out.extend(self._outbox.open_conversation(agreement.era, now))
        self._timers.watch(self.inflight, now)
        self._move(Step.AGREED, out)
        self._requests.dispatch_parked(out)

    # Losing

    def _lose(
        self, error: HoldfastError, unsent: frozenset[WireId], now: float, out: list[Effect]
    ) -> None:
        """The link is gone: settle or keep what was under way, and plan the next attempt."""
        connected = self.state is State.READY
        error = self._recovery.lost(error, connected=connected, now=now)
        self._requests.lose(error, unsent, connected=connected, now=now, out=out)
        self._timers.watch(self.inflight, now)
        self._leave(Step.LOST, out)
        pause = self._recovery.pause()
        if pause is None:
            self._end(Step.GIVE_UP, error, now, out)
        else:
            self._timers.retry_at(now + pause)

    def _give_up(self, error: HoldfastError, now: float, out: list[Effect]) -> None:
        """Trying again cannot help."""
        self._recovery.reason = error
        out.append(b.Close(self._link.generation))
        self._link.advance()
        self._end(Step.GIVE_UP, error, now, out)

    def _end(self, step: Step, error: HoldfastError, now: float, out: list[Effect]) -> None:
        self._recovery.gave_up = True
        self._requests.fail_all(error, now, out)
        self._move(step, out)
        self._rest()

    def _leave(self, step: Step, out: list[Effect]) -> None:
        """Drop the link; nothing of it is heard from here on."""
        out.append(b.Close(self._link.generation))
        self._timers.handshake = NEVER
        self._link.advance()
        self._move(step, out)

    def _rest(self) -> None:
        """No more timers of the connection's own."""
        self._link.negotiator = None
        self._timers.rest()

    def _move(self, step: Step, out: list[Effect]) -> None:
        old, self.state = self.state, advance(self.state, step)
        if old is not self.state:
            down = self.state is State.BACKOFF or self.state is State.CLOSED
            out.append(b.Moved(old, self.state, self.reason if down else None))


_REPORTS: dict[type, Callable[[Connection, Any, float, list[Effect]], None]] = {
    b.Opened: Connection._opened,
    b.Delivered: Connection._delivered,
    b.Refused: Connection._refused,
    b.Expired: Connection._expired,
    b.Busy: Connection._busy,
    b.Room: lambda *_: None,
    b.Starting: Connection._starting,
    b.ReadChecked: Connection._read_checked,
    b.Lost: Connection._lost,
    b.Drained: Connection._drained,
}
