"""tools/state_diagram.py: every step of the table is drawn, and what is committed is fresh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

import pytest

from holdfast._core.engine.state import TABLE, State, Step
from tools import state_diagram
from tools.state_diagram import BOXES, HEIGHT, WIDTH, arrows, draw

NAMESPACE = "{http://www.w3.org/2000/svg}"


def labels(picture: str) -> Iterator[str]:
    for text in ElementTree.fromstring(picture).iter(f"{NAMESPACE}text"):
        yield text.text or ""


@pytest.mark.req("L1")
def test_picture_and_table_are_fresh() -> None:
    assert state_diagram.main(["--check"]) == 0


def test_every_step_is_drawn_once() -> None:
    drawn = [(arrow.start, step, arrow.end) for arrow in arrows(TABLE) for step in arrow.steps]
    assert sorted(drawn) == sorted(
        (start, step, end) for start, row in TABLE.items() for step, end in row.items()
    )
    shown = list(labels(draw(TABLE)))
    assert all(arrow.label in shown for arrow in arrows(TABLE))
    assert all(state in shown for state in State)


def test_states_do_not_cover_each_other() -> None:
    for one, other in combinations(BOXES.values(), 2):
        apart = abs(one.x - other.x) >= one.w + other.w or abs(one.y - other.y) >= one.h + other.h
        assert apart
    for box in BOXES.values():
        assert box.w < box.x < WIDTH - box.w
        assert box.h < box.y < HEIGHT - box.h


def test_the_picture_fetches_nothing() -> None:
    text = draw(TABLE).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|href|@import", text)


def test_a_changed_table_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {state: dict(row) for state, row in TABLE.items()}
    changed[State.READY][Step.GIVE_UP] = State.CLOSED
    monkeypatch.setattr(state_diagram, "TABLE", changed)
    assert state_diagram.main(["--check"]) == 1
    assert "states.svg is not what the code says" in capsys.readouterr().out


def test_the_table_on_the_page_is_replaced() -> None:
    text = state_diagram.page("before\n\n| a |\n|---|\n\nafter\n\n| other |\n")
    assert text.startswith("before\n\n| | open |")
    assert text.endswith("\n\nafter\n\n| other |\n")
