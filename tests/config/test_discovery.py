"""The usual places, and who comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config.discovery import explicit, places
from tests.config.rig import World

pytestmark = pytest.mark.req("F3")


def test_the_nearest_project_file_comes_first_and_the_user_s_last(world: World) -> None:
    below = world.project / "below"
    below.mkdir()
    world.environ["XDG_CONFIG_HOME"] = str(world.root / "config")
    around = world.around()
    around.start = below
    found = [place for place in places(around) if not place.section]
    assert [place.path for place in found[:7]] == [
        str(below / ".mcp.json"),
        str(below / "mcp.json"),
        str(below / ".cursor/mcp.json"),
        str(below / ".vscode/mcp.json"),
        str(below / ".gemini/settings.json"),
        str(below / ".codex/config.toml"),
        str(world.project / ".mcp.json"),
    ]
    own = [place for place in found if place.scope == "user"]
    assert own[0].path == str(world.root / "config/holdfast/mcp.json")
    assert found[-len(own) :] == own


def test_what_a_user_keeps_for_a_project_comes_before_the_project_s_own(world: World) -> None:
    first = places(world.around())[0]
    assert first.path == str(world.home / ".claude.json")
    assert first.section == ("projects", str(world.project))
    assert first.scope == "user"


def test_products_may_be_moved(world: World) -> None:
    world.environ |= {"CODEX_HOME": "/codex", "CLAUDE_CONFIG_DIR": "/claude"}
    found = {place.path for place in places(world.around())}
    assert {"/codex/config.toml", "/claude/.claude.json"} <= found


def test_a_file_in_a_product_s_folder_belongs_to_the_folder_above(world: World) -> None:
    place = explicit(".vscode/mcp.json", world.around())
    assert Path(place.path) == world.project / ".vscode/mcp.json"
    assert Path(place.workspace) == world.project
    assert explicit("~/x/mcp.json", world.around()).workspace == str(world.home / "x")
