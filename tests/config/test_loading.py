"""All files together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.config import load
from holdfast.config.hosts import HOSTS, user_paths
from holdfast.config.loading import READ
from holdfast.errors import ValidationError
from tests.config.rig import DATA, World


@pytest.mark.req("F3", "L13")
def test_every_product_s_file_is_found_in_its_place(world: World) -> None:
    home, project = world.home, world.project
    text = (DATA / "claude_code.claude.json").read_text().replace("@PROJECT@", str(project))
    world.write(home / ".claude.json", text)
    for name, place in {
        "claude_code.mcp.json": project / ".mcp.json",
        "cursor.mcp.json": project / ".cursor/mcp.json",
        "vscode.mcp.json": project / ".vscode/mcp.json",
        "gemini.settings.json": project / ".gemini/settings.json",
        "codex.config.toml": home / ".codex/config.toml",
        "goose.config.yaml": home / ".config/goose/config.yaml",
        "claude_desktop_config.json": home / ".config/Claude/claude_desktop_config.json",
        "holdfast.mcp.json": home / ".config/holdfast/mcp.json",
    }.items():
        world.write(place, (DATA / name).read_bytes())
    found = world.load()
    assert found.problems == ()
    assert [(file.scope, file.dialect) for file in found.files] == [
        ("user", "mcpServers"),
        ("project", "mcpServers"),
        ("project", "mcpServers"),
        ("project", "vscode"),
        ("project", "gemini"),
        ("user", "mcpServers"),
        ("user", "mcpServers"),
        ("user", "codex"),
        ("user", "goose"),
    ]
    assert list(found.servers)[:4] == ["local", "tracker", "events", "database"]
    assert {"everywhere", "filesystem", "context", "git", "search"} <= set(found.servers)
    assert "other" not in found.servers, "that is another project's"
    assert found["local"].source.section == ("projects", str(project))


@pytest.mark.req("F3", "N3")
def test_servers_of_twelve_products_are_found_without_a_step(world: World) -> None:
    tables = {
        "codex": "[mcp_servers.codex]\ncommand = 'x'\n",
        "goose": "extensions:\n  goose: {type: stdio, cmd: x, enabled: true}\n",
        "vscode": json.dumps({"servers": {"vscode": {"command": "x"}}}),
        "zed": json.dumps({"theme": "dark", "context_servers": {"zed": {"command": "x"}}}),
        "opencode": json.dumps({"mcp": {"opencode": {"type": "local", "command": ["x"]}}}),
    }
    for name, host in HOSTS.items():
        plain = json.dumps({"mcpServers": {name: {"command": "x"}}})
        path = user_paths(host, "linux", world.environ, str(world.home))[0]
        world.write(path, tables.get(name, plain))
    found = world.load()
    assert found.problems == ()
    assert found.servers.keys() == HOSTS.keys()
    assert set(READ) == HOSTS.keys()
    assert len(HOSTS) == 12
    assert all(entry.source.scope == "user" for entry in found)


@pytest.mark.req("F3")
def test_a_project_wins_over_its_user_and_the_nearer_folder_over_the_farther(world: World) -> None:
    world.own(one={"command": "own"}, two={"command": "own"})
    world.servers(".mcp.json", one={"command": "root"}, three={"command": "root"})
    world.servers("below/mcp.json", one={"command": "below"})
    found = world.load(start=world.project / "below")
    assert {name: entry.command for name, entry in found.servers.items()} == {
        "one": "below",
        "three": "root",
        "two": "own",
    }
    assert [entry.command for entry in found["one"].hides] == ["root", "own"]
    assert [entry.name for entry in found if entry.hides] == ["one"]


@pytest.mark.req("F3")
def test_a_file_that_is_named_is_the_only_one(world: World) -> None:
    world.own(own={"command": "a"})
    world.servers("other.json", other={"command": "b"})
    assert list(world.load("other.json").servers) == ["other"]
    world.environ["HOLDFAST_CONFIG"] = str(world.project / "other.json")
    found = world.load()
    assert list(found.servers) == ["other"]
    assert found["other"].source.scope == "explicit"
    assert found["other"].trust().verdict == "own"


def test_the_variable_must_not_name_a_file_of_every_project(world: World) -> None:
    world.servers(".mcp.json", one={"command": "evil"})
    world.environ["HOLDFAST_CONFIG"] = ".mcp.json"
    with pytest.raises(ValidationError, match="must be an absolute path"):
        world.load()


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("{", "is not JSON"),
        ({"theme": "dark"}, "has no servers in it"),
        ({"mcpServers": []}, "mcpServers must be an object of servers"),
    ],
)
def test_a_named_file_that_cannot_be_used_is_refused(
    world: World, content: object, message: str
) -> None:
    if content is not None:
        world.write("named.json", content)
    with pytest.raises(ValidationError, match=message) as caught:
        world.load("named.json")
    assert str(world.project / "named.json") in str(caught.value)


@pytest.mark.req("F3")
def test_a_bad_file_does_not_take_down_the_others(world: World) -> None:
    world.own(good={"command": "a"})
    world.write(".mcp.json", b"\x00\xff")
    world.write("mcp.json", "{" * 100_000)
    world.write(".cursor/mcp.json", '{"mcpServers": {"a": {}, "a": {}}}')
    world.write(".vscode/mcp.json", " " * (1024 * 1024 + 1))
    (world.project / ".gemini").mkdir()
    (world.project / ".gemini/settings.json").symlink_to("/etc/passwd")
    world.write(".codex/config.toml", "a = [")
    found = world.load()
    assert list(found.servers) == ["good"]
    assert [problem.message.partition(":")[0] for problem in found.problems] == [
        "is not text in UTF-8",
        "is not JSON",
        "has the key 'a' twice in one object (line 1)",
        "is longer than 256 KiB",
        "is a link that leads out of the project; not followed",
        "is not TOML",
    ]


def test_a_bad_server_does_not_take_down_its_neighbours(world: World) -> None:
    world.servers(".mcp.json", bad={"command": 5}, good={"command": "a"})
    found = world.load()
    assert found["bad"].errors
    assert not found["good"].errors


def test_the_user_s_file_may_be_a_link(world: World) -> None:
    kept = world.write(world.root / "dotfiles/mcp.json", {"mcpServers": {"one": {"command": "a"}}})
    place = world.home / ".config/holdfast/mcp.json"
    place.parent.mkdir(parents=True)
    place.symlink_to(kept)
    assert list(world.load().servers) == ["one"]


def test_a_file_of_vs_code_may_say_mcp_servers(world: World) -> None:
    world.servers(".vscode/mcp.json", one={"command": "a"})
    assert world.load()["one"].source.dialect == "mcpServers"


def test_the_settings_of_a_product_without_servers_are_no_problem(world: World) -> None:
    world.write(world.home / ".gemini/settings.json", {"theme": "dark"})
    found = world.load()
    assert found.problems == ()
    assert list(found.servers) == []


@pytest.mark.req("E2")
def test_an_unknown_name_is_refused_with_a_hint(world: World) -> None:
    with pytest.raises(ValidationError, match="no server 'x': no server is configured"):
        world.load()["x"]
    world.own(github={"command": "a"})
    with pytest.raises(ValidationError, match="no server 'gihub': did you mean 'github'"):
        world.load()["gihub"]
    world.write(".mcp.json", "{")
    with pytest.raises(ValidationError, match=r"there are: github\n.*is not JSON"):
        world.load()["x"]


def test_the_servers_cannot_be_changed(world: World) -> None:
    found = world.load()
    with pytest.raises(TypeError):
        found.servers["x"] = None  # type: ignore[index]
    assert "x" not in found
    assert [*found] == []


def test_the_process_s_own_surroundings_are_the_default(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.own(own={"command": "a"})
    monkeypatch.setenv("HOME", str(world.home))
    for name in ("XDG_CONFIG_HOME", "HOLDFAST_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(world.project)
    assert list(load().servers) == ["own"]


@pytest.mark.req("F3")
def test_loading_imports_nothing_of_the_client(world: World) -> None:
    """Shells complete server names with it."""
    world.own(own={"command": "a"})
    world.servers(".mcp.json", one={"command": "a"})
    code = (
        "import sys; from holdfast.config import load; print(*load().servers)\n"
        "heavy = {'asyncio', 'aiohttp', 'yaml', 'tomllib', 'subprocess', 'holdfast.client',"
        "'holdfast._core.calls', 'holdfast._connect', 'rich', 'click', 'difflib', 'hashlib'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    env = {"HOME": str(world.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=world.project,
        env=env,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert done.stdout.splitlines() == ["one own", ""]


def test_a_big_file_of_a_product_is_read(world: World) -> None:
    """Claude Code keeps much else in its file."""
    history = [{"display": "x" * 1000}] * 2000
    servers = {"one": {"command": "a"}}
    world.write(world.home / ".claude.json", {"history": history, "mcpServers": servers})
    assert list(world.load().servers) == ["one"]


def test_the_start_may_be_anywhere(tmp_path: Path) -> None:
    assert not load(start="/", environ={}, home=tmp_path).servers
