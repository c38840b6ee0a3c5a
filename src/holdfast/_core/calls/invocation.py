"""A tool call as a value: what came of it, whether good or bad."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from msgspec import Struct

from holdfast.errors import HoldfastError
from holdfast.types.tools import ToolResult


class Invocation(Struct, frozen=True, kw_only=True):
    """What came of one call. ``duration`` is in seconds.

    ``content`` is the tool's, also when it failed; ``error`` says in words why there is no
    success; ``result`` and ``exception`` are the whole of what was returned or raised.
    """

    success: bool
    content: list[Any]
    error: str | None
    duration: float
    result: ToolResult | None = None
    exception: HoldfastError | None = None


async def invoke(call: Awaitable[ToolResult]) -> Invocation:
    """Await a call; its own failure becomes a value."""
    began = time.perf_counter()
    try:
        result = await call
    except HoldfastError as error:
        duration = time.perf_counter() - began
        return Invocation(
            success=False, content=[], error=str(error), duration=duration, exception=error
        )
    return Invocation(
        success=not result.is_error,
        content=result.content,
        error=(result.text or "The tool failed and gave no reason.") if result.is_error else None,
        duration=time.perf_counter() - began,
        result=result,
    )
