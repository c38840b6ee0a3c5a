"""The rows about what stands between a verb and the wire: checks, subscribers, the cache.

raw does the plain work beside them, so that its ratio to ``sequential calls`` shows the cost.
"""

from __future__ import annotations

from typing import Any

from benchmarks.rows import (
    HELLO,
    Bench,
    Measure,
    Row,
    Stopwatch,
    expect,
    in_loop,
    lists_served,
    sequential,
)
from benchmarks.sides import Session, Side


async def timed_calls(session: Any, count: int = 5000, warm: int = 500) -> float:
    call = session.call_tool
    for _ in range(warm):
        await call("echo", HELLO)
    with Stopwatch() as watch:
        for _ in range(count):
            await call("echo", HELLO)
    return watch.seconds / count


def checked() -> Measure:
    """Calls of a tool whose schema is known: the arguments are checked each time."""

    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            await session.list_tools()
            await refuses(session)
            return await timed_calls(session)

    return beside_raw(in_loop(work))


async def refuses(session: Session) -> None:
    """That something is checked at all."""
    try:
        await session.call_tool("echo", {"text": 5})
    except Exception as error:
        expect("error", type(error).__name__, "ValidationError")
    else:
        expect("a check of the arguments", "none", "one")


def heard() -> Measure:
    """Calls while somebody listens to the events of each."""

    async def work(bench: Bench, side: Side) -> float:
        async with bench.connected(side) as session:
            events: list[Any] = []
            session.events.subscribe(events.append)  # type: ignore[attr-defined]
            await session.call_tool("echo", HELLO)
            expect("events of one call", len(events), 2)
            return await timed_calls(session)

    return beside_raw(in_loop(work))


def beside_raw(measure: Measure) -> Measure:
    plain = sequential()

    def either(bench: Bench, side: Side) -> float:
        return plain(bench, side) if side.family == "raw" else measure(bench, side)

    return either


def kept_list(tools: int, count: int) -> Measure:
    """Lists that holdfast keeps; raw has to ask each time."""

    async def work(bench: Bench, side: Side) -> float:
        command = bench.server.listing(tools, legacy=side.legacy)
        keeps = side.family != "raw"
        session = side.module().keeping(command) if keeps else side.session(command)
        await session.open()
        try:
            await session.list_tools()
            before = await lists_served(session)
            with Stopwatch() as watch:
                for _ in range(count):
                    expect("tools", len(await session.list_tools()), tools)
            asked = await lists_served(session) - before
            expect("lists that reached the server", asked, 0 if keeps else count)
        finally:
            await session.close()
        return watch.seconds / count

    return in_loop(work)


ROWS = (
    Row("checked", "calls, arguments checked", "µs", checked(), per_second="calls/s"),
    Row("heard", "calls, with a subscriber", "µs", heard(), per_second="calls/s"),
    Row("kept", "list 1000 tools, kept", "ms", kept_list(1000, 50), eras=False),
)
