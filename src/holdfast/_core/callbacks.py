"""What functions of the application may raise: it ends nothing but themselves.

A callback may raise anything, `asyncio.CancelledError` of a task of its own included. Only the
end of the program, and of the task that runs the callback, go further.
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
        return not _in_task()
    return isinstance(error, EXITS)


def _in_task() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # there is no loop any more
        return False
