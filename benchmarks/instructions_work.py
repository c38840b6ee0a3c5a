"""What `instructions` counts: one client against one server, with nothing else loaded."""

import asyncio
import sys

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


ROWS = {"cold": cold, "connect": connect, "call": call, "parallel": parallel, "progress": progress}
asyncio.run(ROWS[row]())
