"""The event loop of programs that relay."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

LOOP: Final = "HOLDFAST_LOOP"
"""The variable that may ask for the loop of Python: ``asyncio``."""


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the loop of `serve` or the daemon; None: asyncio's own.

    A relayed call takes two turns of the loop. They are a quarter of what it costs, and most of
    that goes where uvloop is installed.
    """
    if os.environ.get(LOOP) == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
