"""tools/walk.py: the page shows the functions that one call really runs."""

from __future__ import annotations

import pytest

from tools import walk


def test_the_walk_on_the_page_is_fresh() -> None:
    wanted = walk.page(walk.steadiest("stdio"))
    assert walk.PAGE.read_text(encoding="utf-8") == wanted, "run: make walk ARGS=--write"


def test_a_call_reaches_the_driver_by_one_function() -> None:
    found = walk.steadiest("stdio")
    names = [name for name, _, _ in found.steps]
    before = names[: names.index("Driver.request")]
    assert before[:2] == ["Client.call_tool", "Pipeline.call_tool"]
    assert {name.partition(".")[0] for name in before[2:]} == {"ToolCall", "SimpleCheck"}


@pytest.mark.parametrize("name", ["http", "reconnect", "command", "codegen"])
def test_every_walk_can_be_taken(name: str) -> None:
    found = walk.walk(name)
    assert found.steps
    assert found.summary() in str(found)
