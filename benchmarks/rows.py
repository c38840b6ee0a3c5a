"""The rows over stdio: what is done, how often, and what one unit of it costs.

Each measurement opens its own connection, warms it up, and times the middle alone (except the
rows that are about opening). Counts are fixed, and everything has a deadline.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench import (
    HELLO,
    Bench,
    Measure,
    MeasureError,
    Row,
    Stopwatch,
    expect,
    in_loop,
)
from benchmarks.sides import Session, Side

MIB = 1024 * 1024
STATM = Path("/proc/self/statm")
Clock = Callable[[], float]

# -- calls ---------------------------------------------------------------------------------------


def sequential(count: int = 5000, warm: int = 500) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            call = session.call_tool
            result = await call("echo", HELLO)
            for _ in range(warm):
                await call("echo", HELLO)
            with Stopwatch() as watch:
                for _ in range(count):
                    result = await call("echo", HELLO)
        expect("echo", result.content[0].text, HELLO["text"])
        return watch.seconds / count

    return in_loop(work)


def typed(count: int = 3000, warm: int = 300) -> Measure:
    """A structured result, checked against its output schema where schemas are checked."""

    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            call = side.module(bench.target(side)).place
            for _ in range(warm):
                await call(session)
            with Stopwatch() as watch:
                for _ in range(count):
                    place = await call(session)
        expect("place", (place.name, place.tags), (HELLO["text"], ["harbour", "old"]))
        return watch.seconds / count

    return in_loop(work)


def concurrent(width: int, batches: int, clock: Clock | None = None) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            call = session.call_tool
            results = await asyncio.gather(*[call("echo", HELLO) for _ in range(width)])
            with Stopwatch(clock) as watch:
                for _ in range(batches):
                    results = await asyncio.gather(*[call("echo", HELLO) for _ in range(width)])
        expect("echoes", {result.content[0].text for result in results}, {HELLO["text"]})
        return watch.seconds / (width * batches)

    return in_loop(work)


def blob(size: int, count: int, clock: Clock | None = None) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            await session.call_tool("blob", {"size": size})
            with Stopwatch(clock) as watch:
                for _ in range(count):
                    result = await session.call_tool("blob", {"size": size})
                    expect("length of the text", len(result.content[0].text), size)
        return watch.seconds / count

    return in_loop(work)


# -- notifications -------------------------------------------------------------------------------


async def all_progress(session: Session, count: int) -> None:
    """One call that reports ``count`` times; over when the last report has been delivered."""
    seen = 0
    last = asyncio.Event()

    def report(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            last.set()

    await session.call_tool("progress", {"count": count}, on_progress=report)
    try:
        async with asyncio.timeout(2):
            await last.wait()
    except TimeoutError:
        raise MeasureError(f"{seen} of {count} progress notifications delivered") from None


def progress(count: int, times: int, clock: Clock | None = None) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            await all_progress(session, 1000)
            with Stopwatch(clock) as watch:
                for _ in range(times):
                    await all_progress(session, count)
        return watch.seconds / (count * times)

    return in_loop(work)


# -- connections and lists -----------------------------------------------------------------------


def connect_and_list(tools: int, count: int) -> Measure:
    async def once(bench: Bench, side: Side) -> None:
        session = side.session(bench.target(side, tools))
        await session.open()
        expect("tools", len(await session.list_tools()), tools)
        await session.close()

    async def work(bench: Bench, side: Side) -> float:
        await once(bench, side)
        with Stopwatch() as watch:
            for _ in range(count):
                await once(bench, side)
        return watch.seconds / count

    return in_loop(work)


def list_tools(tools: int, count: int, clock: Clock | None = None) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side, tools) as session:
            await session.list_tools()
            before = await lists_served(session)
            with Stopwatch(clock) as watch:
                for _ in range(count):
                    expect("tools", len(await session.list_tools()), tools)
            expect("lists that reached the server", await lists_served(session) - before, count)
        return watch.seconds / count

    return in_loop(work)


async def lists_served(session: Session) -> int:
    """The server's own count, so that an answer from a cache cannot pass for speed."""
    return int((await session.call_tool("served", {})).content[0].text)


# -- processes -----------------------------------------------------------------------------------


def importing(times: int = 3) -> Measure:
    def measure(bench: Bench, side: Side) -> float:
        clock = "process_time" if bench.cpu else "perf_counter"
        code = (
            f"from time import {clock} as now; t = now(); "
            f"import {side.imports}; {side.proof}; print(now() - t)"
        )
        return statistics.median(float(bench.python(code).stdout) for _ in range(times))

    return measure


def cold_start(times: int = 3) -> Measure:
    def once(bench: Bench, side: Side) -> float:
        with Stopwatch() as watch:
            bench.python(side.cold_code(bench.target(side)))
        return watch.seconds

    def measure(bench: Bench, side: Side) -> float:
        return statistics.median(once(bench, side) for _ in range(times))

    return measure


def memory(connections: int = 40) -> Measure:
    """Resident bytes that each further open connection adds; only right in a fresh process."""

    async def work(bench: Bench, side: Side) -> float:
        sessions = [await bench.opened(side) for _ in range(5)]
        gc.collect()
        before = resident()
        sessions += [await bench.opened(side) for _ in range(connections)]
        gc.collect()
        grown = resident() - before
        for session in sessions:
            await session.close()
        return grown / connections

    return in_loop(work)


def resident() -> int:
    if not STATM.exists():
        raise MeasureError("needs /proc")
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- the table -----------------------------------------------------------------------------------

ROWS = (
    Row("sequential", "sequential calls", "µs", sequential(), per_second="calls/s"),
    Row("typed", "typed result, output schema", "µs", typed(), per_second="calls/s"),
    Row("c64", "64 concurrent calls", "µs", concurrent(64, 150), per_second="calls/s"),
    Row("c1000", "1000 concurrent calls", "µs", concurrent(1000, 10), per_second="calls/s"),
    Row("1mib", "1 MiB result", "ms", blob(MIB, 50)),
    Row("10mib", "10 MiB result", "ms", blob(10 * MIB, 10)),
    Row(
        "progress",
        "10,000 progress notifications",
        "µs",
        progress(10_000, 3),
        per_second="notes/s",
    ),
    Row("connect", "connect, list 100 tools, close", "ms", connect_and_list(100, 50)),
    Row("list1000", "list 1000 tools", "ms", list_tools(1000, 50)),
    Row("import", "import", "ms", importing(), eras=False, spawns=True),
    Row("cold", "process start, first answer, exit", "ms", cold_start(), spawns=True),
    Row("memory", "memory per open connection", "kB", memory()),
    Row(
        "parse",
        "parsing: client CPU per message",
        "µs",
        progress(10_000, 3, time.process_time),
        budget=0.010,
    ),
)


def all_rows() -> tuple[Row, ...]:
    from benchmarks import cli_rows, http_rows, relay_rows, scale_rows, slopes, user_rows

    users = user_rows.ROWS + scale_rows.ROWS + relay_rows.ROWS
    return ROWS + cli_rows.ROWS + http_rows.ROWS + users + slopes.ROWS


def by_key(key: str) -> Row:
    return next(row for row in all_rows() if row.key == key)
