"""Numbers to text: the table, its verdicts, and what was measured on what."""

from __future__ import annotations

import os
import platform
import statistics
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from benchmarks.sides import SIDES, Side

FACTOR = {"µs": 1e6, "ms": 1e3, "kB": 1e-3}
HEADINGS = ("work", "side", "median", "min .. max", "rate", "x raw", "aim", "")
WIDTHS = (34, 19, 11, 20, 18, 7, 8, 1)
LEFT = (True, True, False, False, False, False, False, True)

NOTES = """\
Time is per unit of work: one call, one result, one notification, one connection. 'x raw' is the
median over the rounds of the time against raw's in the same round; the aim is the most that it
should be. raw = asyncio's subprocess pipes, msgspec and a dict of futures: no timeouts, no checks,
no errors; raw-fd = the same on the pipes' descriptors. Both speak the handshake era. holdfast runs
with its defaults, negotiation included. The garbage collector is as Python starts it.
Import is timed inside a fresh interpreter, cold start from outside it, both on asyncio's loop;
memory is the growth of the client's resident set over 40 connections; parsing is the client's CPU
time for one notification, from the read to the callback.
raw's sequential calls depend on what the process did before: asyncio asks for 256 KiB a read, and
until the C allocator has learned that size each read maps and unmaps memory. A fresh process has
not; --shared shows raw in one that may have, where it takes about half the time.
Over HTTP, raw and raw-stateless are bare aiohttp loops that make the same requests as holdfast in
the same era, and decode with msgspec; 'x raw' is to the one of the side's own era.
Absolute numbers vary with the machine and the hour: only ratios of one run compare."""


class Results:
    """What one row gave, by side and round."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.values: dict[str, list[float]] = {}
        self.failures: dict[str, str] = {}
        self.families: dict[str, str] = {}

    def add(self, side: Side, value: float) -> None:
        self.values.setdefault(side.name, []).append(value)
        self.families[side.name] = side.family

    def fail(self, side: Side, why: str) -> None:
        self.failures[side.name] = why
        self.values.pop(side.name, None)

    def ratios(self, name: str) -> list[float]:
        """Each round's own ratio to raw."""
        floors = self.values.get(self.row.floors.get(name, "raw"), [])
        pairs = zip(self.values.get(name, []), floors, strict=False)
        # Memory is counted in pages: over few connections raw's growth can be none.
        return [mine / floor for mine, floor in pairs if floor > 0]

    def ratio(self, name: str) -> float | None:
        ratios = self.ratios(name)
        return statistics.median(ratios) if ratios else None

    def met(self, name: str) -> bool | None:
        """Whether the aim, or the budget, is kept; None where there is neither."""
        if self.families.get(name) != "holdfast":
            return None
        if self.row.budget is not None:
            return statistics.median(self.values[name]) <= self.row.budget
        ratio = self.ratio(name)
        return None if self.row.aim is None or ratio is None else ratio <= self.row.aim

    def mark(self, name: str) -> str:
        """The verdict, and how many rounds were of that mind where not all were."""
        met = self.met(name)
        if met is None:
            return ""
        word = "✓" if met else "✗"
        if self.row.aim is None:
            return word
        ratios = self.ratios(name)
        agree = sum((ratio <= self.row.aim) is met for ratio in ratios)
        return word if agree == len(ratios) else f"{word} in {agree} of {len(ratios)} rounds"

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.row.key,
            "title": self.row.title,
            "aim": self.row.aim,
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
    return "\n".join([*lines[:-1], rule, *verdict(found), *footer(about)])


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
        lines.append(line((title, name, *[""] * 6)) + f"  FAILED: {why}")
    return lines


def order(name: str) -> int:
    return [side.name for side in SIDES].index(name)


def cells(results: Results, name: str, values: list[float]) -> tuple[str, ...]:
    row, ratio, met = results.row, results.ratio(name), results.met(name)
    middle = statistics.median(values)
    return (
        name if row.eras else results.families[name],
        f"{number(middle, row.unit)} {row.unit}",
        f"{number(min(values), row.unit)} .. {number(max(values), row.unit)}",
        f"{1 / middle:,.0f} {row.per_second}" if row.per_second else "",
        f"{ratio:.2f}" if ratio is not None else "",
        aim(row) if met is not None else "",
        results.mark(name),
    )


def aim(row: Row) -> str:
    return f"{row.aim:g}" if row.aim is not None else f"{(row.budget or 0) * 1e3:g} ms"


def number(value: float, unit: str) -> str:
    value *= FACTOR[unit]
    return f"{value:.0f}" if value >= 1000 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def verdict(found: list[Results]) -> list[str]:
    marks = [results.met(name) for results in found for name in results.values]
    judged = [mark for mark in marks if mark is not None]
    failures = sum(len(results.failures) for results in found)
    kept = [f"{sum(judged)} of {len(judged)} measured aims kept"] if judged else []
    return kept + ([f"{failures} measurements failed"] if failures else [])


def footer(about: dict[str, Any]) -> list[str]:
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
        f"{about['seconds']} s in all",
        f"load      {about['load']} at the start"
        + (" (not idle: expect noise)" * (about["load"] > 0.3)),
        "",
        *NOTES.splitlines(),
    ]


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
