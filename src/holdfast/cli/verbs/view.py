"""A page of what crosses the wire, from a trace or live; exports for other viewers: view."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from holdfast._core.files import is_pipe_or_device, reason, write_atomic
from holdfast.cli.app import option
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.output import Exit, Output
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.trace.format import Reading
    from holdfast.view.live import LiveServer
    from holdfast.view.questions import PageQuestions

FORMS = ("har", "otlp", "chrome")


@click.command(cls=ServerVerb)
@click.argument("words", nargs=-1, metavar="[TRACE_OR_SERVER]...", shell_complete=suggest_servers)
@option(
    "-o --out FILE", "The file to write. Default: beside the trace, with another ending.", "out"
)
@option("--open", "Open the page in a browser.", "is_opened")
@option(
    "--to FORM",
    "Write it for another viewer: har, otlp or chrome (Perfetto, speedscope).",
    "form",
    type=click.Choice(FORMS),
)
@option("--live", "Follow the trace while it is written.", "is_live")
@option("--port PORT", "The port of the live page; any free one by default.", type=int, default=0)
def view(
    target: ServerTarget,
    words: tuple[str, ...],
    *,
    out: str | None,
    is_opened: bool,
    form: str | None,
    is_live: bool,
    port: int,
) -> int | Coroutine[Any, Any, int]:
    """Show what crosses the wire, as a page.

    From a trace: one file that opens from disk, and needs no server. Live: the same page on
    loopback, over connections of its own, with a form for each tool; or following a trace.

    \b
    holdfast call git.git_log repo_path=. --trace-file run.jsonl
    holdfast view run.jsonl --open
    holdfast view run.jsonl --to chrome -o run.json
    holdfast view run.jsonl --live
    holdfast view git docs
    holdfast view -- python server.py
    """
    wants_file = (out, form) != (None, None)
    is_trace = is_live or wants_file or _is_trace(target, words)
    if not is_trace:
        return _watch(target, words, port, is_opened)
    if len(words) != 1 or target.command or target.url:
        raise click.UsageError("Give one trace, and no server with it.")
    (file,) = words
    if not is_live:
        _refuse_to_open(is_opened, out, form)
        return _write_page(target.output, file, out, is_opened, form)
    if file == "-":
        raise click.UsageError("--live follows a file that grows; give it by its name.")
    if wants_file:
        raise click.UsageError("A live page is no file: -o and --to need a trace that is whole.")
    return _follow(target.output, file, port, is_opened)


def _refuse_to_open(is_opened: bool, out: str | None, form: str | None) -> None:
    """Refuse to open in a browser what is no page, or no file."""
    if is_opened and form is not None:
        raise click.UsageError("--open shows the page; --to writes another form.")
    if is_opened and out == "-":
        raise click.UsageError("--open shows a file; -o - writes none.")


def _is_trace(target: ServerTarget, words: tuple[str, ...]) -> bool:
    """Return whether the words are a trace: a file that is there, or something that looks so."""
    if len(words) != 1:
        return False
    (word,) = words
    if word == "-":
        return True
    if target.command or target.url or target.is_server(word):
        return False
    return os.path.exists(word) or word.endswith((".jsonl", ".json")) or os.sep in word


def _write_page(
    output: Output, file: str, out: str | None, is_opened: bool, form: str | None
) -> int:
    from holdfast.trace.format import Reading, rotated

    path = Path("stdin.jsonl" if file == "-" else file)
    reading = Reading(path.name, "stdin" if file == "-" else file)
    files = [] if file == "-" else rotated(path)
    lines = _rows(files, file)
    text = _page(reading, lines) if form is None else _export(reading, lines, form)
    if out == "-":
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        _report(output, reading)
        return Exit.OK
    target = path.with_suffix(f".{form or 'html'}") if out is None else Path(out)
    _write(target, text, files)
    facts = {"file": os.fspath(target), "cut": reading.is_cut, "unreadable": reading.skipped}
    output.result(facts, os.fspath(target))
    _report(output, reading)
    if is_opened:
        _open(output, target.resolve().as_uri())
    return Exit.OK


# Live


async def _follow(output: Output, file: str, port: int, is_opened: bool) -> int:
    """Serve the page of a trace while it grows."""
    import asyncio

    from holdfast.view.feed import Feed
    from holdfast.view.follow import Follower
    from holdfast.view.live import LiveServer

    path = Path(file)
    feed = Feed(path.name, lambda: 0.0)
    follower = Follower(path, feed)
    following = asyncio.create_task(follower.run())
    try:
        return await _serve(LiveServer(feed), output, port, is_opened)
    finally:
        following.cancel()


async def _watch(target: ServerTarget, words: tuple[str, ...], port: int, is_opened: bool) -> int:
    """Serve the page of servers that it connects to itself."""
    import asyncio

    from holdfast.view.feed import Feed, FeedRecorder
    from holdfast.view.live import LiveServer
    from holdfast.view.questions import PageQuestions
    from holdfast.view.workbench import Workbench

    feed = Feed("live", lambda: 0.0)
    questions = PageQuestions(feed.wake)
    recorder = FeedRecorder(feed, asyncio.get_running_loop())
    clients = [_client(each, questions) for each in _targets(target, words)]
    _refuse_same_names(clients)
    feed.title = ", ".join(client.name for client in clients)
    for client in clients:
        recorder.watch(client)
    bench = Workbench(clients)
    bench.open()
    try:
        return await _serve(LiveServer(feed, bench, questions), target.output, port, is_opened)
    finally:
        await bench.close()
        recorder.close()


def _targets(target: ServerTarget, words: tuple[str, ...]) -> list[ServerTarget]:
    """Return the servers that are meant: those that are named, and that after ``--``."""
    unknown = next((word for word in words if not target.is_server(word)), None)
    if unknown is not None:
        raise _unknown(target, unknown)
    named = [target.at(word) for word in words]
    for each in named:
        each.command = each.url = None
    if target.is_given or (target.variable and not named):
        named.append(target)
    if not named:
        raise click.UsageError(f"Which trace, or which server? {target.hint()}")
    return named


def _unknown(target: ServerTarget, word: str) -> Exception:
    if _is_trace(target, (word,)):
        return click.UsageError(f"{word} is a trace: give it alone, without another or a server.")
    return ValidationError(f"There is no trace and no server {word!r}. {target.hint(word)}")


def _client(target: ServerTarget, questions: PageQuestions) -> Client:
    name = ""
    target.options["handlers"] = questions.handlers(lambda: name)
    client: Client = target.client()
    name = client.name
    return client


def _refuse_same_names(clients: list[Client]) -> None:
    names = [client.name for client in clients]
    for name in names:
        if names.count(name) > 1:
            raise ValidationError(f"Two servers have the name {name!r}; the page needs one each.")


async def _serve(server: LiveServer, output: Output, port: int, is_opened: bool) -> int:
    """Serve until Ctrl-C."""
    import asyncio

    from holdfast.cli.progress import status

    status.end()
    try:
        await server.start(port)
    except (OSError, OverflowError) as error:
        raise ValidationError(f"--port {port}: {error}") from None
    output.result({"url": server.url}, server.url)
    sys.stdout.flush()
    output.note("Whoever has this address can use it. Ctrl-C ends it.")
    if is_opened:
        _open(output, server.url)
    try:
        await asyncio.Event().wait()
    finally:
        await server.close()
    return Exit.OK


def _open(output: Output, url: str) -> None:
    import webbrowser

    if os.environ.get("HOLDFAST_NO_BROWSER") or not webbrowser.open(url):
        output.note(f"No browser could be started. Open it yourself: {url}")


def _page(reading: Reading, rows: Iterator[bytes]) -> str:
    from holdfast.view.page import build_page

    return build_page(reading, reading.lines(rows))


def _export(reading: Reading, rows: Iterator[bytes], form: str) -> str:
    import msgspec

    from holdfast.view import exports

    recording = exports.Recording(reading, reading.lines(rows))
    return msgspec.json.encode(exports.FORMS[form](recording)).decode()


def _rows(paths: list[Path], shown: str) -> Iterator[bytes]:
    """Yield the lines of the files of a trace; each file but the first repeats the header."""

    def read(path: Path) -> Iterator[bytes]:
        try:
            with path.open("rb") as file:
                yield from _lines(file)
        except FileNotFoundError:
            raise ValidationError(f"{path}: no such file; --trace-file writes a trace") from None
        except IsADirectoryError:
            raise ValidationError(f"{path}: a folder; give the trace in it") from None
        except OSError as error:
            raise ValidationError(f"{path}: {reason(error)}") from None

    if shown == "-":
        return _lines(sys.stdin.buffer)
    return itertools.chain.from_iterable(map(read, paths))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Return the lines of a file; one that is too long comes in parts, none of which is a line."""
    from holdfast.trace.format import LONGEST_LINE

    return iter(lambda: file.readline(LONGEST_LINE + 1), b"")


def _write(target: Path, text: str, trace: list[Path]) -> None:
    data = text.encode("utf-8", "replace")
    try:
        _check_target(target, trace)
        if is_pipe_or_device(target):
            target.write_bytes(data)
            return
        # What is made of a trace that nobody else may read has all that is in it.
        is_private = any(file.exists() and not file.stat().st_mode & 0o077 for file in trace)
        write_atomic(target, data, private=is_private)
    except OSError as error:
        raise ValidationError(f"{target}: {reason(error)}") from None


def _check_target(target: Path, trace: list[Path]) -> None:
    if target.exists() and any(file.exists() and target.samefile(file) for file in trace):
        raise ValidationError(f"{target}: this is the trace itself; give another file with -o")
    if target.is_dir():
        raise ValidationError(f"{target}: a folder; give a file in it with -o")
    if not target.parent.is_dir():
        raise ValidationError(f"{target}: there is no folder {target.parent}; make it")


def _report(output: Output, reading: Reading) -> None:
    """Say what the trace does not have."""
    if reading.is_cut:
        output.note("The end of the trace is missing: its last line is not whole.")
    elif servers := reading.unclosed:
        output.note(
            f"The trace ends with open connections ({len(servers)}): its program was killed, still "
            "runs, or did not close them."
        )
    if reading.left_out:
        output.note(f"Lines that have no room in one page: the last {reading.left_out}.")
    if reading.unreadable:
        number, why = reading.unreadable[0]
        output.note(
            f"Lines that cannot be read: {reading.skipped}, the first in line {number}: {why}"
        )
