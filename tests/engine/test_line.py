"""The link of the moment."""

from __future__ import annotations

import pytest

from holdfast.boundary import Generation
from holdfast.config import Identity
from holdfast.engine.greeting import Greeting
from holdfast.engine.inflight import Inflight
from holdfast.engine.line import Line
from holdfast.eras.handshake import Handshake
from holdfast.eras.negotiation import Plan


@pytest.mark.req("L9")
def test_every_advance_is_a_new_generation() -> None:
    line = Line()
    assert [line.advance() for _ in range(3)] == [Generation(1), Generation(2), Generation(3)]
    assert line.generation == Generation(3)


def test_the_greeting_ends_with_its_link_and_the_era_outlives_it() -> None:
    era = Handshake("2025-11-25")
    line = Line(greeting=Greeting(Plan(Identity()), Inflight(75.0, 10)), era=era)
    line.advance()
    assert line.greeting is None
    assert line.era is era
