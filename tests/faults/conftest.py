"""What a client keeps for as long as the process lives is there before anything is counted."""

from __future__ import annotations

import asyncio
import sys

import pytest

import holdfast
from tests.faults.rows import ROGUE


@pytest.fixture(scope="session", autouse=True)
def settled() -> None:
    """Connect once: from here on, whatever more there is has leaked."""

    async def once() -> None:
        async with holdfast.connect([sys.executable, "-I", "-S", str(ROGUE)]) as client:
            await client.open()

    asyncio.run(once())
