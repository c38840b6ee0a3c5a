"""Holdfast beside the least that a client can do, measured in turns on one CPU.

Every round runs all sides of a row one after the other, in changing order; a ratio is the median
of the rounds' own ratios to the floor, so that a machine that slows down slows both sides of it.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import json
import os
import pstats
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks import http_peer, http_server, page, server, sides
from benchmarks.bench import Bench, MeasureError, Row, Stopwatch
from benchmarks.report import Results, show, slopes_as_json
from benchmarks.rows import all_rows
from benchmarks.sides import Side

TOTAL_SECONDS = 300.0
USUAL = "main,http,cli"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument(
        "--rows",
        help=f"groups (all, {', '.join(groups())}; by default {USUAL}), or rows: "
        + ", ".join(row.key for row in all_rows()),
    )
    parser.add_argument("--only", help="some sides, by name, or 'holdfast' for both eras")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number there")
    parser.add_argument("--write", action="store_true", help="renew the figures of the docs")
    parser.add_argument("--seconds", type=float, help="in all, at most")
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--cpu", action="store_true", help="CPU time instead of wall time")
    parser.add_argument("--shared", action="store_true", help="measure in one client process")
    parser.add_argument("--python-server", action="store_true", help="do not use the C server")
    parser.add_argument("--peers", action="store_true", help="also other clients, over HTTP")
    parser.add_argument("--profile", metavar="ROW", help="profile holdfast in this row")
    return parser.parse_args()


def groups() -> list[str]:
    return list(dict.fromkeys(row.group for row in all_rows()))


def chosen_rows(names: str) -> list[Row]:
    """Rows by their keys or groups, in the order of the names."""
    rows = {row.key: [row] for row in all_rows()} | {"all": list(all_rows())}
    for group in groups():
        rows[group] = [row for row in all_rows() if row.group == group]
    if unknown := [name for name in names.split(",") if name not in rows]:
        raise SystemExit(f"no such row: {', '.join(unknown)} (there are: {', '.join(rows)})")
    return list(dict.fromkeys(row for name in names.split(",") for row in rows[name]))


def sides_of(row: Row, chosen: list[Side]) -> list[Side]:
    """One of each family where eras and descriptors make no difference."""
    if row.only:
        return [side for side in chosen if side.name in row.only]
    chosen = [side for side in chosen if side.wire in (None, row.wire)]
    if row.eras:
        return chosen
    families = {side.family: side for side in reversed(chosen)}
    return list(reversed(families.values()))


def pin() -> int | None:
    """Client and server on one CPU: apart, wake-ups hide a part of the client's cost."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


def turn(chosen: list[Side], number: int) -> list[Side]:
    """Another order every round, so that no side always follows the same one."""
    start = number % len(chosen)
    order = chosen[start:] + chosen[:start]
    return order if number % 2 == 0 else order[::-1]


class Rounds:
    """How often a row is measured, until when at the latest, and where."""

    def __init__(self, bench: Bench, count: int, shared: bool, seconds: float) -> None:
        self.bench = bench
        self.count = count
        self.shared = shared
        self.ends = time.monotonic() + seconds

    def left(self) -> float:
        return self.ends - time.monotonic()

    def of(self, row: Row, chosen: list[Side], rows_left: int) -> Results:
        """As many rounds as fit into the row's share of the time that is left, one at least."""
        results = Results(row)
        row_ends = time.monotonic() + self.left() / rows_left
        for number in range(self.count):
            for side in turn(chosen, number):
                self.once(row, side, results)
            if time.monotonic() > row_ends:
                break
        return results

    def once(self, row: Row, side: Side, results: Results) -> None:
        if side.name in results.failures:
            return
        here = row.spawns or (self.shared and row.key != "memory")
        try:
            found = self.bench.measure(row, side) if here else self.bench.apart(row, side)
        except MeasureError as error:
            results.fail(side, str(error))
        except Exception as error:  # a side that is broken must not hide the others
            results.fail(side, f"{type(error).__name__}: {error}")
        else:
            results.add(side, found)


def measure_all(rows: list[Row], chosen: list[Side], rounds: Rounds) -> list[Results]:
    found: list[Results] = []
    for index, row in enumerate(rows):
        tell(f"{row.title} …")
        if here := sides_of(row, chosen):
            found.append(rounds.of(row, here, len(rows) - index))
    tell("")
    return found


def tell(text: str) -> None:
    """Where it is, for a person who waits."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def served(bench: Bench, rows: list[Row]) -> Iterator[Bench]:
    """The bench with a server to reach by URL, if one of the rows wants that."""
    if not any(row.wire == "http" for row in rows):
        yield bench
        return
    with http_server.running(bench.path) as (web, process):
        yield replace(bench, web=web, web_process=process)


def peers_note(wanted: bool) -> tuple[bool, str]:
    """Whether others can be measured too, and what the reader is told of it."""
    if not wanted:
        return False, "the official SDK's client is left out; --peers installs and measures it"
    failure = http_peer.install()
    if failure is not None:
        return False, f"the official SDK's client could not be installed: {failure}"
    return True, f"mcp {http_peer.installed()}, the official SDK's client"


def profile(row: Row, side: Side, bench: Bench) -> None:
    if row.key in ("import", "cold"):
        profile_imports(row, side, bench)
        return
    if row.key == "memory":
        raise SystemExit("memory is measured in another process: nothing to profile")
    Stopwatch.profiler = cProfile.Profile()
    row.measure(bench, side)
    print(f"{row.title}, {side.name}; the profiler makes everything slower, calls most of all")
    pstats.Stats(Stopwatch.profiler).sort_stats("tottime").print_stats(35)


def profile_imports(row: Row, side: Side, bench: Bench) -> None:
    cold = side.cold_code(bench.target(side))
    code = f"import {side.imports}" if row.key == "import" else cold
    done = bench.python(code, "-X", "importtime")
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    costs = sorted(lines[1:], key=lambda line: -int(line[12:].split("|")[0]))
    print("import time: self [us] | cumulative | imported package")
    print("\n".join(costs[:35]))


def main() -> int:
    chosen = arguments()
    if chosen.loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        print("skipped: uvloop is not installed (pip install uvloop)")
        return 0
    path = sides.python_path()
    sys.path += [entry for entry in path if entry not in sys.path]
    sides.compile_sources()
    cpu = pin()
    found_server = server.find(compiled=not chosen.python_server)
    bench = Bench(found_server, chosen.loop, tuple(path), cpu=chosen.cpu)
    if chosen.profile:
        only = sides.chosen(chosen.only or "holdfast-handshake")
        rows = chosen_rows(chosen.profile)
        with served(bench, rows) as bench:
            profile(rows[0], only[0], bench)
        return 0
    rows = chosen_rows(chosen.rows or ("all" if chosen.write else USUAL))
    http = any(row.wire == "http" for row in rows)
    peers, note = peers_note(chosen.peers)
    load = os.getloadavg()[0]
    started = time.monotonic()
    with served(bench, rows) as bench:
        seconds = chosen.seconds or TOTAL_SECONDS * (4 if chosen.write else 1)
        rounds = Rounds(bench, 2 if chosen.quick else chosen.rounds, chosen.shared, seconds)
        found = measure_all(rows, sides.chosen(chosen.only, peers=peers), rounds)
    about = {
        "server": bench.server.about,
        "http": http_server.about() if http else None,
        "peers": note if http else None,
        "loop": chosen.loop,
        "cpu": cpu,
        "rounds": rounds.count,
        "shared": chosen.shared,
        "clock": "CPU time of both" if chosen.cpu else "wall time",
        "load": round(load, 2),
        "seconds": round(time.monotonic() - started, 1),
    }
    print(show(found, about))
    if chosen.write:
        page.write(found, about)
    if chosen.json:
        values = [results.as_json() for results in found]
        whole = {"about": about, "rows": values, "slopes": slopes_as_json(found)}
        chosen.json.write_text(json.dumps(whole, indent=1) + "\n")
    return 1 if any(results.failures for results in found) else 0
