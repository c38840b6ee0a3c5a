"""The ratios as a picture: a dot for each client in each row, with its spread, on a log scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Final

from benchmarks.peers.clients import CLIENTS, OURS, Client
from benchmarks.peers.results import Ratio, Results

LABELS: Final = 270
WIDTH: Final = 900
RIGHT: Final = 30
TOP: Final = 74
LANE: Final = 9
GAP: Final = 12
TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
STYLE: Final = """\
<style>
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-weight: bold }
.back { fill: #fff }
.grid { stroke: #ddd }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd }
  .back { fill: #1e2129 }
  .grid { stroke: #444 }
}
</style>"""


class Scale:
    """From a ratio to a place between the labels and the right edge."""

    def __init__(self, low: float, high: float) -> None:
        self.ticks = [tick for tick in TICKS if tick_before(low) <= tick <= tick_after(high)]
        self.first, self.last = math.log(self.ticks[0]), math.log(self.ticks[-1])

    def at(self, ratio: float) -> float:
        share = (math.log(max(ratio, 1e-9)) - self.first) / (self.last - self.first)
        return LABELS + min(max(share, 0.0), 1.0) * (WIDTH - RIGHT - LABELS)


def tick_before(value: float) -> float:
    return max((tick for tick in TICKS if tick <= min(value, 0.5)), default=TICKS[0])


def tick_after(value: float) -> float:
    return min((tick for tick in TICKS if tick >= max(value, 2)), default=TICKS[-1])


def svg(results: Results) -> str:
    others = [one for one in CLIENTS if one is not OURS and one.name in results.versions]
    ratios = {
        (row.key, client.name): ratio
        for row in results.rows
        for client in others
        if (ratio := row.ratio(client.name)) is not None
    }
    scale = Scale(
        min((one.low for one in ratios.values()), default=1),
        max((one.high for one in ratios.values()), default=1),
    )
    band = LANE * max(len(others), 1) + GAP
    height = TOP + band * len(results.rows) + 30
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img'>",
        "<title>Time or memory of each client, as a multiple of Holdfast's</title>",
        STYLE,
        f"<rect class='back' width='{WIDTH}' height='{height}' rx='6'/>",
        "<text class='title' x='12' y='22'>Times what Holdfast takes "
        "(log scale, less is better; dot: median, line: lowest to highest round)</text>",
        *legend(others),
        *grid(scale, height),
    ]
    for number, row in enumerate(results.rows):
        top = TOP + number * band
        lines.append(
            f"<text x='{LABELS - 12}' y='{top + band / 2 + 4:.1f}' text-anchor='end'>"
            f"{escape(row.title)}</text>"
        )
        for lane, client in enumerate(others):
            if (ratio := ratios.get((row.key, client.name))) is not None:
                y = top + GAP / 2 + LANE * (lane + 0.5)
                lines += mark(scale, client, row.title, ratio, y)
    return "\n".join([*lines, "</svg>"]) + "\n"


def legend(clients: list[Client]) -> Iterator[str]:
    x = 12.0
    for client in clients:
        yield f"<circle cx='{x + 5}' cy='40' r='4.5' fill='{client.colour}'/>"
        yield f"<text x='{x + 14}' y='44'>{escape(client.title)}</text>"
        x += 32 + 7 * len(client.title)
    yield f"<line x1='{x}' x2='{x + 16}' y1='40' y2='40' stroke='{OURS.colour}' stroke-width='3'/>"
    yield f"<text x='{x + 22}' y='44'>Holdfast</text>"


def grid(scale: Scale, height: float) -> Iterator[str]:
    for tick in scale.ticks:
        x, ours = scale.at(tick), tick == 1
        look = f"stroke='{OURS.colour}' stroke-width='3'" if ours else "class='grid'"
        yield f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{TOP - 6}' y2='{height - 26}' {look}/>"
        for y in (TOP - 12, height - 10):
            yield f"<text x='{x:.1f}' y='{y}' text-anchor='middle'>{tick:g}×</text>"


def mark(scale: Scale, client: Client, title: str, ratio: Ratio, y: float) -> Iterator[str]:
    low, middle, high = (scale.at(one) for one in (ratio.low, ratio.middle, ratio.high))
    said = f"{title}: {client.title} {ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    yield f"<g stroke='{client.colour}' fill='{client.colour}'><title>{escape(said)}</title>"
    yield f"<line x1='{low:.1f}' x2='{high:.1f}' y1='{y:.1f}' y2='{y:.1f}' stroke-width='2'/>"
    yield f"<circle cx='{middle:.1f}' cy='{y:.1f}' r='3.5'/></g>"
