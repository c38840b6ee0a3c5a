"""The table of settings."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from holdfast import connect
from holdfast._core.transports.http import Http
from holdfast._core.transports.stdio import Stdio
from holdfast.config.entry import ServerEntry
from holdfast.config.settings import OWN, TABLE, LockSetting, parse_setting
from holdfast.policies import Timeouts, ToolPolicy
from tests.config.rig import read_one
from tests.rows import rows

DOCS = Path(__file__).parents[2] / "docs"


def read(name: str, value: Any) -> Any:
    return parse_setting(TABLE[name], value)


def test_a_number_is_the_timeout_of_a_request() -> None:
    assert read("timeouts", 5) == Timeouts(request=5)


def test_a_path_is_a_lock_that_blocks() -> None:
    assert read("lock", "x") == LockSetting(path="x")


@rows(
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
        ("grace", -1),
        ("log", ""),
    ],
)
def test_a_value_that_cannot_work_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(name, value)


def test_every_row_leads_to_an_option_that_exists() -> None:
    receivers: dict[str, Any] = {"client": connect, "tools": ToolPolicy}
    kinds = {"command": Stdio, "url": Http}
    for row in TABLE.values():
        if row.to != "entry":
            receiver = kinds[row.kind] if row.to == "transport" else receivers[row.to]
            assert (row.option or row.name) in inspect.signature(receiver).parameters, row.name


def test_fields_of_an_entry_are_the_rows_that_are_not_holdfast_s_own() -> None:
    assert {row.name for row in TABLE.values() if not row.own} <= set(ServerEntry.__struct_fields__)
    assert not {row.name for row in OWN} & set(ServerEntry.__struct_fields__)


@pytest.mark.req("F3")
def test_an_approval_binds_every_setting_that_gives_no_reason() -> None:
    assert {row.name: row.unbound for row in TABLE.values() if row.unbound} == {
        "disabled": "switched on again it runs exactly what was approved"
    }


@pytest.mark.req("F3")
def test_every_setting_is_documented() -> None:
    page = (DOCS / "reference/configuration.md").read_text(encoding="utf-8")
    for row in OWN:
        assert f"\n| `{row.name}` | " in page, row.name


def test_the_policy_for_tools() -> None:
    def tools(**settings: Any) -> Any:
        servers = {"x": {"command": "a", "holdfast": settings}}
        entry = read_one("mcpServers", {"mcpServers": servers})
        return entry.resolve().options.get("tools")

    assert tools() is None
    assert tools(allow=[]) == ToolPolicy(allow=())
    said = tools(deny=["a"], validate="off", tool_timeouts={"b": 2.0})
    assert said == ToolPolicy(deny=("a",), validate="off", timeouts={"b": 2.0})
