"""What the driver uses of asyncio that asyncio does not promise.

``Driver._resume`` hands the only answer of a read to its caller at once: it takes the callback of
the waiting task off the future and runs it in the task's own context. A Python that keeps its
callbacks otherwise would switch that off in silence (a tenth of a call), or run it wrongly. So it
fails here first. That the driver does resume so is told by the tests of the driver.
"""

from __future__ import annotations

import asyncio
import asyncio.futures
from contextvars import Context, ContextVar
from typing import Any

import pytest

_caller: ContextVar[str] = ContextVar("_caller", default="nobody")

FUTURES = [asyncio.Future, asyncio.futures._PyFuture]  # type: ignore[attr-defined]
TASKS = [asyncio.Task, asyncio.tasks._PyTask]  # type: ignore[attr-defined]


@pytest.mark.parametrize("future_type", FUTURES)
@pytest.mark.parametrize("task_type", TASKS)
async def test_a_future_lists_the_wakeup_of_its_task_and_the_context_to_run_it_in(
    future_type: Any, task_type: Any
) -> None:
    future = future_type(loop=asyncio.get_running_loop())
    assert not future._callbacks, "no callbacks: nothing to resume"

    async def wait() -> str:
        _caller.set("the task")
        return f"{await future} for {_caller.get()}"

    task = task_type(wait(), loop=asyncio.get_running_loop())
    await asyncio.sleep(0)
    assert isinstance(future._callbacks, list)
    ((wakeup, context),) = future._callbacks
    assert callable(wakeup)
    assert isinstance(context, Context)
    assert context[_caller] == "the task"
    assert future.remove_done_callback(wakeup) == 1, "it is the callback itself, not a wrapper"
    future.set_result("an answer")
    loop = asyncio.get_running_loop()
    # Outside of a task: a loop runs one at a time.
    loop.call_soon(context.run, wakeup, future)
    assert await task == "an answer for the task"


async def test_the_loops_own_futures_are_of_a_kind_that_was_looked_at() -> None:
    future = asyncio.get_running_loop().create_future()
    assert isinstance(future, tuple(FUTURES))
    future.cancel()
