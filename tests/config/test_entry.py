"""One server, as text."""

from __future__ import annotations

from holdfast.config import ConfigProblem
from holdfast.config.entry import absolute, texts
from tests.config.rig import World, read_data


def test_every_string_is_named_by_its_field() -> None:
    git, secure = read_data("mcpServers", "holdfast.mcp.json").values()
    found = {field: text for row, field, text in texts(git) if not row.own or row.path}
    assert found == {
        "command": "uvx",
        "args[0]": "mcp-server-git",
        "lock.path": "mcp.lock",
        "lock.mode": "warn",
        "log": "~/calls.jsonl",
    }
    assert {field for _, field, _ in texts(secure)} == {
        "url",
        "ca",
        "cert",
        "key",
        "proxy",
    }


def test_paths_start_at_the_base_or_at_home() -> None:
    assert absolute("a/../b", "/base", "/home/me") == "/base/b"
    assert absolute("~/a", "/base", "/home/me") == "/home/me/a"
    assert absolute("~", "/base", "/home/me") == "/home/me"
    assert absolute("/a", "/base", "/home/me") == "/a"


def test_its_repr_has_no_secrets(world: World) -> None:
    entry = world.entry(command="server", args=["--token", "hunter2"], env={"A": "hunter2"})
    assert repr(entry) == f"<ServerEntry one stdio of {world.project}/.mcp.json>"


def test_a_problem_names_file_server_and_field() -> None:
    problem = ConfigProblem(file="/f.json", server="git", field="env.TOKEN", message="is not set")
    assert str(problem) == "/f.json: server 'git': env.TOKEN: is not set"
    assert str(ConfigProblem(file="/f.json", message="is gone")) == "/f.json: is gone"
