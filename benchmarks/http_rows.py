"""The rows over HTTP: the same work as over stdio, against a URL.

The server runs in one process for all of them; answers come as JSON or as event streams. Other
clients are slow enough that fewer repetitions tell as much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.bench import Bench, Found, Measure, Row
from benchmarks.rows import (
    MIB,
    blob,
    concurrent,
    connect_and_list,
    progress,
    sequential,
)
from benchmarks.server import Server
from benchmarks.sides import Side


@dataclass(frozen=True)
class Endpoint(Server):
    """A URL instead of a command; its path says how the server behaves."""

    answers: str = "json"

    def listing(self, tools: int, *, legacy: bool = False) -> str:
        era = "handshake" if legacy else "stateless"
        return f"{self.command[0]}/{era}/{self.answers}/{tools}"


def settle_allocator() -> None:
    """Let the C allocator learn a size beyond that of a read, 256 KiB on asyncio.

    Until it has, each read maps and unmaps memory, which takes as long as a fourth of a call; a
    process learns it early, late or never, by luck, and luck must not decide a ratio.
    """
    bytearray(8 * MIB)


def over_http(answers: str, ours: Measure, peers: Measure) -> Measure:
    def measure(bench: Bench, side: Side) -> Found:
        settle_allocator()
        endpoint = Endpoint((bench.web,), bench.server.about, answers)
        work = peers if side.family == "mcp" else ours
        return work(replace(bench, server=endpoint), side)

    return measure


def row(
    key: str,
    title: str,
    measure: Measure,
    *,
    unit: str = "ms",
    per_second: str | None = None,
) -> Row:
    return Row(
        f"http-{key}",
        f"HTTP {title}",
        unit,
        measure,
        per_second=per_second,
        wire="http",
        group="http",
    )


def calls(answers: str, name: str) -> tuple[Row, ...]:
    """The same three rows for each way of answering."""
    one = over_http(answers, sequential(1500, 200), sequential(200, 20))
    many = over_http(answers, concurrent(64, 25), concurrent(64, 4))
    # The official SDK refuses events of more than 1 MiB, envelope included.
    large = over_http(answers, blob(MIB, 30), blob(MIB - 1024, 5))
    return (
        row(answers, f"sequential calls, {name}", one, unit="µs", per_second="calls/s"),
        row(f"c64-{answers}", f"64 concurrent, {name}", many, unit="µs", per_second="calls/s"),
        row(f"1mib-{answers}", f"1 MiB result, {name}", large),
    )


ROWS = (
    *calls("json", "JSON"),
    *calls("sse", "SSE"),
    row(
        "progress",
        "10,000 notifications, SSE",
        over_http("sse", progress(10_000, 5), progress(10_000, 1)),
        unit="µs",
        per_second="notes/s",
    ),
    row(
        "connect",
        "connect, list 100, close",
        over_http("json", connect_and_list(100, 40), connect_and_list(100, 5)),
    ),
)
