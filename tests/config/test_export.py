"""Any dialect as a ``mcp.json`` of Holdfast's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.config import ServerEntry, import_
from holdfast.config.dialects import read
from holdfast.config.edit import dump
from holdfast.config.files import parse
from tests.config.rig import DATA, World, read_data, read_one, source

pytestmark = pytest.mark.req("F3")

FILES = {
    "claude_desktop_config.json": "mcpServers",
    "claude_code.mcp.json": "mcpServers",
    "cursor.mcp.json": "mcpServers",
    "holdfast.mcp.json": "mcpServers",
    "vscode.mcp.json": "vscode",
    "codex.config.toml": "codex",
    "gemini.settings.json": "gemini",
    "goose.config.yaml": "goose",
}


HERE = source()


def bare(entry: ServerEntry) -> ServerEntry:
    return replace(entry, source=HERE, problems=())


def again(text: str) -> list[ServerEntry]:
    return list(read("mcpServers", parse("x.json", text.encode()), source()).entries)


@pytest.mark.parametrize(("name", "dialect"), FILES.items())
def test_nothing_that_is_understood_is_lost(name: str, dialect: str) -> None:
    entries = list(read_data(dialect, name).values())
    assert [bare(entry) for entry in again(dump(entries))] == [bare(entry) for entry in entries]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_every_product_is_imported(world: World, name: str) -> None:
    folder = ".gemini" if name.startswith("gemini") else "."
    path = world.write(f"{folder}/{name}", (DATA / name).read_bytes())
    found = import_(path, start=world.project, environ={}, home=world.home)
    world.write(world.home / ".config/holdfast/mcp.json", found.text)
    config = world.load()
    assert tuple(config.servers) == found.servers
    assert not any(entry.errors for entry in config)


def test_what_was_lost_is_told(world: World) -> None:
    path = world.write("codex.toml", (DATA / "codex.config.toml").read_bytes())
    found = import_(path, start=world.project, environ={}, home=world.home)
    assert found.lost == (f"{path}: server 'designs': tools: has no effect here",)


def test_relative_paths_become_absolute_and_variables_stay(world: World) -> None:
    path = world.write(
        "a/mcp.json",
        {"mcpServers": {"one": {"command": "./x", "cwd": "sub", "envFile": "${userHome}/e"}}},
    )
    found = import_(path, start=world.project, environ={}, home=world.home)
    (entry,) = again(found.text)
    assert entry.cwd == str(world.project / "a/sub")
    assert entry.env_file == "${userHome}/e"


def test_a_server_without_a_way_to_it_is_left_out_and_told(world: World) -> None:
    path = world.servers("x.json", bad={"type": "ws"}, good={"command": "a"})
    found = import_(path, start=world.project, environ={}, home=world.home)
    assert found.servers == ("good",)
    assert "'ws' is not supported" in found.lost[0]


_TEXT = st.text(alphabet="ab$é \"'\\/{", min_size=1, max_size=6).filter(lambda t: "${" not in t)
_TABLE = st.dictionaries(st.sampled_from(["A", "B-C", "d"]), _TEXT, max_size=2)
_OWN = st.fixed_dictionaries(
    {},
    optional={
        "timeouts": st.fixed_dictionaries({}, optional={"request": st.floats(0.1, 99)}),
        "allow": st.lists(_TEXT, max_size=2),
        "deny": st.lists(_TEXT, max_size=2),
        "lock": _TEXT | st.fixed_dictionaries({"path": _TEXT, "mode": st.just("warn")}),
        "inherit_env": st.lists(_TEXT, max_size=2) | st.booleans(),
        "when_down": st.sampled_from(["fail", "wait"]),
    },
)
_SERVER = st.fixed_dictionaries(
    {"command": _TEXT},
    optional={
        "args": st.lists(_TEXT, max_size=3),
        "env": _TABLE,
        "cwd": _TEXT,
        "disabled": st.booleans(),
        "holdfast": _OWN,
    },
) | st.fixed_dictionaries(
    {"url": _TEXT.map("https://x/".__add__), "type": st.sampled_from(["http", "sse"])},
    optional={"headers": _TABLE, "holdfast": _OWN},
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(_SERVER)
def test_writing_and_reading_again_changes_nothing(raw: dict[str, Any]) -> None:
    entry = read_one("mcpServers", {"mcpServers": {"one": raw}})
    (same,) = again(dump([entry]))
    assert bare(same) == bare(entry)
