"""Runs the handlers of a server side that wait, on the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from holdfast._core.server.request import ServerRequest


class LoopRunner:
    """Runs each handler that waits as a task of the running loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<LoopRunner {len(self._tasks)} tasks>"

    def start(self, request: ServerRequest, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        request.stop = task.cancel

    def answer(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)
