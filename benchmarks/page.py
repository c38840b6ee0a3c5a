"""The figures of ``docs/reference/speed.md``, written by ``make bench ARGS=--write``."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks import slopes
from benchmarks.report import Results, digits, machine, slope_fits
from benchmarks.rows import all_rows

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "speed.md"
BEGIN, END = "<!-- figures: make bench ARGS=--write -->\n", "<!-- end of figures -->\n"
TITLES = {"main": "Over stdio", "http": "Over HTTP", "cli": "Command line", "users": "What you add"}
HEADS = {
    "main": "in times the floor, in the handshake and the stateless era",
    "http": "in times the floor, in the handshake and the stateless era",
    "cli": "in times the floor",
    "users": "in times the plain call",
}


def write(found: list[Results], about: dict[str, Any]) -> None:
    """Replace the figures, and nothing else."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + figures(found, about) + END + after)


def figures(found: list[Results], about: dict[str, Any]) -> str:
    tables = [table(group, found) for group in TITLES]
    tables += [price_table(found), cache_table(found), slope_table(found)]
    return "\n".join(["", *tables, conditions(about), ""])


def table(group: str, found: list[Results]) -> str:
    measured = {results.row.key: results for results in found}
    rows = [row for row in all_rows() if row.group == group and row.key in measured]
    lines = [
        f"**{TITLES[group]}**, {HEADS[group]}:\n",
        "| row | work | floor | aim | measured | |",
        "|---|---|---|---|---|---|",
        *[line(measured[row.key]) for row in rows if measured[row.key].aim is not None],
    ]
    return "\n".join([*lines, ""])


def line(results: Results) -> str:
    aim, row = results.aim, results.row
    assert aim is not None
    ours = [name for name, family in results.families.items() if family == "holdfast"]
    ratios = [results.ratio(name) for name in sorted(ours)]
    shown = " / ".join(f"{ratio:.{digits(results)}f}" for ratio in ratios if ratio is not None)
    verdict = "met" if all(results.met(name) for name in ours) else "missed"
    if not ratios:
        verdict = "not measured"
    return f"| `{row.key}` | {row.title} | {aim.floor} | {aim.most:g} | {shown} | {verdict} |"


def price_table(found: list[Results]) -> str:
    lines = [
        "**What `once=` adds** to a call, beside those without it:\n",
        "| row | work | aim | measured | |",
        "|---|---|---|---|---|",
        *[price_line(results) for results in found if results.row.key.startswith("once-")],
    ]
    return "\n".join([*lines, ""])


def price_line(results: Results) -> str:
    row, (side, times) = results.row, next(iter(results.values.items()))
    aim = "" if row.budget is None else f"{row.budget * 1e3:g} ms"
    verdict = {True: "met", False: "missed", None: ""}[results.met(side)]
    median = statistics.median(times) * 1e3
    return f"| `{row.key}` | {row.title} | {aim} | {median:.2g} ms | {verdict} |"


def cache_table(found: list[Results]) -> str:
    lines = [
        "**A cached read**, by the store that has it, beside a call to a server in C:\n",
        "| row | work | cached | call |",
        "|---|---|---|---|",
        *[cache_line(results) for results in found if results.row.key.startswith("cache-")],
    ]
    return "\n".join([*lines, ""])


def cache_line(results: Results) -> str:
    times = {side: statistics.median(times) * 1e6 for side, times in results.values.items()}
    cached, plain = (
        f"{times[side]:,.0f} µs" if side in times else "" for side in ("holdfast", "plain")
    )
    return f"| `{results.row.key}` | {results.row.title} | {cached} | {plain} |"


def slope_table(found: list[Results]) -> str:
    lines = [
        "**Growth**: the exponent of CPU time over the amount of work, among the larger amounts:\n",
        "| amount | from, to | aim | bare loop | Holdfast | one unit, at most | |",
        "|---|---|---|---|---|---|---|",
        *[slope_line(slope, found) for slope in slopes.SLOPES],
    ]
    return "\n".join([*lines, ""])


def slope_line(slope: slopes.Slope, found: list[Results]) -> str:
    fits = {fit["side"]: fit for fit in slope_fits(slope, found)}
    floor, ours = (fits.get(side) for side in slopes.SIDES)
    if floor is None or ours is None:
        return f"| {slope.title} | | {slope.most:g} | | | | not measured |"
    span = f"{slope.sizes[0]:,}, {slope.sizes[-1]:,}"
    return (
        f"| {slope.title} | {span} | {slope.most:g} | {floor['upper']:.2f} "
        f"| {ours['upper']:.2f} | {dearest(slope, found)} | {ours['verdict']} |"
    )


def dearest(slope: slopes.Slope, found: list[Results]) -> str:
    """The cost of one unit of work in the upper half of the sizes."""
    side = slopes.SIDES[1]
    costs = [
        statistics.median(results.values[side]) / (results.row.size if slope.linear else 1)
        for results in found
        if results.row.key in slope.keys[-3:] and side in results.values
    ]
    worst = max(costs) * 1e6
    return f"{worst:.0f} µs" if worst >= 1 else f"{worst * 1000:.1f} ns"


def conditions(about: dict[str, Any]) -> str:
    load = about["load"]
    noise = ", so not idle: expect noise" if load > 0.3 else ""
    return (
        f"Measured on {machine()}; client and server on one CPU; {about['clock']}; "
        f"at most {about['rounds']} rounds; loop {about['loop']}; "
        f"load at the start {load}{noise}.\n"
    )
