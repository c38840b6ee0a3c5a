"""2024-11-05: found out by refusals, or chosen; one stream for all that comes."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast import ProtocolError, TransportError
from tests.http.harness import QUICK, connect, failure, say
from tests.http.rogue import LEGACY, OLD, Legacy, Old, Reply, Request, Rogue, event, fault, notice


def refusing(status: int, body: bytes = b"") -> Rogue:
    """A server that takes no POST, and has no stream either."""

    async def refuse(request: Request, reply: Reply) -> None:
        await reply.body(body, status if request.method == "POST" else 405, "text/plain")

    return Rogue(refuse)


@pytest.mark.req("X3", "L3")
@pytest.mark.parametrize("status", [400, 404, 405])
async def test_it_is_found_out_when_a_post_is_refused(status: int) -> None:
    async with Old() as server:
        good = server.obey

        async def strict(request: Request, reply: Reply) -> None:
            if request.method == "POST" and request.path == server.path:
                await reply.body(b"Cannot POST", status, "text/plain")
            else:
                await good(request, reply)

        server.on["POST"] = strict
        async with connect(server) as client:
            assert await say(client) == "ahoy"
            assert client.protocol_version == OLD
        assert server.said() == [
            "server/discover",
            "initialize",
            "GET",
            "initialize",
            "notifications/initialized",
            "tools/call",
        ]
        paths = [request.path for request in server.posts()]
        assert paths[:2] == ["/mcp"] * 2
        assert set(paths[2:]) == {server.endpoint}


@pytest.mark.req("X3", "X5")
async def test_its_places_can_be_given() -> None:
    """A server that never names its endpoint can still be used."""
    async with Old() as server:

        async def mute(request: Request, reply: Reply) -> None:
            await reply.stream(b": nothing to name\n\n")
            server.stream = reply
            server.changed()
            await reply.gone()

        server.on["GET"] = mute
        client = holdfast.connect(
            base_url=server.url, sse_endpoint=server.path, message_endpoint=server.endpoint
        )
        async with client:
            assert await say(client) == "ahoy"


@pytest.mark.req("X3", "X5")
async def test_it_can_be_chosen() -> None:
    async with Old() as server:
        async with connect(server, transport="sse") as client:
            assert await say(client) == "ahoy"
        assert server.said()[0] == "GET"
        assert {request.path for request in server.posts()} == {server.endpoint}


@pytest.mark.req("X3", "X5", "E2")
async def test_it_can_be_left_out() -> None:
    async with Old() as server:
        async with connect(server, transport="streamable") as client:
            error = await failure(client.open())
        assert "404" in str(error)
        assert "transport='streamable'" in str(error)
        assert server.gets() == []


@pytest.mark.req("X3", "E2")
async def test_when_both_ways_fail_both_stories_are_told() -> None:
    async with refusing(404, b"no such page") as server, connect(server) as client:
        error = await failure(say(client))
        assert "404" in str(error)
        assert "no such page" in str(error)
        assert "405" in str(error)
        assert server.said() == ["server/discover", "initialize", "GET"]


@pytest.mark.req("L3")
async def test_a_modern_error_in_the_refusal_is_no_reason_to_try_the_older_way() -> None:
    async with Legacy() as server:

        async def unknown(request: Request, reply: Reply) -> None:
            await reply.json(fault(request.id, -32601, "Method not found"), 404)

        server.on["server/discover"] = unknown
        async with connect(server) as client:
            assert await say(client) == "ahoy"
            assert client.protocol_version == LEGACY


@pytest.mark.req("X3", "X4")
async def test_an_endpoint_of_another_origin_is_refused_and_hears_nothing() -> None:
    async with Old() as other, Old() as server:
        server.endpoint = other.origin + "/messages"
        async with connect(server, transport="sse", headers={"Authorization": "x"}) as client:
            error = await failure(client.open())
        assert isinstance(error, ProtocolError)
        assert "another origin" in str(error)
        assert other.connections == 0
        assert server.posts() == []


@pytest.mark.req("X3", "X5")
async def test_credentials_go_with_the_stream_and_with_every_message() -> None:
    async with Old() as server:
        async with connect(server, headers=lambda: {"Authorization": "x"}) as client:
            await say(client)
        assert {request.header("Authorization") for request in server.requests} == {"x"}


@pytest.mark.req("X3", "L5", "R11")
async def test_the_loss_of_the_stream_is_a_loss_and_is_made_good() -> None:
    async with Old() as server, connect(server, backoff=QUICK) as client:
        await say(client)
        server.on["tools/call"] = lambda request, reply: reply.status(202)
        call = asyncio.ensure_future(failure(say(client)))
        await server.heard("tools/call", 2)
        assert server.stream is not None
        server.stream.reset()
        error = await call
        assert isinstance(error, TransportError)
        assert error.outcome_unknown
        del server.on["tools/call"]
        await client.wait_ready(20)
        assert await say(client) == "ahoy"
        assert len(server.posts("server/discover")) == 1, "the way is remembered"
        assert len(server.gets()) == 2


@pytest.mark.req("X3", "L5")
async def test_a_restart_is_made_good() -> None:
    async with Old() as server:
        async with connect(server, backoff=QUICK, when_down="wait") as client:
            await say(client)
            await server.stop()
            await server.start()
            await server.until(lambda: len(server.gets()) == 2)
            assert await say(client) == "ahoy"


@pytest.mark.req("X3", "P4", "P7")
async def test_questions_and_pings_on_the_stream_are_answered() -> None:
    async with Old() as server:
        handlers = holdfast.Handlers(roots=["file:///mine"])
        async with connect(server, transport="sse", handlers=handlers) as client:
            await client.open()
            assert server.stream is not None
            for number, method in enumerate(("ping", "roots/list", "no/such")):
                message = {"jsonrpc": "2.0", "id": f"q{number}", "method": method}
                await server.stream.send(event(message))
            await server.until(lambda: len(server.answers()) == 3)
            found = {post.message["id"]: post.message for post in server.answers()}
            assert found["q0"]["result"] == {}
            assert found["q1"]["result"]["roots"][0]["uri"] == "file:///mine"
            assert found["q2"]["error"]["code"] == -32601
            assert {post.path for post in server.answers()} == {server.endpoint}


@pytest.mark.req("X3", "P6")
async def test_notifications_come_in_order() -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with Old() as server, connect(server, transport="sse") as client:
        client.on_notification(lambda one: heard.put_nowait(one.method))
        await client.open()
        assert server.stream is not None
        for number in range(100):
            await server.stream.send(event(notice(f"notifications/{number}")))
        found = [await asyncio.wait_for(heard.get(), 20) for _ in range(100)]
        assert found == [f"notifications/{number}" for number in range(100)]


@pytest.mark.req("X3", "R9")
async def test_a_message_over_the_limit_ends_the_link() -> None:
    limits = holdfast.Limits(frame_bytes=10_000)
    async with Old() as server:
        async with connect(server, transport="sse", limits=limits, backoff=QUICK) as client:
            assert await say(client) == "ahoy"
            error = await failure(say(client, "x" * 20_000))
            assert isinstance(error, ProtocolError)
            assert "10000" in str(error)
            await client.wait_ready(20)
            assert await say(client) == "ahoy"


@pytest.mark.req("X3", "R4")
async def test_a_cancelled_call_is_told_to_the_server() -> None:
    async with Old() as server, connect(server, transport="sse") as client:
        server.on["tools/call"] = lambda request, reply: reply.status(202)
        running = client.start_tool("slow")
        request = await server.heard("tools/call")
        running.cancel()
        told = await server.heard("notifications/cancelled")
        assert told.params["requestId"] == request.id


@pytest.mark.req("X3", "L8")
async def test_closing_ends_the_stream() -> None:
    async with Old() as server:
        async with connect(server) as client:
            await say(client)
        await server.until(lambda: server.standing == 0)
        assert "DELETE" not in server.said()
