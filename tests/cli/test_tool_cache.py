"""A server's tools, picked by name and remembered."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from holdfast._core.redact.known import KNOWN
from holdfast._core.text import HIDDEN
from holdfast.cli import tool_cache
from holdfast.cli.output import Output
from holdfast.cli.target import ServerTarget
from holdfast.errors import ValidationError
from holdfast.types import Tool
from tests.cli.conftest import DEMO, Cli, Configure, stdio
from tests.cli.rig import tools
from tests.rows import rows

SERVER = ServerTarget(Output(), command=["x"])


def test_what_a_server_is_remembered_under(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_SERVER_URL", "from env")
    assert ServerTarget(Output(), command=["a b", "c"]).key() == "'a b' c"
    assert ServerTarget(Output(), url="http://x").key() == "http://x"
    assert ServerTarget(Output()).at("git").key() == "git"
    assert ServerTarget(Output()).key() == "from env"


def test_where_a_server_was_configured_is_remembered_with_it(
    cli: Cli, configure: Configure
) -> None:
    path = configure(git=stdio(DEMO))
    assert (cli("tools", "git").code, cli("tools", "--", *DEMO).code) == (0, 0)
    seen = [tool_cache.load(key) for key in ("git", shlex.join(DEMO))]
    assert [one and one.source for one in seen] == [str(path), ""]


@pytest.mark.req("E2")
@rows(
    ("names", "hint"),
    [
        (["git_log", "git_lag"], "Did you mean 'git_log' or 'git_lag'?"),
        (["x", "y"], "There are: x, y"),
        (["x\nholdfast: all is well", "y\u200b"], r"x\nholdfast: all is well, y\u200b"),
        ([f"{n:030}" for n in range(30)], ", …"),
        ([], "The server has no tools at all."),
    ],
)
def test_a_tool_that_is_not_there_comes_with_those_that_are(names: list[str], hint: str) -> None:
    with pytest.raises(ValidationError, match="There is no tool 'git_logg'") as caught:
        SERVER.pick(tools(*({"name": name} for name in names)), "git_logg")
    assert hint in str(caught.value)


@pytest.mark.req("T8")
def test_what_is_remembered_of_tools_is_without_the_secrets_of_their_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    holder = KNOWN.held(lambda: ["hunter2abc"])
    schema = {"properties": {"key": {"default": "hunter2abc"}}}
    tool_cache.save("x", tools({"name": "say", "description": "by hunter2abc"}))
    tool_cache.save("y", tools({"name": "say", "inputSchema": schema}))
    written = [Path(tool_cache.path_for(key)).read_text() for key in ("x", "y")]
    assert [text.count("hunter2abc") for text in written] == [0, 0]
    assert [text.count(HIDDEN) for text in written] == [2, 2]
    cached = tool_cache.load("y")
    assert cached is not None
    assert [tool.name for tool in cached.tools] == ["say"]
    del holder


def test_a_tool_is_picked_by_its_very_name() -> None:
    tool = {"name": "ab", "x": 1}
    assert SERVER.pick(tools({"name": "a"}, tool), "ab").raw == tool


# Files


TOOL = {"name": "echo", "description": "x"}


def test_what_is_kept_is_recalled(home: Path) -> None:
    tool_cache.save("git", tools(TOOL), "/x/mcp.json")
    found = tool_cache.load("git")
    assert found is not None
    assert (found.raw, found.source) == ([TOOL], "/x/mcp.json")
    assert str(found).startswith("as seen on 20")
    assert str(found).endswith(", configured in /x/mcp.json")
    assert tool_cache.load("other") is None


def test_what_was_never_seen_is_told(cli: Cli) -> None:
    done = cli("tools", "git", "--offline")
    assert (done.code, "git: not seen yet" in done.err) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "5", "{}", "{}\n[]\n5", "\ud800"),
        *('{"source": ""}\n5\n""', '{"source": ""}\n[]', '{"source": ""}\n[]\n', '5\n[]\n""'),
        '{"source": ""}\n' + "[" * 100_000 + '\n""',
    ],
)
def test_a_broken_one_is_none(home: Path, text: str) -> None:
    path = Path(tool_cache.path_for("git"))
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert tool_cache.load("git") is None


def test_what_is_no_tool_is_left_out(home: Path) -> None:
    path = Path(tool_cache.path_for("git"))
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"source": ""}}\n{json.dumps([TOOL, 5, {}, {"name": 5}])}\n""')
    found = tool_cache.load("git")
    assert found is not None
    assert found.raw == [tool.raw for tool in found.tools] == [TOOL]


def test_a_cache_that_cannot_be_written_is_done_without(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    tool_cache.save("git", tools(TOOL))
    assert tool_cache.load("git") is None


def test_a_list_that_is_nested_too_deep_is_not_kept(home: Path) -> None:
    deep = b'{"a":' * 100_000 + b"{}" + b"}" * 100_000
    tool_cache.save("git", [Tool(name="x", input_schema_json=Raw(deep))])
    assert tool_cache.load("git") is None


def test_the_cache_is_the_users_own(home: Path) -> None:
    tool_cache.save("git", tools(TOOL))
    folder = Path(tool_cache.path_for("git")).parent
    assert folder == home / "cache" / "holdfast" / "manifests"
    assert folder.stat().st_mode & 0o777 == 0o700


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.text(), st.text())
def test_any_name_has_a_place_of_its_own(home: Path, one: str, other: str) -> None:
    path = tool_cache.path_for(one)
    assert Path(path).parent == home / "cache" / "holdfast" / "manifests"
    assert (path == tool_cache.path_for(other)) is (one == other)
