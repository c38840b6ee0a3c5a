"""Tell exceptions of the application's callbacks from those that must propagate.

A callback may raise anything, `asyncio.CancelledError` of a task of its own included. Only an
exception that ends the program, or the task that runs the callback, propagates.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

log: logging.Logger = logging.getLogger("holdfast")

EXITS: Final = (KeyboardInterrupt, SystemExit)
"""The exceptions that end the program: they leave plain functions as well."""
LONG: Final = 0.1
"""Seconds for which a plain function may hold the event loop."""
MOST_SLOW: Final = 1000
_slow: set[tuple[str, int]] = set()
"""The functions that were reported, by name and line."""


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


# Plain functions on the loop.
#
# A handler that is a plain function and only looks at a value (progress, notifications, events,
# records, lines of stderr, headers) is called on the event loop, at once: a thread for each would
# cost more than most of them do, and would lose their order. So one that blocks holds up every
# call of every client. Nobody sees that from outside: calls are slow, or time out, somewhere else.
# Each call of such a function is therefore timed (two readings of a clock), and the first time
# that one takes too long, it is named in the log. Once: it will be as slow the next time.


def call_plain(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the application on the event loop; report one that holds it for long."""
    began = perf_counter()
    try:
        return handler(*arguments)
    finally:
        held = perf_counter() - began
        if held > LONG:
            _report_slow(handler, held)


def _report_slow(handler: Callable[..., Any], held: float) -> None:
    function = _function(handler)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    place = f"{getattr(function, '__module__', None)}.{name}"
    key = (place, getattr(code, "co_firstlineno", 0))
    if key in _slow or len(_slow) >= MOST_SLOW:
        return
    _slow.add(key)
    if code is not None:
        place += f" ({code.co_filename}:{code.co_firstlineno})"
    log.warning(
        "the handler %s held the event loop for %.0f ms, and every call with it; "
        "make it async, or hand the work to a thread",
        place,
        held * 1000,
    )


def _function(handler: Callable[..., Any]) -> Any:
    """Return the function inside of wrappers, partials and bound methods."""
    for _ in range(20):
        inner = getattr(handler, "__wrapped__", None) or getattr(handler, "func", None)
        inner = inner or getattr(handler, "__func__", None)
        if inner is None:
            break
        handler = inner
    return handler
