"""The result of a load test as one page: the table, and two plots. No script, nothing fetched."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any, Final

from holdfast.load.report import HEAD, milliseconds, rows_of, summary

WIDTH: Final = 960
HEIGHT: Final = 220
LEFT: Final = 64
BOTTOM: Final = 28
STYLE: Final = """
:root { color-scheme: light dark;
  --bg: light-dark(#f4f7f5, #0c1311); --panel: light-dark(#ffffff, #121b18);
  --line: light-dark(#dbe3df, #24312c); --text: light-dark(#13201c, #e3ece8);
  --muted: light-dark(#475852, #a4b5ae); --accent: light-dark(#0a6b5e, #54d3b6);
  --ok: light-dark(#0e755b, #4fbf9b); --error: light-dark(#b4232c, #ff7b7b);
  --unknown: light-dark(#7b3db8, #c39bf5); --slow: light-dark(#855c00, #e3b341); }
body { margin: 0; background: var(--bg); color: var(--text);
  font: 14px/1.5 -apple-system, "Segoe UI", Roboto, Cantarell, "Noto Sans", Arial, sans-serif; }
main { max-width: 1008px; margin: 0 auto; padding: 24px; }
h1 { font-size: 22px; font-weight: 600; margin: 0 0 4px; }
h2 { font-size: 14px; font-weight: 600; margin: 0 0 8px; }
p { color: var(--muted); margin: 0 0 24px; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 12px;
  padding: 16px; margin: 0 0 20px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 8px; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
th { color: var(--muted); font-weight: 600; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--muted); font-size: 12px; }
.grid { stroke: var(--line); } .end { text-anchor: end; } .middle { text-anchor: middle; }
.ok { fill: var(--ok); } .error { fill: var(--error); } .unknown { fill: var(--unknown); }
.p50 { stroke: var(--accent); } .p95 { stroke: var(--slow); stroke-dasharray: 6 3; }
.line { fill: none; stroke-width: 2; }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin: 0 4px 0 16px; }
.key.ok { background: var(--ok); } .key.error { background: var(--error); }
.key.unknown { background: var(--unknown); } .key.p50 { background: var(--accent); }
.key.p95 { background: var(--slow); }
"""


def page(facts: dict[str, Any], title: str) -> str:
    """Return the page."""
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows_of(facts)
    )
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
<p>{escape(summary(facts))}</p>
<section><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></section>
<section><h2>Calls per second{_keys("ok", "error", "unknown")}</h2>{_rates(facts)}</section>
<section><h2>Duration of answered calls{_keys("p50", "p95")}</h2>{_durations(facts)}</section>
</main>
</body>
</html>
"""


def _keys(*names: str) -> str:
    return "".join(f'<span class="key {name}"></span>{name}' for name in names)


def _frame(facts: dict[str, Any], top: float, label: str, marks: str) -> str:
    """Return a plot with its axes; ``label`` is that of the top line."""
    plot = HEIGHT - BOTTOM
    lines = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for y in (8, 8 + (plot - 8) / 2, plot)
    )
    span = facts["slices"][-1]["at"] + facts["width"] if facts["slices"] else facts["width"]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{lines}{marks}'
        f'<text class="end" x="{LEFT - 8}" y="14">{escape(label)}</text>'
        f'<text class="end" x="{LEFT - 8}" y="{plot}">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 8}">0 s</text>'
        f'<text class="end" x="{WIDTH}" y="{HEIGHT - 8}">{span:g} s</text></svg>'
    )


def _scale(facts: dict[str, Any], top: float) -> tuple[float, float, Any]:
    slices = facts["slices"]
    count = round(slices[-1]["at"] / facts["width"]) + 1 if slices else 1
    step = (WIDTH - LEFT) / count
    plot = HEIGHT - BOTTOM

    def height(value: float) -> float:
        return (plot - 8) * value / top if top else 0.0

    return step, plot, height


def _rates(facts: dict[str, Any]) -> str:
    slices, width = facts["slices"], facts["width"]
    top = max((part["calls"] / width for part in slices), default=1.0)
    step, plot, height = _scale(facts, top)
    bars = []
    for part in slices:
        x, y = LEFT + part["at"] / width * step, plot
        for name in ("ok", "error", "unknown"):
            size = height(part[name] / width)
            y -= size
            if size:
                bars.append(
                    f'<rect class="{name}" x="{x + 0.5:.1f}" y="{y:.1f}" '
                    f'width="{max(step - 1, 0.5):.1f}" height="{size:.1f}"/>'
                )
    return _frame(facts, top, f"{top:,.0f}/s", "".join(bars))


def _durations(facts: dict[str, Any]) -> str:
    slices, width = facts["slices"], facts["width"]
    top = max((part["p95"] or 0.0 for part in slices), default=1.0)
    step, plot, height = _scale(facts, top)
    lines = []
    for name in ("p50", "p95"):
        points = [
            f"{LEFT + (part['at'] / width + 0.5) * step:.1f},{plot - height(part[name]):.1f}"
            for part in slices
            if part[name] is not None
        ]
        if len(points) == 1:  # a line of one point cannot be seen
            points.append(f"{WIDTH},{points[0].partition(',')[2]}")
        lines.append(f'<polyline class="line {name}" points="{" ".join(points)}"/>')
    return _frame(facts, top, milliseconds(top), "".join(lines))
