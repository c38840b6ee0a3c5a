"""Every transport keeps the same contract."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.boundary import Transport
from holdfast.testing.contract import TransportContract
from holdfast.testing.obedient import Obedient
from holdfast.transports.memory import Memory
from holdfast.transports.stdio import Stdio


@pytest.mark.req("V2", "X1", "R9", "L8")
class TestStdio(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        yield Stdio([sys.executable, "-m", "holdfast.testing.obedient"], inherit_env=["PYTHONPATH"])


@pytest.mark.req("V2", "X4")
class TestMemory(TransportContract):
    @asynccontextmanager
    async def transport(self) -> AsyncIterator[Transport]:
        yield Memory(Obedient())
