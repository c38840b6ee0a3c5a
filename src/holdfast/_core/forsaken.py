"""Clients that are collected without having been closed."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Final

from holdfast._core.driver import Driver
from holdfast._core.engine.state import State

# A client that is collected without having been closed would leave its server running: the loop
# holds the readers of the pipes, these the link, and that the driver. Nobody can call the driver
# any more. So the client forsakes it when it goes. That may happen in any thread and at any time:
# the loop may run, have stopped, or be closed.

_OVER: Final = frozenset({State.NEW, State.CLOSING, State.CLOSED})
_closing: Final[set[asyncio.Task[None]]] = set()
"""Drivers that close themselves. A loop holds its tasks weakly."""


def forsake(driver: Driver) -> bool:
    """End what nobody can close any more; return False if there is nothing to end.

    A fork's child has a copy of the client, and its parent the server.
    """
    if driver.engine.state in _OVER or driver.pid != os.getpid():
        return False
    if driver.loop.is_running():
        with suppress(RuntimeError):  # It was closed in this moment.
            driver.loop.call_soon_threadsafe(_close, driver)
            return True
    driver.abandon()
    return True


def _close(driver: Driver) -> None:
    closing = driver.loop.create_task(driver.close())
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)
