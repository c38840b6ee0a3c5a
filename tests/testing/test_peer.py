"""The scripted peer, as those who test with it use it."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest


@pytest.mark.req("X4")
async def test_functions_become_tools() -> None:
    peer = Peer()

    @peer.tool(description="adds", output_schema={"type": "object"})
    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    async with holdfast.connect(peer) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("add", "adds")
        assert tool.output_schema == {"type": "object"}
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
        assert (await client.call_tool("add", {"wrong": 1})).is_error


@pytest.mark.req("X4")
@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE, HANDSHAKE[2:]])
async def test_it_speaks_the_revisions_it_is_told_to(versions: tuple[str, ...]) -> None:
    async with holdfast.connect(Peer(versions=versions)) as client:
        await client.open()
        assert client.protocol_version == versions[0]


@pytest.mark.req("X4")
async def test_an_answer_can_be_replaced_refused_or_withheld() -> None:
    peer = Peer()

    def refuse(request: ServerRequest) -> None:
        raise RequestError(-32000, "not today", {"why": request.params["uri"]})

    peer.on("resources/list", {"resources": [{"uri": "x://y", "name": "y"}]})
    peer.on("resources/read", refuse)
    peer.on("prompts/list", SILENCE)
    async with holdfast.connect(peer) as client:
        assert (await client.list_resources())[0].uri == "x://y"
        with pytest.raises(holdfast.RpcError, match="not today") as caught:
            await client.read_resource("x://y")
        assert (caught.value.code, caught.value.data) == (-32000, {"why": "x://y"})
        times = holdfast.Timeouts(prompts=0.05)
        async with holdfast.connect(peer, timeouts=times) as hasty:
            with pytest.raises(TimeoutError):
                await hasty.list_prompts()


async def test_a_withheld_answer_can_be_given_later() -> None:
    peer = Peer()
    peer.on("tools/call", SILENCE)
    async with holdfast.connect(peer) as client:
        call = client.start_tool("x")
        request = await peer.expect("tools/call")
        peer.respond(request, {"content": [{"type": "text", "text": "late"}]})
        assert (await call).text == "late"


def test_acting_without_a_client_is_told_so() -> None:
    with pytest.raises(RuntimeError, match="no client"):
        Peer().notify("x")


@pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE])
async def test_a_cancelled_call_is_cancelled_in_its_tool(versions: tuple[str, ...]) -> None:
    peer = Peer(versions=versions)
    begun, ended = asyncio.Event(), asyncio.Event()

    @peer.tool()
    async def slow() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "done"

    async with holdfast.connect(peer) as client:
        call = client.start_tool("slow")
        await begun.wait()
        call.cancel()
        await ended.wait()
        await client.ping()
        assert client.violations == {}
