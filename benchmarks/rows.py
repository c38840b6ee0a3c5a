"""The rows of the table: what is done, how often, and what one unit of it costs.

Each measurement opens its own connection, warms it up, and times the middle alone (except the
rows that are about opening). Counts are fixed, and everything has a deadline.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.server import Server
from benchmarks.sides import Session, Side

if TYPE_CHECKING:
    from cProfile import Profile

DEADLINE = 10.0
MIB = 1024 * 1024
STATM = Path("/proc/self/statm")
HELLO = {"text": "hello, world"}


class MeasureError(Exception):
    """A side did not do the work; its number would mean nothing."""


class Stopwatch:
    """Times a block, with the garbage of what came before it out of the way."""

    profiler: Profile | None = None

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds = 0.0

    def __enter__(self) -> Stopwatch:
        gc.collect()
        if self.profiler:
            self.profiler.enable()
        self.started = self.clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self.clock() - self.started
        if self.profiler:
            self.profiler.disable()


@dataclass(frozen=True)
class Bench:
    """What every measurement needs to know."""

    server: Server
    loop: str = "asyncio"
    path: tuple[str, ...] = ()
    web: str = ""

    def run(self, work: Awaitable[float]) -> float:
        async def bounded() -> float:
            async with asyncio.timeout(DEADLINE):
                return await work

        with asyncio.Runner(loop_factory=loop_factory(self.loop)) as runner:
            return runner.run(bounded())

    def python(
        self, code: str, *options: str, python: str = sys.executable
    ) -> subprocess.CompletedProcess[str]:
        """Some code in a fresh interpreter, started the same way every time."""
        done = subprocess.run(
            [python, "-P", *options, "-c", code],
            capture_output=True,
            text=True,
            timeout=DEADLINE + 2,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(self.path)),
            check=False,
        )
        if done.returncode:
            raise MeasureError(last_line(done.stderr))
        return done

    def apart(self, row: Row, side: Side) -> float:
        """The measurement in a process of its own, which no earlier one has shaped."""
        server = f"Server({self.server.command!r}, {self.server.about!r})"
        code = (
            "from benchmarks.rows import Bench, Server, by_key; "
            "from benchmarks.sides import named; "
            f"bench = Bench({server}, {self.loop!r}, web={self.web!r}); "
            f"print(by_key({row.key!r}).measure(bench, named({side.name!r})))"
        )
        return float(self.python(code, python=side.python).stdout)

    @asynccontextmanager
    async def connected(self, side: Side, tools: int = 8) -> AsyncIterator[Session]:
        session = side.session(self.server.listing(tools, legacy=side.legacy))
        await session.open()
        try:
            await session.call_tool("echo", HELLO)
            side.check(session)
            yield session
        finally:
            await session.close()


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    import uvloop

    return uvloop.new_event_loop


def last_line(text: str) -> str:
    line = (text.strip().splitlines() or ["no message"])[-1]
    return line.removeprefix(f"{MeasureError.__module__}.{MeasureError.__name__}: ")


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


def concurrent(width: int, batches: int) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            call = session.call_tool
            results = await asyncio.gather(*[call("echo", HELLO) for _ in range(width)])
            with Stopwatch() as watch:
                for _ in range(batches):
                    results = await asyncio.gather(*[call("echo", HELLO) for _ in range(width)])
        expect("echoes", {result.content[0].text for result in results}, {HELLO["text"]})
        return watch.seconds / (width * batches)

    return in_loop(work)


def blob(size: int, count: int) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            await session.call_tool("blob", {"size": size})
            with Stopwatch() as watch:
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


def progress(count: int, times: int, clock: Callable[[], float]) -> Measure:
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
        session = side.session(bench.server.listing(tools, legacy=side.legacy))
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


def list_tools(tools: int, count: int) -> Measure:
    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side, tools) as session:
            await session.list_tools()
            before = await lists_served(session)
            with Stopwatch() as watch:
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
        code = (
            "import time; t = time.perf_counter(); "
            f"import {side.imports}; {side.proof}; print(time.perf_counter() - t)"
        )
        return statistics.median(float(bench.python(code).stdout) for _ in range(times))

    return measure


def cold_start(times: int = 3) -> Measure:
    def once(bench: Bench, side: Side) -> float:
        command = bench.server.listing(8, legacy=side.legacy)
        with Stopwatch() as watch:
            bench.python(side.cold_code(command))
        return watch.seconds

    def measure(bench: Bench, side: Side) -> float:
        return statistics.median(once(bench, side) for _ in range(times))

    return measure


def memory(connections: int = 40) -> Measure:
    """Resident bytes that each further open connection adds; only right in a fresh process."""

    async def opened(bench: Bench, side: Side) -> Session:
        session = side.session(bench.server.listing(8, legacy=side.legacy))
        await session.open()
        await session.call_tool("echo", HELLO)
        return session

    async def work(bench: Bench, side: Side) -> float:
        sessions = [await opened(bench, side) for _ in range(5)]
        gc.collect()
        before = resident()
        sessions += [await opened(bench, side) for _ in range(connections)]
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

Measure = Callable[[Bench, Side], float]


def in_loop(work: Callable[[Bench, Side], Awaitable[float]]) -> Measure:
    def measure(bench: Bench, side: Side) -> float:
        return bench.run(work(bench, side))

    return measure


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise MeasureError(f"{what}: expected {str(wanted)[:60]}, got {str(found)[:60]}")


@dataclass(frozen=True)
class Row:
    """One line of work. The aim is a share of raw's time; the budget is absolute, in seconds."""

    key: str
    title: str
    unit: str
    measure: Measure
    aim: float | None = None
    budget: float | None = None
    per_second: str | None = None
    eras: bool = True
    spawns: bool = False  # starts its own processes: nothing is gained by another around them
    wire: str = "stdio"
    floors: Mapping[str, str] = field(default_factory=dict)  # of sides whose floor is not raw


ROWS = (
    Row("sequential", "sequential calls", "µs", sequential(), 0.75, per_second="calls/s"),
    Row("c64", "64 concurrent calls", "µs", concurrent(64, 150), 2.0, per_second="calls/s"),
    Row("c1000", "1000 concurrent calls", "µs", concurrent(1000, 10), 2.5, per_second="calls/s"),
    Row("1mib", "1 MiB result", "ms", blob(MIB, 50), 1.1),
    Row("10mib", "10 MiB result", "ms", blob(10 * MIB, 10), 1.1),
    Row(
        "progress",
        "10,000 progress notifications",
        "µs",
        progress(10_000, 3, time.perf_counter),
        4.0,
        per_second="notes/s",
    ),
    Row("connect", "connect, list 100 tools, close", "ms", connect_and_list(100, 50), 1.5),
    Row("list1000", "list 1000 tools", "ms", list_tools(1000, 50)),
    Row("import", "import", "ms", importing(), 1.5, eras=False, spawns=True),
    Row("cold", "process start, first answer, exit", "ms", cold_start(), 1.3, spawns=True),
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
    from benchmarks import call_rows, cli_rows, http_rows

    return ROWS + cli_rows.ROWS + call_rows.ROWS + http_rows.ROWS


def by_key(key: str) -> Row:
    return next(row for row in all_rows() if row.key == key)
