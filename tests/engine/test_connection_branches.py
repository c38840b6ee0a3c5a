"""What is heard while the connection is still being agreed on, and was not asked for."""

from __future__ import annotations

import pytest

from tests.engine.rig import INITIALIZED, Rig, frames


@pytest.mark.req("L3")
@pytest.mark.parametrize("stranger", [{"id": 999}, {"id": "abc"}, {"id": 2.5}])
def test_an_answer_to_nobodys_question_does_not_disturb_the_handshake(
    stranger: dict[str, object],
) -> None:
    rig = Rig(opening="initialize")
    rig.open()
    (asked,) = frames(rig.opened())
    rig.deliver({"jsonrpc": "2.0", **stranger, "result": {}})
    assert rig.state == "initializing"
    assert rig.violations() == ["answer to an unknown request"]
    rig.answer(asked["id"], INITIALIZED)
    assert rig.state == "ready"
