"""``holdfast map``: one tool over the rows of a file."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import ExitStack, aclosing, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from holdfast._core import files
from holdfast._core.bulk.engine import Bulk, check_retry
from holdfast._core.bulk.outcomes import RETRYABLE
from holdfast._core.bulk.resume import OutcomeFile, OutcomeStream, RowSet
from holdfast._core.bulk.rows import LONGEST_LINE, JsonRows, Selection, read_rows
from holdfast._core.text import counted
from holdfast.cli.app import option
from holdfast.cli.arguments import coerce
from holdfast.cli.bulk_display import Display, display
from holdfast.cli.completers import tools
from holdfast.cli.output import Exit, Output
from holdfast.cli.progress import status
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.types.tools import Tool, ToolResult

PIPE: Final = "-"
CHUNK: Final = 64 * 1024
AHEAD: Final = 8
"""Chunks of a pipe that are read ahead."""
LISTED: Final = 20
"""Rows with an unknown outcome that are listed."""


@click.command("map", cls=ServerVerb)
@click.argument("tool", shell_complete=tools)
@click.argument("words", nargs=-1, metavar="ROWS", type=click.Path())
@option("-o --out FILE", "Write the outcomes there; - is stdout, the default.", default=PIPE)
@option("-j --jobs N", "Calls at once.", type=click.IntRange(1, 10_000), default=32)
@option("--arg NAME=.FIELD...", "An argument from a field of the row, or a text for all.", "fields")
@option("--once .FIELD", "Run each row once, by this key, over all runs: see 'once'.")
@option("--retry KINDS", f"Try again what has not run: {', '.join(RETRYABLE)}.", default="")
@option("--resume", "Go on with the outcomes that are there.")
@option("--ordered", "Write the outcomes in the order of the rows.")
async def map_(
    target: ServerTarget,
    tool: str,
    words: tuple[str, ...],
    *,
    out: str,
    jobs: int,
    fields: tuple[str, ...],
    once: str | None,
    retry: str,
    resume: bool,
    ordered: bool,
) -> int:
    """Call a tool for each row of a file, JSON lines or CSV.

    A row is the arguments of a call, unless --arg says otherwise; - reads JSON lines from stdin. A
    line of the output is a row's number, "ok", "error" or "unknown" (it may have run, and no answer
    came), and its result or error. Exits with 1 if any row is not ok.

    \b
    holdfast map geo.locate towns.csv -o places.jsonl -j 8 --rate 10/s
    holdfast map crm.send rows.jsonl -o sent.jsonl --once .id --resume
    cat rows.jsonl | holdfast map add - -- python server.py | jq .result
    """
    name, rest = target.named(tool, words)
    if len(rest) != 1:
        raise click.UsageError("Give one file of rows, or - for stdin.")
    kinds = tuple(filter(None, retry.split(",")))
    try:
        check_retry(kinds)
    except ValidationError:
        raise click.UsageError(f"--retry {retry}: must be of {', '.join(RETRYABLE)}.") from None
    target.options.setdefault("when_down", "wait")
    with ExitStack() as stack:
        source = Source(rest[0], stack)
        _check_places(source.path, out, resume=resume)
        async with target.client() as client:
            await client.open()  # calls wait for a server that is lost, but not for a wrong one
            described = target.pick(await target.list_tools(client) or (), name)
            sink = _sink(out, stack, resume=resume)
            rows = Rows(source, described, fields, once)
            status.end()
            bulk = Bulk(
                _caller(client, name, rows),
                source.rows(sink.rows),
                concurrency=jobs,
                ordered=ordered,
                retry=kinds,
                numbered=True,
            )
            screen = stack.enter_context(display(target.output, sink.counts, source))
            await _write_all(bulk, sink, screen, out)
    return _report(target.output, sink, out)


async def _write_all(
    bulk: Bulk, sink: OutcomeFile | OutcomeStream, screen: Display, out: str
) -> None:
    try:
        async with aclosing(bulk.batches()) as batches:
            async for outcomes in batches:
                sink.write(*outcomes)
                screen.advance()
    except asyncio.CancelledError:
        screen.end()
        if out != PIPE:
            done = counted(sum(sink.counts.values()), "row")
            screen.note(f"Interrupted after {done}. The same command with --resume goes on.")
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        rest = "" if out == PIPE else "; with room again, --resume goes on"
        raise ValidationError(f"{out}: {files.reason(error)}{rest}") from None


def _caller(client: Client, name: str, rows: Rows) -> Any:
    """Return the function that makes the call of a row."""

    def call(number: int, row: Mapping[str, Any]) -> Awaitable[ToolResult]:
        return client.call_tool(name, rows.arguments(number, row))

    def call_once(number: int, row: Mapping[str, Any]) -> Awaitable[ToolResult]:
        options: Any = {"once": rows.key(number, row)}
        return client.call_tool(name, rows.arguments(number, row), **options)

    return call_once if rows.has_keys else call


class Source:
    """The file of the rows, and how much of it has been read."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self.path = path
        self.size: int | None = None
        """Bytes; None: not known before the end."""
        self.is_csv = path.lower().endswith((".csv", ".tsv"))
        self._stream: BinaryIO
        if path == PIPE:
            return
        try:
            self._stream = stack.enter_context(open(path, "rb"))  # noqa: SIM115
            details = os.fstat(self._stream.fileno())
        except OSError as error:
            raise ValidationError(f"{path}: {files.reason(error)}") from None
        self.size = details.st_size or None

    @property
    def read(self) -> int:
        """Bytes that have been read."""
        return 0 if self.size is None else self._stream.tell()

    def rows(self, done: RowSet) -> Any:
        """Return the rows that are not done, with their numbers, as an iterator of either kind."""
        if self.path == PIPE:
            return piped_rows(getattr(sys.stdin, "buffer", None) or _as_bytes(sys.stdin))
        stream: Any = self._stream
        if self.is_csv:
            # A text wrapper closes what it reads from, and this knows how far it is.
            stream = io.BufferedReader(_Raw(self._stream))
        return (row for row in read_rows(stream, self.path) if row[0] not in done)


def _as_bytes(stream: Any) -> BinaryIO:
    return io.BytesIO(stream.read().encode("utf-8", "surrogatepass"))


async def piped_rows(stream: Any) -> AsyncIterator[tuple[int, Any]]:
    """Yield the rows of a pipe as they come, which may be slowly.

    A thread waits for them, and not the loop. It is a daemon: a pipe that says nothing more must
    not keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(AHEAD)

    def read() -> None:
        data = b"?"
        while data:
            room.acquire()
            data = stream.read1(CHUNK)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(chunks.put_nowait, data)

    threading.Thread(target=read, name="holdfast-rows", daemon=True).start()
    rows, rest = JsonRows(), b""
    while data := await chunks.get():
        room.release()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            for row in rows.parse(line):
                yield row
        if len(rest) > LONGEST_LINE:
            raise ValidationError(f"stdin: a line of more than {LONGEST_LINE >> 20} MiB")
    for row in rows.parse(rest):
        yield row


class _Raw(io.RawIOBase):
    """A stream that leaves the one below it open."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class Rows:
    """Makes arguments of rows."""

    def __init__(
        self, source: Source, tool: Tool, fields: tuple[str, ...], once: str | None
    ) -> None:
        properties = tool.input_schema.get("properties")
        self._schemas: dict[str, Any] = properties if isinstance(properties, dict) else {}
        self._is_text = source.is_csv
        self._selection = Selection(fields, once, self._convert)
        self.has_keys = once is not None

    def _convert(self, name: str, text: str) -> Any:
        return coerce(text, self._schemas.get(name, {}), name)

    def arguments(self, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a row."""
        try:
            return self._selection.arguments(row, texts=self._is_text)
        except ValidationError as error:
            raise ValidationError(f"row {number}: {error.message}") from None

    def key(self, number: int, row: Mapping[str, Any]) -> str | None:
        """Return the key of a row, for the ledger."""
        try:
            return self._selection.key(row)
        except ValidationError as error:
            raise ValidationError(f"row {number}: {error.message}") from None


def _check_places(rows: str, out: str, *, resume: bool) -> None:
    if out == PIPE:
        if resume:
            raise click.UsageError("--resume needs a file: give -o FILE.")
        return
    if rows != PIPE and os.path.exists(out) and os.path.samefile(rows, out):
        raise click.UsageError(f"{out} is the file of the rows: give another one to -o.")
    if not resume and os.path.exists(out):
        raise click.UsageError(f"{out} is there already: --resume goes on with it.")


def _sink(out: str, stack: ExitStack, *, resume: bool) -> OutcomeFile | OutcomeStream:
    if out == PIPE:
        return OutcomeStream(sys.stdout.buffer)
    sink = OutcomeFile(out, resume=resume)
    stack.callback(sink.close)
    return sink


def _report(output: Output, sink: OutcomeFile | OutcomeStream, out: str) -> int:
    """Tell how the rows ended; list those that nobody knows about."""
    counts = sink.counts
    rows = sum(counts.values())
    failed = rows - counts["ok"]
    if out != PIPE and output.json:
        output.value({"rows": rows, **counts, "unknown_rows": sink.unknown})
    parts = [f"{counts['ok']:,} ok", *(f"{counts[name]:,} {name}" for name in ("error", "unknown"))]
    if not output.json:
        output.note(f"{rows:,} rows: {', '.join(parts)}.")
    if sink.unknown and not output.json:
        numbers = ", ".join(map(str, sink.unknown[:LISTED]))
        more = f" and {counts['unknown'] - LISTED:,} others" if counts["unknown"] > LISTED else ""
        output.note(f"May have run, and are not repeated: rows {numbers}{more}.")
    return Exit.TOOL if failed else Exit.OK
