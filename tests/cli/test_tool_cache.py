"""A server's tools, picked by name and remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli import manifests
from holdfast.cli.output import Output
from holdfast.cli.target import Aim
from holdfast.cli.tool_cache import keep, key_of, pick
from holdfast.errors import ValidationError
from tests.cli.conftest import Configure, stdio


def test_what_a_server_is_remembered_under(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_SERVER_URL", "from env")
    assert key_of(Aim(Output(), command=["a b", "c"]), None) == "'a b' c"
    assert key_of(Aim(Output(), url="http://x"), None) == "http://x"
    assert key_of(Aim(Output()), "git") == "git"
    assert key_of(Aim(Output()), None) == "from env"


def test_where_a_server_was_configured_is_remembered_with_it(
    home: Path, configure: Configure
) -> None:
    path = configure(git=stdio(["x"]))
    keep(Aim(Output()), "git", [])
    keep(Aim(Output()), "http://x", [])
    assert manifests.require("git").source == str(path)
    assert manifests.require("http://x").source == ""


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["git_log", "git_lag"], "Did you mean 'git_log' or 'git_lag'?"),
        (["x", "y"], "There are: x, y"),
        ([f"{n:030}" for n in range(30)], ", …"),
        ([], "The server has no tools at all."),
    ],
)
def test_a_tool_that_is_not_there_comes_with_those_that_are(names: list[str], hint: str) -> None:
    with pytest.raises(ValidationError, match="There is no tool 'git_logg'") as caught:
        pick([{"name": name} for name in names], "git_logg")
    assert hint in str(caught.value)


def test_a_tool_is_picked_by_its_very_name() -> None:
    assert pick([{"name": "a"}, {"name": "ab", "x": 1}], "ab") == {"name": "ab", "x": 1}
