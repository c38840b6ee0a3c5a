"""``holdfast codegen``: a typed Python module for a server's tools."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import click

from holdfast.cli.aim import Aim, aimed
from holdfast.cli.suggest import servers
from holdfast.errors import ValidationError


@click.command()
@click.argument("server", nargs=-1, metavar="[SERVER_OR_URL]", shell_complete=servers)
@click.option("-o", "--out", metavar="FILE", help="The module; without it, standard output.")
@click.option("--sync", is_flag=True, help="Handles for code without an event loop, too.")
@click.option("--session", metavar="PARAMETER", help="The parameter that names the session.")
@click.option("--open", "open_tool", metavar="TOOL", default="session.open", show_default=True)
@click.option("--close", "close_tool", metavar="TOOL", default="session.close", show_default=True)
@click.option("--hide", metavar="TOOL", multiple=True, help="Leave out a tool, or a namespace.*")
@click.option("--no-target", is_flag=True, help="Do not write down where the server is.")
@click.option("--stamp", is_flag=True, help="Note the time; then no two runs are the same.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 6 if the file is not fresh.")
@aimed
async def codegen(
    aim: Aim,
    *,
    server: tuple[str, ...],
    out: str | None,
    sync: bool,
    session: str | None,
    open_tool: str,
    close_tool: str,
    hide: tuple[str, ...],
    no_target: bool,
    stamp: bool,
    check: bool,
) -> int:
    """Write a typed Python module for a server's tools.

    \b
    holdfast codegen browser -o mcp_tools.py
    holdfast codegen -o mcp_tools.py -- python server.py
    holdfast codegen https://example.org/mcp -o mcp_tools.py --sync
    """
    from holdfast.codegen import Session, generate

    name, rest = aim.take(server, "")
    if rest:
        raise click.UsageError(f"Not understood: {' '.join(rest)}")
    async with aim.client(name) as client:
        tools = await client.list_tools()
    words = {"sync": sync, "session": session, "open": open_tool, "close": close_tool}
    found = generate(
        tools,
        command=_command(aim, name, out=out, words=words, hide=hide, no_target=no_target),
        target=None if no_target else _target(aim, name),
        sync=sync,
        stamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) if stamp else None,
        session=None if session is None else Session(session, open_tool, close_tool),
        hide=hide,
    )
    for report in found.reports:
        aim.output.note(report)
    if out is None:
        aim.output.text(found.source.rstrip("\n"))
        return 0
    return _write(aim, Path(out), found.source, found.tools, check)


def _write(aim: Aim, path: Path, source: str, tools: int, check: bool) -> int:
    """Only a file that is not the same already is written."""
    from holdfast.cli.exits import Exit

    try:
        if path.exists() and path.read_text(encoding="utf-8") == source:
            aim.output.note("No changes.")
            return Exit.OK
        if check:
            aim.output.note(f"{path} is not what the server's tools would give now.")
            return Exit.DRIFT
        path.write_text(source, encoding="utf-8")
    except OSError as error:
        raise ValidationError(f"{path}: cannot be written: {error.strerror}") from None
    aim.output.note(f"Generated {tools} tool{'' if tools == 1 else 's'}.")
    return Exit.OK


def _target(aim: Aim, name: str | None) -> str | list[str] | None:
    """What the module connects to by itself. A configured server's own settings stay out of it."""
    if aim.command is not None:
        return list(aim.command)
    url = aim.url or name
    return url if url and url.lower().startswith(("http://", "https://")) else None


def _command(
    aim: Aim,
    name: str | None,
    *,
    out: str | None,
    words: dict[str, Any],
    hide: tuple[str, ...],
    no_target: bool,
) -> str:
    """The command that makes the same file again."""
    found = ["holdfast", "codegen"]
    if name is not None:
        found.append(name)
    if aim.url is not None:
        found += ["--url", aim.url]
    if words["sync"]:
        found.append("--sync")
    if words["session"]:
        found += ["--session", words["session"]]
        for word, usual in (("open", "session.open"), ("close", "session.close")):
            found += [f"--{word}", words[word]] if words[word] != usual else []
    for one in hide:
        found += ["--hide", one]
    if no_target:
        found.append("--no-target")
    if out is not None:
        found += ["-o", out]
    if aim.command is not None:
        found += ["--", *aim.command]
    return shlex.join(found)
