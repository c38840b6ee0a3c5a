"""The table of verbs is the truth."""

from __future__ import annotations

from importlib import import_module

import click
import pytest

from holdfast.cli.options import ServerCommand
from holdfast.cli.table import SECTIONS, VERBS


@pytest.mark.req("F3")
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_where_the_table_says(name: str) -> None:
    verb = VERBS[name]
    command = getattr(import_module(f"holdfast.cli.verbs.{verb.module}"), verb.command)
    assert isinstance(command, click.Command)
    assert command.name == name
    parts = command.commands.values() if name == "tasks" else [command]  # type: ignore[attr-defined]
    assert all(isinstance(part, ServerCommand) is verb.takes_server for part in parts)
    assert command.help


def test_no_verb_is_in_two_sections() -> None:
    assert sum(len(part) for part in SECTIONS.values()) == len(VERBS)
