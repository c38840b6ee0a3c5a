"""Setting up: ``add``, ``remove`` and ``import`` servers in one step; ``demo``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

import click

from holdfast.cli import consent
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.options import OUTPUT, TRANSPORTS, ServerCommand, files, folders, pairs
from holdfast.cli.output import Output
from holdfast.cli.target import is_url
from holdfast.errors import TrustError

if TYPE_CHECKING:
    from holdfast.config import ConfigEdit
    from holdfast.config.edit import ImportPlan

PROJECT = click.option(
    "--project", is_flag=True, help="The project's .mcp.json, not your own configuration."
)
YES = click.option("-y", "--yes", is_flag=True, help="Do it without being asked.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace servers of the same name.")


@click.command(cls=ServerCommand)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[URL]")
@PROJECT
@OVERWRITE
@YES
@click.option(
    "--env", metavar="K[=V]", multiple=True, help="A variable; without a value, ${K} is written."
)
@click.option("--cwd", metavar="DIR", shell_complete=folders, help="Where the command runs.")
@click.option("--header", metavar="K:V", multiple=True, help="A header for the URL.")
@click.option(
    "--transport",
    type=click.Choice(TRANSPORTS),
    default="auto",
    metavar="HOW",
    help="Speak to the URL so: auto, streamable or sse.",
)
@OUTPUT
def add(
    name: str,
    words: tuple[str, ...],
    *,
    project: bool,
    overwrite: bool,
    yes: bool,
    env: tuple[str, ...],
    cwd: str | None,
    header: tuple[str, ...],
    transport: Literal["auto", "streamable", "sse"],
    output: str,
) -> None:
    """Add a server to your configuration. What you type yourself needs no approval.

    \b
    holdfast add git -- uvx mcp-server-git
    holdfast add docs https://example.org/mcp --header 'X-Team: ${TEAM}'
    """
    from holdfast.config import add as write

    out = Output(output)
    command, url = _what(name, words)
    _ask(out, yes, f"{name}: {url or shlex.join(command)}", _place(project))
    done = write(
        name,
        command=command[0] if command else None,
        args=command[1:],
        url=url,
        env=pairs("--env", tuple(one if "=" in one else f"{one}=${{{one}}}" for one in env), "="),
        headers=pairs("--header", header, ":"),
        cwd=cwd,
        transport=transport,
        scope="project" if project else "user",
        overwrite=overwrite,
    )
    _report(out, done, "added to", f"\nTry it: holdfast tools {shlex.quote(name)}")


def _what(name: str, words: tuple[str, ...]) -> tuple[list[str], str | None]:
    """Return the command after ``--``, or the URL."""
    command: list[str] | None = click.get_current_context().obj
    if command is not None:
        if words or not command:
            raise click.UsageError("Give a URL, or a command after --, and nothing else.")
        return command, None
    if len(words) == 1 and is_url(words[0]):
        return [], words[0]
    if words and "://" in words[0]:
        raise click.UsageError(f"{words[0]!r}: a URL begins with http:// or https://.")
    if words:
        raise click.UsageError(f"Write: holdfast add {name} -- {shlex.join(words)}")
    raise click.UsageError("Give a URL, or a command after --.")


def _place(project: bool) -> str:
    return "the project's .mcp.json" if project else "your configuration"


def _ask(out: Output, yes: bool, what: str, where: str) -> None:
    """Show it and ask, where there is a person; a script has typed it already."""
    if yes or out.json or not consent.is_interactive():
        return
    out.note(what)
    if not consent.confirm(f"Add it to {where}?"):
        raise click.Abort


def _report(out: Output, done: ConfigEdit, how: str, more: str = "") -> None:
    if out.json:
        out.value(done)
        return
    if done.servers:
        out.note(f"{', '.join(done.servers)}: {how} {done.file}{more}")
    for name, why in done.skipped.items():
        out.note(f"{name}: left out: {why}")
    for lost in done.lost:
        out.note(f"lost: {lost}")


@click.command()
@click.argument("name", shell_complete=suggest_servers)
@PROJECT
@OUTPUT
def remove(name: str, project: bool, output: str) -> None:
    """Remove a server from your configuration, or else from the project's .mcp.json."""
    from holdfast.config import remove as take_out

    done = take_out(name, scope="project" if project else None)
    _report(Output(output), done, "removed from")


@click.command("import")
@click.argument("products", nargs=-1, metavar="[PRODUCT_OR_FILE]...", shell_complete=files)
@click.option("--only", metavar="NAME", multiple=True, help="Only this server.")
@OVERWRITE
@YES
@OUTPUT
def import_(
    products: tuple[str, ...], only: tuple[str, ...], overwrite: bool, yes: bool, output: str
) -> None:
    """Copy the servers of other products to your configuration, in one step.

    Without a name: of every product that is found here.

    \b
    holdfast import
    holdfast import cursor
    holdfast import other/mcp.json --only git
    """
    from holdfast.config.edit import plan_import

    out = Output(output)
    plan = plan_import(products or None, names=only or None, overwrite=overwrite)
    if plan.entries and not yes:
        again = [*products, *(f"--only={name}" for name in only), *["--overwrite"] * overwrite]
        _ask_import(out, plan, shlex.join(["holdfast", "import", *again, "--yes"]))
    done = plan.carry_out()
    if not done.servers and not done.skipped:
        out.note("Nothing to import was found.")
    _report(out, done, "imported to")


def _ask_import(out: Output, plan: ImportPlan, again: str) -> None:
    from holdfast.config.views import EntryDisplay

    target = EntryDisplay().target
    for entry in plan.entries:
        source = entry.source.product or entry.source.file
        out.note(f"{entry.name}: {target(entry)} (from {source})")
    if out.json or not consent.is_interactive():
        raise TrustError(f"nobody to ask; after reading it: {again}")
    count = len(plan.entries)
    if not consent.confirm(f"Import {'it' if count == 1 else f'these {count}'}?"):
        raise click.Abort


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Show the client's log as well.")
def demo(verbose: bool) -> int:
    """See a client connect, list, call, and survive the death of its server."""
    from holdfast.demo.story import main

    return main(verbose=verbose)
