"""Effects that could not be carried out: the engine hears of each and goes on."""

from __future__ import annotations

import pytest

from holdfast._core.boundary import CheckRead, Close, Effect, Open, Send
from holdfast._core.engine.failures import report_of_failure
from tests.engine.rig import Rig, methods, one, ready, reconnect

BUG = OSError("too many open files")


def fail(rig: Rig, effect: Effect) -> list[Effect]:
    """Report what a driver reports whose transport raised an error."""
    report = report_of_failure(effect, BUG, rig.engine.link.generation)
    assert report is not None
    return rig.report(report)


@pytest.mark.req("R2", "R11")
def test_a_request_that_was_not_handed_over_fails_and_the_others_go_on() -> None:
    rig = ready()
    other, other_id = rig.request()
    ticket = rig.call()
    send = rig.effects[-1]
    assert isinstance(send, Send)
    fail(rig, send)
    error = rig.error(ticket)
    assert "could not be handed to the transport" in error.message
    assert "too many open files" in error.message
    assert error.outcome_unknown, "part of it may have left"
    rig.answer(other_id)
    assert rig.result(other) == {}


@pytest.mark.req("L5")
def test_a_link_that_cannot_be_opened_is_tried_again_after_backoff() -> None:
    rig = Rig(opening="initialize")
    fail(rig, one(rig.open(), Open))
    assert rig.state == "backoff"
    assert rig.engine.reason is not None
    assert "too many open files" in rig.engine.reason.message
    reconnect(rig)


@pytest.mark.req("L7")
def test_a_teardown_that_fails_does_not_hold_up_the_close() -> None:
    rig = ready()
    close = one(rig.close(), Close)
    assert rig.state == "closing"
    fail(rig, close)
    assert rig.state == "closed"


@pytest.mark.req("L3")
def test_a_check_that_fails_does_not_hold_up_the_other_opening() -> None:
    rig = Rig()
    rig.open()
    assert methods(rig.opened()) == ["server/discover"]
    check = one(rig.at(rig.policy.timeouts.probe), CheckRead)
    assert methods(fail(rig, check)) == ["initialize"]


def test_what_nobody_waits_for_needs_no_report() -> None:
    rig = ready()
    notice = Send(b'{"jsonrpc":"2.0","method":"notifications/vendor"}\n')
    assert report_of_failure(notice, BUG, rig.engine.link.generation) is None
