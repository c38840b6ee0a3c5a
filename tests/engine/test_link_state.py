"""The link of the moment."""

from __future__ import annotations

import pytest

from holdfast._core.boundary import Generation
from holdfast._core.engine.inflight import Inflight
from holdfast._core.engine.link_state import LinkState
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.eras.conversation import Plan
from holdfast._core.eras.handshake import Handshake
from holdfast.policies import Identity


@pytest.mark.req("L9")
def test_every_advance_is_a_new_generation() -> None:
    line = LinkState()
    assert [line.advance() for _ in range(3)] == [Generation(1), Generation(2), Generation(3)]
    assert line.generation == Generation(3)


def test_the_greeting_ends_with_its_link_and_the_era_outlives_it() -> None:
    era = Handshake("2025-11-25")
    line = LinkState(negotiator=Negotiator(Plan(Identity()), Inflight(75.0, 10)), era=era)
    line.advance()
    assert line.negotiator is None
    assert line.era is era
