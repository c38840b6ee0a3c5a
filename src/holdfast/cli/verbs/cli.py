"""``holdfast cli``: a command of its own for one server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.text import counted, visible
from holdfast.cli.app import ServerCommand, option, output_option
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.output import Exit, Output, read_if_there, write_file
from holdfast.cli.target import is_url
from holdfast.errors import ValidationError
from holdfast.lock.lockfile import NAME

if TYPE_CHECKING:
    from holdfast.codegen.command import TargetKind


@click.command(cls=ServerCommand)
@click.argument("server", shell_complete=suggest_servers)
@option("-o --out FILE", "The command; without it, standard output.")
@option("--lock FILE", "The lock file.", default=NAME)
@option("--url URL", "The server's address, if it is not a configured one.")
@option("--check", "Write nothing; exit with 6 if the file is out of date.")
@output_option
def cli(
    server: str, out: str | None, lock: str, url: str | None, output: Output, **options: Any
) -> int:
    """Write a command of its own for one server, from its lock file.

    One Python file that needs only Holdfast: a subcommand for each tool, its parameters as
    options, help from its descriptions, completion. It calls only tools as they were locked.

    \b
    holdfast cli git -o git-tools
    ./git-tools git_log --repo-path . --max-count 5
    ./git-tools --completion bash
    """
    from holdfast.codegen.command import generate_command
    from holdfast.lock.lockfile import lock_command, read

    if options["check"] and out is None:
        raise click.UsageError("--check looks at a file: name it with -o.")
    kind, target = _target(server, url)
    file = read(lock)
    if server not in file.servers:
        add = lock_command(lock, server)
        raise ValidationError(f"{lock}: has no server '{visible(server, 80)}'; lock it: {add}")
    words = {"-o": out, "--lock": None if lock == NAME else lock, "--url": url}
    again = _again(server, words, target if kind == "command" else [])
    source = generate_command(server, file.servers[server], kind, target, again)
    return _deliver(output, source, out, len(file.servers[server].definitions), options["check"])


def _target(server: str, url: str | None) -> tuple[TargetKind, list[str]]:
    """Return what the command starts: the words after ``--``, a URL, or the configured server."""
    command: list[str] = click.get_current_context().obj.command or []
    if url is not None and (command or not is_url(url)):
        raise click.UsageError("Give --url with a URL, or a command after --, not both.")
    if command:
        return "command", command
    return ("name", [server]) if url is None else ("url", [url])


def _again(server: str, options: dict[str, str | None], command: list[str]) -> str:
    """Return the command that writes the file again."""
    from holdfast.lock.commands import quote

    words = ["holdfast", "cli", server]
    for name, value in options.items():
        words += [] if value is None else [name, value]
    return " ".join(map(quote, [*words, *["--"] * bool(command), *command]))


def _deliver(output: Output, source: str, out: str | None, tools: int, is_check: bool) -> int:
    """Write the file, print it, or compare it."""
    if out is None:
        output.result({"tools": tools, "source": source}, source.rstrip("\n"))
        return Exit.OK
    path = Path(out)
    before = read_if_there(path)
    is_changed = before != source
    note = f"Wrote {counted(tools, 'tool')} to {out}." if is_changed else "No changes."
    if is_check:
        note = f"{out} is not what the lock file would give now." if is_changed else note
    elif is_changed:
        _replace(path, before, source)
    output.done({"file": out, "tools": tools, "changed": is_changed}, note)
    return output.verdict(note, Exit.DRIFT, "drift") if is_check and is_changed else Exit.OK


def _replace(path: Path, before: str | None, source: str) -> None:
    from holdfast.codegen.command import MARK

    if before is not None and MARK not in before:
        raise ValidationError(f"{path} is not a command of holdfast cli; nothing was written")
    write_file(path, source)
    mode = path.stat().st_mode & 0o777
    # Executable for those who may read it.
    os.chmod(path, mode | (mode & 0o444) >> 2)
