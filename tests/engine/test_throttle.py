"""A server that says "later" in a JSON-RPC error, which over stdio is all there is."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from holdfast._core.boundary import Send, Throttled
from holdfast._core.engine.throttle import LONGEST, bounded
from holdfast._core.wire.codes import RATE_LIMITED
from holdfast._core.wire.jsonrpc import DEFAULT_WAIT
from tests.engine.rig import one, only, ready, refusal


@pytest.mark.req("S3", "R11")
@pytest.mark.parametrize(
    ("data", "seconds"),
    [({"retryAfterMs": 4000}, 4.0), (None, DEFAULT_WAIT), ({"retryAfterMs": "soon"}, DEFAULT_WAIT)],
)
def test_a_call_that_is_rate_limited_is_sent_again_when_the_server_says(
    data: Any, seconds: float
) -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=10.0)
    later = one(rig.answer(wire_id, refusal(RATE_LIMITED, "slow down", data)), Throttled)
    assert seconds <= later.seconds <= seconds * 1.1
    assert only(rig.wait(seconds - 0.1), Send) == []
    again = one(rig.wait(seconds * 0.1 + 0.2), Send).wire_id
    assert again is not None
    assert again > wire_id
    rig.answer(again)
    assert rig.result(ticket) == {}


@pytest.mark.req("S3", "R11")
def test_a_call_that_has_no_time_for_later_fails_at_once_and_was_not_run() -> None:
    rig = ready()
    ticket, wire_id = rig.request(idle=3.0)
    rig.answer(wire_id, refusal(RATE_LIMITED, "slow down", {"retryAfterMs": 60_000}))
    error = rig.error(ticket)
    assert (error.code, error.server_message) == (RATE_LIMITED, "slow down")
    assert not error.outcome_unknown


@pytest.mark.req("S3")
def test_a_later_that_answers_no_call_holds_up_nothing() -> None:
    rig = ready()
    ticket, wire_id = rig.request()
    effects = rig.answer(wire_id + 100, refusal(RATE_LIMITED, "slow down"))
    assert only(effects, Throttled) == []
    rig.answer(wire_id)
    assert rig.result(ticket) == {}


@pytest.mark.req("S3")
@pytest.mark.parametrize(("seconds", "wait"), [(-5.0, 0.0), (20.0, 21.0), (1e9, LONGEST * 1.05)])
def test_a_wait_is_never_shorter_than_said_nor_without_end(seconds: float, wait: float) -> None:
    assert bounded(seconds, itertools.repeat(0.5)) == pytest.approx(wait)
