"""Holdfast's own settings."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config.settings import (
    SETTINGS,
    LockSetting,
    Settings,
    changed,
    read_one,
)
from holdfast.policies import Timeouts, ToolPolicy


def test_a_number_is_the_timeout_of_a_request() -> None:
    assert read_one("timeouts", 5) == (Timeouts(request=5), [])


def test_a_path_is_a_lock_that_blocks() -> None:
    assert read_one("lock", "x") == (LockSetting(path="x"), [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeouts", "5"),
        ("timeouts", True),
        ("timeouts", {"request": -1}),
        ("backoff", {"jitter": 2}),
        ("lock", {"mode": "warn"}),
        ("lock", {"path": "x", "mode": "maybe"}),
        ("allow", [1]),
        ("validate", "sometimes"),
        ("inherit_env", "HOME"),
        ("tool_timeouts", {"a": 0}),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_one(name, value)


def test_every_setting_can_be_read_and_is_kept() -> None:
    assert set(SETTINGS) == set(Settings.__struct_fields__)


def test_only_what_was_said_is_written_down() -> None:
    said = Settings(timeouts=Timeouts(request=5), allow=("a",), lock=LockSetting(path="l"))
    assert changed(said) == {"timeouts": {"request": 5}, "allow": ["a"], "lock": "l"}
    assert changed(Settings()) == {}
    assert changed(Settings(lock=LockSetting(path="l", mode="off"))) == {
        "lock": {"path": "l", "mode": "off"}
    }


def test_the_policy_for_tools() -> None:
    assert Settings().tools() is None
    assert Settings(allow=()).tools() == ToolPolicy(allow=())
    said = Settings(deny=("a",), validate="off", tool_timeouts={"b": 2.0})
    assert said.tools() == ToolPolicy(deny=("a",), validate="off", timeouts={"b": 2.0})
