"""Tell exceptions of the application's callbacks from those that must propagate.

A callback may raise anything, `asyncio.CancelledError` of a task of its own included. Only an
exception that ends the program, or the task that runs the callback, propagates.
"""

from __future__ import annotations

import asyncio
from typing import Final

EXITS: Final = (KeyboardInterrupt, SystemExit)
"""The exceptions that end the program: they leave plain functions as well."""


def ends_task(error: BaseException) -> bool:
    """Return True if an exception out of an awaited callback ends the task that awaits it."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        # Python throws it into a coroutine that is closed; then no task runs.
        try:
            return asyncio.current_task() is None
        except RuntimeError:  # the loop is closed
            return True
    return isinstance(error, EXITS)
