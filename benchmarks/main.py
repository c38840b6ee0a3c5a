"""Holdfast beside the least that a client can do, measured in turns on one CPU.

Every round runs all sides of a row one after the other, in changing order; a ratio is the median
of the rounds' own ratios to ``raw``, so that a machine that slows down slows both sides of it.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks import http_peer, http_server, server, sides
from benchmarks.report import Results, show
from benchmarks.rows import Bench, MeasureError, Row, Stopwatch, all_rows
from benchmarks.sides import Side

TOTAL_SECONDS = 300.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--rows", help=f"some of {','.join(row.key for row in all_rows())}")
    parser.add_argument("--only", help="some sides, by name, or 'holdfast' for both eras")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number there")
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--shared", action="store_true", help="measure in one client process")
    parser.add_argument("--python-server", action="store_true", help="do not use the C server")
    parser.add_argument("--peers", action="store_true", help="also other clients, over HTTP")
    parser.add_argument("--profile", metavar="ROW", help="profile holdfast in this row")
    return parser.parse_args()


def chosen_rows(keys: str | None) -> list[Row]:
    known = {row.key: row for row in all_rows()}
    names = keys.split(",") if keys else list(known)
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no such row: {', '.join(unknown)} (there are: {', '.join(known)})")
    return [known[name] for name in names]


def sides_of(row: Row, chosen: list[Side]) -> list[Side]:
    """One of each family where eras and descriptors make no difference."""
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

    def __init__(self, bench: Bench, count: int, shared: bool) -> None:
        self.bench = bench
        self.count = count
        self.shared = shared
        self.ends = time.monotonic() + TOTAL_SECONDS

    def left(self) -> float:
        return self.ends - time.monotonic()

    def of(self, row: Row, chosen: list[Side], rows_left: int) -> Results:
        """As many rounds as fit into the row's share of the time that is left."""
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
            if self.left() < 0:
                raise MeasureError("out of time")
            found = row.measure(self.bench, side) if here else self.bench.apart(row, side)
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
    with http_server.running(bench.path) as web:
        yield replace(bench, web=web)


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
    command = bench.server.listing(8, legacy=side.legacy)
    code = f"import {side.imports}" if row.key == "import" else side.cold_code(command)
    done = bench.python(code, "-X", "importtime")
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    costs = sorted(lines[1:], key=lambda line: -int(line[12:].split("|")[0]))
    print("import time: self [us] | cumulative | imported package")
    print("\n".join(costs[:35]))


def main() -> int:
    chosen = arguments()
    path = sides.python_path()
    sys.path += [entry for entry in path if entry not in sys.path]
    sides.compile_sources()
    cpu = pin()
    bench = Bench(server.find(compiled=not chosen.python_server), chosen.loop, tuple(path))
    if chosen.profile:
        only = sides.chosen(chosen.only or "holdfast-handshake")
        rows = chosen_rows(chosen.profile)
        with served(bench, rows) as bench:
            profile(rows[0], only[0], bench)
        return 0
    rows = chosen_rows(chosen.rows)
    http = any(row.wire == "http" for row in rows)
    peers, note = peers_note(chosen.peers)
    load = os.getloadavg()[0]
    started = time.monotonic()
    with served(bench, rows) as bench:
        rounds = Rounds(bench, 2 if chosen.quick else chosen.rounds, chosen.shared)
        found = measure_all(rows, sides.chosen(chosen.only, peers=peers), rounds)
    about = {
        "server": bench.server.about,
        "http": http_server.about() if http else None,
        "peers": note if http else None,
        "loop": chosen.loop,
        "cpu": cpu,
        "rounds": rounds.count,
        "shared": chosen.shared,
        "load": round(load, 2),
        "seconds": round(time.monotonic() - started, 1),
    }
    print(show(found, about))
    if chosen.json:
        values = [results.as_json() for results in found]
        chosen.json.write_text(json.dumps({"about": about, "rows": values}, indent=1) + "\n")
    return 1 if any(results.failures for results in found) else 0
