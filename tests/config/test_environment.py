"""Where a project begins and ends."""

from __future__ import annotations

from pathlib import Path

from holdfast.config.environment import Surroundings
from tests.config.rig import World


def folders(start: Path, home: Path) -> list[Path]:
    start.mkdir(parents=True, exist_ok=True)
    return Surroundings(start=start, environ={}, home=home).folders()


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
    around = Surroundings(start=world.project / "a", environ={}, home=world.home)
    assert around.workspace() == world.project
    outside = Surroundings(start=world.root, environ={}, home=world.home)
    assert outside.workspace() == world.root


def test_base_folders_may_be_moved_but_not_to_a_relative_place(world: World) -> None:
    moved = Surroundings(start="/", environ={"XDG_STATE_HOME": "/s"}, home=world.home)
    assert moved.state_home == Path("/s")
    relative = Surroundings(start="/", environ={"XDG_STATE_HOME": "s"}, home=world.home)
    assert relative.state_home == world.home / ".local" / "state"


def test_its_repr_has_no_environment() -> None:
    assert "hunter2" not in repr(Surroundings(start="/", environ={"P": "hunter2"}, home="/h"))
