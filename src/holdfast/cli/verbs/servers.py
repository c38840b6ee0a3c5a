"""``holdfast servers``: what is configured. Nothing is started to find out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from holdfast.cli.options import CONFIG, OUTPUT
from holdfast.cli.output import Output
from holdfast.cli.render import table

if TYPE_CHECKING:
    from holdfast.config.views import ServerRow


@click.command()
@CONFIG
@OUTPUT
def servers(config: str | None, output: str) -> None:
    """The configured servers, where each comes from, and whether it may be used."""
    from holdfast.config import load, show

    out = Output(output)
    found = show(load(config))
    if out.json:
        out.value(found)
        return
    rows = [(one.name, _standing(one), one.target, _place(out, one.file)) for one in found.servers]
    if rows:
        table(out, ("server", "standing", "what it is", "from"), rows)
    else:
        out.note("No server is configured. Add one: holdfast add NAME -- COMMAND, or NAME URL.")
    for file in found.files:
        for problem in file.problems:
            out.note(problem)
    for one in found.servers:
        for problem in (*one.problems, *one.warnings):
            out.note(problem)


def _place(output: Output, path: str) -> str:
    """A path, the home shortened where a person looks."""
    home = os.path.expanduser("~")
    is_below = output.is_terminal and path.startswith(f"{home}/")
    return f"~{path[len(home) :]}" if is_below else path


def _standing(one: ServerRow) -> str:
    if one.disabled:
        return "disabled"
    return "broken" if one.problems else _STANDINGS[one.trust]


_STANDINGS = {
    "own": "yours",
    "trusted": "trusted",
    "untrusted": "not trusted",
    "changed": "changed",
}
