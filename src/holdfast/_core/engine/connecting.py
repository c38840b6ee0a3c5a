"""Making, renewing and losing the link: every step between the states of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import UNSET

from holdfast._core import boundary as b
from holdfast._core.boundary import Call, Effect, WireId
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import NEVER
from holdfast._core.engine.link_state import LinkState, Timers
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.engine.outbox import Outbox
from holdfast._core.engine.recovery import Recovery
from holdfast._core.engine.requests import Requests
from holdfast._core.engine.state import State, Step, advance
from holdfast._core.eras.conversation import Agreement, Facts, NoAgreement, Plan, StartAgain
from holdfast._core.wire.jsonrpc import Envelope, ErrorObject
from holdfast.errors import HoldfastError, ProtocolError, TransportError
from holdfast.policies import Policy


class Connector:
    """Takes the steps of the state table; the connection decides which is due."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        plan: Plan,
        jitter: Iterator[float],
        unsent: Callable[[], frozenset[WireId]],
    ) -> None:
        self.name = name
        self.policy = policy
        self.state: State = State.NEW
        self.facts: Facts | None = None
        self.recovery: Recovery = Recovery(plan, policy.backoff, jitter)
        self.link: LinkState = LinkState(unsent)
        self.requests: Requests = Requests(name, policy, self.link, jitter)
        self.outbox: Outbox = Outbox(self.link, self.requests.inflight, jitter)
        self.timers: Timers = Timers()

    def __repr__(self) -> str:
        return f"<Connector {self.name} {self.state} #{self.link.generation}>"

    def alarm(self) -> None:
        """Be called when there may be room on the link."""
        self.timers.alarm(min(self.requests.pump_at, self.outbox.retry_at))

    # Connecting

    def start(self, step: Step, now: float, out: list[Effect]) -> None:
        self.move(step, out)
        self.timers.expect_agreement(now + self.policy.timeouts.handshake)
        out.append(b.Open(self.link.advance(), self.recovery.variant))

    def negotiate(self, now: float, out: list[Effect]) -> None:
        plan = self.recovery.plan(streams=self.link.streams)
        self.link.negotiator = negotiator = Negotiator(plan, self.requests.inflight)
        negotiator.begin(now, out)
        self.timers.alarm(negotiator.check_at)

    def connect_if_due(self, now: float, out: list[Effect]) -> None:
        if self.timers.handshake <= now:
            self._handshake_timeout(now, out)
        if self.timers.retry <= now:
            self.start(Step.DUE, now, out)
        negotiator = self.link.negotiator
        if negotiator is not None and negotiator.check_at <= now:
            negotiator.check_at = NEVER
            out.append(b.CheckRead())

    def _handshake_timeout(self, now: float, out: list[Effect]) -> None:
        negotiator = self.link.negotiator
        waiting_for = None if negotiator is None else negotiator.waiting_for
        span = self.timers.startup + self.policy.timeouts.handshake
        error = messages.slow_handshake(span, waiting_for)
        self.lose(error, now, out)

    def check_open(self, call: Call, now: float) -> None:
        """Raise if a call has nothing to wait for in this state."""
        waits, retry_in = self.requests.waits(call), max(0.0, self.timers.retry - now)
        self.recovery.check(self.name, call, self.state, waits=waits, retry_in=retry_in)

    def answer(self, message: Envelope, now: float, out: list[Effect]) -> bool:
        """Give a message to the negotiation; return False if it is not an answer to it."""
        negotiator = self.link.negotiator
        if negotiator is None:
            return False
        if message.id is None or message.id is UNSET:
            kept = negotiator.anonymous(message, now)
            self.timers.alarm(negotiator.check_at)
            return kept
        wire_id = negotiator.question(message.id)
        if wire_id is None:
            return False
        self.converse(negotiator, lambda: negotiator.hear(wire_id, message, now, out), now, out)
        return True

    def converse(
        self,
        negotiator: Negotiator,
        turn: Callable[[], Agreement | None],
        now: float,
        out: list[Effect],
    ) -> None:
        try:
            agreement = turn()
        except StartAgain as again:
            self.restart(again, now, out)
        except NoAgreement as failure:
            if failure.final:
                self._give_up(failure.error, now, out)
            else:
                self.lose(failure.error, now, out)
        else:
            self.timers.alarm(negotiator.check_at)
            if agreement is not None:
                self._agree(negotiator, agreement, now, out)

    def restart(self, again: StartAgain, now: float, out: list[Effect]) -> None:
        """Open a new link at once: this was not a failure of the server."""
        if not self.recovery.restart(again.opening, again.variant, again.error):
            text = "the server answers each way of connecting by asking for the other"
            self.lose(again.error or ProtocolError(text), now, out)
            return
        # A renewal may have left requests on the link that closes now.
        loss = again.error or TransportError("the connection had to be opened again")
        self.requests.lose(loss, self.link.unsent(), connected=True, now=now, out=out)
        self._leave(Step.LOST, out)
        self.start(Step.DUE, now, out)

    def _agree(
        self, negotiator: Negotiator, agreement: Agreement, now: float, out: list[Effect]
    ) -> None:
        for wire_id in negotiator.asked:
            self.requests.inflight.bury(wire_id, now)
            if self.link.streams:
                out.append(b.Retract(wire_id, None))
        self.timers.watch(self.requests.inflight, now)
        self.link.negotiator = None
        self.link.epoch += 1
        if self.link.era is not None and self.link.era.version == agreement.era.version:
            self.requests.settle_doubts(now, out)
        else:
            self.link.revised = self.link.epoch
        self.link.era = agreement.era
        self.facts = agreement.facts
        self.recovery.agreed(agreement.opening, now)
        self.timers.handshake = NEVER
        if self.link.streams and agreement.era.may_ask:
            agreement.era.session = self.link.session
        out.extend(self.outbox.open_conversation(agreement.era, now))
        self.timers.watch(self.requests.inflight, now)
        self.move(Step.AGREED, out)
        self.requests.dispatch_parked(now, out)
        self.alarm()

    def outdated(self, report: b.Refused, now: float, out: list[Effect]) -> bool:
        """Negotiate again, unless that has been done since, and send the request then.

        Return False if that would not help: the refusal is the answer.
        """
        link, pending = self.link, self.requests.inflight.sent(report.wire_id)
        if pending is None or pending.renewed:
            return False
        is_session = report.reason is b.RefusalReason.NO_SUCH_SESSION
        doubtful = report.fault is not None and link.streams and not is_session
        is_ready, is_old = self.state is State.READY, pending.epoch != link.epoch
        if is_ready and is_old and doubtful and pending.epoch >= link.revised:
            return False
        if is_ready and not is_old and not self.recovery.may_renew(now):
            return False
        self.requests.renew(pending)
        if doubtful:
            pending.doubt = messages.refused(self.name, pending.call, report)
        if not is_ready:
            pass
        elif is_old:
            self.requests.submit(pending, out)
        elif not link.streams:
            self.restart(StartAgain(None), now, out)
        elif is_session:
            self.renew("the server ended the session", now, out)
        else:
            self.recovery.opening = None
            self.renew("the server speaks another protocol revision now", now, out)
        return True

    def disowned(self, wire_id: object, fault: ErrorObject, now: float, out: list[Effect]) -> bool:
        """Negotiate again if an error may be that of a server of another revision."""
        era, pending = self.link.era, self.requests.inflight.sent(wire_id)
        if not self.link.streams or pending is None or era is None:
            return False
        if not era.disowned_by(pending.call.method, fault):
            return False
        error = messages.refused_by_server(self.name, pending.call, fault)
        refused = b.Refused(error, b.RefusalReason.NOT_UNDERSTOOD, fault=fault)
        assert pending.wire_id is not None
        return self.outdated(refused.of(self.link.generation, pending.wire_id), now, out)

    def renew(self, reason: str, now: float, out: list[Effect]) -> None:
        """Negotiate again over the same link; what is under way on it stays there."""
        self.recovery.reason = TransportError(reason)
        self.requests.end_lasting(self.recovery.reason, now, out)
        self.move(Step.EXPIRED, out)
        self.timers.expect_agreement(now + self.policy.timeouts.handshake)
        self.negotiate(now, out)

    # Losing

    def lose(
        self,
        error: HoldfastError,
        now: float,
        out: list[Effect],
        unsent: frozenset[WireId] = frozenset(),
    ) -> None:
        """Leave a lost link: fail or keep what was under way, and plan the next attempt."""
        unsent |= self.link.unsent()
        connected = self.state is State.READY
        error = self.recovery.lost(error, connected=connected, now=now)
        self.requests.lose(error, unsent, connected=connected, now=now, out=out)
        self.timers.watch(self.requests.inflight, now)
        self._leave(Step.LOST, out)
        pause = self.recovery.pause()
        if pause is None:
            self._end(Step.GIVE_UP, error, now, out)
        else:
            self.timers.retry_at(now + pause)

    def _give_up(self, error: HoldfastError, now: float, out: list[Effect]) -> None:
        """End the connection, because trying again cannot help."""
        self.recovery.reason = error
        out.append(b.Close(self.link.generation))
        self.link.advance()
        self._end(Step.GIVE_UP, error, now, out)

    def _end(self, step: Step, error: HoldfastError, now: float, out: list[Effect]) -> None:
        self.recovery.gave_up = True
        self.requests.fail_all(error, now, out)
        self.move(step, out)
        self.rest()

    def _leave(self, step: Step, out: list[Effect]) -> None:
        """Drop the link, and all reports of it from here on."""
        out.append(b.Close(self.link.generation))
        self.timers.handshake = NEVER
        self.link.advance()
        self.requests.pump_at = NEVER
        self.outbox.forget()
        self.move(step, out)

    def rest(self) -> None:
        """Stop the timers of the connection."""
        self.link.negotiator = None
        self.timers.rest()

    def move(self, step: Step, out: list[Effect]) -> None:
        old, self.state = self.state, advance(self.state, step)
        if old is not self.state:
            down = self.state is State.BACKOFF or self.state is State.CLOSED
            out.append(b.Moved(old, self.state, self.recovery.reason if down else None))
