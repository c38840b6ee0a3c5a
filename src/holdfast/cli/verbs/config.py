"""``holdfast config``: show, explain, trust and untrust configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.consent import agreed
from holdfast.cli.options import CONFIG, OUTPUT
from holdfast.cli.output import Output
from holdfast.errors import TrustError

if TYPE_CHECKING:
    from holdfast.config import ServerExplanation


@click.group()
def config() -> None:
    """Show, explain and trust configuration."""


@config.command(short_help="the files that were found, and their servers")
@CONFIG
@OUTPUT
def show(config: str | None, output: str) -> None:
    """Every file that was found, in the order in which they count, and its servers."""
    from holdfast.config import load
    from holdfast.config import show as overview

    out = Output(output)
    found = overview(load(config))
    if out.json:
        out.value(found)
        return
    for file in found.files:
        out.text(f"{file.path} ({file.dialect}, {file.scope}): {', '.join(file.servers) or 'none'}")
        for problem in file.problems:
            out.text(f"  ! {problem}")
    for one in found.servers:
        out.text(f"{one.name}: {one.target} [{one.trust}{', disabled' if one.disabled else ''}]")
        for problem in (*one.problems, *one.warnings):
            out.text(f"  ! {problem}")
    if not found.files:
        out.note("No configuration was found.")


@config.command(short_help="everything about one server")
@click.argument("name", shell_complete=suggest_servers)
@CONFIG
@OUTPUT
def explain(name: str, config: str | None, output: str) -> None:
    """Everything about one server: where it comes from, its variables, whether it may run."""
    from holdfast.config import explain as explained
    from holdfast.config import load

    out = Output(output)
    found = explained(load(config), name)
    if out.json:
        out.value(found)
    else:
        out.text(_told(found))


def _told(found: ServerExplanation) -> str:
    where = " › ".join(found.section)
    lines = [
        f"{found.name}: {found.kind}{', disabled' if found.disabled else ''}",
        f"  from      {found.file}{f' ({where})' if where else ''}, {found.dialect}, {found.scope}",
        f"  says      {json.dumps(found.definition, ensure_ascii=False)}",
    ]
    if found.settings:
        lines.append(f"  settings  {json.dumps(found.settings, ensure_ascii=False)}")
    for one in found.variables:
        state = "has a default" if one.has_default else "set" if one.is_set else "NOT SET"
        lines.append(f"  variable  {one.name}: {state} (in {', '.join(one.fields)})")
    lines.append(f"  trust     {found.trust}")
    lines += [f"            {change}" for change in found.changes]
    if found.approve:
        lines.append(f"            approve it with: {found.approve}")
    lines += [f"  hides     {other}" for other in found.shadows]
    lines += [f"  ! {problem}" for problem in (*found.problems, *found.warnings)]
    return "\n".join(lines)


@config.command(short_help="approve servers of a project's own file")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=suggest_servers)
@click.option("--all", "everything", is_flag=True, help="Every server that needs an approval.")
@click.option("-y", "--yes", is_flag=True, help="Approve without being asked.")
@CONFIG
@OUTPUT
def trust(
    names: tuple[str, ...], everything: bool, yes: bool, config: str | None, output: str
) -> None:
    """Approve servers of a project's own file, as they stand now.

    The approval holds until its command, arguments, environment, URL or files change.
    """
    from holdfast.config import approve_all, load, preview

    out = Output(output)
    found = load(config)
    if everything == bool(names):
        raise click.UsageError("Name the servers, or give --all.")
    if everything:
        names = tuple(one.name for one in found if not one.errors and not one.trust().ok)
    shown = {name: preview(found, name) for name in names}
    wanted = {name: one for name, one in shown.items() if one.verdict in ("untrusted", "changed")}
    for name in shown.keys() - wanted.keys():
        own = shown[name].verdict == "own"
        out.note(f"{name}: {'is your own' if own else 'is trusted already'}.")
    if wanted and not (yes or agreed(list(wanted.values()))):
        raise TrustError(f"{', '.join(wanted)}: not approved")
    for done in approve_all(found, list(wanted), seen=wanted):
        shown[done.name] = done
        out.note(f"{done.name}: approved, as {done.file} has it now.")
    if not shown:
        out.note("Nothing needs an approval.")
    if out.json:
        values = list(shown.values())
        out.value(values[0] if len(values) == 1 and not everything else values)


@config.command(short_help="take an approval back")
@click.argument("name", shell_complete=suggest_servers)
@CONFIG
@OUTPUT
def untrust(name: str, config: str | None, output: str) -> None:
    """Take an approval back."""
    from holdfast.config import load, revoke

    out = Output(output)
    done = revoke(load(config), name)
    if out.json:
        out.value({"name": name, "changed": done})
    out.note(f"{name}: {'no longer approved' if done else 'was not approved'}.")
