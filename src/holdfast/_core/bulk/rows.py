"""Lines of JSON and CSV as rows, and the arguments of a call from a row."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, BinaryIO, Final

import msgspec

from holdfast._core import files
from holdfast._core.text import counted, visible
from holdfast.errors import ValidationError

KINDS: Final = ("jsonl", "csv", "tsv")
"""What rows can be written as."""
LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes of one line: a file that is no text must not fill the memory."""
_PIECE: Final = 1024 * 1024
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Parsed = dict[str, Any] | ValidationError
"""A row, or why it is none."""


# Reading


def kind_of(name: str) -> str:
    """Return what the rows of a file are, by its name: one of `KINDS`."""
    suffix = os.path.splitext(name)[1].lower().removeprefix(".")
    return suffix if suffix in KINDS else "jsonl"


def read_rows(
    stream: BinaryIO, name: str, kind: str, on_read: Callable[[int], None] = lambda size: None
) -> Iterator[tuple[int, Parsed]]:
    """Yield the rows of a file with their numbers.

    Args:
        stream: The file.
        name: Its name.
        kind: What it has: one of `KINDS`.
        on_read: Called with the bytes of each line, before the row that it ends.

    Raises:
        ValidationError: The first line of a CSV file is no header, the file cannot be read, or
            is no text.
    """
    rows = _json_rows(stream, on_read)
    if kind != "jsonl":
        rows = _csv_rows(stream, name, "\t" if kind == "tsv" else ",;\t", on_read)
    try:
        yield from rows
    except OSError as error:
        raise ValidationError(f"{name}: {files.reason(error)}") from None


def _json_rows(stream: BinaryIO, on_read: Callable[[int], None]) -> Iterator[tuple[int, Parsed]]:
    rows = JsonRows()
    for line in _lines(stream, on_read):
        yield from rows.parse(line)


class JsonRows:
    """Numbers the rows of lines, as they come."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder().decode
        self._number = self._place = 0

    def parse(self, line: bytes | None) -> Iterator[tuple[int, Parsed]]:
        """Yield the row of a line with its number; nothing for an empty one, None: too long."""
        self._place += 1
        if line is not None and not line.strip():
            return
        number = self._number
        self._number += 1
        if line is None:
            yield number, _fault(number, self._place, f"over {LONGEST_LINE >> 20} MiB long")
        else:
            yield number, _json_row(line, number, self._place, self._decode)


def _json_row(line: bytes, number: int, place: int, decode: Callable[[bytes], Any]) -> Parsed:
    try:
        value = decode(line.removeprefix(b"\xef\xbb\xbf") if place == 1 else line)
    except _UNREADABLE as error:
        return _fault(number, place, f"not JSON: {error}")
    if isinstance(value, dict):
        return value
    return _fault(number, place, f"must be an object, not {_NAMES.get(type(value), 'null')}")


_NAMES: Final = {
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
}


def _lines(stream: BinaryIO, on_read: Callable[[int], None]) -> Iterator[bytes | None]:
    """Yield lines; None for one that is too long."""
    while line := stream.readline(LONGEST_LINE + 1):
        on_read(len(line))
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(_PIECE)
            on_read(len(line))
        yield None


def _csv_rows(
    stream: BinaryIO, name: str, delimiters: str, on_read: Callable[[int], None]
) -> Iterator[tuple[int, Parsed]]:
    lines = _TextLines(stream, name, on_read)
    csv.field_size_limit(LONGEST_LINE)
    text = iter(lines)
    first = next(text, "")
    # Spreadsheets write semicolons where the comma is in the numbers.
    delimiter = next((sign for sign in delimiters if sign in first), delimiters[0])
    reader = csv.reader(chain((first,), text), delimiter=delimiter, strict=True)
    header = _header(reader, lines, name)
    number, place = 0, reader.line_num + 1
    while (cells := _cells(reader)) is not None:
        if cells != []:
            fault = _fault_of(cells, lines, len(header))
            row = _fault(number, place, fault) if fault else dict(zip(header, cells, strict=True))
            yield number, row
            number += 1
        place = reader.line_num + 1


def _fault_of(cells: list[str] | str, lines: _TextLines, columns: int) -> str:
    """Return why cells are no row; "" if they are one."""
    if isinstance(cells, str):
        return f"not CSV: {cells}"
    if lines.take_fault():
        return "not UTF-8"
    return "" if len(cells) == columns else f"{counted(len(cells), 'cell')}, not {columns}"


def _cells(reader: Iterator[list[str]]) -> list[str] | str | None:
    """Return the cells of the next row, or why it has none; None at the end."""
    try:
        return next(reader, None)
    except csv.Error as error:
        return _UNCLOSED if str(error) == "unexpected end of data" else str(error)


_UNCLOSED: Final = "a quote has no end, so all that follows is one cell"


class _TextLines:
    """The lines of a file of text, which notes if one was not UTF-8."""

    def __init__(self, stream: BinaryIO, name: str, on_read: Callable[[int], None]) -> None:
        self._text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        self._name, self._on_read = name, on_read
        self._is_faulty = False

    def take_fault(self) -> bool:
        """Return True if a line since the last time was not UTF-8."""
        is_faulty, self._is_faulty = self._is_faulty, False
        return is_faulty

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise ValidationError(f"{self._name}: a line of more than {LONGEST_LINE >> 20} MiB")
            size = len(line)
            if not line.isascii():
                size = len(line.encode("utf-8", "surrogateescape"))
                self._is_faulty |= _SURROGATE.search(line) is not None
            self._on_read(size)
            yield line


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What stands for a byte that is not UTF-8."""


def _header(reader: Iterator[list[str]], lines: _TextLines, name: str) -> list[str]:
    header = _cells(reader) or []
    if isinstance(header, str):
        raise ValidationError(f"{name}: the first line is not CSV: {header}")
    if lines.take_fault() or any("\0" in column for column in header):
        raise ValidationError(f"{name}: the first line is not UTF-8")
    repeated = [column for column, count in Counter(header).items() if count > 1]
    if not any(header):
        fault = "must name the columns"
    elif "" in header:
        fault = f"has an empty name of a column: {visible(','.join(header), 80)!r}"
    elif repeated:
        fault = f"names {visible(repeated[0], 80)!r} twice"
    else:
        return header
    raise ValidationError(f"{name}: the first line {fault}")


def _fault(number: int, line: int, reason: str) -> ValidationError:
    return ValidationError(f"row {number} (line {line}): {reason}")


# From a row to arguments


class Selection:
    """The arguments that are made of a row.

    Args:
        texts: ``name=.field`` takes a field of the row, ``name=.`` all of it, ``name=text`` a text
            for all rows; none: the row is the arguments.
        once: ``.field``: the key of the call, for the ledger.
        convert: Makes a value of the tool's type of a text, by the parameter's name.

    Raises:
        ValidationError: A text has no name.
    """

    def __init__(
        self,
        texts: tuple[str, ...] = (),
        once: str | None = None,
        convert: Callable[[str, str], Any] | None = None,
    ) -> None:
        self._convert = convert or (lambda name, text: text)
        self._fields: dict[str, _Path] = {}
        self._fixed: dict[str, Any] = {}
        self._is_whole = not texts
        for name, value in _named(texts).items():
            if value.startswith("."):
                self._fields[name] = _Path(value)
            else:
                self._fixed[name] = self._convert(name, value)
        self._once = None if once is None else _Path(once)
        if self._once is not None and not (self._once.steps and self._once.text.startswith(".")):
            raise ValidationError(f"--once {once!r}: must be .FIELD, a field of the row")

    def arguments(self, row: Mapping[str, Any], *, texts: bool = False) -> dict[str, Any]:
        """Return the arguments; ``texts``: the row has only texts, of CSV, and empty ones count
        as left out.

        Raises:
            ValidationError: There is no such field, or a text is none of the tool's type.
        """
        if self._is_whole:
            values = dict(row)
        else:
            values = {name: path.value(row) for name, path in self._fields.items()}
        if texts:
            values = {
                name: self._convert(name, value) if isinstance(value, str) else value
                for name, value in values.items()
                if value != ""
            }
        return {**values, **self._fixed} if self._fixed else values

    def key(self, row: Mapping[str, Any]) -> str | None:
        """Return the key of the call, for the ledger; None if rows have none."""
        if self._once is None:
            return None
        value = self._once.value(row)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)
        shown = self._once.shown
        raise ValidationError(f"the field {shown!r} is no key: it must be a text or a number")


def _named(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the values of ``NAME=VALUE`` by name."""
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ValidationError(f"--arg {text!r}: must be NAME=.FIELD or NAME=VALUE")
        if name in values:
            raise ValidationError(f"--arg {text!r}: {name} is given twice")
        values[name] = value
    return values


class _Path:
    """The way to a field: ``.a.b``, ``.list.0`` or ``.list[0]``; ``.`` is the whole row."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = tuple(filter(None, _STEPS.split(text[1:])))

    @property
    def shown(self) -> str:
        return visible(self.text[1:], 80)

    def value(self, row: Mapping[str, Any]) -> Any:
        if (name := self.text[1:]) in row:  # tables of nested values have columns with such names
            return row[name]
        value: Any = row
        for step in self.steps:
            if isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, Mapping) and step in value:
                value = value[step]
            else:
                raise ValidationError(f"there is no field {self.shown!r}")
        return value


_STEPS: Final = re.compile(r"\.|\[([0-9]+)\]")
_INDEX: Final = re.compile("[0-9]{1,9}")
