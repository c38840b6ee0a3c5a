"""The engine: the connection of one client as a pure state machine.

It takes calls from above, reports from below, and time as an argument; every method returns
effects for the driver to carry out. ``due`` is the time at which to call ``tick`` next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from holdfast._core import boundary as b
from holdfast._core.boundary import Call, Effect, Ticket, WireId
from holdfast._core.engine.connecting import Connector
from holdfast._core.engine.inbox import Inbox
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.engine.link_state import LinkState, Timers
from holdfast._core.engine.state import State, Step
from holdfast._core.eras.conversation import Facts, Opening, Plan, StartAgain
from holdfast.errors import HoldfastError
from holdfast.policies import Policy

_LIVE = frozenset({State.STARTING, State.INITIALIZING, State.READY})


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
        self._connector = connector = Connector(name, policy, plan, jitter, unsent)
        self._recovery = connector.recovery
        self.link: LinkState = connector.link
        self._requests = connector.requests
        self._outbox = connector.outbox
        self.timers: Timers = connector.timers
        self.inflight: Inflight = self._requests.inflight
        self._inbox = Inbox(name, self.link, self.inflight, connector.answer, connector.disowned)

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.state} #{self.link.generation} {self.inflight!r}>"

    @property
    def state(self) -> State:
        return self._connector.state

    @property
    def facts(self) -> Facts | None:
        """Return the server's latest description of itself."""
        return self._connector.facts

    @property
    def reason(self) -> HoldfastError | None:
        """Return the error that ended the last link; None once connected again."""
        return self._recovery.reason

    @property
    def opening(self) -> Opening | None:
        """The opening that this server accepts, once known."""
        return self._recovery.opening

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

    def open(self, now: float, *, wait: bool = True) -> list[Effect]:
        """Start if need be; raise if the client is closed, or down and not to wait."""
        out: list[Effect] = []
        if self.state is State.NEW:
            self._connector.start(Step.OPEN, now, out)
        elif self.state is not State.READY:
            self._connector.check_open(Call("open", wait=wait), now)
        return out

    def retry_now(self, now: float) -> list[Effect]:
        """Connect at once if the next attempt is due later, or never."""
        self.timers.retry_at(now if self.state is State.BACKOFF else NEVER)
        return self.tick(now)

    def renew_session(self, reason: str, now: float) -> list[Effect]:
        """Leave the server's session for a new one, if there is one."""
        out: list[Effect] = []
        if self.state is State.READY and self.link.era and self.link.era.session is not None:
            self._connector.renew(reason, now, out)
        return out

    def call(self, call: Call, now: float) -> tuple[Ticket, list[Effect]]:
        """Take a request; raise if this state does not allow it."""
        out: list[Effect] = []
        state, timers, inflight = self._connector.state, self.timers, self.inflight
        if state is not State.READY and state is not State.NEW:
            self._connector.check_open(call, now)
        pending = inflight.admit(call, now)
        if pending.deadline < timers.due:
            timers.due = pending.deadline
        if state is State.NEW:
            self._connector.start(Step.OPEN, now, out)
        elif state is State.READY:
            if inflight.waiting:
                inflight.queue(pending)
            else:
                self._requests.dispatch(pending, out)
        return pending.ticket, out

    def cancel(self, ticket: Ticket, reason: str, now: float) -> list[Effect]:
        """End a request once; the second time there is nothing left to end."""
        out: list[Effect] = []
        self._requests.cancel(ticket, reason, now, out)
        self.timers.watch(self.inflight, now)
        return out

    def notify(self, method: str, params: dict[str, Any] | None = None) -> list[Effect]:
        """Send a notification, if there is a connection."""
        if self.state is not State.READY or self.link.era is None or not self.link.era.may_ask:
            return []
        return self._outbox.notify(method, params)

    def answer(self, asked: b.Asked, result: Any) -> list[Effect]:
        """Answer a request of the server, unless its link is gone."""
        if asked.generation != self.link.generation or self.state not in _LIVE:
            return []
        return self._outbox.answer(asked, result)

    def refuse(self, asked: b.Asked, code: int, message: str) -> list[Effect]:
        if asked.generation != self.link.generation or self.state not in _LIVE:
            return []
        return self._outbox.refuse(asked, code, message)

    def end_calls(self, now: float) -> list[Effect]:
        """End every request under way, and leave the link for a last one."""
        out: list[Effect] = []
        self._requests.shut(now, out)
        return out

    def close(self, now: float) -> list[Effect]:
        """End everything at once, in any state, any number of times."""
        out: list[Effect] = []
        live = self.state in _LIVE
        self._connector.move(Step.CLOSE, out)
        self._requests.shut(now, out)
        if live:
            farewell = self.link.era.farewell() if self.link.streams and self.link.era else None
            out.append(b.Close(self.link.generation, farewell))
        self._connector.rest()
        return out

    # Reports from below

    def report(self, report: b.Report, now: float) -> list[Effect]:
        """Take a report; drop one of an older link (the generation gate)."""
        out: list[Effect] = []
        if report.generation == self.link.generation:
            try:
                _REPORTS[type(report)](self, report, now, out)
            except Exception as error:
                # What was decided before the defect is carried out all the same.
                out.append(b.Unhandled(error))
        return out

    def _opened(self, report: b.Opened, now: float, out: list[Effect]) -> None:
        if self.state is not State.STARTING:
            return
        self.link.streams = report.streams
        self._connector.move(Step.OPENED, out)
        self._connector.negotiate(now, out)

    def _delivered(self, report: b.Delivered, now: float, out: list[Effect]) -> None:
        state = self._connector.state
        if state is State.READY or state is State.INITIALIZING:
            self._inbox.take(report, now, out)

    def _refused(self, report: b.Refused, now: float, out: list[Effect]) -> None:
        negotiator = self.link.negotiator
        self._inbox.oversized(report, out)
        if negotiator is not None and report.wire_id in negotiator.asked:
            if negotiator.can_go_on(report):
                self._connector.converse(
                    negotiator, lambda: negotiator.refuse(report, now, out), now, out
                )
            else:
                self._connector.lose(report.error, now, out)
        elif not self.link.outdated_by(report) or not self._connector.outdated(report, now, out):
            self.timers.alarm(self._requests.refused(report, now, out))

    def _expired(self, report: b.Expired, now: float, out: list[Effect]) -> None:
        """Start a new session, unless the news is old: it may have been renewed already."""
        if self.state is State.READY and self.link.era and report.session == self.link.era.session:
            self._connector.renew("the server ended the session", now, out)

    def _starting(self, report: b.Starting, now: float, out: list[Effect]) -> None:
        if self.state is State.STARTING or self.state is State.INITIALIZING:
            until = now + report.again + self.policy.timeouts.handshake
            self.timers.expect_agreement(until, startup=report.elapsed + report.again)
            self._requests.keep_waiting(now + report.again)
            out.append(report)

    def _held(self, report: b.Held, now: float, out: list[Effect]) -> None:
        """Stop the clocks of silence: it is not the server that is waited for."""
        pending = self.inflight.sent(report.wire_id)
        if pending is not None:
            self.inflight.hold(pending)
        elif self.link.negotiator is not None:
            self.timers.handshake = NEVER

    def _released(self, report: b.Released, now: float, out: list[Effect]) -> None:
        pending = self.inflight.sent(report.wire_id)
        if pending is not None:
            self.inflight.release(pending, now)
            self.timers.alarm(pending.deadline)
        elif self.link.negotiator is not None:
            self.timers.expect_agreement(now + self.policy.timeouts.handshake)
            self._requests.keep_waiting(now)

    def _busy(self, report: b.Busy, now: float, out: list[Effect]) -> None:
        if report.command.wire_id is None:
            self._outbox.busy(report.command, now, out)
        else:
            self._requests.busy(report.command.wire_id, now)
        self._connector.alarm()

    def _room(self, report: b.Room, now: float, out: list[Effect]) -> None:
        self._outbox.retry(out)
        if self.state is State.READY:
            self._requests.pump(now, out)
        self._connector.alarm()

    def _read_checked(self, report: b.ReadChecked, now: float, out: list[Effect]) -> None:
        negotiator = self.link.negotiator
        if negotiator is not None:
            unread = report.unread
            self._connector.converse(
                negotiator, lambda: negotiator.silence(unread, now, out), now, out
            )

    def _lost(self, report: b.Lost, now: float, out: list[Effect]) -> None:
        self._inbox.oversized(report, out)
        if self.state is State.CLOSING or self.state is State.CLOSED:
            self._connector.move(Step.LOST, out)
        elif self._recovery.died_of_probe(self.link.negotiator):
            self._connector.restart(StartAgain("initialize", None, report.error), now, out)
        elif self.state is State.STARTING and self._recovery.is_presuming:
            self._connector.restart(StartAgain(None), now, out)
        elif self.state in _LIVE:
            self._connector.lose(report.error, now, out, report.unsent)

    def _drained(self, report: b.Drained, now: float, out: list[Effect]) -> None:
        if self.state is State.CLOSING:
            self._connector.move(Step.DRAINED, out)

    # Time

    def tick(self, now: float) -> list[Effect]:
        """Do what is due; then ``due`` is the next time to call."""
        out: list[Effect] = []
        for step in (
            self._connector.connect_if_due,
            self._requests.expire,
            self._send_if_due,
            self._sweep,
        ):
            try:
                step(now, out)
            except Exception as error:
                out.append(b.Unhandled(error))
        negotiator, requests = self.link.negotiator, self._requests
        check = NEVER if negotiator is None else negotiator.check_at
        self.timers.arm(self.inflight, now, check, requests.pump_at, self._outbox.retry_at)
        return out

    def _send_if_due(self, now: float, out: list[Effect]) -> None:
        if self._outbox.retry_at <= now:
            self._outbox.retry(out)
        self._requests.dispatch_due(now, out, connected=self.state is State.READY)

    def _sweep(self, now: float, out: list[Effect]) -> None:
        if self.timers.sweep <= now:
            self.timers.sweep = NEVER
            self.inflight.sweep(now)


_REPORTS: dict[type, Callable[[Connection, Any, float, list[Effect]], None]] = {
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
