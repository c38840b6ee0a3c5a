"""Cost against the amount of work: it must not grow faster than the work does.

Each row of a slope is the client's CPU time for one amount of work; `fit` gives the exponent of
cost over amount (1: linear) by least squares in logarithms.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.aims import CONSTANT, LINEAR
from benchmarks.bench import HELLO, Bench, Found, Measure, Row, Stopwatch, expect, in_loop
from benchmarks.rows import MIB, blob, concurrent, list_tools
from benchmarks.sides import Session, Side

CPU: Final = time.process_time
SIDES: Final = ("raw-fd", "holdfast-stateless")
MARGIN: Final = 0.1
"""The most that an exponent may be above that of the bare loop, whose caches overflow too."""


@dataclass(frozen=True)
class Slope:
    key: str
    title: str
    sizes: tuple[int, ...]
    measure: Callable[[int], Measure]
    most: float = LINEAR

    @property
    def linear(self) -> bool:
        return self.most == LINEAR

    @property
    def keys(self) -> list[str]:
        return [f"{self.key}-{size}" for size in self.sizes]

    def rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(
                f"{self.key}-{size}",
                f"{size:,} {self.title}",
                "ms",
                self.measure(size),
                only=SIDES,
                group="slopes",
                size=size,
            )
            for size in self.sizes
        )


def known_tools(tools: int) -> Measure:
    """Calls while this many tools are known."""

    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side, tools) as session:
            await session.list_tools()
            with Stopwatch(CPU) as watch:
                for _ in range(1000):
                    await session.call_tool("echo", HELLO)
        return watch.seconds / 1000

    return in_loop(work)


def clients(count: int) -> Measure:
    """Clients opened, called and closed, a hundred at a time."""

    async def work(bench: Bench, side: Side) -> float:
        await close_all(await open_all(bench, side, 1))
        with Stopwatch(CPU) as watch:
            sessions = await open_all(bench, side, count)
            await close_all(sessions)
        return watch.seconds

    return in_loop(work)


def client_calls(count: int) -> Measure:
    """A call on each of the clients that are open, all at once."""

    async def work(bench: Bench, side: Side) -> float:
        sessions = await open_all(bench, side, count)
        times = max(2, 1000 // count)
        with Stopwatch(CPU) as watch:
            for _ in range(times):
                calls = [session.call_tool("echo", HELLO) for session in sessions]
                results = await asyncio.gather(*calls)
        expect("echoes", {result.content[0].text for result in results}, {HELLO["text"]})
        await close_all(sessions)
        return watch.seconds / times

    return in_loop(work)


async def open_all(bench: Bench, side: Side, count: int) -> list[Session]:
    sessions: list[Session] = []
    while missing := min(100, count - len(sessions)):
        sessions += await asyncio.gather(*[bench.opened(side) for _ in range(missing)])
    return sessions


async def close_all(sessions: list[Session]) -> None:
    for start in range(0, len(sessions), 100):
        await asyncio.gather(*[session.close() for session in sessions[start : start + 100]])


def at_once(width: int) -> Measure:
    one = concurrent(width, max(2, 4000 // width), CPU)

    def measure(bench: Bench, side: Side) -> Found:
        found = one(bench, side)
        assert isinstance(found, float)
        return found * width

    return measure


SLOPES: Final = (
    Slope(
        "tools",
        "tools listed",
        (10, 100, 1000, 10_000),
        lambda size: list_tools(size, max(5, 2000 // size), CPU),
    ),
    Slope("known", "tools known, one call", (10, 100, 1000, 10_000), known_tools, CONSTANT),
    Slope("clients", "clients opened and closed", (1, 10, 100, 1000), clients),
    Slope("client-calls", "clients, a call on each", (1, 10, 100, 1000), client_calls),
    Slope("in-flight", "calls in flight", (1, 10, 100, 1000, 10_000, 20_000), at_once),
    Slope(
        "result",
        "bytes of result",
        (1000, 16_000, 256_000, 4 * MIB, 16 * MIB - 1024),  # its frame is within the limit
        lambda size: blob(size, max(5, min(1000, 20 * MIB // size)), CPU),
    ),
)

ROWS: Final = tuple(row for slope in SLOPES for row in slope.rows())


def fit(points: Sequence[tuple[float, float]]) -> float:
    """Return the exponent of the power that runs closest to the points."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points]
    sizes, costs = [size for size, _ in logs], [cost for _, cost in logs]
    return statistics.linear_regression(sizes, costs).slope


def upper(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """The larger half, three at least: fixed costs hide growth among the small ones."""
    return points[-max(3, math.ceil(len(points) / 2)) :]


def grows_too_fast(slope: Slope, exponent: float, floor: float | None) -> bool:
    return exponent > max(slope.most, (floor or 0.0) + MARGIN)
