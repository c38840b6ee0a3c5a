"""The outcome of a request that a function waits for, not a task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

import holdfast
from holdfast._core.boundary import Call
from holdfast._core.server.request import SILENCE, ServerRequest, text_result
from holdfast._core.waiting import Receiver
from holdfast.testing import Peer

pytestmark = pytest.mark.req("Y1")


class Outcomes(Receiver):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.received: list[tuple[Raw | None, Any]] = []
        self.came = asyncio.Event()

    def ended(self, result: Raw | None, error: Any) -> None:
        self.received.append((result, error))
        self.came.set()

    async def outcome(self) -> tuple[Raw | None, Any]:
        await self.came.wait()
        (outcome,) = self.received
        return outcome


async def test_a_result_comes_in_the_next_turn() -> None:
    receiver = Outcomes()
    assert not receiver.done()
    receiver.set_result(Raw(b"{}"))
    assert receiver.done()
    assert receiver.received == []
    await asyncio.sleep(0)
    assert receiver.received == [(Raw(b"{}"), None)]


async def test_an_outcome_is_given_once() -> None:
    receiver = Outcomes()
    receiver.set_exception(holdfast.TransportError("gone"))
    receiver.take(Raw(b"{}"))
    await asyncio.sleep(0)
    assert receiver.received == [(Raw(b"{}"), None)]


async def test_a_cancelled_one_is_never_called() -> None:
    receiver = Outcomes()
    receiver.set_result(Raw(b"{}"))
    receiver.cancel()
    await asyncio.sleep(0)
    assert receiver.received == []
    assert repr(receiver) == "<Outcomes done>"


async def test_a_call_that_is_begun_ends_with_its_result() -> None:
    peer = Peer("server")
    peer.on("tools/call", lambda request: text_result("hello"))
    async with holdfast.connect(peer) as client:
        await client.open()
        receiver = Outcomes()
        client._requester.driver.begin(Call("tools/call", {"name": "echo"}), receiver)
        result, error = await receiver.outcome()
        assert error is None
        assert result is not None
        assert b"hello" in bytes(result)


async def test_a_call_that_is_begun_ends_with_the_connection() -> None:
    peer = Peer("server")
    came = asyncio.Event()

    def hang(request: ServerRequest) -> Any:
        came.set()
        return SILENCE

    peer.on("tools/call", hang)
    async with holdfast.connect(peer) as client:
        await client.open()
        receiver = Outcomes()
        client._requester.driver.begin(Call("tools/call", {"name": "hang"}), receiver)
        await came.wait()
        await client.close()
        result, error = await receiver.outcome()
        assert result is None
        assert error.outcome_unknown


async def test_a_call_that_is_cancelled_is_cancelled_at_the_server() -> None:
    peer = Peer("server")
    came, gone = asyncio.Event(), asyncio.Event()

    async def hang(request: ServerRequest) -> Any:
        came.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    peer.on("tools/call", hang)
    async with holdfast.connect(peer) as client:
        await client.open()
        driver, receiver = client._requester.driver, Outcomes()
        ticket = driver.begin(Call("tools/call", {"name": "hang"}), receiver)
        await came.wait()
        driver.end(ticket, receiver)
        await gone.wait()
        assert not driver.is_calling
        assert receiver.received == []
