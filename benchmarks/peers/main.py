"""Holdfast beside other clients: the same work in turns, and the same faults.

A full run writes results.json, the page and the plot; a part of it only prints, unless --write.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from benchmarks import http_server, server, sides
from benchmarks.main import pin
from benchmarks.peers import clients, faults, report, results, rows
from benchmarks.peers.clients import OURS, ROOT, Client
from benchmarks.peers.install import install_all
from benchmarks.peers.link import DriverError
from benchmarks.peers.results import Measured, Results
from benchmarks.peers.rows import Bench, Row
from benchmarks.report import processor

ROUNDS, SECONDS = 5, 0.4
QUICK_ROUNDS, QUICK_SECONDS = 1, 0.15
LONGEST = 330.0
"""Seconds for all rows together; on a slow machine there are fewer rounds."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument(
        "--quick", action="store_true", help="one short round, without what takes long"
    )
    parser.add_argument("--rows", help=f"some of {','.join(row.key for row in rows.ROWS)}, or none")
    parser.add_argument(
        "--faults", help=f"some of {','.join(fault.key for fault in faults.FAULTS)}, or none"
    )
    parser.add_argument(
        "--only", help=f"some of {','.join(client.name for client in clients.CLIENTS)}"
    )
    parser.add_argument("--write", action="store_true", help="write the page even from a part")
    parser.add_argument("--page", action="store_true", help="write the page from what is kept")
    return parser.parse_args()


def tell(text: str) -> None:
    """Where it is, for a person who waits."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


# -- speed ---------------------------------------------------------------------------------------


def in_turn(chosen: Sequence[Client], number: int) -> list[Client]:
    """Another one first every round, and none always after the same."""
    start = number % len(chosen)
    first, *rest = [*chosen[start:], *chosen[:start]]
    return [first, *(rest if number % 2 == 0 else rest[::-1])]


@dataclass
class Rounds:
    """How often all of it is measured, and until when at the latest."""

    count: int
    clock: Callable[[], float] = time.monotonic

    def measure(
        self, bench: Bench, chosen: Sequence[Client], wanted: Sequence[Row]
    ) -> list[Measured]:
        """Round by round, each over all rows: what the machine does in between hits all rows."""
        found = [Measured(row.key, row.title, row.unit) for row in wanted]
        started = self.clock()
        for number in range(self.count):
            for row, measured in zip(wanted, found, strict=True):
                tell(f"round {number + 1} of {self.count}: {row.title} …")
                for client in in_turn(chosen, number):
                    once(row, bench, client, measured)
            spent = self.clock() - started
            if spent + spent / (number + 1) > LONGEST:
                break
        tell("")
        return found


def once(row: Row, bench: Bench, client: Client, measured: Measured) -> None:
    """A client that fails must not hide the others; its round stays empty, and the page says so."""
    try:
        value = row.measure(bench, client)
    except (DriverError, subprocess.TimeoutExpired) as error:
        measured.failures[client.name] = str(error)[:160]
        measured.add(client.name, None)
    else:
        measured.add(client.name, value)


# -- the run -------------------------------------------------------------------------------------


def versions(chosen: Sequence[Client]) -> dict[str, str]:
    return {client.name: client.version or our_version() for client in chosen}


def our_version() -> str:
    try:
        return metadata.version("holdfast")
    except metadata.PackageNotFoundError:
        return "from the tree"


def node_version() -> str:
    node = shutil.which("node")
    if node is None:
        return "no Node.js"
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    return f"Node.js {done.stdout.strip().lstrip('v')}"


def selected_rows(chosen: argparse.Namespace) -> list[Row]:
    if chosen.rows == "none":
        return []
    if chosen.quick and not chosen.rows:
        return [row for row in rows.ROWS if row.key not in ("sse", "http-memory")]
    return rows.chosen(chosen.rows)


def selected_faults(chosen: argparse.Namespace) -> list[faults.Fault]:
    match chosen.faults:
        case None:
            return faults.quick() if chosen.quick else list(faults.FAULTS)
        case "none":
            return []
    known = {fault.key for fault in faults.FAULTS}
    if unknown := [key for key in chosen.faults.split(",") if key not in known]:
        raise SystemExit(f"no such fault: {', '.join(unknown)}")
    return [faults.named(key) for key in chosen.faults.split(",")]


def run(chosen: argparse.Namespace) -> Results:
    wanted = selected_rows(chosen)
    misbehaviours = selected_faults(chosen)
    tell("installing …")
    there, missing = install_all(clients.chosen(chosen.only))
    about: dict[str, Any] = {
        "machine": f"{processor()}, {os.cpu_count()} CPUs, {platform.system()}",
        "load": round(os.getloadavg()[0], 2),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "node": node_version(),
        "http": http_server.about(),
        "seconds_each": QUICK_SECONDS if chosen.quick else SECONDS,
    }
    started = time.monotonic()
    # Before anything is pinned: a flood and the client that it hits may have a CPU each.
    outcomes = faults.run(there, misbehaviours, tell) if misbehaviours else {}
    echo, cpu = server.find(), pin()
    with http_server.running((str(ROOT), str(ROOT / "src"))) as (web, _):
        bench = Bench(echo, web, about["seconds_each"])
        count = chosen.rounds or (QUICK_ROUNDS if chosen.quick else ROUNDS)
        found = Rounds(count).measure(bench, there, wanted)
    about |= {
        "server": echo.about,
        "pinned": "not pinned to a CPU" if cpu is None else "on one CPU",
        "rounds": max((len(row.values.get(OURS.name, [])) for row in found), default=0),
        "seconds": round(time.monotonic() - started),
    }
    return Results(about, versions(there), missing, found, outcomes)


def main() -> int:
    chosen = arguments()
    if chosen.page:
        report.write(results.read())
        return 0
    sides.compile_sources()
    found = run(chosen)
    print(report.text(found))
    print(f"{found.about['seconds']} s in all")
    partial = chosen.quick or chosen.rows or chosen.faults or chosen.only
    if chosen.write or not partial:
        found.write()
        report.write(results.read())  # what is kept is rounded, and the page is made from that
        print(f"written: {results.KEPT.relative_to(ROOT)}, {report.PAGE.relative_to(ROOT)}")
    return 1 if found.missing or any(row.failures for row in found.rows) else 0
