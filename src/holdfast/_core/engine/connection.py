"""The engine: the connection of one client as a pure state machine.

It takes calls from above, reports from below, and time as an argument; every method returns
effects for the driver to carry out. ``due`` is the time at which to call ``tick`` next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from msgspec import UNSET, Raw

from holdfast._core import boundary as b
from holdfast._core.boundary import Call, Effect, Ticket, WireId
from holdfast._core.engine import messages, throttle
from holdfast._core.engine.inbox import Inbox
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.engine.link_state import LinkState, Timers
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.engine.outbox import Outbox
from holdfast._core.engine.recovery import Recovery
from holdfast._core.engine.renewal import Remedy, Renewals, disowning, is_doubtful
from holdfast._core.engine.requests import Requests
from holdfast._core.engine.state import State, Step, advance
from holdfast._core.eras.conversation import Agreement, Facts, Heard, Opening, Plan, StartAgain
from holdfast._core.wire.jsonrpc import Envelope, ErrorObject
from holdfast.errors import HoldfastError, ProtocolError, TransportError
from holdfast.policies import Policy

Effects: TypeAlias = list[Effect]

_LIVE = frozenset({State.STARTING, State.INITIALIZING, State.READY})

# One machine, five words.
#
# A *client* lives from its first use to its close. In that time it may have many links, and over
# each link it may agree with the server more than once. What changes when:
#
# state       Where the client is, by the table in ``state.py``. Nothing but ``_move`` changes
#             it, and an illegal step raises and changes nothing.
# link        One run of a process, or one HTTP client: from the effect ``Open`` to the effect
#             ``Close``. The driver may still be tearing down earlier links; the machine has
#             forgotten them.
# generation  The number of the link. It rises when a link is *left*, not when the next is
#             opened: from the moment that a link is given up, each of its reports is that of an
#             older generation and is dropped at the gate in ``report``. Without the gate, the
#             end of file of a process that was killed for its silence would count as the loss
#             of its successor.
# era         The revision agreed on, as an object that knows its rules. It outlives its link:
#             between two links callers ask the era of the last one. A new agreement replaces it.
# epoch       The number of the agreement. It rises with every agreement, so with every new link
#             and also when a session is renewed over the same link. A caller that decided
#             something by what the server had said (the schema of a tool, an approval) names the
#             epoch in its call, and the call is not sent in another one: a server that came back
#             may be another server.
#
# The usual way, and what ends what:
#
#     new ──open──▶ starting ──opened──▶ initializing ──agreed──▶ ready ──close──▶ closing
#                      ▲                    │     ▲                 │                 │
#                     due                 lost    └────expired──────┤              drained
#                      │                    ▼                       ▼                 ▼
#                      └──────────────── backoff ◀──────lost────────┘              closed
#
# * A *loss* ends the link and the era's epoch. Requests under way fail or are kept for the next
#   link (``requests.py`` says which), then there is a pause, then a new link.
# * An *expiry* ends the epoch alone: the link stays, and what was sent on it may still be
#   answered. Only streams that belonged to the old session end.
# * A *restart* is a loss without blame: the server is fine, but this link cannot be used for the
#   opening that it needs (it exited at the probe, or obeys an era nobody knows). There is no
#   pause, so the number of restarts in one attempt is bounded.
# * The deadline of the handshake runs while starting and initializing, and ends the link. A
#   launcher that downloads (``Starting``) and a person who logs in (``Held``) move it.
# * Giving up ends the client: no revision in common, or as many attempts as the policy allows.
# * A close ends everything, in every state, and is never undone. A last request may precede it
#   (``say_goodbye``): then the state is ``closing`` at once, so that nothing else is sent.
#
# Invariant: each ticket has exactly one outcome. Every path out of a link goes through
# ``Requests.lose``, ``fail_all`` or ``shut``; a new way to leave a link must, too.


OPEN = Call("open", wait=False)
"""Opening for its own sake: no call waits for it."""


class Connection:
    """States, links, negotiation and recovery of one client."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        plan: Plan,
        jitter: Iterator[float],
        unsent: Callable[[], frozenset[WireId]] = frozenset,
    ) -> None:
        self.name = name
        self.policy = policy
        self.state: State = State.NEW
        self.facts: Facts | None = None
        """The server's latest description of itself."""
        self.link: LinkState = LinkState(unsent)
        self.timers: Timers = Timers()
        self._recovery = Recovery(plan, policy.backoff, jitter)
        self._renewals = Renewals()
        self._requests = Requests(name, policy, self.link, self._recovery, jitter)
        self.inflight: Inflight = self._requests.inflight
        self._outbox = Outbox(self.link, self.inflight, jitter)
        self._inbox = Inbox(name, self.link, self.inflight, self._negotiated, self._remedied)
        self.settle: Callable[[b.Delivered], Effect | None] = self._inbox.settle
        """The short way of a report that is one result, and nothing else; None: `report` it."""
        self._leaving = False
        """The last request is under way: the link is still there although the state is closing."""

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.state} #{self.link.generation} {self.inflight!r}>"

    @property
    def reason(self) -> HoldfastError | None:
        """Return the error that ended the last link; None once connected again."""
        return self._recovery.reason

    @property
    def opening(self) -> Opening | None:
        """The opening that this server accepts, once known."""
        return self._recovery.opening

    def replan(self, plan: Plan) -> None:
        """Negotiate by another plan from the next link on."""
        self._recovery.base = plan

    @property
    def param_headers(self) -> bool:
        """True if tools may ask for arguments to be repeated in headers."""
        return self.link.streams and self.link.era is not None and self.link.era.param_headers

    @property
    def due(self) -> float:
        """Return the time to call ``tick`` next."""
        return self.timers.due

    @property
    def log_level(self) -> str | None:
        return self._outbox.log_level

    @log_level.setter
    def log_level(self, level: str) -> None:
        """Tell the server this on every new link."""
        self._outbox.log_level = level

    @property
    def violations(self) -> dict[str, int]:
        """Violations of the protocol by the server, counted by kind."""
        return dict(self._inbox.violations)

    # Calls from above

    def open(self, now: float, call: Call = OPEN) -> Effects:
        """Start if need be; raise if the client is closed, or down and the call does not wait."""
        out: Effects = []
        if self.state is State.NEW:
            self._start(Step.OPEN, now, out)
        elif self.state is not State.READY:
            self._check_open(call, now)
        return out

    def retry_now(self, now: float) -> Effects:
        """Connect at once if the next attempt is due later, or never."""
        self.timers.retry_at(now if self.state is State.BACKOFF else NEVER)
        return self.tick(now)

    def renew_session(self, reason: str, now: float) -> Effects:
        """Leave the server's session for a new one, if there is one."""
        out: Effects = []
        if self.state is State.READY and self.link.era and self.link.era.session is not None:
            self._renew(reason, now, out)
        return out

    def call(self, call: Call, now: float) -> tuple[Ticket, Effects]:
        """Take a request; raise if this state does not allow it."""
        out: Effects = []
        state, timers, inflight = self.state, self.timers, self.inflight
        if state is not State.READY and state is not State.NEW:
            self._check_open(call, now)
        pending = inflight.admit(call, now)
        if pending.deadline < timers.due:
            timers.due = pending.deadline
        if state is State.NEW:
            self._start(Step.OPEN, now, out)
        elif state is State.READY:
            if inflight.waiting:
                inflight.queue(pending)
            else:
                out.append(self._requests.dispatch(pending))
        return pending.ticket, out

    def cancel(self, ticket: Ticket, reason: str, now: float) -> Effects:
        """End a request once; the second time there is nothing left to end."""
        out: Effects = []
        self._requests.cancel(ticket, reason, now, out)
        self.timers.watch(self.inflight, now)
        return out

    def notify(self, method: str, params: dict[str, Any] | Raw | None = None) -> Effects:
        """Send a notification, if there is a connection that has a way for it."""
        if self.state is not State.READY or not self.link.carries(method):
            return []
        return self._outbox.notify(method, params)

    def answer(self, request: b.Asked, result: Any) -> Effects:
        """Answer a request of the server, unless its link is gone."""
        return self._outbox.answer(request, result) if self._is_open(request) else []

    def refuse(self, request: b.Asked, code: int, message: str, data: Any = None) -> Effects:
        return self._outbox.refuse(request, code, message, data) if self._is_open(request) else []

    def _is_open(self, request: b.Asked) -> bool:
        """Return True if the link that a request of the server came by is still there."""
        is_linked = self.state in _LIVE or self._leaving
        return is_linked and request.generation == self.link.generation

    def say_goodbye(self, call: Call, now: float) -> tuple[Ticket, Effects]:
        """Begin to close a connection that is ready: end every request, and send a last one."""
        assert self.state is State.READY
        out: Effects = []
        self._requests.shut(now, out)
        self._leaving = True
        self._move(Step.CLOSE, out)
        pending = self.inflight.admit(call, now)
        self.timers.alarm(pending.deadline)
        out.append(self._requests.dispatch(pending))
        return pending.ticket, out

    def close(self, now: float) -> Effects:
        """End everything at once, in any state, any number of times."""
        out: Effects = []
        has_link, self._leaving = self.state in _LIVE or self._leaving, False
        self._move(Step.CLOSE, out)
        self._requests.shut(now, out)
        if has_link:
            farewell = self.link.era.farewell() if self.link.streams and self.link.era else None
            out.append(b.Close(self.link.generation, farewell))
        self._rest()
        return out

    # Reports from below

    def report(self, report: b.Report, now: float) -> Effects:
        """Take a report; drop one of an older link (the generation gate)."""
        out: Effects = []
        if report.generation == self.link.generation:
            try:
                _REPORTS[type(report)](self, report, now, out)
            except Exception as error:
                # What was decided before the defect is carried out all the same.
                out.append(b.Unhandled(error))
        return out

    def _opened(self, report: b.Opened, now: float, out: list[Effect]) -> None:
        if self.state is State.STARTING:
            self.link.streams = report.streams
            self._move(Step.OPENED, out)
            self._negotiate(now, out)

    def _delivered(self, report: b.Delivered, now: float, out: list[Effect]) -> None:
        if self.state is State.READY or self.state is State.INITIALIZING or self._leaving:
            self._inbox.take(report, now, out)

    def _refused(self, report: b.Refused, now: float, out: list[Effect]) -> None:
        negotiator = self.link.negotiator
        self._inbox.oversized(report, out)
        throttle.note(report, self._requests.jitter, out)
        if negotiator is not None and report.wire_id in negotiator.questions:
            if negotiator.can_go_on(report):
                self._converse(negotiator, negotiator.refusal(report), now, out)
            else:
                self._lose(report.error, now, out)
                self.timers.delay_retry(report.retry_after, now)
        elif not self.link.outdated_by(report) or not self._remedy(report, now, out):
            self.timers.alarm(self._requests.refused(report, now, out))

    def _expired(self, report: b.Expired, now: float, out: list[Effect]) -> None:
        """Start a new session, unless the news is old: it may have been renewed already."""
        if self.state is State.READY and self.link.era and report.session == self.link.era.session:
            self._renew("the server ended the session", now, out)

    def _starting(self, report: b.Starting, now: float, out: list[Effect]) -> None:
        connecting = self.state is State.STARTING or self.state is State.INITIALIZING
        if connecting and self.timers.await_start(report, self.policy.timeouts.handshake, now):
            if report.busy:
                self._requests.keep_waiting(now + report.again)
            out.append(report)

    def _held(self, report: b.Held, now: float, out: list[Effect]) -> None:
        """Stop the handshake's clock: it is not the server that is waited for."""
        if not self._requests.hold(report.wire_id) and self.link.negotiator is not None:
            self.timers.handshake = NEVER

    def _released(self, report: b.Released, now: float, out: list[Effect]) -> None:
        if not self._requests.release(report.wire_id) and self.link.negotiator is not None:
            self.timers.expect_agreement(now + self.policy.timeouts.handshake)
            self._requests.keep_waiting(now)

    def _busy(self, report: b.Busy, now: float, out: list[Effect]) -> None:
        if report.command.wire_id is None:
            self._outbox.busy(report.command, now, out)
        else:
            self._requests.busy(report.command.wire_id, now)
        self._await_room()

    def _room(self, report: b.Room, now: float, out: list[Effect]) -> None:
        self._outbox.retry(out)
        if self.state is State.READY:
            self._requests.pump(now, out)
        self._await_room()

    def _await_room(self) -> None:
        """Be called when there may be room on the link."""
        self.timers.alarm(min(self._requests.pump_at, self._outbox.retry_at))

    def _read_checked(self, report: b.ReadChecked, now: float, out: list[Effect]) -> None:
        negotiator = self.link.negotiator
        if negotiator is not None:
            self._converse(negotiator, negotiator.silence(unread=report.unread), now, out)

    def _lost(self, report: b.Lost, now: float, out: list[Effect]) -> None:
        self._inbox.oversized(report, out)
        if self.state is State.CLOSING or self.state is State.CLOSED:
            self._requests.shut(now, out)
            self._move(Step.LOST, out)
        elif self._recovery.died_of_probe(self.link.negotiator):
            self._restart(StartAgain("initialize", None, report.error), now, out)
        elif self.state is State.STARTING and self._recovery.is_presuming:
            self._restart(StartAgain(None), now, out)
        elif self.state in _LIVE:
            self._lose(report.error, now, out, report.unsent)

    def _drained(self, report: b.Drained, now: float, out: list[Effect]) -> None:
        if self.state is State.CLOSING:
            self._move(Step.DRAINED, out)

    # Time

    def tick(self, now: float) -> Effects:
        """Do what is due; then ``due`` is the next time to call."""
        out: Effects = []
        for step in (self._connect_if_due, self._requests.expire, self._send_if_due):
            try:
                step(now, out)
            except Exception as error:
                out.append(b.Unhandled(error))
        negotiator, requests = self.link.negotiator, self._requests
        check = NEVER if negotiator is None else negotiator.check_at
        self.timers.sweep_if_due(self.inflight, now)
        self.timers.arm(self.inflight, now, check, requests.pump_at, self._outbox.retry_at)
        return out

    def _connect_if_due(self, now: float, out: list[Effect]) -> None:
        if self.timers.handshake <= now:
            self._handshake_timeout(now, out)
        if self.timers.retry <= now:
            self._start(Step.DUE, now, out)
        negotiator = self.link.negotiator
        if negotiator is not None and negotiator.check_at <= now:
            negotiator.check_at = NEVER
            out.append(b.CheckRead())

    def _handshake_timeout(self, now: float, out: list[Effect]) -> None:
        negotiator = self.link.negotiator
        waiting_for = None if negotiator is None else negotiator.waiting_for
        span = self.timers.startup + self.policy.timeouts.handshake
        self._lose(messages.slow_handshake(span, waiting_for), now, out)

    def _send_if_due(self, now: float, out: list[Effect]) -> None:
        if self._outbox.retry_at <= now:
            self._outbox.retry(out)
        self._requests.dispatch_due(now, out, connected=self.state is State.READY)

    # Connecting

    def _start(self, step: Step, now: float, out: list[Effect]) -> None:
        self._move(step, out)
        self.timers.expect_agreement(now + self.policy.timeouts.handshake)
        out.append(b.Open(self.link.advance(), self._recovery.variant))

    def _check_open(self, call: Call, now: float) -> None:
        """Raise if a call has nothing to wait for in this state."""
        waits, retry_in = self._requests.waits(call), max(0.0, self.timers.retry - now)
        self._recovery.check(self.name, call, self.state, waits=waits, retry_in=retry_in)

    def _negotiate(self, now: float, out: list[Effect]) -> None:
        plan = self._recovery.plan(streams=self.link.streams)
        self.link.negotiator = negotiator = Negotiator(plan, self.inflight)
        negotiator.begin(now, out)
        self.timers.alarm(negotiator.check_at)

    def _negotiated(self, message: Envelope, now: float, out: list[Effect]) -> bool:
        """Give a message to the negotiation; return False if it is not an answer to it."""
        negotiator = self.link.negotiator
        if negotiator is None:
            return False
        if message.id is None or message.id is UNSET:
            is_answer = negotiator.anonymous(message, now)
            self.timers.alarm(negotiator.check_at)
            return is_answer
        wire_id = negotiator.question(message.id)
        if wire_id is None:
            return False
        self._converse(negotiator, negotiator.answer(wire_id, message), now, out)
        return True

    def _converse(
        self, negotiator: Negotiator, heard: Heard, now: float, out: list[Effect]
    ) -> None:
        ending = negotiator.feed(heard, now, out)
        if ending is None:
            self.timers.alarm(negotiator.check_at)
        elif isinstance(ending, Agreement):
            self._agree(negotiator, ending, now, out)
        elif isinstance(ending, StartAgain):
            self._restart(ending, now, out)
        elif ending.final:
            out.append(b.Close(self.link.generation))
            self.link.advance()
            self._give_up(ending.error, now, out)
        else:
            self._lose(ending.error, now, out)

    def _agree(
        self, negotiator: Negotiator, agreement: Agreement, now: float, out: list[Effect]
    ) -> None:
        link = self.link
        for wire_id in negotiator.questions:
            self.inflight.bury(wire_id, now)
            if link.streams:
                out.append(b.Retract(wire_id, None))
        self.timers.watch(self.inflight, now)
        if link.agree(agreement.era):
            self._requests.settle_doubts(now, out)
        self.facts = agreement.facts
        self._recovery.agreed(agreement.opening, now)
        self.timers.handshake = NEVER
        out.extend(self._outbox.open_conversation(agreement.era, now))
        self.timers.watch(self.inflight, now)
        self._move(Step.AGREED, out)
        self._requests.dispatch_parked(now, out)
        self._await_room()

    # Renewing

    def _remedy(self, refusal: b.Refused, now: float, out: list[Effect]) -> bool:
        """Negotiate again, unless that has been done since, and send the request then.

        Return False if that would not help: the refusal is the answer.
        """
        pending = self.inflight.sent(refusal.wire_id)
        is_ready = self.state is State.READY
        remedy = self._renewals.remedy(refusal, pending, self.link, now, ready=is_ready)
        if pending is None or remedy is Remedy.NONE:
            return False
        self._requests.renew(pending)
        if is_doubtful(refusal, self.link):
            pending.doubt = messages.refused(self.name, pending.call, refusal)
        if remedy is Remedy.SEND_AGAIN:
            self._requests.submit(pending, out)
        elif remedy is Remedy.NEW_LINK:
            self._restart(StartAgain(None), now, out)
        elif remedy is Remedy.NEW_SESSION:
            self._renew("the server ended the session", now, out)
        elif remedy is Remedy.NEW_REVISION:
            self._recovery.opening = None
            self._renew("the server speaks another protocol revision now", now, out)
        return True

    def _remedied(self, wire_id: object, fault: ErrorObject, now: float, out: Effects) -> bool:
        """Send a request again that was answered with an error, if the error is not the answer.

        It may say "later", or be that of a server of another revision: then negotiate again.
        """
        pending = self.inflight.sent(wire_id)
        if later := throttle.rate_limited(self.name, pending, fault, self.link.generation):
            self._refused(later, now, out)
            return True
        refusal = None if pending is None else disowning(self.name, pending, fault, self.link)
        return refusal is not None and self._remedy(refusal, now, out)

    def _renew(self, reason: str, now: float, out: list[Effect]) -> None:
        """Negotiate again over the same link; what is under way on it stays there."""
        self._recovery.reason = TransportError(reason)
        self._requests.end_lasting(self._recovery.reason, now, out)
        self._move(Step.EXPIRED, out)
        self.timers.expect_agreement(now + self.policy.timeouts.handshake)
        self._negotiate(now, out)

    # Losing

    def _restart(self, again: StartAgain, now: float, out: list[Effect]) -> None:
        """Open a new link at once: this was not a failure of the server."""
        if not self._recovery.restart(again.opening, again.variant, again.error):
            text = "the server rejects both handshakes, each time asking for the other"
            self._lose(again.error or ProtocolError(text), now, out)
            return
        # A renewal may have left requests on the link that closes now.
        loss = again.error or TransportError("the connection had to be opened again")
        self._requests.lose(loss, self.link.unsent(), connected=True, now=now, out=out)
        self._leave(out)
        self._start(Step.DUE, now, out)

    def _lose(
        self,
        error: HoldfastError,
        now: float,
        out: list[Effect],
        unsent: frozenset[WireId] = frozenset(),
    ) -> None:
        """Leave a lost link: fail or keep what was under way, and plan the next attempt."""
        unsent |= self.link.unsent()
        connected = self.state is State.READY
        error = self._recovery.lost(error, connected=connected, now=now)
        self._requests.lose(error, unsent, connected=connected, now=now, out=out)
        self.timers.watch(self.inflight, now)
        self._leave(out)
        pause = self._recovery.pause()
        if pause is None:
            self._give_up(error, now, out)
        else:
            self.timers.retry_at(now + pause)

    def _give_up(self, error: HoldfastError, now: float, out: Effects) -> None:
        """End the connection, because trying again cannot help."""
        self._recovery.gave_up, self._recovery.reason = True, error
        self._requests.fail_all(error, now, out)
        self._move(Step.GIVE_UP, out)
        self._rest()

    def _leave(self, out: list[Effect]) -> None:
        """Drop the link, and all reports of it from here on."""
        out.append(b.Close(self.link.generation))
        self.timers.handshake = NEVER
        self.link.advance()
        self._requests.pump_at = NEVER
        self._outbox.forget()
        self._move(Step.LOST, out)

    def _rest(self) -> None:
        """Stop the timers of the connection."""
        self.link.negotiator = None
        self.timers.rest()

    def _move(self, step: Step, out: list[Effect]) -> None:
        old, self.state = self.state, advance(self.state, step)
        if old is not self.state:
            down = self.state is State.BACKOFF or self.state is State.CLOSED
            out.append(b.Moved(old, self.state, self._recovery.reason if down else None))


_REPORTS: dict[type, Callable[[Connection, Any, float, Effects], None]] = {
    b.Opened: Connection._opened,
    b.Delivered: Connection._delivered,
    b.Refused: Connection._refused,
    b.Expired: Connection._expired,
    b.Busy: Connection._busy,
    b.Room: Connection._room,
    b.Starting: Connection._starting,
    b.Held: Connection._held,
    b.Released: Connection._released,
    b.ReadChecked: Connection._read_checked,
    b.Lost: Connection._lost,
    b.Drained: Connection._drained,
}
