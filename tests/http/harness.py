"""What the tests over HTTP share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any

import holdfast
from holdfast.errors import HoldfastError
from tests.http.rogue import PATIENCE, Rogue

QUICK = holdfast.Backoff(first=0.01, max=0.05, jitter=0)
ONCE = holdfast.Backoff(first=60, max=60)


def connect(server: Rogue | str, **options: Any) -> holdfast.Client:
    url = server if isinstance(server, str) else server.url
    options.setdefault("backoff", ONCE)
    # On a busy machine an answer to the probe may take longer than people wait for it.
    options.setdefault("timeouts", holdfast.Timeouts(probe=8.0))
    return holdfast.connect(url, **options)


async def say(client: holdfast.Client, words: str = "ahoy", **options: Any) -> str:
    """A call that works; what it said."""
    return (await client.call_tool("echo", {"text": words}, **options)).text


async def failure(work: Awaitable[Any]) -> HoldfastError:
    """How something fails; it must be in one of our own ways, and soon."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await work
    except HoldfastError as error:
        return error
    raise AssertionError(f"no failure, but {found!r}")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def tasks() -> set[str]:
    """What runs besides the test."""
    return {
        str(task.get_coro()) for task in asyncio.all_tasks() if task is not asyncio.current_task()
    }
