"""Every transport keeps the same contract."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast._core.boundary import Transport
from holdfast._core.transports.memory import Memory
from holdfast._core.transports.stdio import Stdio
from holdfast.testing.contract import TransportContract
from holdfast.testing.echo_server import EchoServer


@pytest.mark.req("V2", "X1", "R9", "L8")
class TestStdio(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        yield Stdio(
            [sys.executable, "-m", "holdfast.testing.echo_server"], inherit_env=["PYTHONPATH"]
        )


@pytest.mark.req("V2", "X1", "R9", "L8", "S5")
class TestStdioByThreads(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        command = [sys.executable, "-m", "holdfast.testing.echo_server"]
        yield Stdio(command, inherit_env=["PYTHONPATH"], threads=True)


@pytest.mark.req("V2", "X4")
class TestMemory(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        yield Memory(EchoServer())
