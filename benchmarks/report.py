"""Numbers to text: the table, its verdicts, and what was measured on what."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import slopes
from benchmarks.aims import AIMS, FLOORS, floor_of, floor_side
from benchmarks.bench import Found, Row
from benchmarks.sides import SIDES, Side
from benchmarks.slopes import SLOPES, Slope

FACTOR = {"µs": 1e6, "ms": 1e3, "kB": 1e-3}
HEADINGS = ("work", "side", "median", "min .. max", "rate", "x floor", "floor", "aim", "")
WIDTHS = (34, 19, 11, 20, 18, 7, 8, 8, 1)
LEFT = (True, True, False, False, False, False, False, False, True)

NOTES = """\
Time is per unit of work: one call, one result, one notification, one connection. 'x floor' is the
median over the rounds of the time against the floor's in the same round; the aim is the most that
it should be. raw and raw-fd speak the handshake era. holdfast runs with its defaults: negotiation,
validation, limits, deadlines and redaction are on. The garbage collector is as Python starts it.
Import is timed inside a fresh interpreter, cold start from outside it, both on asyncio's loop;
memory is the growth of the client's resident set over 40 connections; parsing is the client's CPU
time for one notification, from the read to the callback.
raw's sequential calls depend on what the process did before: asyncio asks for 256 KiB a read, and
until the C allocator has learned that size each read maps and unmaps memory. A fresh process has
not; --shared shows raw in one that may have, where it takes about half the time.
Absolute numbers vary with the machine and the hour: only ratios of one run compare."""


class Results:
    """What one row gave, by side and round."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.aim = AIMS.get(row.key)
        self.floor = floor_of(row.key, row.wire)
        self.values: dict[str, list[float]] = {}
        self.failures: dict[str, str] = {}
        self.families: dict[str, str] = {}

    def add(self, side: Side, found: Found) -> None:
        for name, value in (found if isinstance(found, dict) else {side.name: found}).items():
            self.values.setdefault(name, []).append(value)
            self.families[name] = side.family if name == side.name else name

    def fail(self, side: Side, why: str) -> None:
        self.failures[side.name] = why
        self.values.pop(side.name, None)

    def ratios(self, name: str) -> list[float]:
        """Each round's own ratio to the floor."""
        floors = self.values.get(floor_side(self.floor, name), [])
        pairs = zip(self.values.get(name, []), floors, strict=False)
        # Memory is counted in pages: over few connections raw's growth can be none.
        return [mine / floor for mine, floor in pairs if floor > 0]

    def ratio(self, name: str) -> float | None:
        ratios = self.ratios(name)
        return statistics.median(ratios) if ratios else None

    def met(self, name: str) -> bool | None:
        """Whether the aim, or the budget, is met; None where there is neither."""
        if self.families.get(name) != "holdfast":
            return None
        if self.row.budget is not None:
            return statistics.median(self.values[name]) <= self.row.budget
        ratio = self.ratio(name)
        return None if self.aim is None or ratio is None else ratio <= self.aim.most

    def mark(self, name: str) -> str:
        """The verdict, and in how many rounds it was the same where not in all."""
        met = self.met(name)
        if met is None:
            return ""
        word = "met" if met else "missed"
        if self.aim is None:
            return word
        ratios = self.ratios(name)
        agree = sum((ratio <= self.aim.most) is met for ratio in ratios)
        return word if agree == len(ratios) else f"{word} in {agree} of {len(ratios)} rounds"

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.row.key,
            "title": self.row.title,
            "aim": self.aim and self.aim.most,
            "floor": self.floor,
            "budget": self.row.budget,
            "values": self.values,
            "ratios": {name: self.ratio(name) for name in self.values},
            "met": {name: self.met(name) for name in self.values},
            "failures": self.failures,
        }


def show(found: list[Results], about: dict[str, Any]) -> str:
    rule = "-" * (sum(WIDTHS) + len(WIDTHS) - 1)
    lines = [line(HEADINGS), rule]
    for results in found:
        lines += [*block(results), ""]
    lines = [*lines[:-1], rule, *verdict(found), *slope_lines(found)]
    return "\n".join([*lines, *footer(found, about)])


def line(cells: tuple[str, ...]) -> str:
    parts = [
        cell.ljust(width) if left else cell.rjust(width)
        for cell, width, left in zip(cells, WIDTHS, LEFT, strict=True)
    ]
    return " ".join(parts).rstrip()


def block(results: Results) -> list[str]:
    """All sides of one row; the title on the first line alone."""
    lines: list[str] = []
    for name, values in sorted(results.values.items(), key=lambda item: order(item[0])):
        title = "" if lines else results.row.title
        lines.append(line((title, *cells(results, name, values))))
    for name, why in results.failures.items():
        title = "" if lines else results.row.title
        lines.append(line((title, name, *[""] * 7)) + f"  FAILED: {why}")
    return lines


def order(name: str) -> int:
    """Sides in their own order; of a pair, holdfast last."""
    names = [side.name for side in SIDES]
    return names.index(name) if name in names else len(names) + (name == "holdfast")


def cells(results: Results, name: str, values: list[float]) -> tuple[str, ...]:
    row, ratio, met = results.row, results.ratio(name), results.met(name)
    middle = statistics.median(values)
    return (
        name if row.eras else results.families[name],
        f"{number(middle, row.unit)} {row.unit}",
        f"{number(min(values), row.unit)} .. {number(max(values), row.unit)}",
        f"{1 / middle:,.0f} {row.per_second}" if row.per_second else "",
        f"{ratio:.{digits(results)}f}" if ratio is not None else "",
        results.floor if met is not None and row.budget is None else "",
        aim(results) if met is not None else "",
        results.mark(name),
    )


def aim(results: Results) -> str:
    if results.aim is not None:
        return f"{results.aim.most:g}"
    return f"{(results.row.budget or 0) * 1e3:g} ms"


def digits(results: Results) -> int:
    """Enough to tell a ratio from an aim close to 1."""
    return 3 if results.aim is not None and 1 < results.aim.most < 1.1 else 2


def number(value: float, unit: str) -> str:
    value *= FACTOR[unit]
    return f"{value:.0f}" if value >= 1000 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def verdict(found: list[Results]) -> list[str]:
    marks = [results.met(name) for results in found for name in results.values]
    judged = [mark for mark in marks if mark is not None]
    failures = sum(len(results.failures) for results in found)
    kept = [f"{sum(judged)} of {len(judged)} measured aims met"] if judged else []
    return kept + ([f"{failures} measurements failed"] if failures else [])


# -- slopes --------------------------------------------------------------------------------------


def slope_lines(found: list[Results]) -> list[str]:
    """The exponent of each slope, over all sizes and over the larger ones, and the verdict."""
    lines = [
        f"{one['title']:<34} {one['side']:<19} {one['exponent']:>6.2f} {one['upper']:>9.2f} "
        f"{one['most']:>6g}  {one['verdict']}".rstrip()
        for one in slopes_as_json(found)
    ]
    head = f"{'cost grows with the power':<54} {'of all':>6} {'of larger':>9} {'aim':>6}"
    return ["", head, *lines] if lines else []


def slopes_as_json(found: list[Results]) -> list[dict[str, Any]]:
    return [fitted for slope in SLOPES for fitted in slope_fits(slope, found)]


def slope_fits(slope: Slope, found: list[Results]) -> Iterator[dict[str, Any]]:
    """Both sides of one slope, the bare loop first, if at least three sizes were measured."""
    floor = None
    for side in slopes.SIDES:
        points = [
            (results.row.size, statistics.median(results.values[side]))
            for results in found
            if results.row.key in slope.keys and side in results.values
        ]
        if len(points) < 3:
            continue
        exponent = slopes.fit(slopes.upper(points))
        above = slopes.grows_too_fast(slope, exponent, floor)
        judged = side.startswith("holdfast")
        yield {
            "key": slope.key,
            "title": slope.title,
            "side": side,
            "exponent": slopes.fit(points),
            "upper": exponent,
            "most": slope.most,
            "verdict": ("above" if above else "met") if judged else "",
        }
        floor = exponent


def footer(found: list[Results], about: dict[str, Any]) -> list[str]:
    pinned = f"both on CPU {about['cpu']}" if about["cpu"] is not None else "not pinned"
    return [
        "",
        f"machine   {machine()}",
        f"software  {platform.python_implementation()} {platform.python_version()}, "
        f"msgspec {version('msgspec')}, holdfast {version('holdfast')}, "
        f"loop {about['loop']}{uvloop_version(about['loop'])}",
        f"server    {about['server']}; client and server {pinned}",
        *over_http(about),
        f"rounds    {about['rounds']}, sides in turns, {processes(about['shared'])}; "
        f"{about['clock']}; {about['seconds']} s in all",
        f"load      {about['load']} at the start"
        + (" (not idle: expect noise)" * (about["load"] > 0.3)),
        "",
        *[f"{name:<9} {FLOORS[name]}" for name in floors(found)],
        *NOTES.splitlines(),
    ]


def floors(found: list[Results]) -> list[str]:
    """The floors of these rows, in the order of their descriptions."""
    used = {results.floor for results in found}
    return [name for name in FLOORS if name in used]


def over_http(about: dict[str, Any]) -> list[str]:
    if about["http"] is None:
        return []
    return [
        f"HTTP      aiohttp {version('aiohttp')}; server {about['http']}, in a process of its own",
        f"peers     {about['peers']}",
    ]


def processes(shared: bool) -> str:
    return "all in one client process" if shared else "each measurement in a fresh client process"


def machine() -> str:
    cores = os.cpu_count() or 1
    return f"{processor()}, {cores} CPUs, {platform.system()} {platform.release()}"


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for entry in info.read_text().splitlines():
            if entry.startswith("model name"):
                return entry.partition(":")[2].strip()
    return platform.machine()


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(from the tree)"


def uvloop_version(loop: str) -> str:
    return f" {version('uvloop')}" if loop == "uvloop" else ""
