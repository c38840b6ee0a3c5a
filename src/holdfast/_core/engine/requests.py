"""What becomes of each request: sent, retried, timed out, cancelled, lost, kept."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast._core.boundary import (
    Call,
    Effect,
    Failed,
    Refused,
    Retract,
    Send,
    Ticket,
    WireId,
)
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import NEVER, Inflight, Pending
from holdfast._core.engine.link_state import LinkState
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import UNENCODABLE
from holdfast.errors import HoldfastError
from holdfast.policies import Policy

_FEW, _SOON = 8, 0.001


class Requests:
    """The rules for requests, over the one ``Inflight``."""

    def __init__(self, name: str, policy: Policy, link: LinkState, jitter: Iterator[float]) -> None:
        self.name = name
        self.inflight: Inflight = Inflight(policy.tombstone_ttl, policy.limits.tombstones)
        self._policy = policy
        self._link = link
        self._jitter = jitter

    def waits(self, call: Call) -> bool:
        """Whether a call waits for a server that is down."""
        return self._policy.when_down == "wait" if call.wait is None else call.wait

    def dispatch(self, pending: Pending, out: list[Effect]) -> None:
        """Send a parked request on the line of the moment."""
        era = self._link.era
        assert era is not None
        call = pending.call
        if call.epoch is not None and call.epoch != self._link.epoch:
            self.inflight.end(pending, 0.0)
            error = messages.link_changed(self.name, call, repeated=pending.repeated)
            out.append(Failed(pending.ticket, error))
            return
        wire_id = self.inflight.dispatch(pending)
        pending.epoch = self._link.epoch
        token = wire_id if call.progress else None
        try:
            params = era.stamp(call.params, call.meta, token)
            frame = jsonrpc.request(wire_id, call.method, params)
            options = (
                era.options(call.method, call.params, call.param_headers)
                if self._link.streams
                else None
            )
        except UNENCODABLE as error:
            self.inflight.end(pending, 0.0, bury=False)
            out.append(Failed(pending.ticket, messages.unencodable(self.name, call, error)))
        else:
            out.append(Send(frame, wire_id, options, pending.ticket))

    def dispatch_parked(self, out: list[Effect]) -> None:
        for pending in self.inflight.parked():
            pending.retry_at = NEVER
            self.dispatch(pending, out)

    def dispatch_retries(self, now: float, out: list[Effect]) -> None:
        """A few at a time: their frames are in memory until they are sent."""
        waiting = self.inflight.retries(now)
        for pending in waiting[:_FEW]:
            pending.retry_at = NEVER
            self.dispatch(pending, out)
        for pending in waiting[_FEW:]:
            pending.retry_at = now + _SOON

    def busy(self, wire_id: WireId, now: float, out: list[Effect]) -> float:
        """The link did not take it: again later, or enough. Says when."""
        pending = self.inflight.sent(wire_id)
        if pending is None:
            return NEVER
        self.inflight.park(pending)
        pending.offers += 1
        if pending.offers < self._policy.retry.attempts:
            pending.retry_at = now + self._policy.retry.pause(self._jitter)
            return pending.retry_at
        self.inflight.end(pending, now)
        error = messages.backpressure(self.name, pending.call, pending.offers)
        error.outcome_unknown = pending.repeated
        out.append(Failed(pending.ticket, error))
        return NEVER

    def refused(self, report: Refused, now: float, out: list[Effect]) -> float:
        """One request failed below the protocol: it fails, or is sent again. Says when."""
        pending = self.inflight.sent(report.wire_id)
        if pending is None:
            return NEVER
        again_at = self._again_at(pending, report, now)
        if again_at < pending.deadline:
            self.inflight.park(pending)
            pending.offers += 1
            pending.repeated = pending.repeated or report.processed
            pending.retry_at = again_at
            return again_at
        self.inflight.end(pending, now)
        error = messages.refused(self.name, pending.call, report)
        out.append(Failed(pending.ticket, error))
        return NEVER

    def _again_at(self, pending: Pending, report: Refused, now: float) -> float:
        """When a refused request goes out again; never, if that could run it twice."""
        if report.processed:
            safe = self._policy.replay == "safe" and pending.call.repeatable
            repeat = safe and not pending.repeated and report.fault is None
            return now if repeat else NEVER
        if report.retry_after is not None:
            enough = pending.offers >= self._policy.retry.attempts
            return NEVER if enough else now + report.retry_after
        if not self.waits(pending.call):
            return NEVER
        return now + self._policy.backoff.delay(pending.offers + 1, self._jitter)

    def renew(self, wire_id: WireId) -> Pending | None:
        """Park a request whose epoch has ended; None if that happened to it before."""
        pending = self.inflight.sent(wire_id)
        if pending is None or pending.renewed:
            return None
        self.inflight.park(pending)
        pending.renewed = True
        return pending

    def cancel(self, ticket: Ticket, reason: str, now: float, out: list[Effect]) -> None:
        pending = self.inflight.find(ticket)
        if pending is None:
            return
        sent = pending.may_have_run
        self._retract(pending, reason, now, out)
        out.append(Failed(ticket, messages.cancelled(self.name, pending.call, sent=sent)))

    def expire(self, now: float, out: list[Effect]) -> None:
        for pending in self.inflight.expired(now):
            sent = pending.may_have_run
            total = pending.total_until <= now and pending.total_until < pending.idle_until
            error = messages.timed_out(self.name, pending.call, sent=sent, total=total)
            self._retract(pending, "timeout", now, out)
            out.append(Failed(pending.ticket, error))

    def shut(self, now: float, out: list[Effect]) -> None:
        """The client is closed: every caller hears it now."""
        for pending in self.inflight:
            sent = pending.may_have_run
            self.inflight.end(pending, now)
            out.append(Failed(pending.ticket, messages.shut(self.name, pending.call, sent=sent)))

    def lose(
        self,
        error: HoldfastError,
        unsent: frozenset[WireId],
        *,
        connected: bool,
        now: float,
        out: list[Effect],
    ) -> None:
        """The link is gone: each request fails, or is kept for the next one."""
        for pending in self.inflight:
            sent = pending.wire_id is not None and pending.wire_id not in unsent
            if error.final or not self._keeps(pending, sent=sent, connected=connected):
                self._fail(pending, error, sent=sent or pending.repeated, now=now, out=out)
                continue
            if pending.wire_id is not None:
                if sent:
                    self.inflight.bury(pending.wire_id, now)
                self.inflight.park(pending)
            pending.retry_at, pending.offers = NEVER, 0
            pending.repeated = pending.repeated or sent

    def fail_all(self, error: HoldfastError, now: float, out: list[Effect]) -> None:
        for pending in self.inflight:
            self._fail(pending, error, sent=pending.may_have_run, now=now, out=out)

    def _keeps(self, pending: Pending, *, sent: bool, connected: bool) -> bool:
        """A sent request runs again only if that is harmless; an unsent one gets another try."""
        if sent:
            safe = self._policy.replay == "safe" and pending.call.repeatable
            return safe and not pending.repeated
        return connected or self.waits(pending.call)

    def _fail(
        self, pending: Pending, error: HoldfastError, *, sent: bool, now: float, out: list[Effect]
    ) -> None:
        self.inflight.end(pending, now)
        out.append(Failed(pending.ticket, messages.lost(self.name, pending.call, error, sent=sent)))

    def _retract(self, pending: Pending, reason: str, now: float, out: list[Effect]) -> None:
        self.inflight.end(pending, now)
        if pending.wire_id is not None and self._link.era is not None:
            frame = self._link.era.cancel(pending.wire_id, reason, streams=self._link.streams)
            options = self._link.options("notifications/cancelled")
            out.append(Retract(pending.wire_id, frame, options))
