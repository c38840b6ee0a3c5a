"""The renewal policy: what to do when a refusal shows that the agreement is out of date."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from msgspec import Struct

from holdfast._core.boundary import RefusalReason, Refused
from holdfast._core.engine import messages
from holdfast._core.engine.inflight import Pending
from holdfast._core.engine.link_state import LinkState
from holdfast._core.wire.jsonrpc import ErrorObject

MOST_RENEWALS: Final = 5
RENEWALS_WITHIN: Final = 10.0
"""Seconds in which a link is negotiated again so often; then a refusal is an answer."""


class Remedy(Enum):
    """The ways to deal with a request that was refused under an agreement."""

    NONE = auto()
    """None would help: the refusal is the answer."""
    WAIT = auto()
    """The negotiation is under way; the request is sent after it."""
    SEND_AGAIN = auto()
    """It was refused under an earlier agreement: send it under the present one."""
    NEW_LINK = auto()
    """The address that the link posts to is gone with its server."""
    NEW_SESSION = auto()
    """Negotiate again over the same link, in the way that is known to work."""
    NEW_REVISION = auto()
    """Negotiate again over the same link, from the first question."""


# When a refusal is news about the agreement, and when it is an answer.
#
# An HTTP server may be replaced between two requests: behind the same address there is then a
# process that does not know the session, or that speaks another revision. It says so by refusing
# a request, in words that may also mean something else: 404 is "no such session", and a wrong
# path; -32601 is "not my revision", and a method that this server lacks. Negotiating again heals
# the first meaning and costs two messages under the second. The rules bound that cost:
#
# * Each request has the connection negotiated again once (``Pending.renewed``). If it is refused
#   after that, the refusal is its answer.
# * Many requests of one epoch are refused together. The first of them renews; the others find
#   another epoch than the one they were sent in, and are only sent again.
# * If the same revision was agreed on since, an error that was doubtful is no longer: it is the
#   answer, and the server is not asked the same thing again (``Pending.doubt``, ``revised``).
# * A server that refuses each session it has given gets ``MOST_RENEWALS`` in
#   ``RENEWALS_WITHIN`` seconds: a renewal is no failure, so no backoff would slow it down.


class Renewals(Struct):
    """Decides on the remedy, and remembers how often one was tried of late."""

    _times: list[float] = []

    def remedy(
        self, refusal: Refused, pending: Pending | None, link: LinkState, now: float, *, ready: bool
    ) -> Remedy:
        """Return what to do about a refusal that shows the agreement to be out of date."""
        if pending is None or pending.renewed:
            return Remedy.NONE
        if not ready:
            return Remedy.WAIT
        if pending.epoch != link.epoch:
            settled = is_doubtful(refusal, link) and pending.epoch >= link.revised
            return Remedy.NONE if settled else Remedy.SEND_AGAIN
        if not self._may_renew(now):
            return Remedy.NONE
        if not link.streams:
            return Remedy.NEW_LINK
        if refusal.reason is RefusalReason.NO_SUCH_SESSION:
            return Remedy.NEW_SESSION
        return Remedy.NEW_REVISION

    def _may_renew(self, now: float) -> bool:
        """Note a renewal; return False if there were too many: a new one would not help either."""
        self._times = [then for then in self._times if now - then < RENEWALS_WITHIN]
        if len(self._times) == MOST_RENEWALS:
            return False
        self._times.append(now)
        return True


def is_doubtful(refusal: Refused, link: LinkState) -> bool:
    """Return True if a refusal may be the server's answer after all: an error, by JSON-RPC."""
    is_session = refusal.reason is RefusalReason.NO_SUCH_SESSION
    return refusal.fault is not None and link.streams and not is_session


def disowning(name: str, pending: Pending, fault: ErrorObject, link: LinkState) -> Refused | None:
    """Return an error as a refusal of the revision, if a server of another one may have sent it."""
    if not link.streams or link.era is None or pending.wire_id is None:
        return None
    if not link.era.disowned_by(pending.call.method, fault):
        return None
    error = messages.refused_by_server(name, pending.call, fault)
    refusal = Refused(error, RefusalReason.NOT_UNDERSTOOD, fault=fault)
    return refusal.of(link.generation, pending.wire_id)
