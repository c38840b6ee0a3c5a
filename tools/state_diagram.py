"""Draw the state machine: docs/reference/states.svg and the table in states.md, from the code.

``python tools/state_diagram.py`` writes both; with ``--check`` it only says whether they are fresh.
What may follow what comes from `holdfast._core.engine.state`; only where things stand is said here.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from holdfast._core.engine.state import TABLE, State, Step, table

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
PICTURE = REFERENCE / "states.svg"
PAGE = REFERENCE / "states.md"

Steps: TypeAlias = dict[State, dict[Step, State]]

WIDTH, HEIGHT = 604, 660


class Box(NamedTuple):
    """A state: the middle of its box, and half of its size."""

    x: float
    y: float
    w: float = 66
    h: float = 22


BOXES: Final = {
    State.NEW: Box(320, 110),
    State.STARTING: Box(320, 220),
    State.INITIALIZING: Box(320, 340),
    State.READY: Box(320, 460),
    State.CLOSING: Box(320, 580),
    State.BACKOFF: Box(526, 340, 56, 164),
    State.CLOSED: Box(78, 345, 56, 257),
}
"""From above to below what goes well; on the right a server that was lost, on the left the end."""

AROUND: Final = 40
"""How high the way from the right to the left runs, over everything else."""


@dataclass(frozen=True)
class Arrow:
    """All steps that lead from one state to another, drawn as one."""

    start: State
    end: State
    steps: tuple[Step, ...]

    @property
    def label(self) -> str:
        return ", ".join(self.steps)


def arrows(steps: Steps) -> list[Arrow]:
    """Every step of the table, each once; there and back are two arrows."""
    found: dict[tuple[State, State], list[Step]] = defaultdict(list)
    for start, row in steps.items():
        for step, end in row.items():
            found[start, end].append(step)
    return [Arrow(start, end, tuple(taken)) for (start, end), taken in found.items()]


def draw(steps: Steps) -> str:
    """The picture. A state that has no place yet is a KeyError: give it one."""
    back = {(arrow.end, arrow.start) for arrow in arrows(steps)}
    parts = [_arrow(arrow, (arrow.start, arrow.end) in back) for arrow in arrows(steps)]
    parts += [_box(state, BOXES[state]) for state in steps]
    return HEAD + "\n".join(parts) + "\n</svg>\n"


def _box(state: State, box: Box) -> str:
    left, top = box.x - box.w, box.y - box.h
    kind = ' class="good"' if state is State.READY else ""
    size = f'width="{2 * box.w:g}" height="{2 * box.h:g}"'
    return (
        f'<rect{kind} x="{left:g}" y="{top:g}" {size} rx="8"/>'
        f'<text class="state" x="{box.x:g}" y="{box.y + 5:g}">{state}</text>'
    )


def _arrow(arrow: Arrow, both_ways: bool) -> str:
    start, end = BOXES[arrow.start], BOXES[arrow.end]
    if arrow.start is arrow.end:
        return _loop(arrow, start)
    if (arrow.start, arrow.end) == (State.BACKOFF, State.CLOSED):
        return _around(arrow, start, end)
    if start.x == end.x:
        return _down(arrow, start, end) if start.y < end.y else _up(arrow, start, end)
    return _across(arrow, start, end, both_ways)


def _down(arrow: Arrow, start: Box, end: Box) -> str:
    label = _label(arrow, start.x + 8, (start.y + end.y) / 2 + 4, "start")
    return _path(f"M{start.x:g} {start.y + start.h:g}V{end.y - end.h - GAP:g}") + label


def _up(arrow: Arrow, start: Box, end: Box) -> str:
    """Left of the way down."""
    x = start.x - start.w / 2
    label = _label(arrow, x - 8, (start.y + end.y) / 2 + 4, "end")
    return _path(f"M{x:g} {start.y - start.h:g}V{end.y + end.h + GAP:g}") + label


def _across(arrow: Arrow, start: Box, end: Box, both_ways: bool) -> str:
    """At the height of the smaller of the two; a little apart where there is a way back."""
    small = start if start.h < end.h else end
    y = small.y + ((-9 if small is start else 9) if both_ways else 0)
    side = 1 if end.x > start.x else -1
    begin, stop = start.x + side * start.w, end.x - side * (end.w + GAP)
    below = both_ways and small is not start
    label = _label(arrow, (begin + stop) / 2, y + (16 if below else -6), "middle")
    return _path(f"M{begin:g} {y:g}H{stop:g}") + label


def _around(arrow: Arrow, start: Box, end: Box) -> str:
    up = f"M{start.x:g} {start.y - start.h:g}V{AROUND + 12}q0 -12 -12 -12"
    down = f"H{end.x + 12:g}q-12 0 -12 12V{end.y - end.h - GAP:g}"
    return _path(up + down) + _label(arrow, (start.x + end.x) / 2, AROUND - 7, "middle")


def _loop(arrow: Arrow, box: Box) -> str:
    """Out at the bottom and in again."""
    y = box.y + box.h
    way = f"M{box.x - 14:g} {y:g}v10q0 8 8 8h12q8 0 8 -8v{GAP - 10:g}"
    return _path(way) + _label(arrow, box.x + 24, y + 18, "start")


def _path(way: str) -> str:
    return f'<path d="{way}"/>'


def _label(arrow: Arrow, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{arrow.label}</text>'


GAP: Final = 3
"""Between the point of an arrow and the box."""

HEAD: Final = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>The states of a client, and the steps between them</title>
<!-- Drawn by tools/state_diagram.py from the code: change that, and run it again. -->
<style>
svg {{ --ink: #263238; --paper: #ffffff; --line: #607d8b; --good: #b2dfdb; --box: #eceff1; }}
@media (prefers-color-scheme: dark) {{
  svg {{ --ink: #eceff1; --paper: #1e2129; --line: #90a4ae; --good: #00695c; --box: #37474f; }}
}}
text {{ font: 14px system-ui, sans-serif; fill: var(--ink); }}
.state {{ font-weight: 600; text-anchor: middle; }}
rect {{ fill: var(--box); stroke: var(--line); }}
.good {{ fill: var(--good); }}
.paper {{ fill: var(--paper); stroke: none; }}
path {{ fill: none; stroke: var(--line); stroke-width: 1.5; marker-end: url(#point); }}
marker path {{ fill: var(--line); stroke: none; marker-end: none; }}
</style>
<marker id="point" viewBox="0 0 8 8" refX="5" refY="4"
 markerWidth="6" markerHeight="6" orient="auto">
<path d="M0 0L8 4L0 8Z"/>
</marker>
<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>
"""

FIRST_TABLE = re.compile(r"(?:^\|.*\n)+", re.M)


def page(text: str) -> str:
    """The page with the table as it is now: the first table on it."""
    return FIRST_TABLE.sub(lambda _: table() + "\n", text, count=1)


def main(words: list[str]) -> int:
    wanted = {PICTURE: draw(TABLE), PAGE: page(PAGE.read_text(encoding="utf-8"))}
    stale = [
        path
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in words:
        for path in stale:
            print(f"{path.name} is not what the code says: run python tools/state_diagram.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
