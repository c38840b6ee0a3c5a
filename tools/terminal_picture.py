"""Draw ``docs/assets/terminal.svg``: a real session at a terminal, as an emulator shows it.

``python -m tools.terminal_picture`` runs the session and writes the picture. A test runs it again
and compares all but the times. The home folder is shown as ``~``.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape, unescape
from itertools import groupby
from pathlib import Path
from typing import Final

import pyte

from tests.cli.terminal import Terminal

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "assets" / "terminal.svg"
SESSION: Final = (
    "holdfast add demo --yes -- python -m holdfast.demo.server",
    "holdfast status",
    "holdfast search number",
    "holdfast call demo.add a=2 b=40",
    "holdfast call demo.ad a=2 b=40",
    "holdfast call demo.crash",
)
COLUMNS: Final = 104
LINES: Final = 40
CELL: Final = 8.4
LINE: Final = 20
LEFT: Final = 16
TOP: Final = 28
COLOURS: Final = {"red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff"}
TEXT, DIM, BACK = "#e6edf3", "#8b949e", "#161b22"
TIMES: Final = re.compile(r"\b[\d.]+ m?s\b")


@dataclass(frozen=True)
class Run:
    """Characters of one line that look alike."""

    column: int
    text: str
    colour: str
    bold: bool


def main() -> None:
    PICTURE.write_text(svg(session()), encoding="utf-8")
    print(f"wrote {PICTURE}")


def session() -> list[list[Run]]:
    """Run the commands, and return the lines of the screen at the end."""
    with tempfile.TemporaryDirectory(prefix="picture-") as home:
        terminal = Terminal(shell(home), columns=COLUMNS, lines=LINES)
        try:
            assert terminal.end() != 127, terminal.text
            written = terminal.screen.raw.replace(home.encode(), b"~")
        finally:
            terminal.close()
    screen = pyte.Screen(COLUMNS, LINES)
    # pyte knows no faint text: colour 8 stands for it.
    pyte.ByteStream(screen).feed(written.replace(b"\x1b[2m", b"\x1b[90m"))
    lines = [list(runs(screen.buffer[row])) for row in range(screen.cursor.y)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def shell(home: str) -> list[str]:
    """Return the command of a shell that shows each command and runs it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    steps = "\n".join(
        f"printf '\\033[32m$\\033[0m %s\\n' {shlex.quote(command)}; {command}; echo"
        for command in SESSION
    )
    settings = [f"HOME={home}", f"PATH={path}", "TERM=xterm-256color", "LANG=C.UTF-8"]
    return ["/usr/bin/env", "-i", "-C", home, *settings, "/bin/bash", "-c", steps]


def runs(cells: dict[int, pyte.screens.Char]) -> Iterator[Run]:
    row = [(column, cells[column]) for column in range(COLUMNS)]
    for (colour, bold), group in groupby(row, lambda cell: (cell[1].fg, cell[1].bold)):
        part = list(group)
        text = "".join(cell.data for _, cell in part)
        if text.strip():
            indent = len(text) - len(text.lstrip())
            yield Run(part[0][0] + indent, text.strip(), colour, bold)


def svg(lines: list[list[Run]]) -> str:
    width, height = COLUMNS * CELL + 2 * LEFT, len(lines) * LINE + TOP + 4
    drawn = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' role='img'>",
        "<title>A terminal session with holdfast</title>",
        f"<rect width='100%' height='100%' rx='8' fill='{BACK}'/>",
        "<g font-family='ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, "
        "monospace' font-size='14' xml:space='preserve'>",
    ]
    for number, line in enumerate(lines):
        drawn += [shown(run, TOP + number * LINE) for run in line]
    return "\n".join([*drawn, "</g>", "</svg>"]) + "\n"


def shown(run: Run, y: int) -> str:
    colour = {"default": TEXT, "brightblack": DIM}.get(run.colour) or COLOURS.get(run.colour, DIM)
    weight = " font-weight='bold'" if run.bold else ""
    return (
        f"<text x='{LEFT + run.column * CELL:g}' y='{y}' fill='{colour}'{weight} "
        f"textLength='{len(run.text) * CELL:g}'>{escape(run.text, quote=False)}</text>"
    )


def said(picture: str) -> list[str]:
    """Return what a picture says, with its colours and without its times."""
    found = re.findall(r"<text .*?fill='(.*?)'.*?>(.*?)</text>", picture)
    return [f"{colour} {TIMES.sub('…', unescape(text))}" for colour, text in found]


if __name__ == "__main__":
    main()
