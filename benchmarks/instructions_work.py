"""What `instructions` counts: one client against one server, with nothing else loaded."""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import holdfast

row, repetitions, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
HELLO = {"text": "hello, world"}


async def cold() -> None:
    async with holdfast.connect(command) as server:
        assert (await server.call_tool("echo", HELLO)).text == HELLO["text"]


async def connect() -> None:
    for _ in range(repetitions):
        async with holdfast.connect(command) as server:
            assert len(await server.list_tools()) == 100


async def call() -> None:
    async with holdfast.connect(command) as server:
        for _ in range(repetitions):
            await server.call_tool("echo", HELLO)


async def parallel() -> None:
    async with holdfast.connect(command) as server:
        for _ in range(repetitions // 64):
            await asyncio.gather(*[server.call_tool("echo", HELLO) for _ in range(64)])


async def progress() -> None:
    async with holdfast.connect(command) as server:
        await server.call_tool("progress", {"count": repetitions}, on_progress=lambda _: None)


async def written(flush: Callable[[], None], **options: Any) -> None:
    """Calls with what is written about them, every 50 of them."""
    from holdfast._core import line_queue

    # What a thread finds each time that it looks would depend on how slow the counting is.
    line_queue.GATHER = 3600.0  # type: ignore[misc]
    async with holdfast.connect(command, **options) as server:
        for number in range(repetitions):
            await server.call_tool("echo", HELLO)
            if number % 50 == 0:
                flush()


async def trace() -> None:
    from holdfast.trace.writer import TraceFile

    with tempfile.TemporaryDirectory() as folder:
        file = TraceFile(Path(folder) / "run.jsonl")
        await written(file.flush, trace=file)
        file.close()


async def call_log() -> None:
    from holdfast.calllog import CallLog

    with tempfile.TemporaryDirectory() as folder:
        log = CallLog(Path(folder) / "calls.jsonl")
        await written(log.flush, log=log)
        log.close()


async def relay() -> None:
    from holdfast._core.serve.memory import accept
    from holdfast.relay.sharing import SharedRelay

    class Relay:
        name = "relay"

        def accept(self, line: Any) -> Callable[[bytes], None]:
            return accept(shared.join().server, line).feed

    async with holdfast.connect(command) as client:
        shared, target = SharedRelay(client), cast(Any, Relay())
        async with holdfast.connect(target) as server:
            for _ in range(repetitions):
                await server.call_tool("echo", HELLO)


ROWS = {"cold": cold, "connect": connect, "call": call, "parallel": parallel, "progress": progress}
ROWS |= {"relay": relay, "trace": trace, "call-log": call_log}
asyncio.run(ROWS[row]())
