"""The values that cross the layers: frozen, told apart by type, all of them listed."""

from __future__ import annotations

import inspect
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from holdfast._core import boundary
from holdfast._core.boundary import (
    Call,
    Command,
    Delivered,
    Drained,
    Generation,
    Lost,
    Misfit,
    Opened,
    Outcome,
    RefusalReason,
    Refused,
    Report,
    Starting,
    Ticket,
    Traits,
    Waiting,
    WireId,
)
from holdfast._core.driver import _EFFECTS
from holdfast._core.engine.connection import _REPORTS
from holdfast.errors import TransportError
from tests.rows import rows

VALUES: list[Any] = [
    value
    for value in (*get_args(Command), *get_args(Report), *get_args(Outcome))
    if value is not Refused  # raised inside a transport, then reported
]


@rows("value", VALUES, ids=lambda value: value.__name__)
def test_what_crosses_a_layer_is_frozen(value: Any) -> None:
    assert value.__struct_config__.frozen


def test_every_value_is_a_command_a_report_or_an_outcome_or_a_part_of_one() -> None:
    here = {
        thing
        for _, thing in inspect.getmembers(boundary, inspect.isclass)
        if thing.__module__ == boundary.__name__ and issubclass(thing, msgspec.Struct)
    }
    hints = [hint for value in VALUES for hint in get_type_hints(value).values()]
    parts = {part for hint in hints for part in (hint, *get_args(hint))}
    assert set(VALUES) <= here
    assert here - set(VALUES) - parts == {Call, Misfit, Traits, Waiting}
    twice = {value for value in VALUES if VALUES.count(value) > 1}
    assert twice == {Starting}, "a report that is passed on as it came"


def test_every_report_is_understood_and_every_effect_carried_out() -> None:
    assert set(_REPORTS) == set(get_args(Report))
    assert set(_EFFECTS) == {*get_args(Command), *get_args(Outcome)}


@pytest.mark.req("L9")
@rows("report", get_args(Report), ids=lambda report: report.__name__)
def test_every_report_says_which_link_it_is_of(report: Any) -> None:
    if report is Refused:
        assert Refused(TransportError("x"), RefusalReason.BROKEN).generation == 0
    else:
        assert report.__struct_fields__[0] == "generation"


def test_a_call_has_the_default_deadlines_and_is_not_repeated() -> None:
    call = Call("tools/call")
    assert (call.idle, call.total) == (30.0, 300.0)
    assert (call.repeatable, call.lasting, call.progress) == (False, False, False)
    assert call.wait is None


def test_values_are_equal_by_content() -> None:
    first, second = Generation(1), Generation(2)
    assert Opened(first) == Opened(first) != Opened(second)
    assert Delivered(first, b"x\n") == Delivered(first, b"x\n")
    values: list[Report] = [Opened(first), Drained(first)]
    assert values[0] != values[1]


def test_a_loss_sent_everything_unless_it_says_otherwise() -> None:
    error = TransportError("gone")
    assert Lost(Generation(1), error).unsent == frozenset()
    assert WireId(3) in Lost(Generation(1), error, frozenset({WireId(3)})).unsent
    assert Ticket(1) == 1, "tickets and wire ids differ for the type checker only"
