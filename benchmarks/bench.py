"""What every measurement needs: a stopwatch, a server, a loop, a process of its own."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.server import Server, Target
from benchmarks.sides import Session, Side

if TYPE_CHECKING:
    from cProfile import Profile

DEADLINE = 90.0
"""Seconds; a machine that others use gives a measurement a small share of its CPU."""
HELLO = {"text": "hello, world"}


class MeasureError(Exception):
    """A side did not do the work; its number would mean nothing."""


class Stopwatch:
    """Times a block, with the garbage of what came before it out of the way."""

    profiler: Profile | None = None
    default: Callable[[], float] = time.perf_counter

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock = clock or Stopwatch.default
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


def busy_clock(web_process: int) -> Callable[[], float]:
    """A clock of the CPU time of client and servers: on one CPU, wall time but for the others.

    It counts this process, the children that it has waited for, and those that run now, with
    theirs: a server behind a relay is a child of the relay.
    """

    def descendants(pid: str) -> Iterator[str]:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield child
                yield from descendants(child)

    def running() -> Iterator[str]:
        yield from descendants("self")
        if web_process:
            yield str(web_process)

    def clock() -> float:
        waited = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = time.process_time() + waited.ru_utime + waited.ru_stime
        nanoseconds = [Path(f"/proc/{pid}/schedstat").read_text().split()[0] for pid in running()]
        return spent + sum(map(int, nanoseconds)) / 1e9

    return clock


@dataclass(frozen=True)
class Bench:
    """The server, the loop, and how to run work on them."""

    server: Server
    loop: str = "asyncio"
    path: tuple[str, ...] = ()
    web: str = ""
    web_process: int = 0
    cpu: bool = False

    def run(self, work: Awaitable[Found]) -> Found:
        async def bounded() -> Found:
            async with asyncio.timeout(DEADLINE):
                return await work

        with asyncio.Runner(loop_factory=loop_factory(self.loop)) as runner:
            return runner.run(bounded())

    def measure(self, row: Row, side: Side) -> Found:
        """The measurement in this process."""
        Stopwatch.default = busy_clock(self.web_process) if self.cpu else time.perf_counter
        return row.measure(self, side)

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

    def apart(self, row: Row, side: Side) -> Found:
        """The measurement in a process of its own, which no earlier one has shaped."""
        server = f"Server({self.server.command!r}, {self.server.about!r})"
        code = (
            "import json; from benchmarks.bench import Bench, Server; "
            "from benchmarks.rows import by_key; from benchmarks.sides import named; "
            f"bench = Bench({server}, {self.loop!r}, web={self.web!r}, "
            f"web_process={self.web_process}, cpu={self.cpu}); "
            f"print(json.dumps(bench.measure(by_key({row.key!r}), named({side.name!r}))))"
        )
        found: Found = json.loads(self.python(code, python=side.python).stdout)
        return found

    def target(self, side: Side, tools: int = 8) -> Target:
        return self.server.listing(tools, legacy=side.legacy)

    @asynccontextmanager
    async def connected(self, side: Side, tools: int = 8) -> AsyncIterator[Session]:
        session = await self.opened(side, tools)
        try:
            side.check(session)
            yield session
        finally:
            await session.close()

    async def opened(self, side: Side, tools: int = 8) -> Session:
        """A client that has listed and made a call, so that whatever it does once is done.

        Holdfast lists the tools before the first call by itself: so does every other side.
        """
        session = side.session(self.target(side, tools))
        await session.open()
        await session.list_tools()
        await session.call_tool("echo", HELLO)
        return session


Found = float | dict[str, float]
"""Seconds or bytes for one unit of work; by name where one measurement has more than one."""
Measure = Callable[[Bench, Side], Found]


@dataclass(frozen=True)
class Row:
    """One line of work. Its aim is in `aims.AIMS`; a budget is absolute, in seconds."""

    key: str
    title: str
    unit: str
    measure: Measure
    budget: float | None = None
    per_second: str | None = None
    eras: bool = True
    spawns: bool = False  # starts its own processes: nothing is gained by another around them
    wire: str = "stdio"
    only: tuple[str, ...] = ()  # the sides to measure; all by default
    group: str = "main"
    size: int = 0  # on a slope: how much work one measurement is


def in_loop(work: Callable[[Bench, Side], Awaitable[Found]]) -> Measure:
    def measure(bench: Bench, side: Side) -> Found:
        return bench.run(work(bench, side))

    return measure


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    import uvloop

    return uvloop.new_event_loop


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise MeasureError(f"{what}: expected {str(wanted)[:60]}, got {str(found)[:60]}")


def last_line(text: str) -> str:
    line = (text.strip().splitlines() or ["no message"])[-1]
    return line.removeprefix(f"{MeasureError.__module__}.{MeasureError.__name__}: ")
