"""The table of verbs is the truth."""

from __future__ import annotations

import click
import pytest

from holdfast.cli import guide
from holdfast.cli.app import ServerCommand
from holdfast.cli.main import SECTIONS, VERBS, WITHOUT_SERVER


@pytest.mark.req("F3")
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_where_the_table_says(name: str) -> None:
    command = guide.command(name)
    assert isinstance(command, click.Command)
    assert command.name == name
    parts = command.commands.values() if name == "tasks" else [command]  # type: ignore[attr-defined]
    assert all(isinstance(part, ServerCommand) is (name not in WITHOUT_SERVER) for part in parts)
    assert command.help


def test_no_verb_is_in_two_sections() -> None:
    assert sum(len(part) for part in SECTIONS.values()) == len(VERBS)
