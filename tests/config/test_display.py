"""Entries to look at, without their secrets."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config.display import Display
from tests.config.rig import World


def shown(world: World, **raw: Any) -> Any:
    return Display().definition(world.entry(**raw))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--token", "hunter2"], ["--token", "[redacted]"]),
        (["--api-key=hunter2"], ["--api-key=[redacted]"]),
        (["-e", "API_KEY=hunter2"], ["-e", "API_KEY=[redacted]"]),
        (["--header", "X-Api-Key: hunter2"], ["--header", "X-Api-Key: [redacted]"]),
        (["--header", "Authorization: Bearer ${T}"], ["--header", "Authorization: Bearer ${T}"]),
        (["--token", "${T:-hunter2}"], ["--token", "${T:-[redacted]}"]),
        (["--token", "${T"], ["--token", "[redacted]"]),
        (["postgres://me:hunter2@db/x"], ["postgres://[redacted]@db/x"]),
        (["--path", "/srv", "k=v"], ["--path", "/srv", "k=v"]),
        (["a\x1b[2Jb"], ["a\\x1b[2Jb"]),
    ],
)
def test_arguments(world: World, args: list[str], expected: list[str]) -> None:
    assert shown(world, command="a", args=args)["args"] == expected


def test_environment_and_headers(world: World) -> None:
    env = {"API_KEY": "hunter2", "TOKEN": "x${T}", "LEVEL": "debug", "LD_PRELOAD": "evil.so"}
    assert shown(world, command="a", env=env)["env"] == {
        "API_KEY": "[redacted]",
        "TOKEN": "[redacted]${T}",
        "LEVEL": "debug",
        "LD_PRELOAD": "evil.so",
    }
    headers = {"Authorization": "Bearer hunter2", "X-Region": "eu"}
    assert shown(world, url="https://x", headers=headers)["headers"] == {
        "Authorization": "Bearer [redacted]",
        "X-Region": "eu",
    }


def test_a_url_has_no_secrets_in_it(world: World) -> None:
    url = "https://me:hunter2@x.example/mcp?api_key=hunter2&region=eu&token=${T}"
    assert shown(world, url=url)["url"] == (
        "https://[redacted]@x.example/mcp?api_key=[redacted]&region=eu&token=${T}"
    )


def test_one_line_for_a_list(world: World) -> None:
    entry = world.entry(command="uvx", args=["server", "a b", "${HOME}/x"])
    assert Display().target(entry) == "uvx server 'a b' ${HOME}/x"
