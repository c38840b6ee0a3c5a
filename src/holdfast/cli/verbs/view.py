"""A page from a trace, or the trace in a form that other viewers open: view."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast._core.files import reason, write_atomic
from holdfast.cli.app import option, output_option
from holdfast.cli.output import Exit, Output
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast.trace.format import Reading

FORMS = ("har", "otlp", "chrome")


@click.command()
@click.argument("file", metavar="TRACE")
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
@output_option
def view(file: str, out: str | None, is_opened: bool, form: str | None, output: Output) -> int:
    """Make a page from a trace: one file that opens from disk, and needs no server.

    \b
    holdfast call git.git_log repo_path=. --trace-file run.jsonl
    holdfast view run.jsonl --open
    holdfast view run.jsonl --to chrome -o run.json
    """
    from holdfast.trace.format import Reading, rotated

    path = Path(file)
    reading = Reading(path.name)
    target = Path(out) if out is not None else path.with_suffix(f".{form or 'html'}")
    if is_opened and form is not None:
        raise click.UsageError("--open shows the page; --to writes another form.")
    lines = _rows(rotated(path), file)
    text = _page(reading, lines) if form is None else _export(reading, lines, form)
    _write(target, text, path)
    _report(output, target, reading)
    if is_opened:
        click.launch(target.resolve().as_uri())
    return Exit.OK


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
                yield from file
        except OSError as error:
            raise ValidationError(f"{path}: {reason(error)}") from None

    if shown == "-":
        return iter(sys.stdin.buffer)
    return itertools.chain.from_iterable(map(read, paths))


def _write(target: Path, text: str, trace: Path) -> None:
    if target.exists() and trace.exists() and target.samefile(trace):
        raise ValidationError(f"{target}: this is the trace itself; give another file with -o")
    try:
        write_atomic(target, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ValidationError(f"{target}: {reason(error)}") from None


def _report(output: Output, target: Path, reading: Reading) -> None:
    """Say where it is, and what the trace does not have."""
    facts: dict[str, Any] = {"file": os.fspath(target), "cut": reading.is_cut}
    facts["unreadable"] = reading.skipped
    output.result(facts, os.fspath(target))
    if reading.is_cut:
        output.note("The end of the trace is missing: its last line is not whole.")
    if reading.unreadable:
        number, why = reading.unreadable[0]
        output.note(
            f"Lines that cannot be read: {reading.skipped}, the first in line {number}: {why}"
        )
