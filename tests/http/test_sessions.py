"""2025-03-26 to 2025-11-25: sessions, the server's own stream, resumption."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import AuthError, TransportError
from tests.http.harness import QUICK, connect, failure, say
from tests.http.rogue import (
    LEGACY,
    Gate,
    Legacy,
    Reply,
    Request,
    answer,
    event,
    fault,
    notice,
    text,
)


def ask(number: Any, method: str, params: Any = None) -> bytes:
    """A request of the server's own."""
    return event({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


class Talker(Legacy):
    """Offers a stream of its own, and keeps it for the test to speak on."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[Reply] = []

    async def otherwise(self, request: Request, reply: Reply) -> None:
        if request.method != "GET":
            await super().otherwise(request, reply)
            return
        await reply.stream(b": welcome\n\n")
        self.streams.append(reply)
        self.changed()
        await reply.gone()

    async def stream(self, count: int = 1) -> Reply:
        found: list[Reply] = await self.until(lambda: self.streams[count - 1 : count])
        return found[0]


# Sessions


@pytest.mark.req("X2", "L3")
@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", LEGACY])
async def test_a_session_is_kept_sent_and_deleted(events: bool, version: str) -> None:
    async with Legacy() as server:
        server.events, server.version = events, version
        async with connect(server) as client:
            assert await say(client) == "ahoy"
            assert client.protocol_version == version
        assert server.sessions == [], "deleted"
        said = server.said()
        assert said[:3] == ["server/discover", "initialize", "notifications/initialized"]
        assert said.index("notifications/initialized") < said.index("tools/call")
        assert said[-1] == "DELETE"
        for request in server.requests[2:]:
            assert request.header("Mcp-Session-Id") == "session-1"
            assert request.header("MCP-Protocol-Version") == version
            assert request.header("Mcp-Method") is None
        initialize = server.requests[1]
        assert initialize.header("Mcp-Session-Id") is None


@pytest.mark.req("X2")
async def test_a_server_without_sessions_is_fine() -> None:
    async with Legacy() as server:
        server.named = False
        async with connect(server) as client:
            assert await say(client) == "ahoy"
        assert "DELETE" not in server.said()
        assert {request.header("Mcp-Session-Id") for request in server.requests} == {None}


@pytest.mark.req("X2")
async def test_a_bogus_session_in_the_refusal_of_the_probe_is_not_taken() -> None:
    async def bogus(request: Request, reply: Reply) -> None:
        message = fault("server-error", -32600, "Bad Request: Missing session ID")
        await reply.json(message, 400, Mcp_Session_Id="bogus")

    async with Legacy() as server:
        server.on["server/discover"] = bogus
        async with connect(server) as client:
            assert await say(client) == "ahoy"
        assert "bogus" not in {request.header("Mcp-Session-Id") for request in server.requests}


@pytest.mark.req("X2")
async def test_initialized_is_heard_before_the_first_request() -> None:
    gate = Gate()

    async def slow(request: Request, reply: Reply) -> None:
        await gate()
        await reply.status(202)

    async with Legacy() as server:
        server.on["notifications/initialized"] = slow
        async with connect(server) as client:
            call = asyncio.ensure_future(say(client))
            await server.until(lambda: gate.waiting)
            assert server.posts("tools/call") == []
            gate.open()
            assert await call == "ahoy"


@pytest.mark.req("X2", "L5")
async def test_a_session_that_ended_is_replaced_and_the_call_goes_on_the_new_one() -> None:
    async with Legacy() as server, connect(server) as client:
        await say(client, "one")
        server.sessions.clear()
        assert await say(client, "two") == "two"
        assert server.sessions == ["session-2"]
        assert len(server.posts("server/discover")) == 1, "what it is was known"


@pytest.mark.req("X2", "R2")
async def test_ten_calls_at_once_share_one_new_session() -> None:
    async with Legacy() as server, connect(server) as client:
        await say(client)
        server.sessions.clear()
        found = await asyncio.gather(*(say(client, str(number)) for number in range(10)))
        assert found == [str(number) for number in range(10)]
        assert server.sessions == ["session-2"]


@pytest.mark.req("X2", "R2")
async def test_a_late_404_does_not_replace_the_new_session() -> None:
    gate = Gate()

    async def slow(request: Request, reply: Reply) -> None:
        if request.header("Mcp-Session-Id") == "session-1" and request.tool == "slow":
            await gate()
            await reply.status(404)
        else:
            await server.respond(request, reply)

    async with Legacy() as server, connect(server) as client:
        server.on["tools/call"] = slow
        await client.open()
        late = asyncio.ensure_future(client.call_tool("slow"))
        await server.until(lambda: gate.waiting)
        server.sessions.clear()
        assert await say(client) == "ahoy"
        gate.open()
        assert (await late).text == "slow"
        assert server.sessions == ["session-2"]


@pytest.mark.req("X2", "R2", "E2")
async def test_a_server_that_forgets_every_session_gives_an_error_and_no_loop() -> None:
    async def forgetful(request: Request, reply: Reply) -> None:
        await reply.json(fault(None, -32001, "Session not found"), 404)

    async with Legacy() as server:
        server.on["tools/call"] = forgetful
        async with connect(server) as client:
            error = await failure(say(client))
            assert "Session not found" in str(error)
            await client.ping()
        assert len(server.posts("tools/call")) == 2
        assert len(server.posts("initialize")) == 2


def say_400(server: Legacy) -> None:
    """Have a server answer with 400, not 404, for a session that it does not know."""
    strict = server.handle

    async def careless(request: Request, reply: Reply) -> None:
        session = request.header("Mcp-Session-Id")
        if session is None or session in server.sessions:
            await strict(request, reply)
        else:
            message = "Bad Request: No valid session ID provided"
            await reply.json(fault(None, -32000, message), 400)

    server.handle = careless  # type: ignore[method-assign]


@pytest.mark.req("X2")
async def test_a_server_that_says_400_for_an_unknown_session_is_understood() -> None:
    async with Legacy() as server:
        say_400(server)
        async with connect(server) as client:
            await say(client)
            server.sessions.clear()
            assert await say(client) == "ahoy"


@pytest.mark.req("X2", "P2")
async def test_subscriptions_are_made_again_in_a_new_session() -> None:
    async with Legacy() as server, connect(server) as client:
        await client.subscribe_resource("file:///a")
        server.sessions.clear()
        await say(client)
        again = await server.heard("resources/subscribe", 2)
        assert again.header("Mcp-Session-Id") == "session-2"


@pytest.mark.req("L5", "X2")
async def test_a_restart_between_calls_is_not_noticed() -> None:
    async with Legacy() as server, connect(server) as client:
        await say(client)
        await server.stop()
        server.sessions.clear()
        await server.start()
        assert await say(client) == "ahoy"
        assert server.sessions == ["session-2"]


# The server's own stream


@pytest.mark.req("X2")
@pytest.mark.parametrize("status", [400, 404, 405, 501])
async def test_a_server_without_its_own_stream_is_fine(status: int) -> None:
    async with Legacy() as server:
        server.on["GET"] = lambda request, reply: reply.status(status)
        async with connect(server) as client:
            for _ in range(5):
                assert await say(client) == "ahoy"
        assert len(server.gets()) <= 1
        assert len(server.posts("initialize")) == 1, "404 is no reason to begin again"


@pytest.mark.req("X2", "P6")
async def test_notifications_come_on_the_servers_own_stream() -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with Talker() as server, connect(server) as client:
        client.on_notification(lambda one: heard.put_nowait(one.method))
        await client.open()
        stream = await server.stream()
        await stream.send(event(notice("notifications/tools/list_changed")))
        assert await asyncio.wait_for(heard.get(), 20) == "notifications/tools/list_changed"
        (get,) = server.gets()
        assert get.header("Accept") == "text/event-stream"
        assert get.header("Mcp-Session-Id") == "session-1"


@pytest.mark.req("P7", "X2")
async def test_a_ping_between_calls_is_answered() -> None:
    async with Talker() as server, connect(server) as client:
        await client.open()
        stream = await server.stream()
        for number in range(3):
            await stream.send(ask(f"p{number}", "ping"))
        await server.until(lambda: len(server.answers()) == 3)
        assert sorted(post.message["id"] for post in server.answers()) == ["p0", "p1", "p2"]
        assert {post.header("Mcp-Session-Id") for post in server.answers()} == {"session-1"}


@pytest.mark.req("P4", "X2", "R12")
@pytest.mark.parametrize("own", [True, False])
async def test_a_question_of_the_server_is_answered_by_a_post(own: bool) -> None:
    """It may come on the stream of the call that it belongs to, or on the server's own."""

    async def asking(request: Request, reply: Reply) -> None:
        await reply.stream()
        where = await server.stream() if own else reply
        await where.send(ask(77, "roots/list"))
        found = (await server.until(server.answers))[0].message
        await reply.send(event(answer(request.id, text(found["result"]["roots"][0]["uri"]))))
        await reply.end()

    handlers = holdfast.Handlers(roots=["file:///mine"])
    async with Talker() as server:
        server.on["tools/call"] = asking
        async with connect(server, handlers=handlers) as client:
            assert await say(client) == "file:///mine"


@pytest.mark.req("X2", "L5")
@pytest.mark.parametrize("status", [404, 400])
async def test_the_end_of_a_session_is_noticed_between_calls(status: int) -> None:
    async with Talker() as server, connect(server) as client:
        if status == 400:
            say_400(server)
        await client.open()
        stream = await server.stream()
        server.sessions.clear()
        await stream.send(b"retry: 0\n\n")
        await stream.end()
        stream.close()
        await server.stream(2)
        assert server.gets()[-1].header("Mcp-Session-Id") == "session-2"
        assert await say(client) == "ahoy"


# Resumption


@pytest.mark.req("X2", "R2")
@pytest.mark.parametrize("how", ["end", "close", "reset"])
async def test_a_call_goes_on_where_its_stream_broke(how: str) -> None:
    async def breaking(request: Request, reply: Reply) -> None:
        token = request.params["_meta"]["progressToken"]
        progress = notice("notifications/progress", {"progressToken": token, "progress": 1})
        await reply.stream(event("", id="s-0"), b"retry: 10\n\n", event(progress, id="s-1"))
        server.wire_id = request.id
        if how == "end":
            await reply.end()
        else:
            await server.until(lambda: seen)
            getattr(reply, how)()

    async def resumed(request: Request, reply: Reply) -> None:
        if request.header("Last-Event-ID") is None:
            await reply.status(405)
        else:
            await reply.stream(event(answer(server.wire_id, text("done")), id="s-2"))
            await reply.end()

    class Breaking(Legacy):
        wire_id = 0

    def noted(progress: holdfast.Progress) -> None:
        seen.append(progress.progress)
        server.changed()

    seen: list[float] = []
    async with Breaking() as server:
        server.on.update({"tools/call": breaking, "GET": resumed})
        async with connect(server) as client:
            assert await say(client, on_progress=noted) == "done"
        assert seen == [1]
        (again,) = [get for get in server.gets() if get.header("Last-Event-ID")]
        assert again.header("Last-Event-ID") == "s-1"
        assert again.header("Mcp-Session-Id") == "session-1"
        assert len(server.posts("tools/call")) == 1, "it is not run twice"


@pytest.mark.req("X2")
async def test_the_servers_retry_is_waited_for() -> None:
    """The pause itself is proven without a clock, by Stream.pause; here, that it is used."""

    async def primed(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 60000\n" + event("", id="1"))
        await reply.end()

    async with Legacy() as server:
        server.on["tools/call"] = primed
        async with connect(server) as client:
            error = await failure(say(client, timeout=0.3))
            assert error.kind == "timeout"
        assert not [get for get in server.gets() if get.header("Last-Event-ID")]


@pytest.mark.req("X2", "R11")
async def test_a_stream_without_ids_that_breaks_is_a_loss_of_unknown_outcome() -> None:
    async def breaking(request: Request, reply: Reply) -> None:
        await reply.stream(event(notice("notifications/message", {"data": "x"})))
        reply.reset()

    async with Legacy() as server:
        server.on["tools/call"] = breaking
        async with connect(server) as client:
            error = await failure(say(client))
            assert isinstance(error, TransportError)
            assert error.outcome_unknown
            await client.ping()
        assert len(server.posts("tools/call")) == 1


@pytest.mark.req("X2", "R11")
async def test_a_session_that_ends_under_a_broken_stream_does_not_run_the_call_twice() -> None:
    async def breaking(request: Request, reply: Reply) -> None:
        await reply.stream(b"retry: 0\n" + event("", id="1"))
        server.sessions.clear()
        await reply.end()

    async with Legacy() as server:
        server.on["tools/call"] = breaking
        async with connect(server) as client:
            error = await failure(say(client))
            assert error.outcome_unknown
            del server.on["tools/call"]
            assert await say(client) == "ahoy"
        assert len(server.posts("tools/call")) == 2


# Cancellation and the end


@pytest.mark.req("R4", "R6")
async def test_a_cancelled_call_is_told_to_the_server_once() -> None:
    async def slow(request: Request, reply: Reply) -> None:
        await reply.stream(event(notice("notifications/message", {"data": "x"})))
        await reply.gone()

    async with Legacy() as server:
        server.on["tools/call"] = slow
        async with connect(server) as client:
            running = client.start_tool("slow")
            request = await server.heard("tools/call")
            for _ in range(3):
                running.cancel()
            told = await server.heard("notifications/cancelled")
            assert told.params["requestId"] == request.id
            assert told.header("Mcp-Session-Id") == "session-1"
            await say_nothing(running)
            del server.on["tools/call"]
            assert await say(client) == "ahoy"
        assert len(server.posts("notifications/cancelled")) == 1


async def say_nothing(running: holdfast.calls.RunningCall[Any]) -> None:
    await failure(running)


@pytest.mark.req("L7", "L8")
@pytest.mark.parametrize("status", [200, 202, 204, 404, 405, 500])
async def test_any_answer_to_the_delete_ends_it(status: int) -> None:
    async with Legacy() as server:
        server.on["DELETE"] = lambda request, reply: reply.status(status)
        async with connect(server) as client:
            await client.open()
        assert server.said().count("DELETE") == 1


@pytest.mark.req("L7", "L8")
async def test_a_server_that_stays_silent_cannot_hold_the_end() -> None:
    async with Legacy() as server:
        server.on["DELETE"] = lambda request, reply: reply.gone()
        client = connect(server)
        await client.open()
        async with asyncio.timeout(10):
            assert await client.close()
        assert server.said()[-1] == "DELETE"
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("X2", "E1")
async def test_a_session_whose_credentials_ran_out_says_so() -> None:
    async with Legacy() as server, connect(server, backoff=QUICK) as client:
        await say(client)
        server.on["tools/call"] = lambda request, reply: reply.status(401)
        assert isinstance(await failure(say(client)), AuthError)
        del server.on["tools/call"]
        assert await say(client) == "ahoy"
