"""Where a project begins and ends, and the files that are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config.environment import ConfigEnvironment
from holdfast.config.loading import named_file, usual_files
from tests.config.rig import World


def folders(start: Path, home: Path) -> list[Path]:
    start.mkdir(parents=True, exist_ok=True)
    return ConfigEnvironment(start=start, environ={}, home=home).folders()


def test_a_project_goes_up_to_its_repository(world: World) -> None:
    deep = world.project / "a" / "b"
    assert folders(deep, world.home) == [deep, world.project / "a", world.project]


def test_without_a_repository_it_goes_up_to_the_home(world: World) -> None:
    assert folders(world.home / "x" / "y", world.home) == [
        world.home / "x" / "y",
        world.home / "x",
    ]


def test_the_home_is_no_project_even_as_a_repository(world: World) -> None:
    (world.home / ".git").mkdir()
    assert folders(world.home, world.home) == []
    assert folders(world.home / "x", world.home) == [world.home / "x"]


def test_outside_the_home_only_the_start_counts(world: World) -> None:
    assert folders(world.root / "shared" / "x", world.home) == [world.root / "shared" / "x"]


def test_the_workspace_is_the_repository(world: World) -> None:
    (world.project / "a").mkdir()
    around = ConfigEnvironment(start=world.project / "a", environ={}, home=world.home)
    assert around.workspace() == world.project
    outside = ConfigEnvironment(start=world.root, environ={}, home=world.home)
    assert outside.workspace() == world.root


def test_base_folders_may_be_moved_but_not_to_a_relative_place(world: World) -> None:
    moved = ConfigEnvironment(start="/", environ={"XDG_STATE_HOME": "/s"}, home=world.home)
    assert moved.state_home == Path("/s")
    relative = ConfigEnvironment(start="/", environ={"XDG_STATE_HOME": "s"}, home=world.home)
    assert relative.state_home == world.home / ".local" / "state"


def test_its_repr_has_no_environment() -> None:
    assert "hunter2" not in repr(ConfigEnvironment(start="/", environ={"P": "hunter2"}, home="/h"))


# Files


@pytest.mark.req("F3")
def test_the_nearest_project_file_comes_first_and_the_user_s_last(world: World) -> None:
    below = world.project / "below"
    below.mkdir()
    world.environ["XDG_CONFIG_HOME"] = str(world.root / "config")
    around = world.around()
    around.start = below
    found = [place for place in usual_files(around) if not place.section]
    assert [place.file for place in found[:7]] == [
        str(below / ".mcp.json"),
        str(below / "mcp.json"),
        str(below / ".cursor/mcp.json"),
        str(below / ".vscode/mcp.json"),
        str(below / ".gemini/settings.json"),
        str(below / ".codex/config.toml"),
        str(world.project / ".mcp.json"),
    ]
    own = [place for place in found if place.scope == "user"]
    assert own[0].file == str(world.root / "config/holdfast/mcp.json")
    assert found[-len(own) :] == own


@pytest.mark.req("F3")
def test_what_a_user_keeps_for_a_project_comes_before_the_project_s_own(world: World) -> None:
    first = usual_files(world.around())[0]
    assert first.file == str(world.home / ".claude.json")
    assert first.section == ("projects", str(world.project))
    assert first.scope == "user"


@pytest.mark.req("F3")
def test_products_may_be_moved(world: World) -> None:
    world.environ |= {"CODEX_HOME": "/codex", "CLAUDE_CONFIG_DIR": "/claude"}
    found = {place.file for place in usual_files(world.around())}
    assert {"/codex/config.toml", "/claude/.claude.json"} <= found


@pytest.mark.req("F3")
def test_a_file_in_a_product_s_folder_belongs_to_the_folder_above(world: World) -> None:
    place = named_file(".vscode/mcp.json", world.around())
    assert Path(place.file) == world.project / ".vscode/mcp.json"
    assert Path(place.workspace) == world.project
    assert named_file("~/x/mcp.json", world.around()).workspace == str(world.home / "x")
