"""Deadlines that pass without being waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward: deadlines pass without being waited for."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


def skip(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippingLoop)
    loop.skipped += seconds


def run_skipping(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(work)
