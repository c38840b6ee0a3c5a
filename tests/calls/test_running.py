"""A running call gives its progress as it comes, and ends with the call."""

from __future__ import annotations

import asyncio
import sys

import pytest

import holdfast
from holdfast import Progress, ValidationError
from holdfast._core.calls.call_values import MOST_PROGRESS
from holdfast.testing import SILENCE, Peer

DEMO = [sys.executable, "-m", "holdfast.demo.server"]

pytestmark = pytest.mark.req("N3")


async def test_progress_is_iterated_over_and_the_result_awaited() -> None:
    async with holdfast.connect(DEMO) as client:
        running = client.start_tool("countdown", {"steps": 3})
        steps = [progress.progress async for progress in running]
        result = await running
    assert steps == [1, 2, 3]
    assert result.text


async def test_a_handler_of_the_caller_hears_it_too() -> None:
    heard: list[Progress] = []

    async def hear(progress: Progress) -> None:
        heard.append(progress)

    async with holdfast.connect(DEMO) as client:
        running = client.start_tool("countdown", {"steps": 2}, on_progress=hear)
        assert [progress.progress async for progress in running] == [1, 2]
        await running
    assert [progress.progress for progress in heard] == [1, 2]


async def test_the_end_of_a_failed_call_ends_the_loop_and_awaiting_it_raises() -> None:
    async with holdfast.connect(DEMO) as client:
        running = client.start_tool("countdown", {"steps": "many"})
        assert [progress async for progress in running] == []
        with pytest.raises(ValidationError, match="steps"):
            await running


async def test_a_cancelled_call_ends_the_loop() -> None:
    async with holdfast.connect(DEMO) as client:
        running = client.start_tool("countdown", {"steps": 1000, "seconds": 3600})
        asyncio.get_running_loop().call_later(0, running.cancel)
        async for _ in running:
            pass
        with pytest.raises(holdfast.errors.CancelledCallError):
            await running


async def test_progress_that_nobody_takes_is_bounded() -> None:
    peer = Peer()

    @peer.tool()
    def busy() -> str:
        return "never asked"

    peer.on("tools/call", SILENCE)
    async with holdfast.connect(peer) as client:
        running = client.start_tool("busy")
        incoming = await peer.expect("tools/call")
        for number in range(MOST_PROGRESS + 10):
            peer.progress(incoming, number)
        peer.respond(incoming, {"content": [{"type": "text", "text": "done"}]})
        assert (await running).text == "done"
        steps = [progress.progress async for progress in running]
    assert len(steps) == MOST_PROGRESS
    assert steps[-1] == MOST_PROGRESS + 9


def test_without_await_it_is_a_plain_loop() -> None:
    with holdfast.sync.connect(DEMO) as client:
        running = client.start_tool("countdown", {"steps": 3})
        assert [progress.progress for progress in running] == [1, 2, 3]
        assert running.result().text
