"""Tables: drawn with rich where a person looks, tab-separated lines where a program reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast._core.text import visible_lines
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import Output, has_colour, wrap_words, write
from holdfast.cli.progress import cells, status

if TYPE_CHECKING:
    from rich.console import Console

_READABLE = 14
"""Columns of the window that each part of a table should have, before names are folded."""


def table(
    output: Output, columns: Sequence[str], rows: Iterable[Sequence[str]], *, paths: bool = False
) -> None:
    """One row a thing. The last column may be long, or has paths: it wraps on a terminal."""
    rows = list(rows)
    if output.is_terminal and not rows:
        output.text(f"No {columns[0]}s.")
    elif output.is_terminal:
        _drawn(columns, rows, paths)
    else:
        for row in rows:
            output.text("\t".join(first_line(cell) for cell in row))


def first_line(text: str | None) -> str:
    """Return the first line of a text, without tabs, for a table."""
    lines = (text or "").strip().splitlines()
    return " ".join(lines[0].split()) if lines else ""


def _drawn(columns: Sequence[str], rows: Iterable[Sequence[str]], paths: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    with screen() as console:
        texts = [[Text(visible_lines(first_line(cell))) for cell in row] for row in rows]
        first, *others, last = columns
        lengths = [len(first), *(row[0].cell_len for row in texts)]
        width = _names_width(lengths, len(columns), console.width)
        drawn.add_column(first, overflow="fold", style="bold", width=width)
        for column in others:
            drawn.add_column(column, overflow="fold")
        # Paths have no words to wrap at.
        lengths = [row[-1].cell_len for row in texts]
        width = _names_width(lengths, len(columns), console.width) if paths else None
        drawn.add_column(last, overflow="fold", width=width)
        for row in texts:
            drawn.add_row(*row)
        console.print(drawn)


def _names_width(names: Sequence[int], columns: int, window: int) -> int | None:
    """Room for whole names, so that they can be copied; None where too few would profit."""
    room = min(window * 2 // 3, window - _READABLE * (columns - 1))
    whole = max((name for name in names if name <= room), default=0)
    return whole if whole and (whole == max(names) or whole * 2 >= room) else None


@contextmanager
def screen() -> Iterator[Console]:
    """Give the terminal to draw on, without the status line."""
    from rich.console import Console

    with status.aside():
        yield Console(highlight=False)


def prose(output: Output, text: str) -> None:
    """Show text that is ours: at a terminal its lines wrap whole words, with hanging indents.

    A tab is two spaces, and the place below which a line goes on. A command stays on one line, so
    that it can be copied.
    """
    if not output.is_terminal:
        output.text(text.replace("\t", "  "))
        return
    columns = columns_of_terminal()
    lines = []
    for line in text.splitlines():
        head, tab, rest = line.partition("\t")
        hang = cells(head) + 2 if tab else len(line) - len(line.lstrip())
        indent = " " * min(hang, columns // 2)
        line = f"{head}  {rest}" if tab else line
        if not line.startswith("holdfast "):
            line = wrap_words(line, columns, rest=indent)
        lines.append(line)
    output.text("\n".join(lines))


# Blocks: a line that is bold up to its bracket, and words below it

_INDENT = 4
_REST = " " * _INDENT


def heading(text: str) -> None:
    """Draw a title on the terminal."""
    write(f"{styled(visible_lines(first_line(text)), '1;4')}\n".encode())


def blocks(rows: Sequence[tuple[str, str]], empty: str) -> None:
    """Draw rows on the terminal, each below the other, with hanging indents."""
    columns = max(columns_of_terminal(), _INDENT + 10)
    lines = [] if rows else [empty]
    for first, words in rows:
        title = wrap_words(_tied(visible_lines(first_line(first)), columns), columns, rest=_REST)
        name, bracket, rest = title.replace("\x01", " ").partition("(")
        lines.append(f"{styled(name, '1')}{bracket}{rest}")
        if words.strip():
            text = wrap_words(visible_lines(first_line(words)), columns, _REST, _REST)
            lines.append("\n".join(styled(line, "2") for line in text.splitlines()))
    write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))


def styled(text: str, style: str) -> str:
    """Return text for stdout, in colour where that is wanted."""
    return f"\x1b[{style}m{text}\x1b[0m" if has_colour(sys.stdout) else text


def _tied(signature: str, columns: int) -> str:
    """Return a signature that is broken between parameters; within one that fills a line."""
    parts = signature.split(", ")
    room = columns - _INDENT - 1
    return ", ".join(one.replace(" ", "\x01") if len(one) < room else one for one in parts)
