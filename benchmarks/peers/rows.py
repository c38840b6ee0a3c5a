"""What is measured of each client, and how one number of it comes about.

Every measurement has a driver of its own, fresh, against servers that are the same for all: the
small C server on stdio, and one process that serves HTTP. All speak the handshake era, which is
the one that every client here knows.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.peers.clients import Client
from benchmarks.peers.link import DriverError, driver
from benchmarks.server import Server

MIB: Final = 1024 * 1024
LONGEST: Final = 30.0
"""Seconds after which a measurement is given up."""
FIRST, CONNECTIONS = 20, 60
"""Open before memory is looked at, and then opened in addition."""
TOOLS: Final = 100


@dataclass(frozen=True)
class Bench:
    """What every measurement needs to know."""

    server: Server
    web: str
    seconds: float = 0.5

    def stdio(self, tools: int = 8) -> Any:
        return self.server.listing(tools, legacy=True)

    def http(self, answers: str, tools: int = 8) -> str:
        return f"{self.web}/handshake/{answers}/{tools}"


Measure = Callable[[Bench, Client], float]


@dataclass(frozen=True)
class Row:
    """One line of work; its number is seconds, or bytes, for one unit of it: less is better."""

    key: str
    title: str
    unit: str
    measure: Measure


def ordered(work: str, target: Callable[[Bench], Any], **details: Any) -> Measure:
    """A measurement that the driver makes itself."""

    def measure(bench: Bench, client: Client) -> float:
        order = {"work": work, "target": target(bench), "seconds": bench.seconds, **details}
        with driver(client) as started:
            reply = started.ask(LONGEST, "measure", **order)
            if reply.ended != "answer":
                why = f"{reply.kind} {reply.message}".strip() or started.said_last()
                raise DriverError(f"{reply.ended}: {why}")
            return float(reply.value)

    return measure


def importing(bench: Bench, client: Client) -> float:
    return float(whole_program(client, "import"))


def cold_start(bench: Bench, client: Client) -> float:
    target = json.dumps(bench.stdio())
    started = time.perf_counter()
    whole_program(client, "cold", target)
    return time.perf_counter() - started


def whole_program(client: Client, *order: str) -> str:
    done = subprocess.run(
        [*client.command(), *order],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env=client.environment(),
        check=False,
    )
    if done.returncode:
        raise DriverError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return done.stdout


def calls(target: Callable[[Bench], Any], width: int) -> Measure:
    return ordered("calls", target, width=width)


ROWS: Final = (
    Row("sequential", "stdio, one call after another", "µs", calls(Bench.stdio, 1)),
    Row("c64", "stdio, 64 calls at once", "µs", calls(Bench.stdio, 64)),
    Row("1mib", "stdio, result of 1 MiB", "ms", ordered("blob", Bench.stdio, size=MIB)),
    Row(
        "connect",
        "stdio, connect, list 100 tools, close",
        "ms",
        ordered("connect", lambda bench: bench.stdio(TOOLS), tools=TOOLS),
    ),
    Row("http", "HTTP, one call after another", "µs", calls(lambda b: b.http("json"), 1)),
    Row("http-c64", "HTTP, 64 calls at once", "µs", calls(lambda b: b.http("json"), 64)),
    Row("sse", "HTTP, one after another, as events", "µs", calls(lambda b: b.http("sse"), 1)),
    Row("sse-c64", "HTTP, 64 at once, as events", "µs", calls(lambda b: b.http("sse"), 64)),
    Row("import", "import", "ms", importing),
    Row("cold", "process start, first answer, exit", "ms", cold_start),
    Row(
        "memory",
        "memory of one more connection, stdio",
        "kB",
        ordered("memory", Bench.stdio, first=FIRST, connections=CONNECTIONS),
    ),
    Row(
        "http-memory",
        "memory of one more connection, HTTP",
        "kB",
        ordered("memory", lambda b: b.http("json"), first=FIRST, connections=CONNECTIONS),
    ),
)


def chosen(keys: str | None) -> list[Row]:
    known = {row.key: row for row in ROWS}
    names = keys.split(",") if keys else list(known)
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no such row: {', '.join(unknown)} (there are: {', '.join(known)})")
    return [known[name] for name in names]
