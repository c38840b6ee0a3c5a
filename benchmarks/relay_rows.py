"""The price of a relay: the same calls through one and without, in turns in one process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import holdfast
from benchmarks.server import Target
from benchmarks.user_rows import Once, echo, opened, row
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


async def on_stdio(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    plain = await opened(target, stack)
    command = [sys.executable, "-m", "holdfast", "serve", "--", *list(target)]
    return echo(plain), echo(await opened(command, stack))


ROWS = (
    row("relay-memory", "a relay in memory", in_memory),
    row("relay-stdio", "`holdfast serve` between", on_stdio),
)
