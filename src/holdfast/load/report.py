"""The result of a load test as text."""

from __future__ import annotations

from typing import Any, Final

from holdfast._core.text import visible

HEAD: Final = ("tool", "calls", "ok", "error", "unknown", "p50", "p95", "p99", "max")


def rows_of(facts: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the cells of the table: a row for each tool, and one for all if there are several."""
    tools = list(facts["tools"].items())
    if len(tools) > 1:
        tools.append(("all", facts["total"]))
    return [
        (
            visible(name, 60),
            *(f"{tally[key]:,}" for key in ("calls", "ok", "error", "unknown")),
            *(milliseconds(tally[key]) for key in ("p50", "p95", "p99", "max")),
        )
        for name, tally in tools
    ]


def milliseconds(value: float | None) -> str:
    """Return a duration with three digits."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value / 1000:.3g} s"
    return f"{value:.3g} ms"


def summary(facts: dict[str, Any]) -> str:
    """Return what the table does not say."""
    text = f"{facts['total']['calls']:,} calls in {facts['seconds']:.3g} s: "
    text += f"{facts['calls_per_second']:,.0f}/s, {facts['reconnects']} reconnects."
    failures = facts["total"]["failures"]
    if failures:
        kinds = ", ".join(f"{count:,} {visible(kind, 40)}" for kind, count in failures.items())
        text += f" Failures: {kinds}."
    return text
