"""Tables: drawn with rich where a person looks, tab-separated lines where a program reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.cli.output import Output, harmless


def table(output: Output, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One row a thing. The last column may be long: it wraps on a terminal."""
    if output.is_terminal:
        _drawn(columns, rows)
        return
    for row in rows:
        output.text("\t".join(first_line(cell) for cell in row))


def first_line(text: str | None) -> str:
    """What fits in a table: one line, without tabs."""
    lines = (text or "").strip().splitlines()
    return " ".join(lines[0].split()) if lines else ""


def _drawn(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    *others, last = columns
    for column in others:
        drawn.add_column(column, overflow="fold", style="bold" if column == columns[0] else "")
    drawn.add_column(last, overflow="fold", ratio=1)
    for row in rows:
        drawn.add_row(*(Text(harmless(first_line(cell))) for cell in row))
    Console(highlight=False).print(drawn)
