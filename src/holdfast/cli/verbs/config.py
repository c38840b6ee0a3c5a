"""Setting up: ``add``, ``remove`` and ``import`` servers, ``config`` to approve them; ``demo``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from holdfast.cli import options
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.elicitation import agreed, confirm, is_interactive
from holdfast.cli.options import CONFIG, YES, option, output_option, pairs
from holdfast.cli.output import Output
from holdfast.cli.target import is_url
from holdfast.cli.views import outline
from holdfast.errors import TrustError

if TYPE_CHECKING:
    from holdfast.config import ConfigEdit

PROJECT = option("--project", "The project's .mcp.json, not your own configuration.")
OVERWRITE = option("--overwrite", "Replace servers of the same name.")


@click.command(cls=options.ServerCommand)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[URL]")
@PROJECT
@OVERWRITE
@YES
@option("--env K[=V]...", "A variable; without a value, ${K} is written.")
@options.CWD
@options.HEADER
@options.TRANSPORT
@output_option
def add(name: str, words: tuple[str, ...], output: Output, **given: Any) -> None:
    """Add a server to your configuration. What you type yourself needs no approval.

    \b
    holdfast add git -- uvx mcp-server-git
    holdfast add docs https://example.org/mcp --header 'X-Team: ${TEAM}'
    """
    from holdfast.config import add as write

    command: list[str] = click.get_current_context().obj or []
    if bool(command) == bool(words):
        raise click.UsageError("Give a URL, or a command after --, and nothing else.")
    if words and not (len(words) == 1 and is_url(words[0])):
        if "://" in words[0]:
            raise click.UsageError(f"{words[0]!r}: a URL begins with http:// or https://.")
        raise click.UsageError(f"Write: holdfast add {name} -- {shlex.join(words)}")
    if not (given["yes"] or output.json) and is_interactive():  # a script has typed it already
        where = "the project's .mcp.json" if given["project"] else "your configuration"
        output.note(f"{name}: {shlex.join(command) if command else words[0]}")
        if not confirm(f"Add it to {where}?"):
            raise click.Abort
    env = (one if "=" in one else f"{one}=${{{one}}}" for one in given["env"])
    done = write(
        name,
        command=command[0] if command else None,
        args=command[1:],
        url=words[0] if words else None,
        env=pairs("--env", tuple(env)),
        headers=pairs("--header", given["header"], ":"),
        cwd=given["cwd"],
        transport=given["transport"] or "auto",
        scope="project" if given["project"] else "user",
        overwrite=given["overwrite"],
    )
    _report(output, done, "added to", f"\nTry it: holdfast tools {shlex.quote(name)}")


def _report(output: Output, done: ConfigEdit, how: str, more: str = "") -> None:
    if output.json:
        output.value(done)
        return
    if done.servers:
        output.note(f"{', '.join(done.servers)}: {how} {done.file}{more}")
    for name, why in done.skipped.items():
        output.note(f"{name}: left out: {why}")
    for lost in done.lost:
        output.note(f"lost: {lost}")


@click.command()
@click.argument("name", shell_complete=suggest_servers)
@PROJECT
@output_option
def remove(name: str, project: bool, output: Output) -> None:
    """Remove a server from your configuration, or else from the project's .mcp.json."""
    from holdfast.config import remove as take_out

    _report(output, take_out(name, scope="project" if project else None), "removed from")


@click.command("import")
@click.argument("products", nargs=-1, metavar="[PRODUCT_OR_FILE]...", shell_complete=options.files)
@option("--only NAME...", "Only this server.")
@OVERWRITE
@YES
@output_option
def import_(
    products: tuple[str, ...], only: tuple[str, ...], overwrite: bool, yes: bool, output: Output
) -> None:
    """Copy the servers of other products to your configuration, in one step.

    Without a name: of every product that is found here.

    \b
    holdfast import
    holdfast import cursor
    holdfast import other/mcp.json --only git
    """
    from holdfast.config.edit import plan_import
    from holdfast.config.views import EntryDisplay

    plan = plan_import(products or None, names=only or None, overwrite=overwrite)
    if plan.entries and not yes:
        target = EntryDisplay().target
        for entry in plan.entries:
            source = entry.source.product or entry.source.file
            output.note(f"{entry.name}: {target(entry)} (from {source})")
        if output.json or not is_interactive():
            again = [*products, *(f"--only={name}" for name in only), *["--overwrite"] * overwrite]
            command = shlex.join(["holdfast", "import", *again, "--yes"])
            raise TrustError(f"nobody to ask; after reading it: {command}")
        count = len(plan.entries)
        if not confirm(f"Import {'it' if count == 1 else f'these {count}'}?"):
            raise click.Abort
    done = plan.carry_out()
    if not done.servers and not done.skipped:
        output.note("Nothing to import was found.")
    _report(output, done, "imported to")


# Approvals


@click.group()
def config() -> None:
    """Show, explain and trust configuration."""


@config.command(short_help="the files that were found, and their servers")
@CONFIG
@output_option
def show(config: str | None, output: Output) -> None:
    """Every file that was found, in the order in which they count, and its servers."""
    from holdfast.config import load
    from holdfast.config import show as overview

    found = overview(load(config))
    if found.files or output.json:
        output.result(found, "\n".join(outline(to_builtins(found))))
    else:
        output.note("No configuration was found.")


@config.command(short_help="everything about one server")
@click.argument("name", shell_complete=suggest_servers)
@CONFIG
@output_option
def explain(name: str, config: str | None, output: Output) -> None:
    """Everything about one server: where it comes from, its variables, whether it may run."""
    from holdfast.config import explain as explained
    from holdfast.config import load

    found = explained(load(config), name)
    output.result(found, "\n".join(outline(to_builtins(found))))


@config.command(short_help="approve servers of a project's own file")
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=suggest_servers)
@option("--all", "Every server that needs an approval.", name="everything")
@YES
@CONFIG
@output_option
def trust(
    names: tuple[str, ...], everything: bool, yes: bool, config: str | None, output: Output
) -> None:
    """Approve servers of a project's own file, as they stand now.

    The approval holds until its command, arguments, environment, URL or files change.
    """
    from holdfast.config import approve_all, load, preview

    found = load(config)
    if everything == bool(names):
        raise click.UsageError("Name the servers, or give --all.")
    if everything:
        names = tuple(one.name for one in found if not one.errors and not one.trust().ok)
    shown = {name: preview(found, name) for name in names}
    wanted = {name: one for name, one in shown.items() if one.verdict in ("untrusted", "changed")}
    for name in shown.keys() - wanted.keys():
        own = shown[name].verdict == "own"
        output.note(f"{name}: {'is your own' if own else 'is trusted already'}.")
    if wanted and not (yes or agreed(list(wanted.values()))):
        raise TrustError(f"{', '.join(wanted)}: not approved")
    for done in approve_all(found, list(wanted), seen=wanted):
        shown[done.name] = done
        output.note(f"{done.name}: approved, as {done.file} has it now.")
    if not shown:
        output.note("Nothing needs an approval.")
    if output.json:
        values = list(shown.values())
        output.value(values[0] if len(values) == 1 and not everything else values)


@config.command(short_help="take an approval back")
@click.argument("name", shell_complete=suggest_servers)
@CONFIG
@output_option
def untrust(name: str, config: str | None, output: Output) -> None:
    """Take an approval back."""
    from holdfast.config import load, revoke

    done = revoke(load(config), name)
    told = f"{name}: {'no longer approved' if done else 'was not approved'}."
    output.done({"name": name, "changed": done}, told)


@click.command()
@option("-v --verbose", "Show the client's log as well.")
def demo(verbose: bool) -> int:
    """See a client connect, list, call, and survive the death of its server."""
    from holdfast.demo.story import main

    return main(verbose=verbose)
