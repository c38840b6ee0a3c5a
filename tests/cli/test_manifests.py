"""What was seen of servers: a convenience that may be gone at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cli import manifests
from holdfast.errors import ValidationError

TOOL = {"name": "echo", "description": "x"}


def test_what_is_kept_is_recalled(home: Path) -> None:
    manifests.save("git", [TOOL], "/x/mcp.json")
    found = manifests.recall("git")
    assert found is not None
    assert (found.tools, found.source) == ([TOOL], "/x/mcp.json")
    assert str(found).startswith("as seen on 20")
    assert str(found).endswith(", configured in /x/mcp.json")
    assert manifests.recall("other") is None


def test_what_was_never_seen_is_told(home: Path) -> None:
    with pytest.raises(ValidationError, match="git: not seen yet"):
        manifests.require("git")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "5", "{}", '{"tools": 5, "seen": 1, "source": ""}', "\ud800"),
        '{"tools": [], "seen": "x", "source": ""}',
        '{"tools": [], "seen": 1e300, "source": ""}',
        "[" * 100_000,
    ],
)
def test_a_broken_one_is_none(home: Path, text: str) -> None:
    path = manifests.path_for("git")
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert manifests.recall("git") is None


def test_what_is_no_tool_is_left_out(home: Path) -> None:
    path = manifests.path_for("git")
    path.parent.mkdir(parents=True)
    facts = {"tools": [TOOL, 5, {}, {"name": 5}], "seen": 1, "source": ""}
    path.write_text(json.dumps(facts))
    assert manifests.require("git").tools == [TOOL]


def test_a_cache_that_cannot_be_written_is_done_without(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    manifests.save("git", [TOOL])
    assert manifests.recall("git") is None


def test_the_cache_is_the_users_own(home: Path) -> None:
    manifests.save("git", [TOOL])
    assert manifests.folder() == home / "cache" / "holdfast" / "manifests"
    assert manifests.folder().stat().st_mode & 0o777 == 0o700


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text(), st.text())
def test_any_name_has_a_place_of_its_own(home: Path, one: str, other: str) -> None:
    path = manifests.path_for(one)
    assert path.parent == manifests.folder()
    assert (path == manifests.path_for(other)) is (one == other)
