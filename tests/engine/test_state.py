"""Every pair of state and step, against a table written out here a second time."""

from __future__ import annotations

import pytest

from holdfast._core.engine.state import TABLE, State, Step, advance, table
from holdfast.errors import StateError
from tests.rows import rows

EXPECTED = """
             open     opened       agreed expired      lost    due      give-up close   drained
new          starting -            -      -            -       -        -       closed  -
starting     -        initializing -      -            backoff -        -       closed  -
initializing -        -            ready  -            backoff -        closed  closed  -
ready        -        -            -      initializing backoff -        -       closing -
backoff      -        -            -      -            -       starting closed  closed  -
closing      -        -            -      -            closed  -        -       closing closed
closed       -        -            -      -            closed  -        -       closed  -
"""


def expected() -> dict[tuple[str, str], str]:
    head, *rows = (row.split() for row in EXPECTED.strip().splitlines())
    steps = [step.replace("-", " ") for step in head]
    return {(row[0], step): cell for row in rows for step, cell in zip(steps, row[1:], strict=True)}


PAIRS = expected()


def test_the_expected_table_is_whole() -> None:
    assert {state for state, _ in PAIRS} == set(State)
    assert {step for _, step in PAIRS} == set(Step)
    assert len(PAIRS) == 7 * 9


@pytest.mark.req("L1", "V2")
@rows(("state", "step"), PAIRS, ids="-".join)
def test_every_step_leads_where_the_table_says_or_is_refused(state: str, step: str) -> None:
    goal = PAIRS[state, step]
    if goal != "-":
        assert advance(State(state), Step(step)) is State(goal)
        return
    with pytest.raises(StateError) as refused:
        advance(State(state), Step(step))
    assert refused.value.state == state
    assert f"'{state}'" in refused.value.message
    assert f"'{step}'" in refused.value.message


@pytest.mark.req("L1")
def test_the_table_is_printed_from_the_code() -> None:
    printed = [
        [cell.strip().strip("*") for cell in row.strip("|").split("|")]
        for row in table().splitlines()
    ]
    head, rule, *rows = printed
    assert head == ["", *Step]
    assert rule == ["---"] * 10
    assert [row[0] for row in rows] == list(State)
    cells = {
        (row[0], step): cell or "-"
        for row in rows
        for step, cell in zip(head[1:], row[1:], strict=True)
    }
    assert cells == PAIRS


def test_every_state_can_be_closed_and_every_state_is_reached() -> None:
    assert all(Step.CLOSE in steps for steps in TABLE.values())
    reached = {goal for steps in TABLE.values() for goal in steps.values()}
    assert reached == set(State) - {State.NEW}
