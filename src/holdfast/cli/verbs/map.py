"""``holdfast map``: one tool over the rows of a file."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import ExitStack, aclosing, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

import click

from holdfast._core import files
from holdfast._core.bulk.ahead import read_ahead
from holdfast._core.bulk.engine import Bulk, check_retry
from holdfast._core.bulk.outcomes import RETRYABLE
from holdfast._core.bulk.resume import OutcomeFile, OutcomeStream, RowSet
from holdfast._core.bulk.rows import KINDS, LONGEST_LINE, JsonRows, Selection, kind_of, read_rows
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

T = TypeVar("T")

PIPE: Final = "-"
CHUNK: Final = 64 * 1024
STDIN: Final = "stdin"
AHEAD: Final = 8
"""Chunks, or rows, of a pipe that are read ahead."""
LISTED: Final = 20
"""Rows with an unknown outcome that are listed."""


@click.command("map", cls=ServerVerb)
@click.argument("tool", shell_complete=tools)
@click.argument("words", nargs=-1, metavar="ROWS", type=click.Path())
@option("-o --out FILE", "Write the outcomes there; - is stdout, the default.", default=PIPE)
@option("-j --jobs N", "Calls at once.", type=click.IntRange(1, 10_000), default=32)
@option("--format KIND", f"Of the rows: {', '.join(KINDS)}; else by the file's name.", "kind")
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
    kind: str | None,
    fields: tuple[str, ...],
    once: str | None,
    retry: str,
    resume: bool,
    ordered: bool,
) -> int:
    """Call a tool for each row of a file, JSON lines or CSV.

    A row is the arguments of a call, unless --arg says otherwise; - reads rows from stdin. A
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
    if kind not in (None, *KINDS):
        raise click.UsageError(f"--format {kind}: must be of {', '.join(KINDS)}.")
    target.options.setdefault("when_down", "wait")
    with ExitStack() as stack:
        source = Source(rest[0], stack, kind)
        _check_places(source.path, out, resume=resume)
        async with target.client() as client:
            await client.open()  # calls wait for a server that is lost, but not for a wrong one
            described = target.pick(await target.list_tools(client) or (), name)
            rows = Rows(source, described, fields, once)
            sink = _sink(out, stack, resume=resume)
            status.end()
            bulk = Bulk(
                _caller(client, name, rows),
                source.rows(sink.rows),
                concurrency=jobs,
                ordered=ordered,
                retry=kinds,
                numbered=True,
            )
            showing = display(target.output, sink.counts, source, client, writes_stdout=out == PIPE)
            screen = stack.enter_context(showing)
            await _write_all(bulk, sink, source, screen, out)
    return _report(target.output, sink, out)


async def _write_all(
    bulk: Bulk, sink: OutcomeFile | OutcomeStream, source: Source, screen: Display, out: str
) -> None:
    try:
        async with aclosing(bulk.batches()) as batches:
            async for outcomes in batches:
                sink.write(*outcomes)
                for outcome in outcomes:
                    source.end(outcome.row)
                screen.advance()
    except asyncio.CancelledError:
        sink.write(*bulk.remaining())
        screen.end()
        if out != PIPE:
            done = counted(sum(sink.counts.values()), "row")
            screen.note(f"Interrupted after {done}. The same command with --resume goes on.")
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        place, rest = out, "; with room again, --resume goes on"
        if out == PIPE:
            place, rest = "stdout", ""
        raise ValidationError(f"{place}: {files.reason(error)}{rest}") from None


def _caller(client: Client, name: str, rows: Rows) -> Any:
    """Return the function that makes the call of a row."""

    def call(number: int, row: Mapping[str, Any]) -> Awaitable[ToolResult]:
        return client.call_tool(name, rows.arguments(number, row))

    def call_once(number: int, row: Mapping[str, Any]) -> Awaitable[ToolResult]:
        options: Any = {"once": rows.key(number, row)}
        return client.call_tool(name, rows.arguments(number, row), **options)

    return call_once if rows.has_keys else call


class Source:
    """The file of the rows, and how much of it is done: the bytes of the rows that have ended."""

    def __init__(self, path: str, stack: ExitStack, kind: str | None = None) -> None:
        self.path = path
        self.kind: str = kind or kind_of(path)
        self.size: int | None = None
        """Bytes; None: not known before the end."""
        self.read = 0
        """Bytes of rows that have ended, in this run or one before it."""
        self.is_csv: bool = self.kind != "jsonl"
        self._stream: BinaryIO
        self._lines = 0
        """Bytes of the lines since the last row."""
        self._under_way: dict[int, int] = {}
        """The rows that have not ended, and their bytes."""
        if path == PIPE:
            return
        try:
            self._stream = stack.enter_context(open(path, "rb"))  # noqa: SIM115
            details = os.fstat(self._stream.fileno())
        except OSError as error:
            raise ValidationError(f"{path}: {files.reason(error)}") from None
        self.size = details.st_size or None

    def end(self, number: int) -> None:
        """Note that a row has ended."""
        self.read += self._under_way.pop(number, 0)

    def rows(self, done: RowSet) -> Any:
        """Return the rows that are not done, with their numbers, as an iterator of either kind."""
        if self.path == PIPE:
            return piped_rows(_stdin(), self.kind, done)
        stream: Any = self._stream
        if self.is_csv:
            # A text wrapper closes what it reads from.
            stream = io.BufferedReader(_Raw(self._stream))
        return self._counted(read_rows(stream, self.path, self.kind, self._note_line), done)

    def _note_line(self, size: int) -> None:
        self._lines += size

    def _counted(self, rows: Iterator[tuple[int, Any]], done: RowSet) -> Iterator[tuple[int, Any]]:
        for row in rows:
            size, self._lines = self._lines, 0
            if row[0] in done:
                self.read += size
            else:
                self._under_way[row[0]] = size
                yield row
        # A mark at the beginning of the file, and empty lines at its end, belong to no row.
        self.read += max(0, (self.size or 0) - self.read - sum(self._under_way.values()))


def _stdin() -> BinaryIO:
    """Return stdin for a thread to read.

    Not ``sys.stdin.buffer``: a thread that waits in it has its lock, and Python wants that lock to
    close it at the end, and aborts.
    """
    if sys.stdin is None:
        raise ValidationError(f"{STDIN}: is closed")
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # a program has put its own stream there
        buffer: BinaryIO | None = getattr(sys.stdin, "buffer", None)
        return buffer or io.BytesIO(sys.stdin.read().encode("utf-8", "surrogatepass"))
    return open(descriptor, "rb", closefd=False)


async def piped_rows(stream: Any, kind: str, done: RowSet) -> AsyncIterator[tuple[int, Any]]:
    """Yield the rows of a pipe that are not done, as they come, which may be slowly."""
    if sys.platform != "win32":
        with suppress(OSError, ValueError):
            os.set_blocking(stream.fileno(), True)  # else a pause looks like the end
    rows = (
        _json_lines(stream)
        if kind == "jsonl"
        else read_ahead(read_rows(stream, STDIN, kind), AHEAD)
    )
    async for row in rows:
        if row[0] not in done:
            yield row


async def _json_lines(stream: Any) -> AsyncIterator[tuple[int, Any]]:
    """Yield rows, many at a time where the pipe is full."""
    rows, line = JsonRows(), _Line()
    async for data in read_ahead(_of_pipe(iter(lambda: stream.read1(CHUNK), b"")), AHEAD):
        *ends, rest = data.split(b"\n")
        for end in ends:
            line.add(end)
            for row in rows.parse(line.take()):
                yield row
        line.add(rest)
    for row in rows.parse(line.take()):
        yield row


class _Line:
    """A line that comes in pieces; nothing is kept of one that is too long."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > LONGEST_LINE:
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def take(self) -> bytes | None:
        """Return the line, and begin the next; None: it was too long."""
        line = None if self._size > LONGEST_LINE else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line


def _of_pipe(items: Iterator[T]) -> Iterator[T]:
    """Yield items; say whose fault it is if the pipe cannot be read."""
    try:
        yield from items
    except OSError as error:
        raise ValidationError(f"{STDIN}: {files.reason(error)}") from None


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
    if not resume and os.path.isfile(out) and os.path.getsize(out):
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
        output.note(f"{rows:,} row{'s' * (rows != 1)}: {', '.join(parts)}.")
    if sink.unknown and not output.json:
        numbers = ", ".join(map(str, sink.unknown[:LISTED]))
        more = f" and {counts['unknown'] - LISTED:,} others" if counts["unknown"] > LISTED else ""
        output.note(f"May have run, and are not repeated: rows {numbers}{more}.")
    return Exit.TOOL if failed else Exit.OK
