"""The price of a relay: the same calls through one and without, in turns in one process.

The server in C answers in the time of two switches of processes, so that what a relay adds shows
at its largest: `copy_relay.py` is what remains of it if a relay does nothing at all. Servers that
people use are slower by far; the rows with a server in Python show the least of that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import holdfast
from benchmarks import server
from benchmarks.server import Target
from benchmarks.user_rows import Once, echo, opened, row, shared, to_python
from holdfast._core.serve.loop import LOOP
from holdfast._core.serve.memory import accept
from holdfast._core.transports.memory import MemoryLink
from holdfast.relay.sharing import SharedRelay


class RelayServer:
    """A relay that a client can connect to in memory."""

    name = "relay"

    def __init__(self, shared: SharedRelay) -> None:
        self._shared = shared

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        return accept(self._shared.join().server, line).feed


async def in_memory(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    plain = await opened(target, stack)
    client = await stack.enter_async_context(holdfast.connect(target))
    relay: Any = RelayServer(SharedRelay(client))
    return echo(plain), echo(await opened(relay, stack))


async def on_stdio(target: Target, stack: AsyncExitStack, loop: str = "") -> tuple[Once, Once]:
    """``serve`` takes uvloop where it is installed, as it is by `make`."""
    plain = await opened(target, stack)
    command = [sys.executable, "-m", "holdfast", "serve", "--", *list(target)]
    return echo(plain), echo(await opened(command, stack, env={LOOP: loop}))


async def on_asyncio(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    return await on_stdio(target, stack, "asyncio")


async def copied(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    plain = await opened(target, stack)
    command = [sys.executable, str(server.HERE / "copy_relay.py"), *list(target)]
    return echo(plain), echo(await opened(command, stack))


ROWS = (
    row("relay-memory", "a relay in memory", in_memory),
    row("relay-stdio", "`holdfast serve` between", on_stdio),
    row("relay-copy", "a copy of bytes between", copied),
    row("relay-memory-python", "in memory, server in Python", to_python(in_memory)),
    row("relay-stdio-python", "`serve`, server in Python", to_python(on_stdio)),
    row("relay-asyncio-python", "`serve` on asyncio's loop", to_python(on_asyncio)),
    row("shared-python", "the daemon, server in Python", to_python(shared)),
    row("relay-copy-python", "a copy, server in Python", to_python(copied)),
)
