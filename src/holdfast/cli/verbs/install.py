"""``install`` and ``uninstall``: ``holdfast serve`` before the servers in a host's own file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast._core.text import visible
from holdfast.cli.app import ALLOW, DENY, YES, option, output_option
from holdfast.cli.output import Output, color
from holdfast.cli.prompts import confirm, is_interactive, show_pages
from holdfast.cli.views import table
from holdfast.errors import StateError, TrustError, ValidationError

if TYPE_CHECKING:
    from holdfast.config.hosts import Host
    from holdfast.hosts.document import HostServer
    from holdfast.hosts.plan import FilePlan
    from holdfast.hosts.writing import HostFiles, MakePlan, Written

PROJECT = option("--project", "The host's file in this project, not your own.")
_DONE: Final = {
    "install": "through Holdfast now, in",
    "update": "through Holdfast, with these options now, in",
    "add": "added to",
    "restore": "as before Holdfast again, in",
    "remove": "removed from",
}
_QUESTIONS: Final = 3
"""Times that a changing file is shown anew."""


def _hosts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Suggest hosts."""
    from holdfast.config.hosts import HOSTS

    return [name for name in HOSTS if name.startswith(incomplete)]


@click.command()
@click.argument("host", required=False, shell_complete=_hosts)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@PROJECT
@option("--log FILE", "Append the calls to a log; {name} in it is the server's.")
@option("--trace-file FILE", "Write all that crosses the wire; {name} is the server's.")
@option("--lock FILE", "Refuse tools that differ from the lock file.")
@ALLOW
@DENY
@option("--timeout SECONDS", "The timeout of one request.", type=float)
@option("--protocol REVISION", "Use this protocol revision towards the server.")
@option("--program WORDS", "How the host starts Holdfast; by default this one, by its path.")
@YES
@output_option
def install(
    host: str | None,
    names: tuple[str, ...],
    output: Output,
    *,
    project: bool,
    yes: bool,
    program: str | None,
    **options: Any,
) -> None:
    """Put Holdfast before the servers of a host, so that they are started again when they die.

    All servers that the host starts by a command, or those that are named; a name that the host
    does not have, and your configuration does, is added. The change is shown, and asked about; the
    file as it was is kept. Without a host: what is found here, and what would be done.

    \b
    holdfast install
    holdfast install claude-code
    holdfast install cursor git --trace-file ~/git.jsonl
    """
    if host is None:
        if project or yes or any(value not in (None, ()) for value in (program, *options.values())):
            raise click.UsageError("Which host? Options are for one; 'holdfast install' lists all.")
        _show_all(output)
        return
    from holdfast.hosts.installer import Installer

    words = None if program is None else _words(program)
    files = _files(host, project)
    installer = Installer(files, names, words, options)
    if installer.warning:
        output.note(installer.warning)
    if _Session(files, output).carry_out(installer.installing(), yes):
        output.note(installer.note)


@click.command()
@click.argument("host", shell_complete=_hosts)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@PROJECT
@YES
@output_option
def uninstall(host: str, names: tuple[str, ...], project: bool, yes: bool, output: Output) -> None:
    """Take Holdfast out of a host's file again: each server as it was.

    \b
    holdfast uninstall claude-code
    holdfast uninstall cursor git
    """
    from holdfast.hosts.installer import uninstalling

    files = _files(host, project)
    _Session(files, output).carry_out(uninstalling(files, names), yes)


def _words(program: str) -> list[str]:
    from holdfast._core.command_line import split_words

    try:
        return split_words(program)
    except ValueError as error:
        raise ValidationError(f"--program {visible(program, 80)}: {str(error).lower()}") from None


def _files(host: str, project: bool) -> HostFiles:
    from holdfast.config.environment import ConfigEnvironment
    from holdfast.config.hosts import host_named
    from holdfast.hosts.writing import HostFiles

    return HostFiles(host_named(host), ConfigEnvironment(), project=project)


# Shown, asked and done


class _Session:
    """Shows what would be done to the files of a host, asks, does it, and says so."""

    def __init__(self, files: HostFiles, output: Output) -> None:
        self._files, self._output = files, output

    def carry_out(self, makers: dict[str, MakePlan], yes: bool) -> bool:
        """Return whether anything was written."""
        from holdfast.hosts.writing import PlanChangedError

        product = self._files.host.product
        written: dict[str, Written] = {}
        for _ in range(_QUESTIONS):
            plans = {path: self._files.plan(path, make) for path, make in makers.items()}
            waiting = {path: plan for path, plan in plans.items() if not plan.is_empty}
            for path in waiting:
                self._files.require_writable(path)
            self._show(list(waiting.values()), yes)
            try:
                for path, plan in waiting.items():
                    written[path] = self._files.write(plan, makers[path])
            except PlanChangedError:
                self._output.note(f"{product} changed its file meanwhile.")
                continue
            except StateError:
                self._report({}, written)
                raise
            self._report(plans, written)
            return bool(written)
        raise ValidationError(f"{product} changes its servers all the time; close it and try again")

    def _show(self, plans: list[FilePlan], yes: bool) -> None:
        """Show what would be done; without ``yes``, raise an error unless the person agrees."""
        from holdfast.hosts.diff import diff_lines

        if self._output.json:
            if plans and not yes:
                raise TrustError("nobody to ask; without --json the change is shown")
            return
        lines = list(chain.from_iterable(map(diff_lines, plans)))
        is_read = not lines or show_pages(lines, _colored, "nothing is written")
        if yes or not plans:
            return
        if not is_interactive():
            raise TrustError("nobody to ask; read the change, then add --yes")
        if not (is_read and confirm(_question(len(plans)))):
            raise TrustError("nothing was written")

    def _report(self, plans: dict[str, FilePlan], written: dict[str, Written]) -> None:
        plans |= {path: result.plan for path, result in written.items()}
        if self._output.json:
            self._output.value([_row(plan, written.get(path)) for path, plan in plans.items()])
            return
        for path, plan in plans.items():
            self._output.note("\n".join(_notes(plan, written.get(path))))


def _question(files: int) -> str:
    return "Write it?" if files == 1 else f"Write these {files} files?"


def _colored(line: str) -> str:
    style = {"-": "31", "+": "32", "@": "36"}.get(line[:1], "")
    if line.startswith(("---", "+++")):
        style = "1"
    return color(line, style, sys.stderr) if style else line


def _notes(plan: FilePlan, written: Written | None) -> list[str]:
    """Return what to say about one file."""
    lines: list[str] = []
    file = visible(plan.file.path)
    if written is not None and written.backup is not None:
        for action, how in _DONE.items():
            labels = [visible(item.label) for item in plan.changes if item.action == action]
            if labels:
                lines.append(f"{', '.join(labels)}: {how} {file}")
        product = plan.file.host.product
        lines.append(f"Restart {product} to use it. The file as it was: {written.backup}")
    if plan.note:
        lines.append(f"{file}: {plan.note}.")
    for label, fault in plan.skipped.items():
        lines.append(f"{visible(label)}: left as it is: {fault}")
    if plan.done:
        lines.append(f"{', '.join(map(visible, plan.done))}: through Holdfast already, in {file}")
    if not lines:
        lines.append(f"Nothing to do in {file}.")
    return lines


def _row(plan: FilePlan, written: Written | None) -> dict[str, Any]:
    """Return what was done to one file, for JSON."""
    from holdfast.hosts.diff import command_line

    backup = written.backup if written is not None else None
    return {
        "host": plan.file.host.name,
        "file": plan.file.path,
        "written": backup is not None,
        "backup": None if backup is None else str(backup),
        "servers": [
            {
                "name": change.name,
                "action": change.action,
                "before": command_line(change.before),
                "after": command_line(change.after),
            }
            for change in plan.changes
        ],
        "done": list(plan.done),
        "skipped": plan.skipped,
        "note": plan.note,
    }


# What is here


def _show_all(output: Output) -> None:
    """List the hosts that are found, their servers, and what would be done."""
    from holdfast.config.hosts import HOSTS

    rows = [
        row for files in _every_host() for path in files.present() for row in _rows(files, path)
    ]
    if not rows and not output.json:
        output.note(f"No host was found. There are: {', '.join(HOSTS)}.")
        return
    columns = ("host", "server", "state", "file")
    table(output, rows, columns, list(map(itemgetter(*columns), rows)), "")
    commands = dict.fromkeys(filter(None, map(itemgetter("install"), rows)))
    if commands and not output.json:
        output.text("\n".join(["", "To put Holdfast before them:", *map("  {}".format, commands)]))


def _every_host() -> Iterator[HostFiles]:
    """Yield the files of each host: the user's, and the project's."""
    from holdfast.config.environment import ConfigEnvironment
    from holdfast.config.hosts import HOSTS
    from holdfast.hosts.writing import HostFiles

    environment = ConfigEnvironment()
    is_project = bool(environment.folders())
    for host in HOSTS.values():
        yield HostFiles(host, environment, project=False)
        if host.project and is_project:
            yield HostFiles(host, environment, project=True)


def _rows(files: HostFiles, path: str) -> list[dict[str, str]]:
    host = files.host
    command = f"holdfast install {host.name}{' --project' if files.is_project else ''}"
    try:
        servers = files.servers(path)
    except ValidationError as error:
        fault = str(error).removeprefix(f"{visible(path)} ")
        return [_listed(host, path, "", fault, "")]
    return [
        _listed(host, path, server.label, _state(server), "" if _is_done(server) else command)
        for server in servers
    ]


def _listed(host: Host, path: str, server: str, state: str, command: str) -> dict[str, str]:
    return {
        "host": host.name,
        "server": visible(server),
        "state": state,
        "file": visible(path),
        "install": command,
    }


def _is_done(server: HostServer) -> bool:
    return bool(server.fault) or server.relay is not None


def _state(server: HostServer) -> str:
    if server.fault:
        return server.fault
    return "direct" if server.relay is None else "through Holdfast"
