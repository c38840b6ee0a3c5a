"""``holdfast log``: calls that were recorded, and stored sequences: run, replay, diff, serve."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.app import CLOSE, OPEN, YES, SubVerbs, option, output_option, pairs
from holdfast.cli.approvals import approve_calls
from holdfast.cli.output import Exit, Output, exit_for
from holdfast.cli.prompts import ask_secret, is_interactive
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast.calllog.entries import Entry


@click.group(cls=SubVerbs)
def log() -> None:
    """Calls that were recorded with --log: send them again, compare, answer from them."""


GO_ON = option("--go-on", "Continue after a failed call.")
FILL = option("--fill K=V...", "A value for an argument that the log has redacted.")


@log.command(cls=ServerVerb, takes="LOG", short_help="send the calls of a log again")
@GO_ON
@FILL
@YES
async def replay(target: ServerTarget, log: str, **options: Any) -> int:
    """Send the calls of a log again, and compare each outcome with the recorded one.

    \b
    holdfast log replay git calls.jsonl
    holdfast log replay calls.jsonl -- python server.py
    """
    from holdfast.calllog.replay import replay as play

    path = path_of(log)
    return await _played(target, target.client(), play, path, **options)


@log.command(cls=ServerVerb, takes="FILE", short_help="run a stored sequence of calls")
@GO_ON
@FILL
@YES
@option("--session NAME", "Run it in a session of this name.")
@option("--session-key PARAMETER", "The parameter that names the session.", default="sessionName")
@OPEN
@CLOSE
async def run(
    target: ServerTarget,
    file: str,
    *,
    session: str | None,
    session_key: str,
    open_tool: str,
    close_tool: str,
    **options: Any,
) -> int:
    """Run a stored sequence of calls: JSON lines, without a session.

    \b
    holdfast log run browser login.jsonl --session test
    """
    from holdfast.calllog.replay import run_sequence
    from holdfast.handles import Handle, ParameterSession

    path = path_of(file)
    client: Any = target.client()
    if session is not None:
        adapter = ParameterSession(session_key, open_tool, close_tool)
        client = Handle(client, session=session, adapter=adapter)
    return await _played(target, client, run_sequence, path, **options)


async def _played(target: ServerTarget, client: Any, play: Any, path: Path, **answers: Any) -> int:
    """Send the calls of a file; ask at a terminal for what is missing."""
    options = {
        "stop": not answers["go_on"],
        "fill": {name: value_of(text) for name, text in pairs("--fill", answers["fill"]).items()},
        "ask": _ask if is_interactive() else None,
        "confirm": None if answers["yes"] else partial(approve_calls, file=str(path)),
    }
    async with client:
        report = await play(client, path, **options)
    output = target.output
    rows = [_call_row(outcome) for outcome in report]
    output.result({"ok": report.ok, "calls": rows}, str(report))
    if report.ok:
        return Exit.OK
    failed = next(
        (outcome.exception for outcome in report if outcome.exception and not outcome.expected),
        None,
    )
    if failed is None:
        return output.verdict("not all calls ended as recorded", Exit.TOOL, "replay")
    return output.verdict(str(failed), exit_for(failed), "replay")


def _call_row(outcome: Any) -> dict[str, Any]:
    """Return a call that was sent again, and how it ended, for JSON."""
    return {
        "name": outcome.entry.name,
        "arguments": outcome.entry.arguments,
        "verdict": outcome.verdict,
        "ok": outcome.ok,
        "ms": outcome.ms,
        **({"error": outcome.error} if outcome.error else {}),
        **({"note": outcome.note} if outcome.note else {}),
    }


def _ask(entry: Entry, name: str) -> Any:
    """Ask for a redacted value at the terminal."""
    return value_of(ask_secret(f"{name} of {entry.name}"))


def value_of(text: str) -> Any:
    """Return the value of a text that is JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def path_of(name: str) -> Path:
    """Return the path of a log. Raises ValidationError if there is none."""
    path = Path(name)
    if not path.is_file():
        raise ValidationError(f"{name}: there is no such file")
    return path


@log.command(short_help="compare two logs")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@output_option
def diff(first: str, second: str, output: Output) -> int:
    """Compare two logs, call by call. Exits with 1 if they differ."""
    from holdfast.calllog.compare import compare

    comparison = compare(path_of(first), path_of(second))
    output.result(
        {"same": comparison.same, "different": [str(difference) for difference in comparison]},
        str(comparison),
    )
    return output.verdict("the logs differ", Exit.TOOL, "difference") if comparison else Exit.OK


@log.command(short_help="answer from a log, as a mock server on stdio")
@click.argument("log", type=click.Path())
@option("--tools LOCK", "A lock file whose tool definitions are listed.")
@option("--server NAME", "Which server of the lock file.")
def serve(log: str, tools: str | None, server: str | None) -> None:
    """Answer from a log: a mock server on standard input and output.

    \b
    holdfast tools -- holdfast log serve calls.jsonl
    """
    from holdfast.calllog.mock import MockServer

    definitions: Any = None
    instructions = None
    if tools is not None:
        from holdfast.lock.guard import entry_name, read

        file = read(tools)
        locked = file.servers[entry_name(file, server, None, tools)]
        definitions, instructions = locked.definitions, locked.instructions
    mock = MockServer(path_of(log), tools=definitions, instructions=instructions)
    asyncio.run(mock.serve_stdio())
