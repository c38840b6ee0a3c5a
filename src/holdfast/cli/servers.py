"""``holdfast servers``: what is configured. Nothing is started to find out."""

from __future__ import annotations

import click

from holdfast.cli.output import Output
from holdfast.cli.render import table


@click.command()
@click.option("--config", metavar="FILE", help="A configuration, not the usual ones.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def servers(config: str | None, output: str) -> None:
    """The configured servers, where each comes from, and whether it may be used."""
    from holdfast.configuration import load, show

    out = Output(output)
    found = show(load(config))
    if out.json:
        out.value(found)
        return
    rows = [(one.name, _standing(one), one.target, one.file) for one in found.servers]
    if rows:
        table(out, ("server", "standing", "what it is", "from"), rows)
    else:
        out.note("No server is configured. Add one to .mcp.json, or see 'holdfast config --help'.")
    for file in found.files:
        for problem in file.problems:
            out.note(f"{file.path}: {problem}")
    for one in found.servers:
        for problem in (*one.problems, *one.warnings):
            out.note(problem)


def _standing(one: object) -> str:
    if getattr(one, "disabled", False):
        return "disabled"
    if getattr(one, "problems", ()):
        return "broken"
    told = {"own": "yours", "trusted": "trusted", "untrusted": "not trusted", "changed": "changed"}
    return told[str(getattr(one, "trust", "own"))]
