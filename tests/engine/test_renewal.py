"""The renewal policy: when a refusal is news about the agreement, and when it is the answer."""

from __future__ import annotations

import pytest

from holdfast._core.boundary import Call, RefusalReason, Refused, Ticket
from holdfast._core.engine.inflight import Pending
from holdfast._core.engine.link_state import LinkState
from holdfast._core.engine.renewal import (
    MOST_RENEWALS,
    RENEWALS_WITHIN,
    Remedy,
    Renewals,
    disowning,
    is_doubtful,
)
from holdfast._core.wire.jsonrpc import ErrorObject
from holdfast.errors import TransportError
from tests.rows import rows

FAULT = ErrorObject(-32601, "Method not found")
GONE = Refused(TransportError("HTTP status 404"), RefusalReason.NO_SUCH_SESSION)
STRANGE = Refused(TransportError("HTTP status 400"), RefusalReason.NOT_UNDERSTOOD, fault=FAULT)


def pending(epoch: int = 3, *, renewed: bool = False) -> Pending:
    return Pending(Ticket(1), Call("tools/call"), 1.0, 1.0, 1.0, epoch=epoch, renewed=renewed)


def link(*, streams: bool = True, revised: int = 1) -> LinkState:
    return LinkState(epoch=3, streams=streams, revised=revised)


@pytest.mark.req("X4")
@rows(
    ("refusal", "request_", "current", "ready", "remedy"),
    [
        (GONE, pending(), link(), True, Remedy.NEW_SESSION),
        (STRANGE, pending(), link(), True, Remedy.NEW_REVISION),
        (STRANGE, pending(), link(streams=False), True, Remedy.NEW_LINK),
        (GONE, pending(), link(), False, Remedy.WAIT),
        (GONE, pending(epoch=2), link(), True, Remedy.SEND_AGAIN),
        (STRANGE, pending(epoch=2), link(revised=3), True, Remedy.SEND_AGAIN),
        (STRANGE, pending(epoch=2), link(revised=1), True, Remedy.NONE),
        (GONE, pending(renewed=True), link(), True, Remedy.NONE),
        (GONE, None, link(), True, Remedy.NONE),
    ],
)
def test_each_refusal_has_one_remedy(
    refusal: Refused, request_: Pending | None, current: LinkState, ready: bool, remedy: Remedy
) -> None:
    assert Renewals().remedy(refusal, request_, current, 0.0, ready=ready) is remedy


@pytest.mark.req("R2")
def test_a_server_that_refuses_each_session_it_gave_gets_a_bounded_number() -> None:
    renewals = Renewals()
    remedies = [
        renewals.remedy(GONE, pending(), link(), now, ready=True)
        for now in range(MOST_RENEWALS + 1)
    ]
    assert remedies == [Remedy.NEW_SESSION] * MOST_RENEWALS + [Remedy.NONE]
    later = RENEWALS_WITHIN + 0.5
    assert renewals.remedy(GONE, pending(), link(), later, ready=True) is Remedy.NEW_SESSION


def test_only_an_error_of_json_rpc_may_be_the_answer_after_all() -> None:
    assert is_doubtful(STRANGE, link())
    assert not is_doubtful(STRANGE, link(streams=False))
    assert not is_doubtful(GONE, link())


def test_an_error_outside_of_an_agreement_disowns_nothing() -> None:
    assert disowning("server", pending(), FAULT, link()) is None
    assert disowning("server", pending(), FAULT, link(streams=False)) is None
