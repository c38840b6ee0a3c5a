"""The result of a load test as one page: figures, plots, tables. No script, nothing fetched."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Any, Final

from holdfast._core.text import visible
from holdfast.load.report import HEAD, milliseconds, rows_of

WIDTH: Final = 960
HEIGHT: Final = 180
ENDINGS: Final = ("ok", "error", "unknown")
SPREAD: Final = ("p50", "p95")
STYLE: Final = """
:root { color-scheme: light dark;
  --bg: light-dark(#f4f7f5, #0c1311); --panel: light-dark(#ffffff, #121b18);
  --line: light-dark(#dbe3df, #24312c); --text: light-dark(#13201c, #e3ece8);
  --muted: light-dark(#475852, #a4b5ae); --accent: light-dark(#0a6b5e, #54d3b6);
  --ok: light-dark(#0e755b, #4fbf9b); --error: light-dark(#b4232c, #ff7b7b);
  --unknown: light-dark(#7b3db8, #c39bf5); --slow: light-dark(#855c00, #e3b341); }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text);
  font: 14px/1.5 -apple-system, "Segoe UI", Roboto, Cantarell, "Noto Sans", Arial, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 48px; }
h1 { font-size: 22px; line-height: 1.3; font-weight: 600; margin: 0 0 4px;
  overflow-wrap: anywhere; }
p { color: var(--muted); margin: 0 0 20px; }
h2 { font-size: 14px; font-weight: 600; margin: 0; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 20px; margin: 0 0 12px; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 12px;
  padding: 16px 20px 20px; margin: 0 0 16px; }
dl { display: grid; grid-template-columns: repeat(8, 1fr); gap: 1px;
  background: var(--line); border: 1px solid var(--line); border-radius: 12px; overflow: hidden;
  margin: 0 0 16px; }
dl div { background: var(--panel); padding: 12px 16px; }
dt { color: var(--muted); font-size: 12px; }
dd { margin: 0; font-size: 20px; font-weight: 600; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 0 6px 16px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal;
  overflow-wrap: anywhere; min-width: 120px; }
td:first-child { font-family: ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace;
  font-size: 13px; }
th { color: var(--muted); font-size: 12px; font-weight: 600; }
tr.all td { font-weight: 600; } .none { color: var(--muted); }
td.error { color: var(--error); } td.unknown { color: var(--unknown); }
.plot { display: grid; grid-template-columns: 64px 1fr; gap: 4px 8px; color: var(--muted);
  font-size: 12px; font-variant-numeric: tabular-nums; }
.y { display: flex; flex-direction: column; justify-content: space-between; text-align: right;
  margin: -9px 0; }
.x { grid-column: 2; display: flex; justify-content: space-between; }
svg { display: block; width: 100%; height: 180px; }
svg line { stroke: var(--line); stroke-width: 1; } svg * { vector-effect: non-scaling-stroke; }
svg .ok { fill: var(--ok); } svg .error { fill: var(--error); }
svg .unknown { fill: var(--unknown); } .spot { fill: transparent; }
.spot:hover { fill: light-dark(#13201c18, #e3ece820); }
.trend { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg .p50 { stroke: var(--accent); } svg .p95 { stroke: var(--slow); stroke-dasharray: 6 4; }
.key { color: var(--muted); font-size: 12px; }
.key::before { content: ""; display: inline-block; width: 10px; height: 10px; border-radius: 2px;
  margin-right: 6px; background: currentColor; }
.key.ok::before { color: var(--ok); } .key.error::before { color: var(--error); }
.key.unknown::before { color: var(--unknown); } .key.p50::before { color: var(--accent); }
.key.p95::before { color: var(--slow); }
meter { appearance: none; width: 100%; min-width: 96px; height: 8px; border: 0;
  border-radius: 4px; background: var(--line); overflow: hidden; }
meter::-webkit-meter-bar { background: var(--line); border: 0; border-radius: 4px; height: 8px; }
meter::-webkit-meter-optimum-value { background: var(--error); }
meter::-moz-meter-bar { background: var(--error); }
@media (max-width: 1000px) { dl { grid-template-columns: repeat(4, 1fr); } }
@media (max-width: 560px) { main { padding: 20px 12px; } section { padding: 12px; }
  dl { grid-template-columns: repeat(2, 1fr); }
  .plot { grid-template-columns: 52px 1fr; } }
"""


def page(facts: dict[str, Any], title: str) -> str:
    """Return the page."""
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>{facts["total"]["calls"]:,} calls in {facts["seconds"]:.3g} s</p>
{_figures(facts)}
<section>{_head("Calls per second", ENDINGS)}{_rates(facts)}</section>
<section>{_head("Duration of answered calls", SPREAD)}{_durations(facts)}</section>
<section>{_head("Tools")}{_tools(facts)}</section>
{_failures(facts)}</main>
</body>
</html>
"""


def _figures(facts: dict[str, Any]) -> str:
    """Return what one wants to know first."""
    total = facts["total"]
    figures = {
        "calls/s": f"{facts['calls_per_second']:,.0f}",
        "p50": milliseconds(total["p50"]),
        "p95": milliseconds(total["p95"]),
        "p99": milliseconds(total["p99"]),
        "slowest": milliseconds(total["max"]),
        "errors": _share(total["error"], total["calls"]),
        "unknown": _share(total["unknown"], total["calls"]),
        "reconnects": f"{facts['reconnects']:,}",
    }
    cells = (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures.items())
    return f"<dl>{''.join(cells)}</dl>"


def _share(count: int, calls: int) -> str:
    """Return a count as a part of all calls; what is there is never rounded to nothing."""
    if not count:
        return "0"
    percent = 100 * count / calls
    return "&lt; 0.1 %" if percent < 0.1 else f"{percent:.1f} %"


def _head(title: str, keys: Iterable[str] = ()) -> str:
    names = "".join(f'<span class="key {name}">{name}</span>' for name in keys)
    return f"<header><h2>{escape(title)}</h2>{names}</header>"


# Tables


def _tools(facts: dict[str, Any]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    rows = rows_of(facts)
    body = "".join(
        _row(row, is_all=len(rows) > 1 and number == len(rows))
        for number, row in enumerate(rows, 1)
    )
    return _table(head, body)


def _row(row: tuple[str, ...], *, is_all: bool) -> str:
    """Return a row of the table: failures in their colour, zeroes in none."""
    cells = []
    for name, cell in zip(HEAD, row, strict=True):
        kind = "none" if cell == "0" else name if name in ("error", "unknown") else ""
        mark = f' class="{kind}"' if kind else ""
        cells.append(f"<td{mark}>{escape(cell)}</td>")
    mark = ' class="all"' if is_all else ""
    return f"<tr{mark}>{''.join(cells)}</tr>"


def _failures(facts: dict[str, Any]) -> str:
    """Return the failures by kind, the most frequent first; nothing if there are none."""
    failures = facts["total"]["failures"]
    if not failures:
        return ""
    most = max(failures.values())
    head = "<th>kind</th><th>calls</th><th>of all calls</th><th></th>"
    body = "".join(
        f"<tr><td>{escape(visible(kind, 40))}</td><td>{count:,}</td>"
        f"<td>{_share(count, facts['total']['calls'])}</td>"
        f'<td><meter max="{most}" value="{count}"></meter></td></tr>'
        for kind, count in failures.items()
    )
    return f"<section>{_head('Failures by kind')}{_table(head, body)}</section>\n"


def _table(head: str, body: str) -> str:
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


# Plots


def _rates(facts: dict[str, Any]) -> str:
    slices, width = facts["slices"], facts["width"]
    top = round_up(max((part["calls"] / width for part in slices), default=0.0))
    step = WIDTH / _count(facts)
    bars = []
    for part in slices:
        x, y = part["at"] / width * step, float(HEIGHT)
        for name in ENDINGS:
            size = HEIGHT * part[name] / width / top
            y -= size
            if size:
                bars.append(
                    f'<rect class="{name}" x="{x:.2f}" y="{y:.2f}" '
                    f'width="{step * 0.88:.2f}" height="{size:.2f}"/>'
                )
    labels = [f"{value:,.10g}/s" for value in (top, top / 2, 0)]
    return _frame(facts, labels, "".join(bars), "calls per second")


def _durations(facts: dict[str, Any]) -> str:
    slices, width = facts["slices"], facts["width"]
    top = round_up(max((part["p95"] or 0.0 for part in slices), default=0.0))
    step = WIDTH / _count(facts)
    lines = []
    for name in SPREAD:
        for run in _runs(slices, width):
            points = [
                ((part["at"] / width + 0.5) * step, HEIGHT * (1 - part[name] / top)) for part in run
            ]
            if len(points) == 1:  # a line of one point cannot be seen
                x, y = points[0]
                points = [(x - step / 2, y), (x + step / 2, y)]
            text = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
            lines.append(f'<polyline class="trend {name}" points="{text}"/>')
    labels = [milliseconds(value) for value in (top, top / 2, 0.0)]
    return _frame(facts, labels, "".join(lines), "duration of answered calls")


def _runs(slices: list[dict[str, Any]], width: float) -> list[list[dict[str, Any]]]:
    """Return the stretches in which calls were answered: of the time between nothing is known."""
    runs: list[list[dict[str, Any]]] = []
    for part in slices:
        if part["p50"] is None:
            continue
        if not runs or part["at"] - runs[-1][-1]["at"] > width * 1.5:
            runs.append([])
        runs[-1].append(part)
    return runs


def _frame(facts: dict[str, Any], labels: list[str], marks: str, name: str) -> str:
    """Return a plot with its axes. The picture stretches, so its labels stand outside of it."""
    grid = "".join(f'<line x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>' for y in (0, 90, 180))
    span = _count(facts) * facts["width"]
    marked = "".join(f"<span>{text}</span>" for text in labels)
    return (
        f'<div class="plot"><div class="y">{marked}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{name}">{grid}{marks}{_spots(facts)}</svg>'
        f'<div class="x"><span>0 s</span><span>{span / 2:g} s</span><span>{span:g} s</span>'
        "</div></div>"
    )


def _spots(facts: dict[str, Any]) -> str:
    """Return what shows the numbers of a stretch of time to a mouse."""
    step, width = WIDTH / _count(facts), facts["width"]
    spots = []
    for part in facts["slices"]:
        x = part["at"] / width * step
        spots.append(
            f'<rect class="spot" x="{x:.2f}" y="0" width="{step:.2f}" height="{HEIGHT}">'
            f"<title>{escape(_numbers(part, width))}</title></rect>"
        )
    return "".join(spots)


def _numbers(part: dict[str, Any], width: float) -> str:
    counts = ", ".join(f"{part[name]:,} {name}" for name in ENDINGS if part[name])
    spread = ", ".join(f"{name} {milliseconds(part[name])}" for name in SPREAD)
    return f"{part['at']:g} to {part['at'] + width:g} s: {counts}; {spread}"


def _count(facts: dict[str, Any]) -> int:
    """Return how many stretches of time there are, empty ones included."""
    slices = facts["slices"]
    return round(slices[-1]["at"] / facts["width"]) + 1 if slices else 1


def round_up(value: float) -> float:
    """Return the next number that reads well on an axis: 1, 1.5, 2, … times a power."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    for factor in (1, 1.5, 2, 3, 4, 5, 6, 8):
        if value <= factor * power:
            return factor * power
    return 10 * power
