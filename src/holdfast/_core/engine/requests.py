"""The rules for requests: sent, retried, timed out, cancelled, lost, repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast._core.boundary import (
    Call,
    Effect,
    Failed,
    LinkChanged,
    RefusalReason,
    Refused,
    Retract,
    Send,
    Ticket,
    WireId,
)
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import NEVER, Inflight, Pending
from holdfast._core.engine.link_state import LinkState
from holdfast._core.engine.outbox import ATTEMPTS
from holdfast._core.engine.recovery import Recovery
from holdfast._core.wire import jsonrpc
from holdfast.errors import HoldfastError
from holdfast.policies import Policy

BATCH: Final = 256 * 1024
"""Bytes of queued requests that are encoded at once: until they are sent, they are in memory."""
SOON: Final = 0.001
"""Seconds between two batches."""
POLL: Final = 0.05
"""Seconds until a full link is tried again, for links that do not report when they have room."""


# What may be sent twice, and why.
#
# A tool may move money. So the first rule is that a request which *may have run* is not sent
# again, and that its error says so (``outcome_unknown``): only its caller knows whether running it
# twice does harm. Each rule below is either a proof that it has not run, or a permission.
#
# Proofs. The request is sent again (or fails as "nothing was sent"), whatever it does:
#
# * It is parked or queued: it has no wire id, so no link was ever given it.
# * The link was given it, and no byte of it has left (``unsent``). A part of a line, or of a body,
#   does not count as nothing: servers act on what they can read.
# * The link withdrew it (``Retract``) before the first byte. Only the link knows that, and only
#   once it is asked: so ``Failed`` carries both errors, and the driver chooses the true one.
# * The server, or a proxy before it, refused it without running it (``Refused.processed`` is
#   False): 401, 404, 429, a connection that never came about. It is offered ``ATTEMPTS`` times.
#
# Permissions. The request has left, the link is gone or the answer is lost, and it is sent again
# once, if all of these hold:
#
# * its call is ``repeatable``: a read or a list, or a tool whose annotations say that it only
#   reads or is idempotent. Annotations are the server's word: a hint, not a promise;
# * and the user trusts that word: ``replay="safe"``. The default is "never";
# * and it has not been repeated before. A request that kills the server would otherwise kill each
#   of its successors: a poison pill that is passed on. Twice is bad luck, three times is a cause.
#
# What may have run stays so. ``Pending.repeated`` is set when a request that has left is kept, and
# is never taken back: its second attempt may be withdrawn, refused or unsent, but the first may
# have run. ``may_have_run`` is therefore "it has a wire id, or it was repeated", and each ending
# (timeout, cancellation, loss, close, giving up) asks it before it says "nothing was sent".
#
# An epoch is a proof that expires: a caller that checked arguments or asked a person for approval
# did so for *this* server. If the link changed before the request left, ``LinkChanged`` gives it
# back to the caller instead of sending it to whoever answers now.
#
# A request that brings answers to a server's questions (2026-07-28) goes on with a call. A server
# of an older revision does not read them, and would run the call from the start: it is not sent.


class Requests:
    """The rules for requests, over the one ``Inflight``."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        link: LinkState,
        recovery: Recovery,
        jitter: Iterator[float],
    ) -> None:
        self.name = name
        self.inflight: Inflight = Inflight(policy.tombstone_ttl, policy.limits.tombstones)
        self._policy = policy
        self._link = link
        self._recovery = recovery
        self.jitter = jitter
        self.pump_at: float = NEVER
        """The time to retry requests that wait for room."""

    def waits(self, call: Call) -> bool:
        """Return True if a call waits for a server that is down."""
        return self._policy.when_down == "wait" if call.wait is None else call.wait

    def submit(self, pending: Pending, out: list[Effect]) -> None:
        """Send a request now, or after those that wait for room on the link."""
        if self.inflight.waiting:
            self.inflight.queue(pending)
        else:
            out.append(self.dispatch(pending))

    def dispatch(self, pending: Pending) -> Send | Failed:
        """Send a parked request on the current link, or fail it."""
        call, link = pending.call, self._link
        if call.epoch is not None or call.answers:
            error = self._unsendable(pending)
            if error is not None:
                self.inflight.end(pending, 0.0)
                return Failed(pending.ticket, error)
        wire_id = self.inflight.dispatch(pending)
        pending.epoch, pending.doubt = link.epoch, None
        era, options = link.era, None
        assert era is not None
        try:
            token = wire_id if call.progress else None
            params = era.stamp(call.params, call.meta, token, call.extensions)
            frame = jsonrpc.request(wire_id, call.method, params)
            if link.streams:
                options = era.options(call.method, call.params, call.param_headers)
        except Exception as fault:
            # The parameters are the caller's objects: encoding them may raise anything.
            self.inflight.end(pending, 0.0, bury=False)
            return Failed(pending.ticket, messages.unencodable(self.name, call, fault))
        return Send(frame, wire_id, options, pending.ticket)

    def _unsendable(self, pending: Pending) -> HoldfastError | LinkChanged | None:
        """Return why a request is not for this server; None if it is.

        Whoever takes a request at the second attempt may be another one.
        """
        call, link, offers = pending.call, self._link, pending.offers
        is_refused_anew = call.refusals is not None and offers > call.refusals
        if call.epoch is not None and (call.epoch != link.epoch or is_refused_anew):
            repeated = pending.repeated
            return messages.link_changed(self.name, call, repeated=repeated, refusals=offers)
        assert link.era is not None
        if call.answers and not link.era.listens:
            return messages.asked_before(self.name, call)
        return None

    def dispatch_parked(self, now: float, out: list[Effect]) -> None:
        """Send what waited for the connection, a batch at a time."""
        for pending in self.inflight.parked():
            pending.retry_at = NEVER
            self.inflight.queue(pending)
        self.pump(now, out)

    def dispatch_due(self, now: float, out: list[Effect], *, connected: bool) -> None:
        """Send again what was refused for now, and what waits for room."""
        for pending in self.inflight.retries(now):
            if connected:
                self.submit(pending, out)
        if not connected:
            # All that is parked is sent once there is a connection.
            self.pump_at = NEVER
        elif self.pump_at <= now:
            self.pump(now, out)

    def pump(self, now: float, out: list[Effect]) -> None:
        """Offer the link a batch of the requests that wait for room."""
        size = 0
        self.pump_at = NEVER
        while size < BATCH:
            pending = self.inflight.unqueue()
            if pending is None:
                return
            effect = self.dispatch(pending)
            out.append(effect)
            if type(effect) is Send:
                size += len(effect.frame)
        self.pump_at = now + SOON

    def busy(self, wire_id: WireId, now: float) -> None:
        """Have a request that the link did not take wait for room, until its deadline."""
        pending = self.inflight.sent(wire_id)
        if pending is not None:
            self.inflight.park(pending)
            self.inflight.queue(pending)
            self.pump_at = now + POLL

    def hold(self, wire_id: WireId) -> bool:
        """Note that a request waits for credentials; False if it is not one."""
        pending = self.inflight.sent(wire_id)
        if pending is not None:
            self.inflight.hold(pending)
        return pending is not None

    def release(self, wire_id: WireId) -> bool:
        """Note that a request that was held is sent; False if it is not one."""
        pending = self.inflight.sent(wire_id)
        if pending is not None:
            self.inflight.release(pending)
        return pending is not None

    def refused(self, report: Refused, now: float, out: list[Effect]) -> float:
        """Fail a request that was refused below the protocol, or send it again; return when."""
        pending = self.inflight.sent(report.wire_id)
        if pending is None:
            return NEVER
        again_at = self._again_at(pending, report, now)
        if again_at < pending.deadline:
            self.inflight.park(pending)
            pending.offers += 1
            pending.repeated = pending.repeated or report.processed
            self.inflight.retry(pending, again_at)
            return again_at
        self.inflight.end(pending, now)
        error = messages.refused(self.name, pending.call, report, repeated=pending.repeated)
        out.append(Failed(pending.ticket, error))
        return NEVER

    def _again_at(self, pending: Pending, report: Refused, now: float) -> float:
        """Return when to send a refused request again; never, if that could run it twice."""
        if report.processed:
            safe = self._policy.replay == "safe" and pending.call.repeatable
            repeat = safe and not pending.repeated and report.fault is None
            return now if repeat else NEVER
        if report.retry_after is not None:
            enough = pending.offers >= ATTEMPTS
            return NEVER if enough else now + report.retry_after
        if _is_answer(report) or not self.waits(pending.call):
            return NEVER
        return now + self._policy.backoff.delay(pending.offers + 1, self.jitter)

    def renew(self, pending: Pending) -> None:
        """Park a request whose epoch has ended."""
        self.inflight.park(pending)
        pending.renewed = True

    def settle_doubts(self, now: float, out: list[Effect]) -> None:
        """Give out the errors after which the same revision was agreed on again."""
        for pending in self.inflight.parked():
            if pending.doubt is not None:
                self._fail(pending, pending.doubt, sent=True, now=now, out=out)

    def cancel(self, ticket: Ticket, reason: str, now: float, out: list[Effect]) -> None:
        pending = self.inflight.find(ticket)
        if pending is None:
            return
        unsent = messages.cancelled(self.name, pending.call, sent=False)
        sent = messages.cancelled(self.name, pending.call, sent=True)
        self._retract(pending, reason, (sent, unsent), now, out)

    def expire(self, now: float, out: list[Effect]) -> None:
        for pending in self.inflight.expired(now):
            total = pending.total_until <= now and pending.total_until < pending.idle_until
            if pending.held:
                unsent = messages.without_token(self.name, pending.call)
            elif pending.queued or pending.wire_id is not None:
                unsent = messages.backpressure(self.name, pending.call, total=total)
            else:
                reason = self._recovery.reason
                unsent = messages.timed_out(
                    self.name, pending.call, sent=False, total=total, reason=reason
                )
            sent = messages.timed_out(self.name, pending.call, sent=True, total=total)
            self._retract(pending, "timeout", (sent, unsent), now, out)

    def shut(self, now: float, out: list[Effect]) -> None:
        """End every request, because the client is closed."""
        unsent = self._link.unsent()
        for pending in self.inflight:
            sent = pending.may_have_run and (pending.repeated or pending.wire_id not in unsent)
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
        """Fail each request of a lost link, or keep it for the next link."""
        for pending in self.inflight:
            sent = pending.wire_id is not None and pending.wire_id not in unsent
            if error.final or not self._keeps(pending, sent=sent, connected=connected):
                self._fail(pending, error, sent=sent or pending.repeated, now=now, out=out)
                continue
            if pending.wire_id is not None:
                if sent:
                    self.inflight.bury(pending.wire_id, now)
                self.inflight.park(pending)
            pending.retry_at, pending.offers, pending.queued = NEVER, 0, False
            pending.repeated = pending.repeated or sent

    def fail_all(self, error: HoldfastError, now: float, out: list[Effect]) -> None:
        unsent = self._link.unsent()
        for pending in self.inflight:
            sent = pending.may_have_run and (pending.repeated or pending.wire_id not in unsent)
            self._fail(pending, error, sent=sent, now=now, out=out)

    def end_lasting(self, reason: HoldfastError, now: float, out: list[Effect]) -> None:
        """End streams that were opened for a session or revision that is not in force any more."""
        for pending in self.inflight:
            if pending.call.lasting and pending.wire_id is not None:
                error = messages.lost(self.name, pending.call, reason, sent=True)
                self._retract(pending, reason.message, (error, error), now, out)

    def keep_waiting(self, now: float) -> None:
        """Reset the idle clocks of calls that wait for a server which is being started."""
        for pending in self.inflight.parked():
            pending.wait_until(max(pending.idle_until, now + pending.call.idle))

    def _keeps(self, pending: Pending, *, sent: bool, connected: bool) -> bool:
        """Return True if a request is kept: unsent, or sent and harmless to repeat."""
        if pending.doubt is not None:
            return False
        if sent:
            safe = self._policy.replay == "safe" and pending.call.repeatable
            return safe and not pending.repeated
        return connected or self.waits(pending.call)

    def _fail(
        self, pending: Pending, error: HoldfastError, *, sent: bool, now: float, out: list[Effect]
    ) -> None:
        self.inflight.end(pending, now)
        failure = pending.doubt or messages.lost(self.name, pending.call, error, sent=sent)
        out.append(Failed(pending.ticket, failure))

    def _retract(
        self,
        pending: Pending,
        reason: str,
        errors: tuple[HoldfastError, HoldfastError],
        now: float,
        out: list[Effect],
    ) -> None:
        """End a request: with the first error if it may have run, else with the second."""
        sent, unsent = errors
        self.inflight.end(pending, now)
        ticket = pending.ticket
        if pending.wire_id is None or self._link.era is None:
            error = sent if pending.may_have_run else unsent
            out.append(Failed(ticket, pending.doubt or error))
            return
        try:
            frame = self._link.era.cancel(pending.wire_id, reason, streams=self._link.streams)
            options = self._link.options("notifications/cancelled")
            out.append(Retract(pending.wire_id, frame, options, ticket))
        finally:
            out.append(Failed(ticket, sent, None if pending.repeated else unsent))


def _is_answer(report: Refused) -> bool:
    """Return whether a refusal is the answer of a server that is there."""
    if report.fault is not None:
        return report.reason is not RefusalReason.BUSY
    return report.reason in (RefusalReason.UNAUTHORIZED, RefusalReason.FORBIDDEN)
