"""The in-process transport."""

from __future__ import annotations

import pytest

import holdfast
from holdfast._core.transports.memory import Memory
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
