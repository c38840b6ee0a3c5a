"""Servers behind a URL: real processes that listen on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast import Client, ToolResult, TransportError
from holdfast._core.transports.http import Http
from holdfast.calls import RunningCall
from tests.interop.catalogue import EVERYTHING
from tests.interop.home import Home
from tests.interop.processes import MARK, connections_to

LONGEST_START = 120.0
LONG = "trigger-long-running-operation"


def free_port() -> int:
    """Below those that the kernel gives to clients: nobody takes it while the server is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Hosted(Home):
    """A server that is started by us, not by the client, and can be ended and started again."""

    port: int = field(default_factory=free_port)
    said: list[str] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _reader: asyncio.Task[None] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.server.doors[self.way].path}"

    def target(self, **options: Any) -> Http:
        return Http(self.url, trust_env=False, **options)

    async def start(self) -> None:
        """Start it, and come back when it can be connected to."""
        command = self.server.doors[self.way].command(self.folder, self.work)
        self._process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "PORT": str(self.port), MARK: self.mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.said.clear()
        self._reader = asyncio.create_task(self._read(self._process))
        async with asyncio.timeout(LONGEST_START):
            while not await self._listens():
                await self._news.wait()
                self._news.clear()
                assert not self._reader.done(), "".join(self.said)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hear what it says, to the end: each line may mean that it listens by now."""
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self.said.append(line.decode("utf-8", "replace"))
                self._news.set()
        finally:
            self._news.set()

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True

    async def stop(self) -> None:
        """End it at once, with all that it started."""
        process, self._process = self._process, None
        if process is None or self._reader is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await self._reader
        assert await super().is_empty()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        try:
            await self.start()
            yield
        finally:
            await self.stop()

    def remains(self) -> int:
        return connections_to(self.port)

    async def is_empty(self) -> bool:
        return not self.remains()

    async def under_way(self, client: Client) -> RunningCall[ToolResult]:
        """A call that the server has begun, and will not answer soon."""
        if self.server is not EVERYTHING:
            call = client.start_tool("hold")
            await client.call_tool("held")
            return call
        begun = asyncio.Event()
        arguments = {"duration": 40, "steps": 400}
        call = client.start_tool(LONG, arguments, on_progress=lambda _: begun.set())
        await begun.wait()
        return call

    async def crash(self, client: Client) -> TransportError:
        call = await self.under_way(client)
        await self.restart()
        with pytest.raises(TransportError, match=self.server.name) as caught:
            await call
        await client.wait_ready(30)
        return caught.value
