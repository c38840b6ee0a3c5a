"""2026-07-28: every request a POST of its own, with its headers and its stream."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import holdfast
from holdfast import ProtocolError, RequestTimeout, RpcError
from tests.http.harness import QUICK, connect, failure, say
from tests.http.rogue import (
    LEGACY,
    MODERN,
    Gate,
    Legacy,
    Modern,
    Reply,
    Request,
    answer,
    event,
    fault,
    notice,
    text,
)

META = "io.modelcontextprotocol/"


# Headers


@pytest.mark.req("X2", "L3")
@pytest.mark.parametrize("events", [False, True])
async def test_every_request_is_a_post_with_its_metadata_in_headers(events: bool) -> None:
    async with Modern() as server:
        server.events = events
        async with connect(server) as client:
            assert await say(client) == "ahoy"
            await client.list_tools()
            await client.read_resource("file:///a b.json")
            await client.get_prompt("größe")
            assert client.protocol_version == MODERN
        for request in server.requests:
            assert request.method == "POST"
            assert request.header("MCP-Protocol-Version") == MODERN
            assert request.params["_meta"][META + "protocolVersion"] == MODERN
            assert request.header("Mcp-Method") == request.message["method"]
            assert request.header("Mcp-Session-Id") is None
            accepted = request.header("Accept") or ""
            assert "application/json" in accepted
            assert "text/event-stream" in accepted
        names = {
            request.message["method"]: request.header("Mcp-Name") for request in server.requests
        }
        assert names == {
            "server/discover": None,
            "tools/call": "echo",
            "tools/list": None,
            "resources/read": "file:///a b.json",
            "prompts/get": "=?base64?Z3LDtsOfZQ==?=",
        }


@pytest.mark.req("X2")
async def test_a_session_that_nobody_asked_for_is_not_sent_back() -> None:
    async def forged(request: Request, reply: Reply) -> None:
        await reply.json(answer(request.id, server.result(request)), Mcp_Session_Id="forged")

    async with Modern() as server:
        server.on["server/discover"] = forged
        async with connect(server) as client:
            await say(client)
        assert [request.header("Mcp-Session-Id") for request in server.requests] == [None, None]
        assert server.said() == ["server/discover", "tools/call"], "no GET, no DELETE"


@pytest.mark.req("X2")
async def test_annotated_arguments_are_repeated_and_bad_annotations_hide_their_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def tool(name: str, header: str) -> dict[str, Any]:
        part = {"type": "string", "x-mcp-header": header}
        return {"name": name, "inputSchema": {"type": "object", "properties": {"where": part}}}

    async def listed(request: Request, reply: Reply) -> None:
        tools = [tool("good", "Region"), tool("bad", "not a token")]
        await reply.json(answer(request.id, {"resultType": "complete", "tools": tools}))

    async with Modern() as server:
        server.on["tools/list"] = listed
        async with connect(server) as client:
            assert [tool.name for tool in await client.list_tools()] == ["good"]
            await client.call_tool("good", {"where": "世界"})
            await client.call_tool("good", {})
        first, second = server.posts("tools/call")
        assert first.header("Mcp-Param-Region") == "=?base64?5LiW55WM?="
        assert second.header("Mcp-Param-Region") is None
    assert "bad" in caplog.text


@pytest.mark.req("X2")
async def test_a_header_mismatch_is_cured_by_one_more_look_at_the_list() -> None:
    part = {"type": "string", "x-mcp-header": "Region"}
    tools = [{"name": "t", "inputSchema": {"type": "object", "properties": {"where": part}}}]

    async def listed(request: Request, reply: Reply) -> None:
        await reply.json(answer(request.id, {"resultType": "complete", "tools": tools}))

    async def strict(request: Request, reply: Reply) -> None:
        if request.header("Mcp-Param-Region") is None or broken:
            await reply.json(fault(request.id, -32020, "Header mismatch"), 400)
        else:
            await reply.json(answer(request.id, {"resultType": "complete", **text("ok")}))

    broken = False
    async with Modern() as server:
        server.on.update({"tools/list": listed, "tools/call": strict})
        async with connect(server) as client:
            assert (await client.call_tool("t", {"where": "eu"})).text == "ok"
            broken = True
            error = await failure(client.call_tool("t", {"where": "eu"}))
        assert isinstance(error, RpcError)
        assert error.code == -32020
        assert len(server.posts("tools/call")) == 4, "one retry each"


# Answers


@pytest.mark.req("X2")
async def test_a_pretty_printed_answer_is_read() -> None:
    async def pretty(request: Request, reply: Reply) -> None:
        message = answer(request.id, {"resultType": "complete", **text("one\ntwo")})
        await reply.body(json.dumps(message, indent=4).replace("\n", "\r\n").encode())

    async with Modern() as server:
        server.on["tools/call"] = pretty
        async with connect(server) as client:
            assert await say(client) == "one\ntwo"


@pytest.mark.req("X2")
async def test_an_answer_in_an_event_of_many_lines_is_read() -> None:
    async def pretty(request: Request, reply: Reply) -> None:
        message = answer(request.id, {"resultType": "complete", **text("one\ntwo")})
        await reply.stream(b": hello\r\n\r\n", event(json.dumps(message, indent=1)), b": bye\n\n")
        await reply.end()

    async with Modern() as server:
        server.on["tools/call"] = pretty
        async with connect(server) as client:
            assert await say(client) == "one\ntwo"


@pytest.mark.req("P5", "R3")
async def test_progress_comes_on_the_requests_own_stream() -> None:
    async def slow(request: Request, reply: Reply) -> None:
        token = request.params["_meta"]["progressToken"]
        await reply.stream()
        for number in range(3):
            params = {"progressToken": token, "progress": number}
            await reply.send(event(notice("notifications/progress", params)))
        await reply.send(event(answer(request.id, {"resultType": "complete", **text("done")})))
        await reply.end()

    seen: list[float] = []
    async with Modern() as server:
        server.on["tools/call"] = slow
        async with connect(server) as client:
            assert await say(client, on_progress=lambda one: seen.append(one.progress)) == "done"
        assert seen == [0, 1, 2]


@pytest.mark.req("R2")
async def test_an_answer_to_another_request_is_nobodys_data() -> None:
    gate = Gate()
    ids: list[int] = []

    async def swapped(request: Request, reply: Reply) -> None:
        ids.append(request.id)
        server.changed()
        await server.until(lambda: len(ids) == 2)
        other = ids[0] if request.id == ids[1] else ids[1]
        result = {"resultType": "complete", **text(f"secret of {other}")}
        if server.events:
            await reply.stream(event(answer(other, result)))
            await gate()
        else:
            await reply.json(answer(other, result))

    for events in (False, True):
        ids.clear()
        async with Modern() as server:
            server.events = events
            server.on["tools/call"] = swapped
            async with connect(server) as client:
                await client.open()
                errors = await asyncio.gather(failure(say(client)), failure(say(client)))
                for error in errors:
                    assert isinstance(error, ProtocolError)
                    assert "secret" not in str(error)
                del server.on["tools/call"]
                assert await say(client) == "ahoy"
            gate.open()


# Cancellation


@pytest.mark.req("R4", "R6")
@pytest.mark.parametrize("head", [True, False])
async def test_closing_the_stream_is_the_cancellation(head: bool) -> None:
    gone = asyncio.Event()

    async def slow(request: Request, reply: Reply) -> None:
        if head:
            await reply.stream(event(notice("notifications/message", {"data": "begun"})))
        await reply.gone()
        gone.set()

    async with Modern() as server:
        server.on["tools/call"] = slow
        async with connect(server) as client:
            running = client.start_tool("slow", {})
            await server.heard("tools/call")
            assert running.cancel()
            await failure(running)
            await asyncio.wait_for(gone.wait(), 20)
            del server.on["tools/call"]
            assert await say(client) == "ahoy"
        assert set(server.said()) == {"server/discover", "tools/call"}, "no notification"


@pytest.mark.req("R4", "R3")
async def test_a_timeout_closes_the_stream_too_and_harms_no_other_call() -> None:
    gone = asyncio.Event()
    gate = Gate()

    async def slow(request: Request, reply: Reply) -> None:
        if request.tool == "other":
            await gate()
            await server.respond(request, reply)
            return
        await reply.stream(event(notice("notifications/message", {"data": "begun"})))
        await reply.gone()
        gone.set()

    async with Modern() as server:
        server.on["tools/call"] = slow
        async with connect(server) as client:
            other = asyncio.ensure_future(client.call_tool("other"))
            await server.heard("tools/call")
            error = await failure(client.call_tool("slow", timeout=0.05))
            assert isinstance(error, RequestTimeout)
            assert error.outcome_unknown
            await asyncio.wait_for(gone.wait(), 20)
            gate.open()
            assert (await other).text == "other"


# Subscriptions


def _listening(server: Modern, streams: list[Reply]) -> Any:
    async def listen(request: Request, reply: Reply) -> None:
        meta = {META + "subscriptionId": request.id}
        wanted = request.params["notifications"]
        params = {"_meta": meta, "notifications": wanted}
        await reply.stream(event(notice("notifications/subscriptions/acknowledged", params)))
        streams.append(reply)
        server.changed()
        await reply.gone()

    return listen


@pytest.mark.req("P2", "X2")
async def test_a_subscription_is_one_long_stream_that_comes_back_after_loss() -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    streams: list[Reply] = []
    async with Modern() as server:
        server.capabilities = {"resources": {"subscribe": True}}
        server.on["subscriptions/listen"] = _listening(server, streams)
        async with connect(server, backoff=QUICK) as client:
            client.on_notification(
                lambda one: heard.put_nowait(one.method), "notifications/resources/updated"
            )
            await client.subscribe_resource("file:///a")
            changed = event(notice("notifications/resources/updated", {"uri": "file:///a"}))
            await streams[-1].send(b":\r\n\r\n", changed)
            assert await asyncio.wait_for(heard.get(), 20)
            before = len(streams)
            streams[-1].reset()
            await server.until(lambda: len(streams) > before)
            await streams[-1].send(changed)
            assert await asyncio.wait_for(heard.get(), 20)
            assert await say(client) == "ahoy"
        request = server.posts("subscriptions/listen")[-1]
        assert request.params["notifications"]["resourceSubscriptions"] == ["file:///a"]
        assert request.header("Mcp-Method") == "subscriptions/listen"
        assert request.header("Last-Event-ID") is None
        assert {one.method for one in server.requests} == {"POST"}


@pytest.mark.req("P2", "R4")
async def test_unsubscribing_closes_the_stream() -> None:
    streams: list[Reply] = []
    async with Modern() as server:
        server.on["subscriptions/listen"] = _listening(server, streams)
        async with connect(server) as client:
            await client.subscribe_resource("file:///a")
            await client.unsubscribe_resource("file:///a")
            await server.until(lambda: streams[0].over)
        assert "notifications/cancelled" not in server.said()


# Eras


def _refusing(code: int, status: int = 400, data: Any = None) -> Any:
    async def refuse(request: Request, reply: Reply) -> None:
        await reply.json(fault(request.id, code, "no", data), status)

    return refuse


@pytest.mark.req("L3")
async def test_a_modern_server_of_other_revisions_is_taken_at_its_word() -> None:
    async with Legacy() as server:
        server.version = "2025-06-18"
        supported = {"supported": ["2025-06-18", "2099-01-01"], "requested": MODERN}
        server.on["server/discover"] = _refusing(-32022, data=supported)
        async with connect(server) as client:
            await say(client)
            assert client.protocol_version == "2025-06-18"
        first = server.posts("initialize")[0]
        assert first.params["protocolVersion"] == "2025-06-18"


@pytest.mark.req("L3", "E2")
async def test_no_revision_in_common_is_told_without_a_fallback() -> None:
    async with Legacy() as server:
        server.on["server/discover"] = _refusing(-32022, data={"supported": ["2099-01-01"]})
        async with connect(server) as client:
            error = await failure(client.open())
        assert "2099-01-01" in str(error)
        assert server.said() == ["server/discover"]


@pytest.mark.req("L3")
async def test_a_server_that_discovers_older_revisions_only_is_greeted_the_older_way() -> None:
    async with Modern() as server:
        server.versions = ("2025-06-18",)

        async def greet(request: Request, reply: Reply) -> None:
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
            await reply.json(answer(request.id, result))

        server.on["initialize"] = greet
        async with connect(server) as client:
            await client.open()
            assert client.protocol_version == "2025-06-18"


@pytest.mark.req("L3")
async def test_the_verdict_is_remembered() -> None:
    async with Modern() as modern, Legacy() as legacy:
        for server in (modern, legacy):
            for _ in range(2):
                async with connect(server) as client:
                    await say(client)
        assert modern.said() == ["server/discover", "tools/call"] * 2
        assert len(legacy.posts("server/discover")) == 1
        assert len(legacy.posts("initialize")) == 2


@pytest.mark.req("L3")
async def test_a_server_that_was_replaced_by_one_of_the_other_era_is_found_out() -> None:
    async with Legacy() as old:
        async with connect(old) as client:
            await say(client)
    async with Modern() as new:
        holdfast._core.eras.conversation.remember(("http", new.url), "initialize")
        async with connect(new, backoff=QUICK) as client:
            await client.wait_ready(20)
            assert client.protocol_version == MODERN


@pytest.mark.req("L3")
async def test_a_pin_is_kept() -> None:
    async with Legacy() as server:
        async with connect(server, protocol=LEGACY) as client:
            await say(client)
        assert server.said()[0] == "initialize"
        async with connect(server, protocol=MODERN) as client:
            error = await failure(client.open())
        assert "does not speak 2026-07-28" in str(error)
