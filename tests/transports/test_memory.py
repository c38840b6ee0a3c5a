"""The in-process transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast._core import boundary as b
from holdfast._core.transports.memory import Memory, MemoryLink
from holdfast.policies import Limits
from holdfast.testing import Peer


@pytest.mark.req("X4")
async def test_a_client_talks_to_a_server_in_the_same_process() -> None:
    peer = Peer("inside")
    peer.tool("say")(lambda: "hello")
    async with holdfast.connect(Memory(peer)) as client:
        assert client.name == "inside"
        assert (await client.call_tool("say")).text == "hello"
    assert "inside" in repr(Memory(peer))


@pytest.mark.req("X4", "R9")
async def test_a_message_over_the_limit_ends_the_link() -> None:
    peer = Peer()
    peer.tool("big")(lambda: "x" * 100_000)
    limits = holdfast.Limits(frame_bytes=50_000)
    async with holdfast.connect(peer, limits=limits) as client:
        with pytest.raises(holdfast.ProtocolError, match="50000") as caught:
            await client.call_tool("big")
        assert caught.value.kind == "protocol"


class Answering:
    """A server that answers a frame at once, or when it is told to."""

    name = "answering"
    key = None

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once
        self.frames: list[bytes] = []
        self.line: Any = None

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        self.line = line
        return self.take

    def take(self, frame: bytes) -> None:
        self.frames.append(frame)
        if self.at_once:
            self.line.write(b"answer\n")


async def opened(server: Any) -> tuple[MemoryLink, list[b.Report]]:
    reports: list[b.Report] = []
    link = Memory(server).open(b.Generation(1), Limits(), reports.append)
    await asyncio.sleep(0)
    assert [type(report) for report in reports] == [b.Opened]
    reports.clear()
    return link, reports


@pytest.mark.req("X4")
async def test_an_answer_arrives_after_the_end_of_the_sending() -> None:
    server = Answering(at_once=True)
    link, reports = await opened(server)
    assert link.send(b"question\n", b.WireId(1))
    assert server.frames == [b"question\n"]
    assert not reports
    assert link.unsent() == frozenset()
    await asyncio.sleep(0)
    assert [report.data for report in reports if type(report) is b.Delivered] == [b"answer\n"]


@pytest.mark.req("X4")
async def test_what_a_server_writes_in_its_own_turn_arrives_in_order() -> None:
    server = Answering(at_once=False)
    link, reports = await opened(server)
    loop = asyncio.get_running_loop()
    counts: list[int] = []

    def turn(data: bytes) -> None:
        server.line.write(data)
        counts.append(len(reports))

    loop.call_soon(turn, b"second\n")  # behind one that is late
    server.line.write(b"first\n")  # by a task, which goes on first
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    loop.call_soon(turn, b"third\n")
    await asyncio.sleep(0)
    assert counts == [0, 3]
    expected = [b"first\n", b"second\n", b"third\n"]
    assert [report.data for report in reports if type(report) is b.Delivered] == expected
    link.close()


@pytest.mark.req("X4", "R11")
async def test_what_is_sent_after_the_server_hung_up_was_not_sent() -> None:
    server = Answering(at_once=False)
    link, reports = await opened(server)
    server.line.hang_up()
    assert link.send(b"question\n", b.WireId(1))
    await asyncio.sleep(0)
    assert not server.frames
    (lost,) = reports
    assert type(lost) is b.Lost
    assert lost.unsent == {1}


@pytest.mark.req("X4")
async def test_what_a_server_writes_after_it_hung_up_does_not_arrive() -> None:
    server = Answering(at_once=False)
    _, reports = await opened(server)
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: (server.line.hang_up(), server.line.write(b"too late\n")))
    for _ in range(3):
        await asyncio.sleep(0)
    assert [type(report) for report in reports] == [b.Lost]
